"""Launches that torch traces: `torch.compile`, `torch.export`, vmap, on the emulator.

Skipped without torch. test/gpu/test_compiled_kernels.py has the same on a GPU, with CUDA graphs.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

import tilec  # noqa: E402
import tilec.language as tl  # noqa: E402
from tilec.runtime import torch_operator  # noqa: E402
from tilec.runtime.artefact import Artefact  # noqa: E402
from tilec.runtime.errors import ArgumentError  # noqa: E402

Unsupported = torch._dynamo.exc.Unsupported


@tilec.kernel(grid=lambda y: y.shape[0])
def normalize(x: tl.array, y: tl.array, N: tl.const):
    row = tl.program_id(0)
    tile = tl.load(x, (row, 0), (1, N))
    tl.store(y, (row, 0), tile / tl.sum(tile))


@tilec.kernel
def add_scaled(x: tl.array, y: tl.array, factor: float, B: tl.const = 64):
    at = tl.program_id(0) * B
    tl.store(y, at, tl.load(y, at, B) + factor * tl.load(x, at, B))


@tilec.autotune(search={"B": [32, 64]})
@tilec.kernel(grid=lambda y, B: tl.cdiv(y.shape[0], B))
def changed(x: tl.array, y: tl.array, F: tl.const, T: tl.const, B: tl.const = 16):
    at = tl.program_id(0) * B
    tl.store(y, at, F(tl.load(x, at, B).to(T)).to(y.dtype))


@tilec.kernel(grid=lambda y: y.shape[0])
def copied(x: tl.array, y: tl.array, more: tl.array, N: tl.const):
    at = tl.program_id(0)
    tl.store(y, at, tl.load(x, at, ()))
    if N > 5:
        tl.store(more, at, tl.load(x, at, ()))


@dataclass
class State:
    average: Any
    decay: float


@tilec.kernel(grid=lambda xs: xs[0].shape[0])
def add_all(xs, ys, state, factor: tl.array = None):
    """Each of `ys` += factor times its x; the state's average decays."""
    at = tl.program_id(0)
    for n in tl.static_range(len(xs)):
        value = tl.load(xs[n], at, ())
        if factor is not None:
            value = value * tl.load(factor, (), ())
        tl.store(ys[n], at, tl.load(ys[n], at, ()) + value)
    if state is not None:
        tl.store(state.average, at, tl.load(state.average, at, ()) * state.decay)


def by_two_warps(x: Any) -> Any:
    y = torch.empty_like(x)
    normalize.demanding(num_warps=2)(x, y, x.shape[1])
    normalize.demanding(num_warps=1)[2](y, y[2:], x.shape[1])
    return y


def thrice(x: Any) -> Any:
    return x * 3


@tilec.function
def negated(x: Any) -> Any:
    return -x


def normalized(x: Any) -> Any:
    y = torch.empty_like(x)
    normalize(x, y, x.shape[1])
    return y + 1


def plain(x: Any) -> Any:
    """What `normalized` is."""
    return x / x.sum(1, keepdim=True) + 1


@pytest.fixture(autouse=True)
def emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_DEVICE", "emulator")
    torch._dynamo.reset()
    torch.manual_seed(0)


def compiled(function: Any, **options: Any) -> Any:
    """Compiled as one graph, but for Inductor's code, which takes a C++ compiler and seconds."""
    return torch.compile(function, fullgraph=True, **{"backend": "aot_eager", **options})


def recorded(function: Any, *tensors: Any) -> list[tuple[Any, ...]]:
    """The calls of the operator that a function makes of fake tensors."""
    calls: list[Any] = []
    with pytest.MonkeyPatch.context() as patch, torch._subclasses.FakeTensorMode() as mode:
        patch.setattr(torch_operator, "_operator", lambda *call: calls.append(call))
        function(*map(mode.from_tensor, tensors))
    return calls


