"""Norms and losses with gradients, as torch's own give them; whole in `torch.compile`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from tilec.torch import layers  # noqa: E402

functional: Any = torch.nn.functional
torch.manual_seed(0)
TOLERANCE = {"float32": 3e-6, "float16": 2e-3, "bfloat16": 2e-2}
"""Relative to the largest element: rounding of results, and of what torch rounds between."""

Case = tuple[Callable[..., Any], Callable[..., Any]]
CASES: dict[str, Case] = {
    "rms": (
        lambda x, w, b: layers.rms_norm(x, w, 1e-3),
        lambda x, w, b: functional.rms_norm(x, w.shape, w, 1e-3),
    ),
    "layer": (
        lambda x, w, b: layers.layer_norm(x, w, b, 1e-3),
        lambda x, w, b: functional.layer_norm(x, w.shape, w, b, 1e-3),
    ),
}


def near(found: Any, expected: Any, dtype: str) -> None:
    assert (found.dtype, found.shape) == (getattr(torch, dtype), expected.shape)
    off = (found.double() - expected).abs().max() / expected.abs().max()
    assert off <= TOLERANCE[dtype]


def with_slopes(function: Callable[..., Any], dy: Any, *inputs: Any) -> list[Any]:
    """The result, and the gradients of what has one."""
    leaves = [x.detach().clone().requires_grad_(x.is_floating_point()) for x in inputs]
    y = function(*leaves)
    y.backward(dy.to(y.dtype))
    return [y.detach(), *(x.grad for x in leaves if x.grad is not None)]


@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("kind", list(CASES))
@pytest.mark.parametrize("shape", [(7, 50), (2, 3, 129), (300, 5)])
def test_norms(kind: str, shape: tuple[int, ...], dtype: str) -> None:
    """More rows than programs hold, rows that fill no tile, leading axes."""
    ours, torchs = CASES[kind]
    x, dy = torch.randn(2, *shape).to(getattr(torch, dtype))
    w, b = torch.randn(2, shape[-1]).to(x.dtype)
    expected = with_slopes(torchs, dy.double(), *(t.double() for t in (x, w, b)))
    for found, wanted in zip(with_slopes(ours, dy, x, w, b), expected, strict=True):
        near(found, wanted, dtype)


@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_losses(smoothing: float, dtype: str) -> None:
    z = 4 * torch.randn(6, 301).to(getattr(torch, dtype))
    labels = torch.tensor([300, -100, 0, 7, 7, 150])
    dlosses = torch.rand(6)
    how = {"reduction": "none", "label_smoothing": smoothing}
    expected = with_slopes(
        lambda x, labels: functional.cross_entropy(x, labels, **how), dlosses, z.double(), labels
    )
    found = with_slopes(lambda x, y: layers.cross_entropy(x, y, smoothing), dlosses, z, labels)
    near(found[0], expected[0], "float32")
    near(found[1], expected[1], dtype)


def test_a_loss_keeps_logits_and_a_number_a_row() -> None:
    z, labels = torch.randn(5, 30, requires_grad=True), torch.tensor([29, 0, 1, -100, 7])
    kept: list[torch.Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x) or x, lambda x: x):
        layers.cross_entropy(z, labels)
    beside = sum(x.numel() for x in kept if x.data_ptr() != z.data_ptr())
    assert beside == 10  # labels, and the logarithms of sums


def test_a_label_that_is_no_class_has_no_loss() -> None:
    z, labels = torch.randn(5, 30), torch.tensor([29, 30, -1, -100, 2**40])
    for smoothing in (0.0, 0.2):
        found = layers.cross_entropy(z, labels, smoothing)
        assert found.isnan().tolist() == [False, True, True, False, True]


@pytest.mark.parametrize("kind", list(CASES))
def test_norms_of_rows_that_lie_otherwise(kind: str) -> None:
    """Transposed, in steps, and a row alone."""
    ours, torchs = CASES[kind]
    for x in (
        torch.randn(40, 9).t(),
        torch.randn(2, 40, 3).transpose(1, 2),
        torch.randn(5, 80)[:, ::2],
        torch.randn(40),
    ):
        w, b, dy = torch.randn(40), torch.randn(40), torch.randn(x.shape)
        wide = (t.double() for t in (x, w, b))
        expected = with_slopes(torchs, dy.double(), *wide)
        leaf = x.detach().requires_grad_()
        y = ours(leaf, w, b)
        y.backward(dy)
        near(y.detach(), expected[0], "float32")
        near(leaf.grad, expected[1], "float32")


def test_they_stay_whole_in_a_graph() -> None:
    def model(x: Any, w: Any, b: Any, labels: Any) -> Any:
        y = layers.layer_norm(layers.rms_norm(x, w).relu(), w, b)
        return layers.cross_entropy(y, labels).mean()

    x, w, b = torch.randn(5, 40), torch.randn(40), torch.randn(40)
    labels = torch.tensor([0, 39, 2, -100, 7])
    one = torch.ones(())
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    expected = with_slopes(model, one, x, w, b, labels)
    for found, wanted in zip(with_slopes(compiled, one, x, w, b, labels), expected, strict=True):
        torch.testing.assert_close(found, wanted, rtol=0, atol=0)


def test_what_needs_no_gradient_keeps_nothing() -> None:
    x, w = torch.randn(3, 20), torch.randn(20)
    assert layers.rms_norm(x, w).grad_fn is None
    with torch.no_grad():
        assert layers.rms_norm(x, w.requires_grad_()).grad_fn is None
