"""Explicit kernels: right where they are, exactly what is written, found out where they are not."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from pathlib import Path
from types import ModuleType

import ml_dtypes
import numpy as np
import pytest
from frontend_cases import load_text
from shares import MODES
from target_names import MAIN

import tilec
import tilec.language as tl
from tilec.call.jit import Kernel
from tilec.compile.assembler import assemble
from tilec.examples import ampere_gemm, explicit_ampere_gemm
from tilec.hardware.target import TARGETS
from tilec.language import gpu
from tilec.messages.diagnostics import CompileError
from tilec.runtime.emulator_device import FindingsError

SPECS = ("a:bf16[?,?:8;?:8,1]", "bt:bf16[?,?:8;?:8,1]", "d:f32[?,?:4;?:4,1]")
KERNELS = {"gemm": explicit_ampere_gemm.gemm, "gemm_ahead": explicit_ampere_gemm.gemm_ahead}


def operands(m: int, n: int, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """a (m, k), bt (n, k) in bf16, and a poisoned d (m, n)."""
    rng = np.random.default_rng(seed)
    a, bt = (rng.standard_normal((s, k)).astype(ml_dtypes.bfloat16) for s in (m, n))
    return a, bt, np.full((m, n), np.nan, np.float32)


def check_product(kernel: Kernel, device: str, sizes: tuple[int, int, int]) -> None:
    """One launch against NumPy."""
    a, bt, d = operands(*sizes)
    kernel.on(device)(a, bt, d)
    expected = a.astype(np.float64) @ bt.astype(np.float64).T
    np.testing.assert_allclose(d, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.share(2)
@pytest.mark.parametrize("target", MAIN)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", KERNELS)
def test_the_product_is_right(
    name: str, mode: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    monkeypatch.setenv("TILEC_CHECK", "1")
    for sizes in ((64, 64, 16), (65, 70, 200), (1, 3, 8), (30, 20, 0)):
        check_product(KERNELS[name], f"emulator:{mode}", sizes)


@pytest.mark.parametrize("target", MAIN)
@pytest.mark.parametrize("name", KERNELS)
def test_it_assembles_without_spills(name: str, target: str) -> None:
    compiled = KERNELS[name].compile(SPECS, target=target)
    assert assemble(compiled.ptx, TARGETS[target]).spills == 0


LOOP_WORK = (
    "bar.sync",
    "cp.async.cg.shared.global",
    "cp.async.commit_group",
    "cp.async.wait_group",
    "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
)


def main_loop(ptx: str) -> Counter[str]:
    """What the loop with the most matrix instructions does in one iteration."""
    best: Counter[str] = Counter()
    label = None
    lines = ptx.splitlines()
    for number, line in enumerate(lines):
        jump = re.search(r"\bbra(?:\.uni)?\s+(\$\w+);", line)
        if jump is None:
            continue
        label = f"{jump[1]}:"
        start = next((i for i in range(number) if lines[i].strip().startswith(label)), None)
        if start is None:
            continue
        words = (
            re.sub(r"^@!?%\w+\s+", "", x.strip()).split(maxsplit=1) for x in lines[start:number]
        )
        body = Counter(w[0].rstrip(";") for w in words if w)
        if body[LOOP_WORK[-1]] > best[LOOP_WORK[-1]]:
            best = body
    return Counter({name: best[name] for name in LOOP_WORK})


def test_by_hand_and_by_the_passes_the_loop_does_the_same() -> None:
    """Same copies, groups, waits, barriers, fragments and products in an iteration."""
    by_hand = explicit_ampere_gemm.gemm_ahead.compile(SPECS, target="sm_80")
    by_passes = ampere_gemm.ampere_gemm.compile(SPECS, ampere_gemm.WIDE, target="sm_80")
    assert main_loop(by_hand.ptx) == main_loop(by_passes.ptx)
    assert by_hand.shared_bytes == by_passes.shared_bytes
    assert main_loop(by_hand.ptx)["bar.sync"] == 1


@tilec.kernel(grid=(1,), num_warps=4)
def through_one_buffer(x: tl.array, y: tl.array, out: tl.array, N: tl.const = 64):
    """out = x * len(out) + y; the loop reads what was loaded before the buffer was filled again."""
    writers = gpu.layout("T(64,2):(1@0,0) V():()")
    readers = gpu.layout("T(2,64):(0,1@0) V():()")
    buffer = gpu.alloc((N,), tl.i32, gpu.shared("(64):(1)"))
    buffer.store(gpu.load(x, 0, N, writers))
    gpu.sync(barrier=1, warps=4)
    first = buffer.load(readers)
    gpu.sync(barrier=1, warps=4)
    buffer.store(gpu.load(y, 0, N, writers))
    gpu.sync(barrier=1, warps=4)
    total = buffer.load(readers)
    for _ in tl.range(out.shape[0]):
        total += first
    tl.store(out, 0, total)


@pytest.mark.parametrize("target", MAIN)
def test_loads_stay_in_front_of_what_overwrites_them(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LLVM's back end must not move them to their first use, into the loop."""
    monkeypatch.setenv("TILEC_TARGET", target)
    x, y = np.random.default_rng(0).integers(-99, 99, (2, 64)).astype(np.int32)
    out = np.full_like(x, 1 << 30)
    through_one_buffer.on("emulator")(x, y, out)
    np.testing.assert_array_equal(out, 64 * x + y)


