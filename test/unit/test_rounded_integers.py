"""Numbers that are rounded and become integers in one conversion: what NumPy makes in two."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tilec
import tilec.language as tl

SPECIAL = [
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    126.5,
    127.5,
    -127.5,
    1e-30,
    -0.0,
    1e30,
    -1e30,
    np.inf,
    -np.inf,
]
"""Ties, what is beyond the bounds, and zeros."""


@tilec.kernel(grid=lambda x: 1)
def quantise(x: tl.array, y: tl.array, LOW: tl.const, HIGH: tl.const, N: tl.const = 128):
    """y: x to the nearest integer, down, and up, from LOW to HIGH."""
    v = tl.load(x, 0, N)
    for number, rounded in enumerate((tl.round(v), tl.floor(v), tl.ceil(v))):
        tl.store(y, (number, 0), tl.clamp(rounded, LOW, HIGH).to(y.dtype))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [(np.int8, -127, 127), (np.uint8, 0, 255), (np.int16, -300, 300), (np.int32, -9, 100000)],
)
def test_rounded_once(
    dtype: type, low: int, high: int, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    x = np.random.default_rng(3).normal(0, 200, 128).astype(np.float32)
    x[: len(SPECIAL)] = SPECIAL
    y = np.full((3, 128), 77, dtype)
    kernel = quantise.on("emulator")
    kernel.check(x, y, low, high)
    for found, rounding in zip(y, (np.round, np.floor, np.ceil), strict=True):
        np.testing.assert_array_equal(found, np.clip(rounding(x), low, high).astype(dtype))
    ptx = kernel.compiled(x, y, low, high).ptx
    assert not re.search(r"cvt\.r.i\.f32\.f32", ptx)
    assert "cvt.rni.s32.f32" in ptx or dtype is np.uint8


@pytest.mark.parametrize("dtype", [np.int8, np.int32])
def test_what_is_no_number_becomes_0(dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    x = np.full(128, np.nan, np.float32)
    y = np.full((3, 128), 77, dtype)
    quantise.on("emulator").check(x, y, -127, 127)
    assert not y.any()
