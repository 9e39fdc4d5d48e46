"""The Blackwell kernels by hand, in every variant of the tutorial they come from.

Each runs on the emulator at once, as late as it may, and with its checks, against NumPy, and is
assembled without spills. Of the products over many tiles the two slow modes compute the last one,
which is ragged on both sides, along all of K; of the larger ones the fast mode the last four.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_explicit_kernels import changed

from tilec.call.jit import Kernel
from tilec.compile.assembler import assemble
from tilec.examples.explicit_blackwell import (
    blocked_product,
    pipelined_product,
    round_trip,
    small_product,
)
from tilec.hardware.target import TARGETS
from tilec.messages.diagnostics import CompileError
from tilec.runtime.emulator import EmulatorError
from tilec.runtime.emulator_device import FindingsError

TARGET = "sm_100a"
SLOW_MODES = ("late", "check")
MODES = ("eager", *SLOW_MODES)


@pytest.fixture(autouse=True)
def _blackwell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", TARGET)


def results(
    kernel: Kernel,
    inputs: tuple[np.ndarray, ...],
    out: np.ndarray,
    warps: int,
    modes: tuple[str, ...] = MODES,
    **constants: Any,
) -> list[np.ndarray]:
    """The output of a launch in each mode, poisoned before. The kernel is assembled, too."""
    kernel = kernel.demanding(num_warps=warps)
    found = []
    for mode in modes:
        out[...] = np.nan
        kernel.on(f"emulator:{mode}")(*inputs, out, WARPS=warps, **constants)
        found.append(out.copy())
    if modes == SLOW_MODES:
        return found
    compiled = kernel.on("emulator").compiled(*inputs, out, WARPS=warps, **constants)
    assert compiled.threads == 32 * warps
    assembled = assemble(compiled.ptx, TARGETS[TARGET])
    assert (assembled.spills, assembled.messages) == (0, ())
    return found


@pytest.mark.share(2)
@pytest.mark.parametrize(("m", "n", "warps"), [*product((64, 128, 256), (64, 128), (4, 8))])
def test_there_and_back(m: int, n: int, warps: int) -> None:
    x = np.random.default_rng(m + n).standard_normal((m, n)).astype(np.float32)
    for found in results(round_trip, (x,), np.empty_like(x), warps, M=m, N=n):
        np.testing.assert_array_equal(found, x)


SMALL = ((128, 128, 128), (64, 128, 128), (64, 256, 256), (256, 64, 64))


@pytest.mark.share(3)
@pytest.mark.parametrize("warps", [4, 8])
@pytest.mark.parametrize("commit", [False, True], ids=["barrier", "commit"])
@pytest.mark.parametrize("in_tensor_memory", [False, True], ids=["shared", "tensor"])
@pytest.mark.parametrize("sizes", SMALL, ids=str)
def test_one_product(
    sizes: tuple[int, int, int], in_tensor_memory: bool, commit: bool, warps: int
) -> None:
    m, n, k = sizes
    rng = np.random.default_rng(m + n + k)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((m, k), (k, n)))
    c = rng.standard_normal((m, n)).astype(np.float32)
    expected = a.astype(np.float64) @ b.astype(np.float64) + c
    constants = {"M": m, "N": n, "K": k, "COMMIT": commit}
    constants["LHS_IN_TENSOR_MEMORY"] = in_tensor_memory
    for found in results(small_product, (a, b, c), np.empty_like(c), warps, **constants):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * k)


LARGE = ((208, 416, 304), (2000, 1000, 2000))


def check_tiles(
    kernel: Kernel,
    sizes: tuple[int, int, int],
    tile: int,
    warps: int,
    rows: int,
    transposed: bool = False,
    **constants: Any,
) -> None:
    """A product, or the last tiles of it, `rows` high as a CTA has them."""
    m, n, k = sizes
    rng = np.random.default_rng(m + tile)
    a = rng.standard_normal((m, k)).astype(np.float16)
    b = rng.standard_normal((n, k) if transposed else (k, n)).astype(np.float16)
    c = np.empty((m, n), np.float16)
    constants |= {"BM": tile, "BN": tile, "BK": tile}
    last = ((m - 1) // rows * rows, (n - 1) // tile * tile)
    first = (last[0] - rows, last[1] - tile) if m == 2000 else (0, 0)
    for modes, (top, left) in ((("eager",), first), (SLOW_MODES, last)):
        right = b[left:] if transposed else b[:, left:]
        expected = a[top:].astype(np.float64) @ (right.T if transposed else right).astype(float)
        out = c[top:, left:]
        for found in results(kernel, (a[top:], right), out, warps, modes, **constants):
            np.testing.assert_allclose(found, expected, rtol=2**-10, atol=1e-5 * k)


@pytest.mark.share(3)
@pytest.mark.parametrize("warps", [4, 8])
@pytest.mark.parametrize("transposed", [False, True], ids=["b", "b.T"])
@pytest.mark.parametrize("tile", [64, 128])
@pytest.mark.parametrize("sizes", LARGE, ids=str)
def test_a_tile_a_cta(sizes: tuple[int, int, int], tile: int, transposed: bool, warps: int) -> None:
    check_tiles(blocked_product, sizes, tile, warps, tile, transposed, TRANSPOSED=transposed)


@pytest.mark.share(2)
@pytest.mark.parametrize("warps", [4, 8])
@pytest.mark.parametrize("tile", [64, 128])
@pytest.mark.parametrize("sizes", LARGE, ids=str)
def test_two_tiles_a_cta(sizes: tuple[int, int, int], tile: int, warps: int) -> None:
    check_tiles(pipelined_product, sizes, tile, warps, 2 * tile)


@pytest.mark.parametrize("depth", [64, 136])
def test_one_and_two_steps(depth: int) -> None:
    """Fewer steps than slots, and as many."""
    check_tiles(pipelined_product, (64, 64, depth), 64, 4, 128)


MUTANTS = {
    "the operands are not awaited": (blocked_product, "        loaded.wait(0, parity)\n", ""),
    "the wrong phase is awaited": (
        blocked_product,
        "loaded.wait(0, parity)",
        "loaded.wait(0, ~parity)",
    ),
    "the operands are overwritten in use": (blocked_product, "done.wait(0, parity)", "pass"),
    "too few bytes are announced": (
        blocked_product,
        "bytes=a_shared.bytes + b_shared.bytes)",
        "bytes=a_shared.bytes)",
    ),
    "nobody commits": (blocked_product, "use_acc=step > 0, barrier=done)", "use_acc=step > 0)"),
    "the output is not fenced": (
        blocked_product,
        '    out.store(acc.load(rows).to(out.dtype))\n    gpu.fence("async_shared")\n',
        "    out.store(acc.load(rows).to(out.dtype))\n",
    ),
    "the output leaves before it is written": (
        blocked_product,
        '    gpu.fence("async_shared")\n    gpu.sync()\n    gpu.tma_store(out',
        '    gpu.fence("async_shared")\n    gpu.tma_store(out',
    ),
    "an accumulator is read too early": (
        pipelined_product,
        "lower_done.wait(last, parity)",
        "pass",
    ),
    "the right operand is overwritten too early": (
        pipelined_product,
        "lower_done.wait(slot, parity)  # both",
        "pass  # both",
    ),
    "the output is overwritten in flight": (
        pipelined_product,
        "gpu.tma_wait(pending=0, read=True)  # the upper",
        "pass  # the upper",
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_what_the_author_forgot_is_found(name: str, tmp_path: Path) -> None:
    kernel, old, new = MUTANTS[name]
    wrong = changed(tmp_path, kernel, (old, new)).on("emulator:check")
    a, b = (np.ones(s, np.float16) for s in ((64, 256), (256, 64)))
    with pytest.raises((FindingsError, EmulatorError)):
        wrong(a, b, np.zeros((64, 64), np.float16), BM=64, BN=64, BK=64)


@pytest.mark.parametrize("kernel", [blocked_product, pipelined_product], ids=lambda k: k.name)
def test_the_text_unchanged_has_no_findings(kernel: Kernel, tmp_path: Path) -> None:
    a, b = (np.ones(s, np.float16) for s in ((64, 256), (256, 64)))
    c = np.zeros((64, 64), np.float16)
    changed(tmp_path, kernel).on("emulator:check")(a, b, c, BM=64, BN=64, BK=64)
    assert (c == 256).all()


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_other_hardware_is_refused(target: str) -> None:
    specs = ("x:f32[?,?]", "y:f32[?,?]")
    with pytest.raises(CompileError, match=f"needs TCGEN05, which {target} does not have"):
        round_trip.compile(specs, target=target)