@pytest.mark.parametrize("strict", [False, True])
def test_demands_at_a_call_are_the_kernel_s(strict: bool) -> None:
    """In graphs, and in programs that are exported, which another process finds by name."""
    compiled = torch.compile(by_two_warps, backend="aot_eager", fullgraph=True)
    for rows in (4, 4, 7):
        x = torch.rand(rows, 30) + 0.1
        expected = x / x.sum(1, keepdim=True)
        torch.testing.assert_close(compiled(x)[:2], expected[:2])
        torch.testing.assert_close(compiled(x)[2:4], expected[:2])

    class Model(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return by_two_warps(x)

    x = torch.rand(4, 30) + 0.1
    file = io.BytesIO()
    torch.export.save(torch.export.export(Model(), (x,), strict=strict), file)
    loaded = torch.export.load(io.BytesIO(file.getvalue()))
    assert f'["{__name__}", "normalize", {{"num_warps": 2}}]' in str(loaded.graph)
    torch.testing.assert_close(loaded.module()(x), by_two_warps(x))
    warps = {kernel.threads for kernel in normalize.demanding(num_warps=2)._compiled.values()}
    assert warps == {64}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_sizes_are_symbols_of_one_graph(backend: str) -> None:
    counter = pytest.importorskip("torch._dynamo.testing").CompileCounterWithBackend(backend)
    function = compiled(normalized, backend=counter, dynamic=True)
    for shape in ((5, 30), (3, 17), (9, 64)):
        x = torch.rand(shape)
        torch.testing.assert_close(function(x), plain(x))
    assert counter.frame_count == 1


def test_what_is_changed_in_place() -> None:
    """Arguments of the function and views of them; a grid in brackets and by name; one tensor for
    two parameters."""

    def steps(x: Any, y: Any) -> tuple[Any, Any]:
        before = y.clone()
        add_scaled[tl.cdiv(x.shape[0], 64)](x, y, 2.0)
        add_scaled(x[:20], y[50:70], factor=x.shape[0] / 4, grid=(1,))
        add_scaled[2](y, y, 1.0)
        return before, y + 1

    x, y = torch.rand(100), torch.rand(100)
    wanted = y + 2 * x
    wanted[50:70] += 25 * x[:20]
    old = y.clone()
    before, after = compiled(steps)(x, y)
    torch.testing.assert_close(y, 2 * wanted)
    torch.testing.assert_close((before, after), (old, y + 1))


@pytest.mark.parametrize("function", [thrice, negated, tl.exp])
def test_tuned_kernels_functions_and_dtypes(function: Any) -> None:
    def call(x: Any) -> Any:
        y = x.new_empty(x.shape[0], dtype=torch.float64)
        changed(x, y, function, tl.f64)
        return y

    x = torch.rand(40).half()
    expected = {thrice: lambda x: 3 * x, negated: lambda x: -x, tl.exp: torch.exp}[function]
    torch.testing.assert_close(compiled(call)(x), expected(x.double()))


def test_a_local_function_is_not_taken_for_a_global_one() -> None:
    def local() -> Any:
        def thrice(x: Any) -> Any:
            return x * 4

        return thrice

    function = local()
    with pytest.raises(Exception, match=r"thrice: another function than torch recorded"):
        compiled(lambda x: changed(x, x, function, tl.f32))(torch.rand(8))


def test_groups_of_tensors_and_what_is_left_out() -> None:
    """Lists, objects with fields, and None; which parts are changed the graph knows."""

    def call(x: Any, state: Any, factor: Any) -> Any:
        y, z = torch.zeros_like(x), torch.zeros_like(x)
        add_all([x, state.average], (y, z), state, factor)
        add_all([x], [y], None, None)
        return y, z

    for factor in (torch.rand(()), None):
        x, state = torch.rand(40), State(torch.rand(40), 0.5)
        y, z, average = 2 * x, state.average.clone(), state.average.clone()
        if factor is not None:
            y, z = y + (factor - 1) * x, factor * z
        found = compiled(call)(x, state, factor)
        torch.testing.assert_close(found, (y, z))
        torch.testing.assert_close(state.average, average * 0.5)


@tilec.kernel(grid=lambda params, B: tl.parts(params, B))
def descend(params: tl.flat_arrays, grads: tl.flat_arrays, rate: float, B: tl.const = 64):
    which, start = tl.part(params, B)
    g = tl.load(grads[which], start, B)
    tl.store(params[which], start, tl.load(params[which], start, B) - rate * g)


def test_lists_of_any_length() -> None:
    """A step for all parameters of a model: the graph knows that they change, gradients not."""

    def step(params: Any, grads: Any) -> Any:
        descend(params, grads, 0.5)
        return [p * 2 for p in params]

    shapes = ((3, 5), (200,), (), (7, 1, 2))
    params, grads = ([torch.rand(shape) for shape in shapes] for _ in range(2))
    expected = [p - 0.5 * g for p, g in zip(params, grads, strict=True)]
    found = compiled(step)(params, grads)
    torch.testing.assert_close(params, expected)
    torch.testing.assert_close(found, [2 * p for p in expected])
    ((written, read, *rest),) = recorded(lambda *xs: descend(xs[:4], xs[4:], 0.5), *params, *grads)
    assert (len(written), len(read)) == (4, 4)
    tensors = [[torch.rand(t.shape) for t in some] for some in (written, read)]
    torch.library.opcheck(torch.ops.tilec.launch.default, (*tensors, *rest))


def test_artefacts() -> None:
    specs = ["x:f32[?,?]", "y:f32[?,?]"]
    loaded = Artefact("normalize", [normalize.compile(specs, {"N": 32}, target="sm_80")])

    def call(x: Any) -> Any:
        y = torch.empty_like(x)
        loaded(x, y)
        return y + 1

    x = torch.rand(5, 32)
    torch.testing.assert_close(compiled(call)(x), plain(x))


def test_the_graph_names_what_changes_and_nothing_else() -> None:
    (call,) = recorded(lambda x, y: normalize(x, y, 30), torch.rand(5, 30), torch.rand(5, 30))
    written, read, whole, real, text = call
    assert (len(written), len(read), whole, real) == (1, 1, None, None)
    assert '"values": {"x": {"read": 0}, "y": {"written": 0}, "N": 30}' in text
    ((both, none, *_),) = recorded(lambda x: normalize(x, x, 30), torch.rand(5, 30))
    assert (len(both), len(none)) == (1, 0)


def test_torchs_own_checks() -> None:
    x, y = torch.rand(5, 30), torch.empty(5, 30)
    calls = recorded(lambda x, y: normalize(x, y, 30), x, y)
    calls += recorded(lambda x, y: add_scaled[1](x, y, 2.0), x[0], y[0])
    for written, read, *rest in calls:
        tensors = [[torch.rand(t.shape) for t in some] for some in (written, read)]
        torch.library.opcheck(torch.ops.tilec.launch.default, (*tensors, *rest))


@pytest.mark.parametrize("strict", [False, True])
def test_exported_programs_are_saved_and_loaded(strict: bool) -> None:
    class Model(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return normalized(x)

    sizes = {"x": {0: torch.export.Dim("rows", min=2)}}
    program = torch.export.export(
        Model(), (torch.rand(5, 30),), dynamic_shapes=sizes, strict=strict
    )
    file = io.BytesIO()
    torch.export.save(program, file)
    loaded = torch.export.load(io.BytesIO(file.getvalue())).module()
    x = torch.rand(9, 30)
    torch.testing.assert_close(loaded(x), plain(x))


KERNELS = """
import torch
import tilec
import tilec.language as tl
import tilec.ops

@tilec.kernel(grid=lambda y: y.shape[0], device="emulator")
def twice(x: tl.array, y: tl.array, N: tl.const):
    row = tl.program_id(0)
    tl.store(y, (row, 0), 2 * tl.load(x, (row, 0), (1, N)))

class Model(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        twice(x, y, x.shape[1])
        return tilec.ops.matmul(y, x.T)
"""
SAVING = """
import sys, torch, kernels
torch.export.save(torch.export.export(kernels.Model(), (torch.rand(5, 30),)), sys.argv[1])
"""
LOADING = """
import sys, torch, kernels
x = torch.rand(5, 30)
torch.testing.assert_close(torch.export.load(sys.argv[1]).module()(x), 2 * x @ x.T)
"""


def test_another_process_loads_what_one_saved(tmp_path: Path) -> None:
    """It has imported the kernels, and traced nothing: the operators are there all the same."""
    (tmp_path / "kernels.py").write_text(KERNELS)
    for text in (SAVING, LOADING):
        command = [sys.executable, "-c", text, str(tmp_path / "program.pt2")]
        where = {"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}
        done = subprocess.run(
            command, env=os.environ | where, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


def test_a_loaded_program_imports_nothing() -> None:
    text = (
        '{"kernel": ["antigravity", "fly"], "written": [], "open": [], "grid": null, "values": {}}'
    )
    with pytest.raises(ArgumentError, match="import antigravity, where it must be a global name"):
        torch.ops.tilec.launch([], [], None, None, text)
    assert "antigravity" not in sys.modules
    with pytest.raises(ArgumentError, match="when torch recorded a call of it, none now"):
        torch.ops.tilec.launch(
            [], [], None, None, text.replace("antigravity", "io").replace("fly", "BytesIO")
        )


def test_batches_of_vmap() -> None:
    x = torch.rand(4, 5, 30)
    expected = torch.stack([plain(each) for each in x])
    torch.testing.assert_close(torch.vmap(normalized)(x), expected)
    torch.testing.assert_close(
        torch.vmap(normalized, 1, 1)(x.movedim(0, 1)), expected.movedim(0, 1)
    )
    torch.testing.assert_close(compiled(torch.vmap(normalized))(x), expected)
    with pytest.raises(ArgumentError, match="vmap: a kernel writes an array that has no batch"):
        torch.vmap(lambda x, y: normalize(x, y, 30), (0, None))(x, x[0].clone())


def test_a_constant_that_makes_the_kernel_write_more_is_refused() -> None:
    def call(x: Any) -> Any:
        y, more = torch.zeros_like(x), torch.zeros_like(x)
        copied(x, y, more, x.shape[0])
        return y

    function = compiled(call, dynamic=True)
    for size in (4, 3):
        x = torch.rand(size)
        torch.testing.assert_close(function(x), x)
    with pytest.raises(ArgumentError, match="copied: with these constants it writes more, too,"):
        function(torch.rand(7))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: normalize(x, x), "missing a required argument: 'N'"),
        (lambda x: normalize(x, x, 30, stream=7), "stream: a traced launch is on the current"),
        (lambda x: normalize(x, x.to(torch.complex64), 30), "'y': dtype torch.complex64 is not"),
        (lambda x: normalize(x.requires_grad_(), x, 30), "'x': a tensor that requires a gradient"),
    ],
)
def test_mistakes_are_said_while_torch_traces(call: Any, message: str) -> None:
    with pytest.raises(
        (ArgumentError, Unsupported, torch._dynamo.exc.TorchRuntimeError), match=message
    ):
        compiled(call)(torch.rand(5, 30))


def test_a_gradient_is_asked_for_where_torch_records() -> None:
    with pytest.raises(ArgumentError, match="'x': a tensor that requires a gradient"):
        torch.func.grad(lambda x: normalized(x).sum())(torch.rand(5, 30))
    x = torch.rand(5, 30, requires_grad=True)
    with torch.no_grad():
        torch.testing.assert_close(compiled(normalized)(x), plain(x))
