"""Loops that store where they have loaded: their loads come ahead (`analysis/own_stores.py`)."""

from __future__ import annotations

import numpy as np
import pytest
from target_names import MAIN

import tilec
import tilec.language as tl

RNG = np.random.default_rng(5)


@tilec.kernel(grid=lambda x, B: x.shape[0])
def centre(x: tl.array, B: tl.const):
    """Rows less their means, in place."""
    row, n = tl.program_id(0), x.shape[1]
    total = tl.zeros((B,), tl.f32)
    for k in tl.range(0, n, B):
        total = total + tl.load(x, (row, k), (B,)).to(tl.f32)
    mean = tl.sum(total) / n
    for k in tl.range(0, n, B):
        tl.store(x, (row, k), (tl.load(x, (row, k), (B,)).to(tl.f32) - mean).to(x.dtype))


@tilec.kernel(grid=lambda columns: columns)
def add_along(x: tl.array, columns: tl.i32):
    """Running sums of each column, in place; `x`: rows of 24, one behind the other."""
    column = tl.program_id(0)
    total = tl.zeros((), tl.i32)
    for k in tl.range(x.shape[0] // 24):
        total = total + tl.load(x, (k * 24 + column,), ())
        tl.store(x, (k * 24 + column,), total)


@tilec.kernel(grid=lambda x, B: x.shape[0])
def largest_so_far(x: tl.array, B: tl.const):
    """Each block of a row by its largest, in place: threads meet in every iteration."""
    row = tl.program_id(0)
    for k in tl.range(0, x.shape[1], B):
        tile = tl.load(x, (row, k), (B,), padding=-1e30)
        tl.store(x, (row, k), tile - tl.max(tile))


@tilec.kernel(grid=lambda x, B: x.shape[0])
def pass_on(x: tl.array, B: tl.const):
    """Adds each block of a row to the next one, in place: an iteration loads what the one before
    has stored."""
    row = tl.program_id(0)
    for k in tl.range(0, x.shape[1] - B, B):
        before, here = tl.load(x, (row, k), (B,)), tl.load(x, (row, k + B), (B,))
        tl.store(x, (row, k + B), before + here)


@tilec.kernel(grid=lambda x, B: tl.cdiv(x.shape[0], B))
def stay(x: tl.array, w: tl.array, B: tl.const):
    """Each row of `w` goes into the same elements of `x`, in place: an iteration loads what the one
    before has stored, by the same threads."""
    i = tl.program_id(0) * B
    for k in tl.range(w.shape[0]):
        x_tile, row = tl.load(x, i, B), tl.load(w, (k, i), (B,))
        tl.store(x, i, x_tile * 2 + row)


@tilec.kernel(grid=1)
def stay_at_numbers(x: tl.array, places: tl.array, w: tl.array, B: tl.const):
    """The same where an array says which elements."""
    place = tl.load(places, 0, B, padding=-1)
    for k in tl.range(w.shape[0]):
        x_tile, row = tl.gather(x, (place,)), tl.load(w, (k, 0), (B,))
        tl.scatter(x, (place,), x_tile * 2 + row)


@pytest.fixture(params=MAIN, autouse=True)
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", request.param)


@pytest.mark.parametrize(("n", "b"), [(700, 64), (4096, 512), (2000, 256), (100, 128)])
def test_rows_in_place(n: int, b: int) -> None:
    x = RNG.standard_normal((3, n)).astype(np.float32)
    right = x - x.mean(axis=1, keepdims=True, dtype=np.float64)
    centre.check(x, b)
    np.testing.assert_allclose(x, right, atol=1e-5)


@pytest.mark.parametrize("rows", [1, 5, 40])
def test_columns_in_place(rows: int) -> None:
    x = RNG.integers(0, 99, (rows, 24)).astype(np.int32)
    right = x.cumsum(axis=0)
    add_along.check(x.reshape(-1), 24)
    np.testing.assert_array_equal(x, right)


@pytest.mark.parametrize("n", [512, 1500])
def test_threads_that_meet_in_place(n: int) -> None:
    x = RNG.standard_normal((3, n)).astype(np.float32)
    right = np.concatenate(
        [x[:, k : k + 512] - x[:, k : k + 512].max(1, keepdims=True) for k in range(0, n, 512)], 1
    )
    largest_so_far.check(x, 512)
    np.testing.assert_array_equal(x, right)


@pytest.mark.parametrize("blocks", [2, 9, 30])
def test_what_the_next_iteration_loads_does_not_come_ahead(blocks: int) -> None:
    x = RNG.integers(0, 99, (3, 64 * blocks)).astype(np.int32)
    right = x.reshape(3, blocks, 64).cumsum(axis=1).reshape(x.shape)
    pass_on.check(x, 64)
    np.testing.assert_array_equal(x, right)


@pytest.mark.parametrize(("rows", "b"), [(2, 32), (7, 128), (5, 512)])
def test_what_stays_in_place_does_not_come_ahead(rows: int, b: int) -> None:
    x, w = (RNG.integers(-9, 9, shape).astype(np.int32) for shape in ((b - 3,), (rows, b - 3)))
    numbered, numbered_right, right = x.copy(), x.copy(), x.copy()
    for row in w:
        right = right * 2 + row
    stay.check(x, w, b)
    np.testing.assert_array_equal(x, right)
    places = RNG.permutation(b - 3).astype(np.int32)
    for row in w:
        numbered_right[places] = numbered_right[places] * 2 + row
    stay_at_numbers.check(numbered, places, w, b)
    np.testing.assert_array_equal(numbered, numbered_right)
