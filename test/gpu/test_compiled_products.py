"""`tilec.ops` inside `torch.compile` on a real GPU; runs without pytest, too: python FILE.

Graphs must keep the operator whole (`fullgraph=True`, and it is looked for in the graph and in
Inductor's code); results are compared with float64.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from gpu_marks import needs_gpu  # noqa: E402
from torch_checks import check, needs_torch, random, run_tests  # noqa: E402

import tilec  # noqa: E402

pytestmark = needs_gpu()

try:
    import torch

    from tilec.ops import torch as operator
except ImportError:
    torch: Any = None
    operator: Any = None

TOLERANCE = {"bfloat16": 1e-2, "float16": 2e-3}


class Kept:
    """A compiled function: `graphs` are those that torch traced, all of them for Inductor."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        self.graphs: list[Any] = []
        self._call = torch.compile(function, backend=self._compile, fullgraph=True, **options)

    def _compile(self, graph: Any, inputs: Any) -> Any:
        self.graphs.append(graph)
        return torch._inductor.compile(graph, inputs)

    def __call__(self, *arguments: Any) -> Any:
        """The function's result."""
        return self._call(*arguments)

    def products(self) -> list[int]:
        """How many calls of the operator each graph has."""
        return [_products(graph) for graph in self.graphs]


def _products(graph: Any) -> int:
    targets = [node.target for node in graph.graph.nodes]
    return targets.count(torch.ops.tilec.matmul.default)


def test_a_layer_of_any_size_is_one_graph() -> None:
    """Batches, bias, activation and residual, b transposed; sizes are symbols of one graph."""
    needs_torch()

    def layer(x: Any, weight: Any, bias: Any, residual: Any) -> Any:
        y = tilec.ops.matmul(x, weight.t(), bias=bias, activation="gelu", residual=residual)
        return y.float() * 2

    gelu = torch.nn.functional.gelu
    for name, tolerance in TOLERANCE.items():
        dtype = getattr(torch, name)
        compiled = Kept(layer, dynamic=True)
        for batch, rows, k, n in ((2, 33, 64, 72), (3, 257, 200, 96), (5, 128, 1031, 40)):
            x, weight = random(batch, rows, k, dtype=dtype), random(n, k, dtype=dtype)
            bias, residual = random(n, dtype=dtype), random(batch, rows, n, dtype=dtype)
            product = x.double() @ weight.double().t() + bias.double()
            expected = 2 * (gelu(product) + residual.double())
            check(compiled(x, weight, bias, residual), expected, tolerance)
        assert compiled.products() == [1], compiled.products()


def test_views_reach_the_kernel_as_they_are() -> None:
    """Strides, offsets, transposition and broadcasting: made outside and inside the graph."""
    needs_torch()

    def views(a: Any, b: Any) -> Any:
        first = tilec.ops.matmul(a, b)
        second = tilec.ops.matmul(b.mT[:, 1:], a.mT, out_dtype=torch.float32)
        third = tilec.ops.matmul(a.expand(2, 3, 33, 48), b[0, :, ::2], scale=0.5)
        return first, second, third

    compiled = Kept(views)
    a = random(3, 66, 50, dtype=torch.bfloat16)[:, ::2, 1:49]
    b = random(3, 40, 48, dtype=torch.bfloat16).mT
    first, second, third = compiled(a, b)
    x, y = a.double(), b.double()
    check(first, x @ y, 1e-2)
    check(second, y.mT[:, 1:] @ x.mT, 1e-5)
    check(third, 0.5 * (x.expand(2, 3, 33, 48) @ y[0, :, ::2]), 1e-2)
    assert compiled.products() == [3]


def test_inductors_code_calls_the_operator() -> None:
    needs_torch()
    from torch._inductor.utils import run_and_get_code

    compiled = torch.compile(lambda a, b: tilec.ops.matmul(a, b).relu(), fullgraph=True)
    a, b = random(64, 128, dtype=torch.float16), random(128, 96, dtype=torch.float16)
    found, (code,) = run_and_get_code(compiled, a, b)
    check(found, (a.double() @ b.double()).relu(), 2e-3)
    assert code.count("torch.ops.tilec.matmul.default(") == 1, code


