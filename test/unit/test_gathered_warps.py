"""Warps of programs that gather: accesses of a thread count, and a run of neighbours is one."""

from __future__ import annotations

import pytest

import tilec
import tilec.language as tl


@tilec.kernel(grid=lambda y, B: tl.cdiv(y.shape[0], B))
def spread(x: tl.array, y: tl.array, TAPS: tl.const, APART: tl.const, B: tl.const = 512):
    """y[i]: the sum of the TAPS elements of x from APART i on."""
    i = tl.program_id(0) * B + tl.arange(B)
    first = i if APART == 1 else APART * i
    total = tl.zeros((B,), tl.f32)
    for k in tl.static_range(TAPS):
        total += tl.gather(x, (first + 8 * k,), other=0.0).to(tl.f32)
    tl.store(y, tl.program_id(0) * B, total.to(y.dtype))


@pytest.mark.parametrize(
    ("dtype", "taps", "apart", "warps"),
    [
        ("f16", 9, 3, 8),  # 4608 accesses
        ("f16", 4, 3, 4),
        ("f16", 1, 3, 2),  # a vector of what is stored a thread
        ("f32", 9, 3, 8),
        ("f32", 1, 3, 4),
        ("f16", 9, 1, 2),  # runs of eight
    ],
)
def test_accesses_of_a_thread(dtype: str, taps: int, apart: int, warps: int) -> None:
    arrays = [f"{name}:{dtype}[?:8]" for name in "xy"]
    constants = {"TAPS": taps, "APART": apart}
    kernel = spread.compile(arrays, constants, target="sm_90a")
    assert kernel.threads == 32 * warps
