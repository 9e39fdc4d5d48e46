"""Sums of unlike shapes beside each other, which the CTAs of a cluster have a part of each."""

from __future__ import annotations

import numpy as np
import pytest

import tilec
import tilec.language as tl


@tilec.kernel(grid=lambda c, BM: tl.cdiv(c.shape[0], BM), sum_parts=2)
def product_and_sums(
    a: tl.array, b: tl.array, c: tl.array, d: tl.array, rows: tl.array, columns: tl.array,
    KEPT: tl.const, BM: tl.const = 32, BN: tl.const = 32,
):  # fmt: skip
    """c = a b, d = 2 a b, and the sums of a's rows and b's columns; of these, those in `KEPT`."""
    m = tl.program_id(0) * BM
    one, two = tl.zeros((BM, BN), tl.f32), tl.zeros((BM, BN), tl.f32)
    by_row, by_column = tl.zeros((BM,), tl.f32), tl.zeros((BN,), tl.f32)
    for k in tl.range(0, a.shape[1], 16):
        left, right = tl.load(a, (m, k), (BM, 16)), tl.load(b, (k, 0), (16, BN))
        one = tl.dot(left, right, one)
        two += 2 * tl.dot(left, right)
        by_row += tl.sum(left.to(tl.f32), axis=1)
        by_column += tl.sum(right.to(tl.f32), axis=0)
    if "c" in KEPT:
        tl.store(c, (m, 0), one)
    if "d" in KEPT:
        tl.store(d, (m, 0), two)
    if "r" in KEPT:
        tl.store(rows, m, by_row)
    if "s" in KEPT:
        tl.store(columns, 0, by_column)
    if not KEPT:
        tl.store(c, (m, 0), tl.zeros((BM, BN), tl.f32))


@pytest.mark.parametrize("kept", ["", "c", "cr", "cdr", "crs", "cd"])
def test_each_is_right(kept: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One op adds up sums of one shape; IRDL knows two types in one op."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((32, 200), (200, 32)))
    shapes = {"c": (32, 32), "d": (32, 32), "r": (32,), "s": (32,)}
    out = {name: np.full(shape, np.nan, np.float32) for name, shape in shapes.items()}
    product_and_sums.on("emulator:check")(a, b, *out.values(), KEPT=kept)
    wide = a.astype(np.float64), b.astype(np.float64)
    product = wide[0] @ wide[1]
    right = {"c": product, "d": 2 * product, "r": wide[0].sum(1), "s": wide[1].sum(0)}
    for name in kept:
        np.testing.assert_array_equal(out[name], right[name])
    if not kept:
        assert not out["c"].any()
