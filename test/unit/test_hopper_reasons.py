"""Why a loop or store did not become more of a Hopper kernel: the report's reasons."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hopper_kernels import activated_right, decisions, gated
from mlir import ir

import tilec
import tilec.language as tl
from tilec.call.jit import Kernel
from tilec.dialects.context import make_context
from tilec.dialects.gpu_tile.types import BufferType
from tilec.hardware.shared_layout import SharedLayout
from tilec.passes.copies.tensor_copies import box_of
from tilec.passes.rewriting.refusals import attempt

BF16 = ml_dtypes.bfloat16


@tilec.kernel
def store_once(a: tl.array, b: tl.array, c: tl.array, CACHE: tl.const = None):
    """One product; `CACHE`: the store's hint."""
    acc = tl.zeros((64, 64), tl.f32)
    for k in tl.range(0, a.shape[1], 64):
        acc = tl.dot(tl.load(a, (0, k), (64, 64)), tl.load(b, (k, 0), (64, 64)), acc)
    tl.store(c, (0, 0), acc.to(c.dtype), cache=CACHE)


@tilec.kernel
def taps(a: tl.array, b: tl.array, c: tl.array, TIMES: tl.const, OUT: tl.const):
    """Products of shifted rows, written out or in a loop."""
    acc = tl.zeros((64, 64), tl.f32)
    for t in tl.static_range(TIMES) if OUT else tl.range(TIMES):
        acc = tl.dot(tl.load(a, (t, 0), (64, 64)), tl.load(b, (64 * t, 0), (64, 64)), acc)
    tl.store(c, (0, 0), acc.to(c.dtype))


@pytest.mark.parametrize(
    ("times", "out", "told"), [(9, True, True), (9, False, False), (3, True, False)]
)
def test_products_that_are_written_out_are_told_of_loops(times: int, out: bool, told: bool) -> None:
    a, b, c = (np.zeros((640, 64), BF16) for _ in range(3))
    said = f"{times} products are written out, and each waits for what it loads"
    assert (said in taps.report(a, b, c, TIMES=times, OUT=out)) == told


@tilec.kernel
def store_twice(a: tl.array, b: tl.array, c: tl.array):
    """The product goes to two places of one array."""
    acc = tl.zeros((64, 64), tl.f32)
    for k in tl.range(0, a.shape[1], 64):
        acc = tl.dot(tl.load(a, (0, k), (64, 64)), tl.load(b, (k, 0), (64, 64)), acc)
    tl.store(c, (0, 0), acc.to(c.dtype))
    tl.store(c, (64, 0), acc.to(c.dtype))


@tilec.kernel
def store_and(a: tl.array, b: tl.array, c: tl.array, SCATTERS: tl.const):
    """Something else is done with the array the product goes to."""
    acc = tl.zeros((64, 64), tl.f32)
    for k in tl.range(0, a.shape[1], 64):
        acc = tl.dot(tl.load(a, (0, k), (64, 64)), tl.load(b, (k, 0), (64, 64)), acc)
    if SCATTERS:
        tl.store(c, (0, 0), acc.to(c.dtype))
        tl.scatter(c, (64 + tl.arange(64)[:, None], tl.arange(64)[None, :]), acc.to(c.dtype))
    else:
        acc += tl.load(c, (0, 0), (64, 64))
        tl.store(c, (0, 0), acc.to(c.dtype))


@tilec.kernel
def store_in_a_loop(a: tl.array, b: tl.array, c: tl.array):
    """Every partial sum is stored."""
    acc = tl.zeros((64, 64), tl.f32)
    for k in tl.range(0, a.shape[1], 64):
        acc = tl.dot(tl.load(a, (0, k), (64, 64)), tl.load(b, (k, 0), (64, 64)), acc)
        tl.store(c, (k, 0), acc.to(c.dtype))


@tilec.kernel
def products(a: tl.array, b: tl.array, c: tl.array, COUNT: tl.const, CARRIED: tl.const):
    """Loops with products that start from nothing in every iteration."""
    acc = tl.zeros((64, 64), tl.f32)
    query = tl.load(a, (0, 0), (64, 64))
    for k in tl.range(0, b.shape[0], 64):
        x = tl.dot(query, tl.load(b, (k, 0), (64, 64)))
        for _ in tl.static_range(COUNT - 2):
            x = tl.dot(tl.maximum(x, 0.0).to(b.dtype), tl.load(b, (k, 0), (64, 64)))
        x = tl.maximum(x, 0.0).to(b.dtype)
        if CARRIED:
            acc = tl.dot(x, tl.load(b, (k, 0), (64, 64)), acc)
        else:
            acc = tl.maximum(acc, tl.dot(x, tl.load(b, (k, 0), (64, 64))))
    tl.store(c, (0, 0), acc.to(c.dtype))


WIDE = {"BM": 64, "BN": 64, "BK": 64}
CASES = [
    (store_once, {"CACHE": "streaming"}, "tensor store", "no (the store has a cache hint)"),
    (store_twice, {}, "tensor store", "no (the kernel stores to the array in several places)"),
    (store_and, {"SCATTERS": False}, "tensor store", "no (the kernel also reads the array)"),
    (store_and, {"SCATTERS": True}, "tensor store", "no (the kernel also scatters into the array)"),
    (store_in_a_loop, {}, "tensor store", "no (it stands in a loop)"),
    (products, {"COUNT": 3, "CARRIED": True}, "matrix instructions", "rotated (its last product"),
    (
        products, {"COUNT": 2, "CARRIED": False}, "matrix instructions",
        "(the second product is no loop-carried accumulator's)",
    ),
    (activated_right, WIDE, "producer", "loads and stores ('arith.truncf' stands between load"),
]  # fmt: skip


@pytest.mark.parametrize(("kernel", "constants", "about", "reason"), CASES)
def test_reasons(
    kernel: Kernel,
    constants: dict[str, object],
    about: str,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    x = np.zeros((128, 128), BF16)
    launch = {} if kernel.grid else {"grid": 1}
    compiled = kernel.on("emulator").compiled(x, x, x, **constants, **launch)
    found = decisions(compiled, about)
    assert any(reason in one for one in found), found


def test_several_accumulators(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    x = np.zeros((128, 128), BF16)
    compiled = gated.on("emulator").compiled(x, x, x, x)
    assert decisions(compiled, "matrix instructions") == [
        "finished in each iteration (several accumulators are in flight)",
        "side by side (sums are waited for where they are read)",
    ]


ROWS = (((64, 64),), ((64, 1),))
"""64 rows of 64 elements: 128 bytes of bf16 each."""
BOXES = [
    (ROWS, (3, 4, 3), ((64, 64), "128B")),
    (ROWS, None, ((64, 64), "none")),
    (ROWS, (3, 3, 3), "its buffer has a swizzle that the copy engine does not"),
    (ROWS, (2, 4, 3), "the rows of its buffer are no rows of a box"),
    ((((64, 72),), ((64, 1),)), None, "its buffer is padded"),
    ((((64, 128),), ((64, 2),)), None, "its buffer has no contiguous dimension"),
]


@pytest.mark.parametrize(("dims", "swizzle", "expected"), BOXES)
def test_boxes(dims: tuple, swizzle: tuple | None, expected: object) -> None:
    with make_context(), ir.Location.unknown():
        buffer = BufferType((64, 64), ir.BF16Type.get(), SharedLayout(dims, swizzle))
        found, refused = attempt(box_of, buffer)
        assert (found or refused) == expected
