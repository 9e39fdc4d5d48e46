"""Kernels inside `torch.compile` and `torch.export` on a real GPU; runs without pytest, too: python
FILE. `test/unit/test_torch_operator.py` has the same on the emulator.

Every function is compiled with `fullgraph=True`, so that no call may break the graph.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from gpu_marks import needs_gpu  # noqa: E402
from torch_checks import check, needs_torch, random, run_tests, torch  # noqa: E402

import tilec  # noqa: E402
import tilec.language as tl  # noqa: E402
from tilec.examples.autotuned_matmul import matmul as tuned_matmul  # noqa: E402
from tilec.examples.matmul import matmul  # noqa: E402
from tilec.runtime.errors import ArgumentError  # noqa: E402

pytestmark = needs_gpu()


@tilec.kernel(grid=lambda y: y.shape[0])
def normalize(x: tl.array, y: tl.array, N: tl.const):
    row = tl.program_id(0)
    tile = tl.load(x, (row, 0), (1, N)).to(tl.f32)
    tl.store(y, (row, 0), (tile / tl.sum(tl.abs(tile))).to(y.dtype))


@tilec.kernel
def add_scaled(x: tl.array, y: tl.array, factor: float, B: tl.const = 1024):
    """y += factor * x, in place."""
    at = tl.program_id(0) * B
    tl.store(y, at, tl.load(y, at, B) + factor * tl.load(x, at, B))


def normalized(x: Any) -> Any:
    """A kernel between operators that Inductor fuses."""
    y = torch.empty_like(x)
    normalize(x.sin(), y, x.shape[1])
    return y * 2 + 1


def expected_of(x: Any) -> Any:
    """The same in f64."""
    wide = x.double().sin()
    return wide / wide.abs().sum(1, keepdim=True) * 2 + 1


def product(kernel: Any) -> Callable[..., Any]:
    """A function around a kernel that multiplies."""

    def function(a: Any, b: Any) -> Any:
        c = a.new_empty(a.shape[0], b.shape[1])
        kernel(a, b, c)
        return c.relu()

    return function


def test_every_mode_gives_the_right_values() -> None:
    needs_torch()
    for mode in ("default", "reduce-overhead", "max-autotune-no-cudagraphs"):
        torch._dynamo.reset()
        compiled = torch.compile(normalized, mode=mode, fullgraph=True)
        for _ in range(4):
            x = random(300, 777, dtype=torch.float32)
            torch.compiler.cudagraph_mark_step_begin()
            check(compiled(x), expected_of(x), 1e-5)


def test_one_graph_serves_all_sizes() -> None:
    needs_torch()
    graphs = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return torch._inductor.compile(graph, inputs)

    compiled = torch.compile(normalized, backend=backend, dynamic=True, fullgraph=True)
    for rows, columns in ((300, 777), (5, 64), (4097, 33)):
        x = random(rows, columns, dtype=torch.float32)
        check(compiled(x), expected_of(x), 1e-5)
    assert len(graphs) == 1


def test_what_a_kernel_changes_in_place_is_changed() -> None:
    """An argument of the function, a view of it, and one that two launches change in turn."""
    needs_torch()

    def steps(x: Any, y: Any) -> Any:
        before = y.sum()
        grid = tl.cdiv(x.shape[0], 1024)
        add_scaled[grid](x, y, 2.0)
        add_scaled[1](x[:100], y[100:200], 3.0)
        add_scaled(x.cos(), y, factor=0.5, grid=(grid,))
        return before, y.sum()

    for mode in ("default", "reduce-overhead"):
        torch._dynamo.reset()
        compiled = torch.compile(steps, mode=mode, fullgraph=True)
        for _ in range(4):
            x, y = random(5000, dtype=torch.float32), random(5000, dtype=torch.float32)
            wide = y.double() + 2 * x.double() + 0.5 * x.double().cos()
            wide[100:200] += 3 * x.double()[:100]
            first = y.double().sum()
            torch.compiler.cudagraph_mark_step_begin()
            before, after = compiled(x, y)
            check(y, wide, 1e-6)
            check(before, first, 1e-4)
            check(after, wide.sum(), 1e-4)


def test_tuned_kernels_and_artefacts() -> None:
    needs_torch()
    specs = [f"{name}:bf16[?,?:8;?:8,1]" for name in "abc"]
    target = matmul.compiled(*(random(64, 64, dtype=torch.bfloat16) for _ in range(3))).target
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "matmul.tilec"
        from tilec.runtime.artefact import save

        save(path, [matmul.compile(specs, target=target)])
        loaded = tilec.load(path)
    for kernel in (matmul, tuned_matmul, loaded):
        torch._dynamo.reset()
        for mode in ("default", "reduce-overhead"):
            compiled = torch.compile(product(kernel), mode=mode, fullgraph=True)
            for _ in range(3):
                a, b = (random(512, 512, dtype=torch.bfloat16) for _ in range(2))
                torch.compiler.cudagraph_mark_step_begin()
                check(compiled(a, b), (a.double() @ b.double()).relu(), 1e-2)


LOADING = """
import sys
sys.path[:0] = {paths!r}
import torch
import test_compiled_kernels as here
x = here.random(77, 128, dtype=torch.float32)
here.check(torch._inductor.aoti_load_package({package!r})(x), here.expected_of(x), 1e-5)
"""


def test_exported_programs() -> None:
    """Saved and loaded; compiled ahead of time by Inductor, for a process that has traced nothing:
    where torch's loader dies (tilec/torch/README.md), the other tests go on."""
    needs_torch()

    class Model(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return normalized(x)

    x = random(300, 128, dtype=torch.float32)
    sizes = {"x": {0: torch.export.Dim("rows", min=2, max=10_000)}}
    program = torch.export.export(Model(), (x,), dynamic_shapes=sizes)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/program.pt2"
        torch.export.save(program, path)
        loaded = torch.export.load(path).module()
        other = random(77, 128, dtype=torch.float32)
        check(loaded(other), expected_of(other), 1e-5)
        package = torch._inductor.aoti_compile_and_package(program, package_path=f"{folder}/a.pt2")
        text = LOADING.format(paths=[str(Path(__file__).parent), *sys.path], package=package)
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
        assert done.returncode == 0, (done.returncode, done.stderr)


def test_the_stream_of_the_caller() -> None:
    needs_torch()
    compiled = torch.compile(normalized, fullgraph=True)
    x = random(256, 512, dtype=torch.float32)
    compiled(x)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(500_000_000)
        x.normal_()
        y = compiled(x)
    assert not stream.query()
    stream.synchronize()
    check(y, expected_of(x), 1e-5)


def test_torchs_own_checks_of_the_operator() -> None:
    """Schema (what changes, and what does not), fake tensors, sizes as symbols."""
    needs_torch()
    from tilec.runtime import torch_operator

    calls: list[Any] = []
    real = torch_operator._operator
    try:
        torch_operator._operator = lambda *call: calls.append(call)
        with torch._subclasses.FakeTensorMode() as mode:
            x = mode.from_tensor(random(300, 777, dtype=torch.float32))
            y = mode.from_tensor(random(5000, dtype=torch.float32))
            normalize(x, x.new_empty(300, 777), 777)
            add_scaled[5](y, y.clone(), 2.0)
    finally:
        torch_operator._operator = real
    for written, read, *rest in calls:
        tensors = [[random(*t.shape, dtype=t.dtype) for t in some] for some in (written, read)]
        torch.library.opcheck(real, (*tensors, *rest))


def test_gradients_are_not_lost_in_silence() -> None:
    needs_torch()
    x = random(30, 40, dtype=torch.float32).requires_grad_()
    for function in (normalized, torch.compile(normalized, fullgraph=True)):
        said = ""
        try:
            function(x)
        except (ArgumentError, torch._dynamo.exc.Unsupported) as error:
            said = str(error)
        assert "argument 'x': a tensor that requires a gradient" in said


def report_costs() -> None:
    """Prints what a call takes: in eager code, in a compiled function, in one that is a graph."""

    def ten(x: Any, y: Any) -> Any:
        for _ in range(10):
            normalize(x, y, 128)
        return y

    x, y = (random(16, 128, dtype=torch.float32) for _ in range(2))
    rows = {"eager": ten}
    for mode in ("default", "reduce-overhead"):
        rows[mode] = torch.compile(ten, mode=mode, fullgraph=True)
    rows["nothing, default"] = torch.compile(lambda x, y: y, fullgraph=True)
    for name, call in rows.items():
        for _ in range(20):
            torch.compiler.cudagraph_mark_step_begin()
            call(x, y)
        found = []
        for _ in range(100):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            torch.compiler.cudagraph_mark_step_begin()
            call(x, y)
            found.append(time.perf_counter() - begin)
        print(f"ten launches, {name}: {sorted(found)[50] * 1e6:.1f} us of CPU time")


if __name__ == "__main__":
    failed = run_tests(globals())
    if torch is not None and torch.cuda.is_available():
        report_costs()
    sys.exit(failed)
