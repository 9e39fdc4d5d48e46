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


@tilec.kernel(grid=lambda x, BM: tl.cdiv(x.shape[0], BM), sum_parts=8, num_warps=8)
def product_and_added_product(
    x: tl.array, y: tl.array, z: tl.array, one: tl.array, two: tl.array, rows: tl.array,
    BM: tl.const = 64, BK: tl.const = 32,
):  # fmt: skip
    """one = p z and two = p z of p = x y^T, the second added to a sum, and the sums of p's rows."""
    m = tl.program_id(0) * BM
    a = tl.load(x, (m, 0), (BM, 128))
    first, second = tl.zeros((BM, 128), tl.f32), tl.zeros((BM, 128), tl.f32)
    total = tl.zeros((BM,), tl.f32)
    for k in tl.range(0, y.shape[0], BK):
        p = tl.dot(a, tl.load(y, (k, 0), (BK, 128)).T)
        total += tl.sum(p, axis=1)
        p, b = p.to(tl.f16), tl.load(z, (k, 0), (BK, 128))
        first = tl.dot(p, b, first)
        second = second + tl.dot(p, tl.load(z, (k, 0), (BK, 128)))
    tl.store(one, (m, 0), first)
    tl.store(two, (m, 0), second)
    tl.store(rows, m, total)


def test_sums_of_one_type_in_unlike_layouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What their stores want of the stripes differs, since one begins anywhere: no op has both
    behind a third."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    rng = np.random.default_rng(1)
    x, y, z = (rng.integers(-1, 2, (n, 128)).astype(np.float16) for n in (64, 320, 320))
    out = [np.full(shape, np.nan, np.float32) for shape in ((64, 128), (64, 128), (64,))]
    out[0] = np.full(64 * 135 + 1, np.nan, np.float32)[1:].reshape(64, 135)[:, :128]
    product_and_added_product.on("emulator:check")(x, y, z, *out)
    p = x.astype(np.float64) @ y.T.astype(np.float64)
    for found, right in zip(out, (p @ z, p @ z, p.sum(1)), strict=True):
        np.testing.assert_array_equal(found, right)
