"""`tilec.ops.torch.matmul` with torch on the CPU, the kernel on the emulator; skipped without
torch. test/gpu has the same on a GPU, and `torch.compile` with its default backend."""

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

import tilec  # noqa: E402
from tilec.ops import plain_product  # noqa: E402
from tilec.ops.plain_product import GradientWanted  # noqa: E402
from tilec.ops.torch import _gradients, _operator, matmul  # noqa: E402
from tilec.runtime.errors import ArgumentError  # noqa: E402
from tilec.runtime.operator_gradient import register  # noqa: E402


@pytest.fixture(autouse=True)
def emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_DEVICE", "emulator")
    torch.manual_seed(0)


def test_tensors_go_in_and_come_out() -> None:
    a, b = torch.randn(9, 40).bfloat16(), torch.randn(17, 40).bfloat16().t()
    found = tilec.ops.matmul(a, b, out_dtype=torch.float32)
    torch.testing.assert_close(found, a.float() @ b.float())
    scaled = matmul(
        a.to(torch.float8_e4m3fn),
        b.to(torch.float8_e5m2),
        scale=torch.tensor(2.0),
        row_scale=torch.rand(9),
    )
    assert (scaled.dtype, scaled.shape) == (torch.bfloat16, (9, 17))


def test_the_operator_is_what_torch_expects() -> None:
    a, b, bias = torch.randn(2, 5, 16), torch.randn(16, 7), torch.randn(7)
    for dtype in (None, torch.float16):
        options = (dtype, None, "ieee", False, "b")
        arguments = (a, b, bias, "silu", None, 2.0, None, None, None, *options)
        torch.library.opcheck(_operator, arguments)


def test_the_operator_of_gradients_is_what_torch_expects() -> None:
    gradient, a, b = torch.randn(2, 5, 7), torch.randn(2, 5, 16), torch.randn(16, 7)
    for wanted in ((True, True), (False, True)):
        torch.library.opcheck(_gradients, (gradient, a, b, *wanted, "ieee"))


def test_a_step_multiplies_three_times() -> None:
    """Once forward, and once for each gradient: what an activation was given is kept."""
    seen = []

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(
            self, op: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if op.namespace == "tilec":
                seen.append(op)
            return op(*args, **(kwargs or {}))

    a, b = torch.randn(5, 8, requires_grad=True), torch.randn(8, 6, requires_grad=True)
    with Watch():
        matmul(a, b, activation="silu").sum().backward()
    assert seen == [_operator, _gradients]


@pytest.mark.parametrize("dtype", [torch.float16, torch.int8, torch.float8_e5m2])
def test_the_shape_function_agrees_with_the_operator(dtype: Any) -> None:
    a, b = torch.ones(3, 1, 5, 8).to(dtype), torch.ones(2, 8, 6).to(dtype)
    for named in ({}, {"activation": "relu"}, {"out_dtype": torch.float32}):
        real = matmul(a, b, **named)
        with torch._subclasses.FakeTensorMode() as mode:
            fake = matmul(mode.from_tensor(a), mode.from_tensor(b), **named)
        assert (fake.shape, fake.dtype, fake.stride()) == (real.shape, real.dtype, real.stride())


def test_a_compiled_function_keeps_it_whole() -> None:
    def layer(x: Any, weight: Any, bias: Any) -> Any:
        return matmul(x, weight, bias=bias, activation="gelu") + 1

    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    weight, bias = torch.randn(16, 8), torch.randn(8)
    for rows in (3, 5):
        x = torch.randn(rows, 16)
        expected = torch.nn.functional.gelu(x @ weight + bias) + 1
        torch.testing.assert_close(compiled(x, weight, bias), expected)


def test_the_plain_call_is_the_operator_inside_a_compiled_function() -> None:
    graphs: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    def layer(x: Any, weight: Any) -> Any:
        return tilec.ops.matmul(x, weight.t(), activation="relu", scale=0.5) + 1

    x, weight = torch.randn(9, 16), torch.randn(8, 16)
    found = torch.compile(layer, backend=backend, fullgraph=True)(x, weight)
    torch.testing.assert_close(found, torch.relu(0.5 * (x @ weight.t())) + 1)
    (graph,) = graphs
    targets = [node.target for node in graph.graph.nodes]
    assert targets.count(torch.ops.tilec.matmul.default) == 1

    out = torch.empty(9, 8)
    with pytest.raises(Exception, match="argument 'out': where torch traces a product or"):
        torch.compile(lambda: tilec.ops.matmul(x, weight.t(), out), fullgraph=True)()


SLOPES = {
    None: lambda z: z,
    "relu": torch.relu,
    "gelu": torch.nn.functional.gelu,
    "gelu_tanh": lambda z: torch.nn.functional.gelu(z, approximate="tanh"),
    "silu": torch.nn.functional.silu,
}


@pytest.mark.parametrize("activation", list(SLOPES))
def test_gradients_are_torchs(activation: str | None) -> None:
    shapes = {"a": (3, 5, 20), "b": (20, 7), "bias": (7,), "residual": (5, 1)}
    leaves = {
        name: torch.randn(shape, dtype=torch.float64, requires_grad=True)
        for name, shape in shapes.items()
    }
    a, b, bias, residual = leaves.values()
    rows = torch.rand(5, dtype=torch.float64)
    found = tilec.ops.matmul(
        a, b, bias=bias, activation=activation, scale=0.7, row_scale=rows, residual=residual
    )
    expected = SLOPES[activation](0.7 * rows[:, None] * (a @ b) + bias) + residual
    torch.testing.assert_close(found, expected)
    ours = torch.autograd.grad(found.sin().sum(), list(leaves.values()))
    theirs = torch.autograd.grad(expected.sin().sum(), list(leaves.values()))
    for one, two in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, two)