def test_gradients_of_a_compiled_layer() -> None:
    """Forward is one operator, the gradients of a and b are another; an activation's argument is
    kept, not multiplied anew."""
    needs_torch()
    from torch._dynamo.backends.common import aot_autograd

    graphs: list[Any] = []

    def keep(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    def layer(x: Any, weight: Any, bias: Any) -> Any:
        return tilec.ops.matmul(x, weight.t(), bias=bias, activation="silu").square().sum()

    x, weight = random(3, 40, 64, dtype=torch.float32), random(48, 64, dtype=torch.float32)
    leaves = [x, weight, random(48, dtype=torch.float32)]
    for leaf in leaves:
        leaf.requires_grad_()
    wide = [leaf.detach().double().requires_grad_() for leaf in leaves]
    plain = torch.nn.functional.silu(wide[0] @ wide[1].t() + wide[2]).square().sum()
    expected = torch.autograd.grad(plain, wide)
    backends = (aot_autograd(fw_compiler=keep), "inductor")
    for backend in backends:
        loss = torch.compile(layer, backend=backend, fullgraph=True)(*leaves)
        for one, two in zip(torch.autograd.grad(loss, leaves), expected, strict=True):
            check(one, two, 1e-4)
    operators = [torch.ops.tilec.matmul.default, torch.ops.tilec.matmul_gradients.default]
    targets = [[node.target for node in graph.graph.nodes] for graph in graphs]
    assert [[found.count(each) for each in operators] for found in targets] == [[1, 0], [0, 1]]


def test_gradients_without_compiling() -> None:
    needs_torch()
    x = torch.randn(3, 40, 64, device="cuda", requires_grad=True)
    weight = torch.randn(64, 48, device="cuda", requires_grad=True)
    loss = tilec.ops.matmul(x, weight, activation="gelu").square().sum()
    ours = torch.autograd.grad(loss, (x, weight))
    plain = torch.nn.functional.gelu(x.double() @ weight.double()).square().sum()
    for one, two in zip(ours, torch.autograd.grad(plain, (x, weight)), strict=True):
        check(one, two.double(), 1e-4)


def test_graphs_that_torch_and_that_the_caller_captures() -> None:
    needs_torch()
    a, b = random(2, 300, 512, dtype=torch.bfloat16), random(512, 264, dtype=torch.bfloat16)

    def product(a: Any, b: Any) -> Any:
        return tilec.ops.matmul(a, b, activation="relu") + 1

    replayed = torch.compile(product, mode="reduce-overhead", fullgraph=True)
    for _ in range(4):
        a.normal_()
        torch.compiler.cudagraph_mark_step_begin()
        check(replayed(a, b), (a.double() @ b.double()).relu() + 1, 1e-2)
    compiled = torch.compile(product, fullgraph=True)
    compiled(a, b)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        c = compiled(a, b)
    a.normal_()
    graph.replay()
    check(c, (a.double() @ b.double()).relu() + 1, 1e-2)


def test_nothing_stays_in_the_pool_of_a_graph() -> None:
    """A product with a tail makes sums and flags of its own, first of all while torch records."""
    needs_torch()
    a, b = random(2304, 16384, dtype=torch.float16), random(16384, 2304, dtype=torch.float16)
    replayed = torch.compile(
        lambda a, b: tilec.ops.matmul(a, b), mode="reduce-overhead", fullgraph=True
    )
    for _ in range(3):
        a.normal_()
        torch.compiler.cudagraph_mark_step_begin()
        check(replayed(a, b), a.double() @ b.double(), 2e-3)


def test_the_stream_of_the_caller() -> None:
    """A product behind half a second of waiting on the stream that is current, and none other."""
    needs_torch()
    compiled = torch.compile(lambda a, b: tilec.ops.matmul(a, b), fullgraph=True)
    a, b = random(256, 512, dtype=torch.float16), random(512, 128, dtype=torch.float16)
    compiled(a, b)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(500_000_000)
        a.normal_()
        c = compiled(a, b)
    assert not stream.query()
    stream.synchronize()
    check(c, a.double() @ b.double(), 2e-3)


def test_torchs_own_checks_of_an_operator() -> None:
    """Schema, shape function, gradients, tracing with sizes as numbers and as symbols."""
    needs_torch()
    scalar = torch.tensor(0.5, device="cuda")
    rows = torch.rand(64, device="cuda")
    for name in TOLERANCE:
        dtype = getattr(torch, name)
        x = random(3, 64, 128, dtype=dtype)
        weight, bias = random(96, 128, dtype=dtype).t(), random(96, dtype=dtype)
        plain = (x, weight, *[None] * 9, "ieee", False, "")
        whole = (x, weight, bias, "silu", scalar, None, rows, None, x[..., :96], torch.float32)
        for arguments in (plain, (*whole, None, "ieee", False, "b")):
            torch.library.opcheck(operator._operator, arguments)
    leaves = [torch.randn(shape, device="cuda", requires_grad=True) for shape in ((5, 16), (16, 7))]
    torch.library.opcheck(operator._operator, (*leaves, *[None] * 9, "ieee", False, ""))


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
