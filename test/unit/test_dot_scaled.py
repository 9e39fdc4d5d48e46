"""`tl.dot_scaled`: products of blocks with scales, on every target."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from scaled_kernels import scaled_matmul
from target_names import MAIN

import tilec
import tilec.language as tl
from tilec.messages.diagnostics import CompileError

E4M3, E5M2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
TILE = {"BM": 64, "BN": 64, "BYTES": 64}


def check(
    dtypes: tuple[Any, Any], codes: tuple[int, int], block: int = 32, mode: str = "eager"
) -> None:
    """Random operands and scales against NumPy."""
    rng = np.random.default_rng(0)
    m, n, k = 72, 40, 160
    a, b = (rng.standard_normal(s).astype(t) for s, t in zip(((m, k), (k, n)), dtypes, strict=True))
    left = rng.integers(*codes, (m, k // block)).astype(np.uint8)
    right = rng.integers(*codes, (k // block, n)).astype(np.uint8)
    c = np.full((m, n), np.inf, np.float32)
    scaled_matmul.on(f"emulator:{mode}")(
        *(a, left.view(np.int8), b, right.view(np.int8), c),
        **TILE,
        BLOCKS=64 // block,
    )
    factors = [
        np.repeat(2.0 ** (code.astype(np.float64) - 127), block, axis)
        for code, axis in ((left, 1), (right, 0))
    ]
    expected = (a.astype(np.float64) * factors[0]) @ (b.astype(np.float64) * factors[1])
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("target", MAIN)
def test_every_target(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    check((E4M3, E5M2), (120, 135), mode="check")


@pytest.mark.parametrize(
    ("dtypes", "codes", "block"),
    [
        ((E4M3, E4M3), (60, 70), 32),
        ((E5M2, E5M2), (180, 185), 16),
        ((ml_dtypes.bfloat16, E4M3), (120, 135), 32),
    ],
    ids=["small", "large, in 16s", "bf16"],
)
def test_scales_of_every_size(
    dtypes: tuple[Any, Any], codes: tuple[int, int], block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    check(dtypes, codes, block)


@pytest.mark.parametrize(("code", "value"), [(0, 2.0**-127), (1, 2.0**-126), (255, np.nan)])
def test_the_ends_of_the_range(code: int, value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """2 ** -127 is a subnormal bf16; 255 is no number."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    a, b = np.full((64, 64), 2, E4M3), np.ones((64, 64), E4M3)
    left, right = np.full((64, 2), code, np.uint8), np.full((2, 64), 254, np.uint8)
    c = np.zeros((64, 64), np.float32)
    arguments = a, left.view(np.int8), b, right.view(np.int8), c
    scaled_matmul.on("emulator")(*arguments, **TILE, BLOCKS=2)
    np.testing.assert_array_equal(c, np.full((64, 64), 64 * 2 * value * 2.0**127, np.float32))


@tilec.kernel(grid=(1,))
def misused(x: tl.array, s: tl.array, c: tl.array, WHAT: tl.const):
    """One mistake each; x is 64 x 64, s 64 x 2."""
    a, scale = tl.load(x, (0, 0), (64, 64)), tl.load(s, (0, 0), (64, 2))
    b, acc = a.T, tl.zeros((64, 64), tl.f32)
    if WHAT == "rank":
        acc = tl.dot_scaled(a[None], scale, b, scale.T)
    elif WHAT == "dtype":
        acc = tl.dot_scaled(acc, scale, b, scale.T)
    elif WHAT == "depth":
        acc = tl.dot_scaled(tl.bitcast(a, tl.f4e2m1x2), scale, b, scale.T)
    elif WHAT == "number":
        acc = tl.dot_scaled(a, 1.0, b, scale.T)
    elif WHAT == "rows":
        acc = tl.dot_scaled(a, scale.T, b, scale.T)
    elif WHAT == "columns":
        acc = tl.dot_scaled(a, scale, b, scale)
    elif WHAT == "acc":
        acc = tl.dot_scaled(a, scale, b, scale.T, tl.zeros((64, 32), tl.f32))
    tl.store(c, (0, 0), acc)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("rank", "dot_scaled expects tiles of 2 dimensions, found"),
        ("dtype", "dot_scaled is not defined for f32; expected one of f8e4m3"),
        ("depth", "contraction sizes differ: a has 128 numbers a row, b has 64 a column"),
        ("number", "scales are a tile of f8e8m0, f8e4m3, i8, or None; found"),
        ("rows", "a_scale must have a scale per row of a and block of the 64 numbers along k"),
        ("columns", "b_scale must have a scale per column of b and block of the 64 numbers"),
        ("acc", "acc must have shape \\(64, 64\\)"),
    ],
)
def test_mistakes(what: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_80")
    x, s = np.zeros((64, 64), E4M3), np.zeros((64, 2), ml_dtypes.float8_e8m0fnu)
    with pytest.raises(CompileError, match=message):
        misused.on("emulator")(x, s, np.zeros((64, 64), np.float32), what)


def test_scales_may_be_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are ones."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")

    @tilec.kernel(grid=(1,))
    def plain(x: tl.array, s: tl.array, c: tl.array):
        a = tl.load(x, (0, 0), (64, 64))
        half = tl.dot_scaled(a, None, a.T, tl.load(s, (0, 0), (2, 64)))
        tl.store(c, (0, 0), tl.dot_scaled(a, None, a.T, None, half))

    rng = np.random.default_rng(0)
    x = rng.standard_normal((64, 64)).astype(E4M3)
    s = np.full((2, 64), 2.0, ml_dtypes.float8_e8m0fnu)
    c = np.zeros((64, 64), np.float32)
    plain.on("emulator")(x, s, c)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(c, 3 * wide @ wide.T, rtol=1e-4, atol=1e-3)
