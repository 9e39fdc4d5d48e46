"""Loops that carry the least or greatest, and its place, which CTAs of a cluster share, on the
emulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hopper_kernels import decisions
from shares import modes

import tilec
import tilec.language as tl
from tilec.messages.diagnostics import CompileError


@tilec.kernel(grid=lambda x, BM: tl.cdiv(x.shape[0], BM))
def nearest(
    x: tl.array, centres: tl.array, least: tl.array, places: tl.array,
    D: tl.const, BM: tl.const = tl.auto, BN: tl.const = tl.auto,
):  # fmt: skip
    """The square of the distance to the nearest centre, and which that is."""
    m = tl.program_id(0) * BM
    point = tl.load(x, (m, 0), (BM, D))
    best, place = tl.full((BM,), 1e30, tl.f32), tl.full((BM,), -1, tl.i32)
    for n in tl.range(0, centres.shape[0], BN):
        centre = tl.load(centres, (n, 0), (BN, D))
        wide = centre.to(tl.f32)
        far = tl.sum(wide * wide, 1)[None, :] - 2.0 * tl.dot(point, centre.T)
        far = tl.where(n + tl.arange(BN)[None, :] < centres.shape[0], far, tl.inf)
        found, at = tl.min(far, 1, return_indices=True)
        place = tl.where(found < best, at + n.to(tl.i32), place)
        best = tl.minimum(found, best)
    wide = point.to(tl.f32)
    tl.store(least, m, best + tl.sum(wide * wide, 1))
    tl.store(places, m, place)


@tilec.kernel(grid=lambda y, B: tl.cdiv(y.shape[0], B))
def greatest(x: tl.array, y: tl.array, first: tl.array, sums: tl.array, B: tl.const):
    """Of each column the greatest, where it is first, and the sum."""
    i = tl.program_id(0) * B
    best, place = tl.load(x, (0, i), B), tl.zeros((B,), tl.i32)
    total = tl.zeros((B,), best.dtype)
    for m in tl.range(0, x.shape[0]):
        row = tl.load(x, (m, i), B)
        wins = best < row
        best, place = tl.where(wins, row, best), tl.where(wins, m.to(tl.i32), place)
        total += row
    tl.store(y, i, best)
    tl.store(first, i, place)
    tl.store(sums, i, total)


@tilec.kernel(grid=lambda y, B: tl.cdiv(y.shape[0], B))
def last(x: tl.array, y: tl.array, B: tl.const):
    """Where the greatest of each column is last."""
    i = tl.program_id(0) * B
    best, place = tl.full((B,), -tl.inf, tl.f32), tl.zeros((B,), tl.i32)
    for m in tl.range(0, x.shape[0]):
        row = tl.load(x, (m, i), B)
        place = tl.where(row >= best, m.to(tl.i32), place)
        best = tl.maximum(row, best)
    tl.store(y, i, place)


@pytest.fixture(autouse=True)
def _hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")


@pytest.mark.parametrize(
    ("parts", "points", "centres"), [(2, 100, 700), (8, 70, 300), (16, 64, 130)]
)
def test_the_nearest_centre(parts: int, points: int, centres: int) -> None:
    """Of 130 centres 13 of 16 parts have none. Of equal ones the first is taken."""
    rng = np.random.default_rng(parts)
    x, c = (rng.standard_normal((n, 40)).astype(np.float16) for n in (points, centres))
    c[centres - 1] = c[centres // 2] = c[5] = x[3]
    far = ((x[:, None].astype(np.float64) - c) ** 2).sum(2)
    for mode in modes():
        least, places = np.full(points, np.nan, np.float32), np.full(points, -7, np.int32)
        kernel = nearest.demanding(sum_parts=parts).on(f"emulator:{mode}")
        kernel(x, c, least, places, D=64, BM=64, BN=64)
        np.testing.assert_allclose(least, far.min(1), rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(places, far.argmin(1))


@pytest.mark.parametrize(("parts", "dtype"), [(4, np.float32), (8, np.int32)])
def test_the_greatest_beside_a_sum(parts: int, dtype: Any) -> None:
    x = np.random.default_rng(parts).integers(-9, 9, (37, 150)).astype(dtype)
    for mode in modes():
        y, sums = (np.full(150, 77, dtype) for _ in range(2))
        first = np.full(150, -7, np.int32)
        greatest.demanding(sum_parts=parts).on(f"emulator:{mode}")(x, y, first, sums, B=32)
        np.testing.assert_array_equal(y, x.max(0))
        np.testing.assert_array_equal(first, x.argmax(0))
        np.testing.assert_array_equal(sums, x.sum(0))


def test_what_is_not_a_number_stays() -> None:
    x = np.random.default_rng(1).standard_normal((64, 40)).astype(np.float16)
    c = np.random.default_rng(2).standard_normal((300, 40)).astype(np.float16)
    c[200, 3] = np.nan
    least, places = np.zeros(64, np.float32), np.zeros(64, np.int32)
    nearest.demanding(sum_parts=4).on("emulator")(x, c, least, places, D=64, BM=64, BN=64)
    assert np.isnan(least).all()


def test_the_last_of_equals_is_refused() -> None:
    x, y = np.zeros((4, 64), np.float32), np.zeros(64, np.int32)
    with pytest.raises(CompileError, match="the loop carries what is no sum from zero, least"):
        last.demanding(sum_parts=2)(x, y, B=32)


def test_few_points_are_compared_in_parts_and_many_are_not() -> None:
    """`tl.auto`: 721 points are 12 programs of 64."""

    def told(points: int, centres: int) -> list[str]:
        specs = [
            "x:bf16[?,?:8;?:8,1]",
            "centres:bf16[?,?:8;?:8,1]",
            "least:f32[?]",
            "places:i32[?]",
        ]
        sizes = {"x": (points, 104), "centres": (centres, 104), "least": (points,)}
        found = nearest.compile(
            specs, {"D": 128}, target="sm_90a", sizes=sizes | {"places": (points,)}
        )
        return decisions(found, "sums")

    assert told(721, 2874)
    assert not told(100000, 2874)
