"""Loops that carry several sums of products, whose groups stay in flight together, on the
emulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hopper_kernels import decisions
from shares import modes

import tilec
import tilec.language as tl


def _tiles(y: Any, BM: int, BN: int) -> tuple[int, int]:
    return tl.cdiv(y.shape[0], BM), tl.cdiv(y.shape[1], BN)


@tilec.kernel(grid=_tiles)
def gated(
    x: tl.array, gate: tl.array, up: tl.array, y: tl.array,
    BM: tl.const, BN: tl.const, STAGES: tl.const = None,
):  # fmt: skip
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    g, u = tl.zeros((BM, BN), tl.f32), tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, x.shape[1], 64, stages=STAGES):
        rows = tl.load(x, (m, k), (BM, 64))
        g = tl.dot(rows, tl.load(gate, (k, n), (64, BN)), g)
        u = tl.dot(rows, tl.load(up, (k, n), (64, BN)), u)
    tl.store(y, (m, n), (g * u).to(y.dtype))


@tilec.kernel(grid=_tiles)
def complex_product(
    ar: tl.array, ai: tl.array, br: tl.array, bi: tl.array, y: tl.array, z: tl.array,
    BM: tl.const, BN: tl.const,
):  # fmt: skip
    """Three sums, of which one has two products an iteration."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    zeros = tl.zeros((BM, BN), tl.f32)
    plus, minus, imaginary = zeros, zeros, zeros
    for k in tl.range(0, ar.shape[1], 64):
        p, q = tl.load(ar, (m, k), (BM, 64)), tl.load(ai, (m, k), (BM, 64))
        r, s = tl.load(br, (k, n), (64, BN)), tl.load(bi, (k, n), (64, BN))
        plus, minus = tl.dot(p, r, plus), tl.dot(q, s, minus)
        imaginary = tl.dot(q, r, tl.dot(p, s, imaginary))
    tl.store(y, (m, n), (plus - minus).to(y.dtype))
    tl.store(z, (m, n), imaginary.to(z.dtype))


def drawn(*shape: int) -> np.ndarray:
    rng = np.random.default_rng(sum(shape))
    return (rng.standard_normal(shape) * 0.3).astype(np.float16)


@pytest.fixture(autouse=True)
def _hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")


@pytest.mark.parametrize(
    ("rows", "inner", "tile", "stages"),
    [(150, 264, (64, 64), None), (300, 520, (128, 64), 2), (70, 40, (64, 64), None)],
)
def test_two_sums(rows: int, inner: int, tile: tuple[int, int], stages: int | None) -> None:
    """Of many iterations and of one, in a ring that wraps."""
    x, gate, up = drawn(rows, inner), drawn(inner, 136), drawn(inner, 136) + np.float16(0.1)
    wide = [a.astype(np.float64) for a in (x, gate, up)]
    right = (wide[0] @ wide[1]) * (wide[0] @ wide[2])
    constants = {"BM": tile[0], "BN": tile[1], "STAGES": stages}
    found = gated.on("emulator").compiled(
        x, gate, up, np.empty_like(right, np.float16), **constants
    )
    assert decisions(found, "matrix instructions")[0].startswith("2 groups in flight")
    for mode in modes():
        y = np.full(right.shape, np.nan, np.float16)
        gated.on(f"emulator:{mode}")(x, gate, up, y, **constants)
        np.testing.assert_allclose(y, right, rtol=4e-3, atol=2e-2)


def test_three_sums_of_four_products() -> None:
    ar, ai, br, bi = (
        drawn(100, 200),
        drawn(100, 200) * np.float16(2),
        drawn(200, 72),
        drawn(200, 72),
    )
    bi = bi[::-1].copy()
    a, b = ar + 1j * ai.astype(np.float64), br + 1j * bi.astype(np.float64)
    for mode in modes():
        y, z = (np.full((100, 72), np.nan, np.float16) for _ in range(2))
        kernel = complex_product.on(f"emulator:{mode}")
        told = decisions(kernel.compiled(ar, ai, br, bi, y, z, BM=64, BN=64), "matrix instructions")
        assert told[0].startswith("4 groups in flight")
        kernel(ar, ai, br, bi, y, z, BM=64, BN=64)
        np.testing.assert_allclose(y, (a @ b).real, rtol=4e-3, atol=2e-2)
        np.testing.assert_allclose(z, (a @ b).imag, rtol=4e-3, atol=2e-2)
