"""`tilec.autograd` with torch on the CPU, kernels on the emulator; skipped without torch.

The kernels are those of the page tilec/torch/README.md, whose code runs here.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

import tilec  # noqa: E402
from tilec.runtime.errors import ArgumentError  # noqa: E402

PAGE = Path(__file__).resolve().parents[2] / "tilec" / "torch" / "README.md"


@pytest.fixture(autouse=True)
def emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_DEVICE", "emulator")
    torch._dynamo.reset()
    torch.manual_seed(0)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the code of the page defines, as a module, which Dynamo imports again."""
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    folder = tmp_path_factory.mktemp("page")
    (folder / "torch_page.py").write_text("\n".join(blocks))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILEC_DEVICE", "emulator")
        patch.syspath_prepend(folder)
        return vars(importlib.import_module("torch_page"))


def reference(x: Any, weight: Any) -> Any:
    """What `rms_norm` of the page computes."""
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True)) * weight


def loss_of(norm: Callable[..., Any]) -> Callable[..., Any]:
    """A function around it that has an operator in front and behind."""
    return lambda x, weight: (norm(x.sin(), weight) ** 3).sum()


def gradients(loss: Callable[..., Any], *inputs: Any) -> Any:
    """Of a loss with respect to all inputs."""
    leaves = [value.clone().requires_grad_() for value in inputs]
    return torch.autograd.grad(loss(*leaves), leaves)


def data(rows: int = 6, columns: int = 20) -> tuple[Any, Any]:
    return torch.rand(rows, columns), torch.rand(columns)


def test_the_page_runs_and_is_right(page: dict[str, Any]) -> None:
    assert page["weight"].grad.shape == (30,)
    x, weight = data()
    torch.testing.assert_close(page["normalized"](x, weight), reference(x, weight).relu())


def test_gradients_are_torchs(page: dict[str, Any]) -> None:
    norm, inputs = page["rms_norm"], data()
    expected = gradients(loss_of(reference), *inputs)
    torch.testing.assert_close(gradients(loss_of(norm), *inputs), expected)
    torch.testing.assert_close(torch.func.grad(loss_of(norm), (0, 1))(*inputs), expected)
    x, weight = (value[..., :5].double().requires_grad_() for value in data(2))
    assert torch.autograd.gradcheck(norm, (x, weight))


def test_compiled_gradients_of_any_size(page: dict[str, Any]) -> None:
    loss = torch.compile(
        loss_of(page["rms_norm"]), backend="aot_eager", fullgraph=True, dynamic=True
    )
    for inputs in (data(), data(7, 33)):
        expected = gradients(loss_of(reference), *inputs)
        torch.testing.assert_close(gradients(loss, *inputs), expected)


def test_batches(page: dict[str, Any]) -> None:
    x, weight = torch.rand(3, 6, 20), torch.rand(20)
    norm = page["rms_norm"]
    torch.testing.assert_close(torch.vmap(norm, (0, None))(x, weight), reference(x, weight))
    ours, theirs = (
        torch.vmap(torch.func.grad(loss_of(each), (0, 1)), (0, None))(x, weight)
        for each in (norm, reference)
    )
    torch.testing.assert_close(ours, theirs)


def test_what_is_kept_and_what_comes_out() -> None:
    """Several results, one without a gradient; a result, an input, other tensors and numbers kept;
    an input that is no tensor."""
    seen: list[Any] = []

    def forward(x: Any, power: int) -> Any:
        y, flags = x**power, x > 0.5
        return (y, flags), (y, power, x, flags, x.log())

    def backward(kept: Any, dy: Any, dflags: Any) -> Any:
        y, power, x, flags, logarithm = kept
        seen.append((power, flags.dtype, torch.equal(logarithm, x.log())))
        return dy * power * y / x, None

    operation = tilec.autograd(forward, backward)
    x = torch.rand(8, requires_grad=True)
    y, flags = operation(x, 3)
    assert (y.requires_grad, flags.requires_grad) == (True, False)
    torch.testing.assert_close(torch.autograd.grad(y.sum(), x)[0], 3 * x**2)
    assert seen == [(3, torch.bool, True)]
    with torch.no_grad():
        assert not operation(x, 3)[0].requires_grad


@pytest.mark.parametrize("keeps_inputs", [True, False])
def test_a_second_derivative_is_refused(keeps_inputs: bool) -> None:
    """Also where nothing that backward computes with is known to depend on an input."""

    def forward(x: Any) -> Any:
        return x.exp(), (x if keeps_inputs else x.exp().detach(),)

    def backward(kept: Any, dy: Any) -> Any:
        return (dy * (kept[0].exp() if keeps_inputs else kept[0]),)

    operation = tilec.autograd(forward, backward)
    x = torch.rand(8, requires_grad=True)
    (first,) = torch.autograd.grad(operation(x).sum(), x, create_graph=True)
    torch.testing.assert_close(first.detach(), x.exp().detach())
    with pytest.raises(ArgumentError, match=r"forward: tilec\.autograd has no second derivative"):
        torch.autograd.grad(first.sum() + x.sum(), x)
    nested = torch.func.grad(lambda x: torch.func.grad(lambda x: operation(x).sum())(x).sum())
    with pytest.raises(ArgumentError, match="no second derivative"):
        nested(x.detach())


def test_tangents_are_not_lost(page: dict[str, Any]) -> None:
    x, weight = data()
    y, scales = torch.empty_like(x), torch.empty(6)
    launch = lambda x: page["norm"](x, weight, y, scales, 20)  # noqa: E731
    with pytest.raises(ArgumentError, match="argument 'x': a tensor that requires a gradient"):
        torch.func.jvp(lambda x: (launch(x), x)[1], (x,), (x,))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, x)
        with pytest.raises(ArgumentError, match="argument 'x': a tensor that requires a gradient"):
            launch(dual)
        with pytest.raises(NotImplementedError, match="jvp"):
            page["rms_norm"](dual, weight)


@pytest.mark.parametrize(
    ("forward", "backward", "message"),
    [
        (lambda x: x + 1, None, "expected its results and a tuple of what backward needs, found T"),
        (lambda x: (x, ()), None, "expected new tensors as results, found Tensor"),
        (lambda x: ((x + 1, 3), ()), None, "expected new tensors as results, found int"),
        (
            lambda x: (x + 1, ()),
            lambda kept, dy: dy,
            "expected a tuple of 1 gradients, one an input, found Tensor",
        ),
        (lambda x: (x + 1, ()), lambda kept, dy: (dy, dy), "found a tuple of 2"),
    ],
)
def test_mistakes(forward: Any, backward: Any, message: str) -> None:
    x = torch.rand(3, requires_grad=True)
    with pytest.raises(ArgumentError, match=f"<lambda>: .*{message}"):
        tilec.autograd(forward, backward)(x).sum().backward()