def test_nothing_is_added() -> None:
    """As many barriers, waits and groups as the author wrote, and no layout but theirs."""
    compiled = explicit_ampere_gemm.gemm.compile(SPECS, target="sm_80")
    found = Counter(
        line.split()[0].rstrip(";") for line in compiled.ptx.splitlines() if line.split()
    )
    assert found["bar.sync"] == 2
    assert found["cp.async.wait_group"] == 2
    assert found["cp.async.commit_group"] == 3
    decided = {entry["about"] for entry in compiled.report["decisions"]}
    assert decided == {"kernel", "memory access", "shared memory"}
    assert compiled.shared_bytes == 2 * (64 * 16 + 64 * 16) * 2


def changed(tmp_path: Path, kernel: Kernel, *changes: tuple[str, str]) -> Kernel:
    """The example's kernel with some of its text replaced."""
    text = inspect.getsource(inspect.getmodule(kernel.fn))
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    module: ModuleType = load_text(
        text.replace("from __future__ import annotations\n", ""), tmp_path
    )
    return getattr(module, kernel.name)


MUTANTS = {
    "no barrier before the slot is read": (
        "gemm",
        "        gpu.sync()  # every thread's",
        "        # ",
    ),
    "no barrier before it is filled": (
        "gemm",
        "        gpu.sync()  # every thread has",
        "        # ",
    ),
    "one group too few awaited": ("gemm", "gpu.cp_async_wait(pending=1)", "gpu.cp_async_wait(2)"),
    "the other slot is read": (
        "gemm",
        "ring_position(k // K_STEP,",
        "ring_position(k // K_STEP + 1,",
    ),
    "no barrier in the pipelined loop": (
        "gemm_ahead",
        "gpu.cp_async_wait(pending=STAGES - 2)\n                gpu.sync()",
        "gpu.cp_async_wait(pending=STAGES - 2)",
    ),
    "no barrier before the pipelined loop": (
        "gemm_ahead",
        "gpu.cp_async_wait(pending=STAGES - 2)\n    gpu.sync()",
        "gpu.cp_async_wait(pending=STAGES - 2)",
    ),
    "a tile too far ahead": (
        "gemm_ahead",
        "ring_position(count + (STAGES - 1),",
        "ring_position(count,",
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_what_the_author_forgot_is_found(name: str, tmp_path: Path) -> None:
    kernel, old, new = MUTANTS[name]
    wrong = changed(tmp_path, KERNELS[kernel], (old, new))
    with pytest.raises(FindingsError):
        check_product(wrong, "emulator:check", (64, 64, 200))


def test_the_text_unchanged_has_no_findings(tmp_path: Path) -> None:
    check_product(changed(tmp_path, KERNELS["gemm"]), "emulator:check", (64, 64, 200))


def test_rows_that_are_not_aligned_are_an_error_at_the_copy() -> None:
    a, bt, d = operands(64, 64, 33)
    with pytest.raises(
        CompileError, match="a copy of 16 bytes, of which 2 are provably aligned"
    ) as f:
        explicit_ampere_gemm.gemm.on("emulator")(a, bt, d)
    assert f.value.location is not None
    line = Path(f.value.location.file).read_text().splitlines()[f.value.location.line - 1]
    assert "gpu.cp_async(a" in line


def run(text: str, tmp_path: Path, *arrays: np.ndarray, device: str = "emulator:check") -> None:
    """Runs the kernel `k` of a text."""
    load_text(text, tmp_path).k.on(device)(*arrays)


def test_layouts_pass_through_operators(tmp_path: Path) -> None:
    text = """
        @tilec.kernel(num_warps=2, grid=(1,))
        def k(x: tl.array, y: tl.array):
            L = gpu.blocked((16, 64), warps=2, width=4)
            t = gpu.load(x, (0, 0), (16, 64), L)
            row = tl.max(t, axis=1)
            e = tl.where(t > 0, t, -t) * 2 + tl.arange(64)[None, :]
            e = (e - row[:, None]).to(tl.bf16).to(tl.f32)
            for i in tl.range(3):
                e = e + 1.0
            tl.store(y, (0, 0), e)
    """
    x = np.random.default_rng(1).standard_normal((16, 64)).astype(np.float32)
    y = np.full((16, 64), np.nan, np.float32)
    run(text, tmp_path, x, y)
    e = np.abs(x) * 2 + np.arange(64, dtype=np.float32) - x.max(1, keepdims=True)
    np.testing.assert_allclose(y, e.astype(ml_dtypes.bfloat16).astype(np.float32) + 3, rtol=1e-6)


def test_a_transpose_through_a_buffer(tmp_path: Path) -> None:
    text = """
        @tilec.kernel(num_warps=4, grid=(1,))
        def k(x: tl.array, y: tl.array):
            rows = gpu.blocked((64, 32), warps=4, width=4)
            columns = gpu.blocked((32, 64), warps=4, width=4)
            buffer = gpu.alloc((64, 32), tl.f32, gpu.padded((64, 32), 4))
            buffer.store(gpu.load(x, (0, 0), (64, 32), rows))
            gpu.sync()
            held = buffer.load(gpu.blocked((64, 32), warps=4, width=4, contiguous=0))
            tl.store(y, (0, 0), held.T)
    """
    x = np.arange(64 * 32, dtype=np.float32).reshape(64, 32)
    y = np.full((32, 64), np.nan, np.float32)
    run(text, tmp_path, x, y)
    np.testing.assert_array_equal(y, x.T)
    with pytest.raises(FindingsError, match="race"):
        run(text.replace("            gpu.sync()\n", ""), tmp_path, x, y)


@pytest.mark.parametrize(
    "crossing",
    [
        "gpu.convert_layout(t, gpu.blocked((16, 64), warps=4, width=1))",
        "tl.sum(t, axis=0)[None, :] + gpu.zeros((16, 64), tl.f32, L)",
    ],
)
def test_what_crosses_warps_is_an_error(crossing: str, tmp_path: Path) -> None:
    text = f"""
        @tilec.kernel(num_warps=4, grid=(1,))
        def k(x: tl.array):
            L = gpu.blocked((16, 64), warps=4, width=4)
            t = gpu.load(x, (0, 0), (16, 64), L)
            tl.store(x, (0, 0), {crossing})
    """
    with pytest.raises(CompileError, match="takes a buffer and a barrier") as found:
        run(text, tmp_path, np.zeros((16, 64), np.float32))
    assert found.value.location is not None


def test_buffers_never_share_memory(tmp_path: Path) -> None:
    text = """
        @tilec.kernel(num_warps=1, grid=(1,))
        def k(x: tl.array):
            L = gpu.blocked((8, 32), warps=1)
            one = gpu.alloc((8, 32), tl.f32, gpu.padded((8, 32)))
            one.store(gpu.load(x, (0, 0), (8, 32), L))
            two = gpu.alloc((8, 32), tl.f32, gpu.padded((8, 32)))
            two.store(gpu.load(x, (0, 0), (8, 32), L))
    """
    kernel = load_text(text, tmp_path).k
    assert kernel.compile(["x:f32[?,?]"], target="sm_80").shared_bytes == 2 * 8 * 32 * 4


def test_another_number_of_warps_is_refused() -> None:
    module = explicit_ampere_gemm.gemm.source_module(SPECS)
    compiler = pytest.importorskip("tilec.compile.compiler")
    with pytest.raises(CompileError, match="written for 4 warps, not 8"):
        compiler.compile_module(module, TARGETS["sm_80"], num_warps=8)


def test_a_layout_may_be_a_constant_argument(tmp_path: Path) -> None:
    text = """
        @tilec.kernel(num_warps=1, grid=(1,))
        def k(x: tl.array, L: tl.const):
            tl.store(x, 0, gpu.load(x, 0, 64, L) + 1.0)
    """
    kernel = load_text(text, tmp_path).k.on("emulator:check")
    x = np.zeros(64, np.float32)
    for width in (1, 2):
        kernel(x, L=tilec.language.gpu.blocked((64,), 1, width))
    np.testing.assert_array_equal(x, 2)


def test_scalars_need_no_layout(tmp_path: Path) -> None:
    text = """
        @tilec.kernel(num_warps=2, grid=(1,))
        def k(x: tl.array, y: tl.array):
            s = tl.load(x, 3, ())
            tl.store(y, 0, s * 2.0)
            tl.store(y, 1, 7.0)
            gpu.sync()
            with gpu.role("other", first_warp=1, warps=1):
                tl.store(y, 2, tl.load(x, 4, ()))
                tl.store(y, 3, 7.0)
    """
    x, y = np.arange(8, dtype=np.float32), np.full(4, np.nan, np.float32)
    run(text, tmp_path, x, y)
    np.testing.assert_array_equal(y, [6, 7, 4, 7])


def test_the_readmes_kernel_runs(tmp_path: Path) -> None:
    page = (Path(tilec.language.__file__).parent / "gpu" / "README.md").read_text()
    kernel = load_text(page.split("```python")[1].split("```")[0], tmp_path).transpose
    x = np.random.default_rng(0).standard_normal((64, 192)).astype(np.float32)
    y = np.full((192, 64), np.nan, np.float32)
    kernel.on("emulator:check")(x, y)
    np.testing.assert_array_equal(y, x.T)


def test_functions_of_tiles_with_layouts(tmp_path: Path) -> None:
    """Gathers, atomics, scans, whole reductions, inline PTX, branches, in one warp."""
    text = """
        @tilec.kernel(num_warps=1, grid=(1,))
        def k(x: tl.array, y: tl.array, counts: tl.array, n: tl.i32):
            L = gpu.blocked((8, 32), warps=1, width=2)
            t = gpu.load(x, (0, 0), (8, 32), L)
            whole = tl.sum(t) + tl.max(t, keepdims=True)
            i = gpu.convert_layout(tl.arange(32), gpu.sliced(L, 0))
            picked = tl.gather(x, (i % 8, i), mask=i < 20, other=-1.0)
            tl.atomic_add(counts, i // 16, 1)
            tl.scatter(counts, i + 2, i * i, mask=i > 29)
            doubled = tl.inline_ptx("add.f32 $0, $1, $1;", "=f,f", t, tl.f32)
            if n > 0:
                doubled = tl.zeros((8, 32), tl.f32)
            sums = tl.cumsum(t, axis=1)
            column = tl.max(t, axis=1)[:, None]
            tl.store(y, (0, 0), doubled + picked[None, :] + sums * column + whole)
    """
    x = np.random.default_rng(2).standard_normal((8, 32)).astype(np.float32)
    at = np.arange(32)
    picked = np.where(at < 20, x[at % 8, at], -1)
    expected_counts = np.zeros(40, np.int32)
    expected_counts[[0, 1]] = 16
    expected_counts[[32, 33]] = [900, 961]
    for n in (0, 1):
        y, counts = np.full((8, 32), np.nan, np.float32), np.zeros(40, np.int32)
        load_text(text, tmp_path).k.on("emulator:check")(x, y, counts, n)
        expected = (0 if n else 2 * x) + picked + x.cumsum(1) * x.max(1, keepdims=True)
        np.testing.assert_allclose(y, expected + x.sum() + x.max(), rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(counts, expected_counts)
