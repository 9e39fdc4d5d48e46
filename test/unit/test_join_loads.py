"""Tiles whose elements are neighbours in memory are loaded together (join-loads)."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.examples.running import poisoned

TARGETS = ["sm_80", "sm_90a", "sm_100a"]


@tilec.kernel(grid=lambda y, BT, BC: (tl.cdiv(y.shape[1], BC), tl.cdiv(y.shape[0], BT)))
def filtered(
    x: tl.array, weight: tl.array, y: tl.array, TAPS: tl.const, BT: tl.const = 8, BC: tl.const = 32
):
    """y[t, c]: the sum of x[t + k, c] weight[c, k] over the taps."""
    c, t = tl.program_id(0) * BC, tl.program_id(1) * BT
    total = tl.zeros((BT, BC), tl.f32)
    for k in tl.static_range(TAPS):
        w = tl.load(weight, (c, k), (BC,), dims=(0,)).to(tl.f32)
        total += w[None, :] * tl.load(x, (t + k, c), (BT, BC)).to(tl.f32)
    tl.store(y, (t, c), total.to(y.dtype))


@tilec.kernel(grid=lambda y, B: tl.cdiv(y.shape[0], B))
def lengths(x: tl.array, y: tl.array, PARTS: tl.const = 2, B: tl.const = 256):
    """y: of vectors of PARTS numbers the squares of their lengths."""
    i, total = tl.program_id(0) * B, tl.zeros((B,), tl.f32)
    for k in tl.static_range(PARTS):
        part = tl.load(x, (i, k), (B,), dims=(0,)).to(tl.f32)
        total += part * part
    tl.store(y, i, total)


def joined(kernel: object) -> list[str]:
    return [e["chosen"] for e in kernel.report["decisions"] if e["about"] == "joined loads"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("dtype", "taps", "channels", "together"),
    [
        (np.float32, 4, 100, ["4 in one"]),
        (np.float32, 3, 33, []),  # rows of three begin anywhere
        (np.float16, 8, 64, ["8 in one"]),
        (ml_dtypes.bfloat16, 4, 70, []),  # two channels of a thread: 8 accesses
        (ml_dtypes.bfloat16, 4, 72, ["4 in one"]),
        (np.float32, 8, 40, ["4 in one", "4 in one"]),
    ],
)
def test_taps_of_a_filter(
    target: str,
    dtype: type,
    taps: int,
    channels: int,
    together: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    rng = np.random.default_rng(channels)
    x = rng.integers(-4, 5, (27, channels)).astype(dtype)
    weight = rng.integers(-4, 5, (channels, taps)).astype(dtype)
    y = poisoned(x.shape, np.float32)
    kernel = filtered.demanding(num_warps=1)
    assert joined(kernel.compiled(x, weight, y, TAPS=taps)) == together
    kernel.check(x, weight, y, TAPS=taps)
    wide = np.pad(x.astype(np.float64), ((0, taps), (0, 0)))
    parts = (wide[k : k + len(x)] * weight[:, k].astype(np.float64) for k in range(taps))
    np.testing.assert_array_equal(y, sum(parts))


@pytest.mark.parametrize("size", [1000, 512, 3])
def test_pairs(size: int) -> None:
    x = np.random.default_rng(size).integers(-9, 9, (size, 2)).astype(np.float32)
    y = poisoned((size,), np.float32)
    one_warp = lengths.demanding(num_warps=1)
    kernel = one_warp.compiled(x, y)
    assert joined(kernel) == ["2 in one"]
    loads = re.findall(r"ld\.global\S*", kernel.ptx)
    assert loads
    assert all(".v4.b32" in load or ".v2.b32" in load or ".b64" in load for load in loads)
    one_warp.check(x, y)
    np.testing.assert_array_equal(y, (x * x).sum(1))


def test_rows_of_four_of_which_three_are_loaded() -> None:
    x = np.random.default_rng(1).integers(-9, 9, (300, 4)).astype(np.float32)
    y = poisoned((300,), np.float32)
    kernel = lengths.demanding(num_warps=1)
    assert joined(kernel.compiled(x, y, PARTS=3)) == ["3 in one"]
    kernel.check(x, y, PARTS=3)
    np.testing.assert_array_equal(y, (x[:, :3] ** 2).sum(1))
