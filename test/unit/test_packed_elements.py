"""Bytes by fours and 2-byte floats by pairs: the results of the elements one by one."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilec
import tilec.language as tl

FLOATS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
BYTES = {"i8": np.int8, "u8": np.uint8}


@tilec.kernel(grid=lambda x: 1, num_warps=1)
def numbers(x: tl.array, y: tl.array, N: tl.const = 256):
    """y: x, its lower and upper halves, by and without their signs, and shifted."""
    codes = tl.load(x, 0, N)
    every = codes, codes & 15, (codes >> 4) & 15, codes >> 3, codes << 2, (codes | 16) ^ codes
    for number, found in enumerate(every):
        tl.store(y, (number, 0), found.to(y.dtype))


@pytest.mark.parametrize("source", BYTES)
@pytest.mark.parametrize("to", FLOATS)
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_every_byte_becomes_its_number(
    source: str, to: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    x = np.random.default_rng(0).permutation(256).astype(np.uint8).view(BYTES[source])
    y = np.full((6, 256), np.nan, FLOATS[to])
    kernel = numbers.on("emulator")
    kernel(x, y)
    expected = [x, x & 15, (x >> 4) & 15, x >> 3, x << 2, (x | 16) ^ x]
    assert (y.astype(float) == np.array(expected).astype(float)).all()
    one_by_one = "cvt.rn" in kernel.compiled(x, y).ptx
    assert one_by_one == (to == "bf16" and target == "sm_80")


@pytest.mark.parametrize("source", BYTES)
@pytest.mark.parametrize("to", FLOATS)
def test_bytes_that_come_one_by_one_are_put_together(
    source: str, to: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every second byte of an array: no instruction converts."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    x = np.random.default_rng(0).permutation(256).astype(np.uint8).view(BYTES[source])
    apart = np.repeat(x, 2)[::2]
    y = np.full((6, 256), np.nan, FLOATS[to])
    kernel = numbers.on("emulator")
    kernel(apart, y)
    expected = [x, x & 15, (x >> 4) & 15, x >> 3, x << 2, (x | 16) ^ x]
    assert (y.astype(float) == np.array(expected).astype(float)).all()
    assert "cvt.rn" not in kernel.compiled(apart, y).ptx


@tilec.kernel(grid=lambda x: 1, num_warps=1)
def scaled(x: tl.array, z: tl.array, y: tl.array, scale, N: tl.const = 256):
    """y = (x - z) * x + scale, and the first of each four of it, which is no pair."""
    a, b = tl.load(x, 0, N), tl.load(z, 0, N)
    tl.store(y, 0, (a - b) * a + scale.to(y.dtype))
    tl.store(y, N, tl.sum(tl.reshape(a * b, (N // 4, 4)), 1).to(y.dtype))


@pytest.mark.parametrize("to", FLOATS)
def test_pairs_round_one_by_one(to: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    rng = np.random.default_rng(1)
    dtype: Any = FLOATS[to]
    x, z = (rng.standard_normal(256).astype(dtype) for _ in range(2))
    x[:4] = np.inf, -0.0, np.nan, 1e-5
    y = np.full(320, np.nan, dtype)
    kernel = scaled.on("emulator")
    kernel(x, z, y, 0.5)
    with np.errstate(invalid="ignore"):
        fused = ((x - z).astype(float) * x.astype(float) + 0.5).astype(dtype)
    np.testing.assert_array_equal(y[:256].astype(float), fused.astype(float))
    assert f"{to}x2" in kernel.compiled(x, z, y, 0.5).ptx


@tilec.kernel(grid=lambda x: 1, num_warps=1)
def bounded(x: tl.array, z: tl.array, y: tl.array, N: tl.const = 256):
    """The greater of x and z, and what of x is below 0."""
    a, b = tl.load(x, 0, N), tl.load(z, 0, N)
    tl.store(y, 0, tl.maximum(a, b))
    tl.store(y, N, tl.minimum(a, 0.0))


@pytest.mark.parametrize("to", FLOATS)
def test_pairs_have_maxima(to: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no number stays so, in its own half of a pair alone."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    rng = np.random.default_rng(2)
    dtype: Any = FLOATS[to]
    x, z = (rng.standard_normal(256).astype(dtype) for _ in range(2))
    x[:4], z[5] = (np.inf, -0.0, np.nan, 1e-5), np.nan
    y = np.full(512, np.nan, dtype)
    kernel = bounded.on("emulator")
    kernel(x, z, y)
    wide = x.astype(float)
    expected = np.concatenate([np.maximum(wide, z.astype(float)), np.minimum(wide, 0)])
    assert np.array_equal(y.astype(float), expected, equal_nan=True)
    ptx = kernel.compiled(x, z, y).ptx
    assert ptx.count(f"max.NaN.{to}x2") == ptx.count(f"min.NaN.{to}x2") == 4