def test_a_gradient_has_one() -> None:
    a, b = (torch.randn(4, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    (ours,), (theirs,) = (
        torch.autograd.grad(f(a, b).sin().sum(), [a], create_graph=True)
        for f in (matmul, torch.matmul)
    )
    for one, two in zip(
        *(torch.autograd.grad(d.sum(), [a, b]) for d in (ours, theirs)), strict=True
    ):
        torch.testing.assert_close(one, two)


def test_a_call_that_goes_to_memory_is_dispatched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = torch.randn(5, 16, requires_grad=True), torch.randn(16, 7)
    monkeypatch.setattr(_operator, "redispatch", None)
    torch.testing.assert_close(matmul(a, b), a @ b)
    with torch.no_grad():
        torch.testing.assert_close(matmul(a, b), a @ b)


def test_a_schema_with_defaults_gets_no_gradient_so() -> None:
    library = torch.library.Library("tilec_test", "DEF")
    library.define("scaled(Tensor x, float by=2.0) -> Tensor")
    with pytest.raises(ValueError, match="its schema has defaults"):
        register(library, torch.ops.tilec_test.scaled.default, None, None, None)


def test_a_call_that_wants_a_gradient_is_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = torch.randn(5, 16, requires_grad=True), torch.randn(16, 7)
    tilec.ops.matmul(a, b)
    monkeypatch.setattr(plain_product, "prepared", None)
    with pytest.raises(GradientWanted, match="argument 'a': the tensor requires a gradient"):
        plain_product.multiply_plain(
            (a, b, *[None] * 6), (None, False, None, None, "ieee"), (), 1.0, None, None, False
        )


def test_what_has_no_gradient_says_so() -> None:
    a, b = torch.randn(4, 8), torch.randn(8, 4)
    with pytest.raises(ArgumentError, match="'row_scale': there is no gradient with respect to"):
        matmul(a, b, row_scale=torch.rand(4, requires_grad=True))
    with pytest.raises(ArgumentError, match="argument 'out': where torch traces a product or"):
        tilec.ops.matmul(a, b.requires_grad_(), torch.empty(4, 4))
    with pytest.raises(ArgumentError, match="functions of the tile language are for"):
        matmul(a, b, activation=torch.relu)  # type: ignore[arg-type]
    vector = torch.randn(8, requires_grad=True)
    with pytest.raises(ArgumentError, match="give vectors a dimension of size 1"):
        matmul(a, vector).sum().backward()


def test_autocast_changes_no_dtype() -> None:
    """Of calls and of compiled ones; dtypes that do not go together are told."""
    a, b = torch.randn(5, 8), torch.randn(8, 6)
    compiled = torch.compile(matmul, backend="aot_eager", fullgraph=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for function in (matmul, tilec.ops.matmul, compiled):
            torch.testing.assert_close(function(a, b), a.double().matmul(b.double()).float())
        with pytest.raises(ArgumentError, match="argument 'b': expected dtype bf16 like 'a', foun"):
            tilec.ops.matmul((a @ b).T, a)
