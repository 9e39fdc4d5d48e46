"""Load roles that something keeps from filling buffers, or whose registers are few."""

from __future__ import annotations

import re
import warnings

import ml_dtypes
import numpy as np
import pytest
from hopper_kernels import decisions, matmul_grid
from test_producers import TARGET, operands, shifted
from test_warp_specialized import normal

import tilec
import tilec.language as tl
from tilec.compile.assembler import assemble
from tilec.compile.unwritten_registers import write_all
from tilec.messages.diagnostics import CompileError, PerformanceWarning


@pytest.fixture(autouse=True)
def on_hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything here is compiled for the target with warpgroup instructions."""
    monkeypatch.setenv("TILEC_TARGET", TARGET.name)


@tilec.kernel(grid=matmul_grid)
def in_place(
    a: tl.array, b: tl.array, c: tl.array,
    BM: tl.const = 64, BN: tl.const = 64, BK: tl.const = 64, WARP_SPECIALIZE: tl.const = True,
):  # fmt: skip
    """c = a @ b, and the sums go to a, too: nobody may read a ahead."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK, warp_specialize=WARP_SPECIALIZE):
        acc = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(b, (k, n), (BK, BN)), acc)
    tl.store(a, (m, n), acc.to(a.dtype))
    tl.store(c, (m, n), acc.to(c.dtype))


def test_arrays_that_the_kernel_writes_are_not_read_ahead() -> None:
    a, b, c = normal(71, 71), normal(71, 71), normal(71, 71)
    kernel = in_place.on("emulator").compiled(a, b, c)
    assert decisions(kernel, "producer") == [
        "no ('tile.store' in the kernel writes an array that a copy reads)",
        "loads and stores (only 2 bytes are provably aligned: the stride of dimension 0 is not a "
        "known multiple)",
    ]


def test_an_accumulator_that_fills_all_registers() -> None:
    """256 sums a thread of 255 registers: there is no such kernel."""
    arguments, _ = operands(264, 136, 136, 0)
    message = (
        r"warp_specialize=True was asked for, but its tiles take \d+ registers a thread .* 255"
    )
    c = normal(264, 136)
    with pytest.raises(CompileError, match=message) as caught:
        shifted.demanding(num_warps=4).on("emulator").compiled(*arguments, c, BM=256, BN=128)
    assert "for k in tl.range(" in str(caught.value)


def test_spills_are_announced() -> None:
    """Undemanded such a kernel is compiled all the same, but not in silence."""
    arguments, _ = operands(264, 136, 136, 0)
    c = normal(264, 136)
    kernel = shifted.demanding(num_warps=4).on("emulator")
    constants = {"BM": 256, "BN": 128, "WARP_SPECIALIZE": None}
    with pytest.warns(
        PerformanceWarning, match=r"test_producers\.py:\d+:1: registers: about \d+ for role"
    ):
        made = kernel.compiled(*arguments, c, **constants)
    assert assemble(made.ptx, TARGET).spills


def test_loads_that_would_fill_all_registers_come_in_pieces() -> None:
    """128 elements of a and 64 of b a thread, one register each, beside 128 sums of each other."""
    arguments, _ = operands(264, 136, 136, 1)
    c = normal(264, 136)
    kernel = shifted.demanding(num_warps=8).on("emulator")
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*registers: about.*")
        made = kernel.compiled(*arguments, c, BM=256, BN=128, SHIFT=1)
    assert not assemble(made.ptx, TARGET).spills


@tilec.kernel(grid=1, num_warps=8)
def carried(a: tl.array, b: tl.array, c: tl.array):
    """c = a @ b of 256 rows and 128 columns; each iteration loads a's part of the next."""
    left = tl.load(a, (0, 1), (256, 64))
    acc = tl.zeros((256, 128), tl.f32)
    for k in tl.range(0, b.shape[0], 64, warp_specialize=True):
        acc = tl.dot(left, tl.load(b, (k, 1), (64, 128)), acc)
        left = tl.load(a, (0, k + 65), (256, 64))
    tl.store(c, (0, 0), acc.to(c.dtype))


def test_loads_that_fill_all_registers_are_announced() -> None:
    """A tile that waits for the next iteration does not come in pieces."""
    specs = [f"{name}:bf16[?,?:8;?:8,1]" for name in "abc"]
    with pytest.warns(
        PerformanceWarning, match=r"registers: about \d+ for a thread of role 'load'"
    ):
        made = carried.compile(specs, target=TARGET.name)
    assert assemble(made.ptx, TARGET).spills


@tilec.kernel(grid=1, num_warps=8)
def bytes_across_k(a: tl.array, b: tl.array, c: tl.array):
    """c = a @ b of 192 rows and 256 columns of bytes, which the load role turns."""
    acc = tl.zeros((192, 256), tl.f32)
    for k in tl.range(0, a.shape[1], 64, warp_specialize=True):
        acc = tl.dot(tl.load(a, (0, k), (192, 64)), tl.load(b, (k, 0), (64, 256)), acc)
    tl.store(c, (0, 0), acc.to(c.dtype))


def test_a_load_role_that_would_spill_gets_what_the_others_can_do_without() -> None:
    """192 sums a thread and 40 registers beside them leave the load role 40, which it is counted to
    exceed; 224 are enough for the others."""
    specs = [f"{name}:f8E4M3FN[?,?:16;?:16,1]" for name in "ab"] + ["c:f16[?,?:8;?:8,1]"]
    made = bytes_across_k.compile(specs, target=TARGET.name)
    assert re.findall(r"setmaxnreg\.(\w+)\S+\s+(\d+)", made.ptx) == [("dec", "48"), ("inc", "224")]
    assert not assemble(made.ptx, TARGET).spills
    assert "prmt" in made.ptx
    assert write_all(made.ptx) == made.ptx
    rng = np.random.default_rng(0)
    a, b = (
        rng.integers(-2, 3, shape).astype(ml_dtypes.float8_e4m3fn)
        for shape in ((192, 656), (656, 256))
    )
    c = np.full((192, 256), np.nan, np.float16)
    bytes_across_k.on("emulator")(a, b, c)
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
