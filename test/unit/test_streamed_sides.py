"""Tiles of several `tl.auto` sides that loops walk on by: which shape and how many warps the model
chooses, and that all of them are right."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from tile_shapes import H200, array, choices

import tilec
import tilec.language as tl
from tilec.call.call_class import class_of
from tilec.call.jit import Kernel
from tilec.call.specialization import specialize
from tilec.call.streamed_sides import shapes, sizes


@tilec.kernel(grid=lambda y, BN: (tl.cdiv(y.shape[1], BN), y.shape[0]))
def sum_segments(
    x: tl.array, starts: tl.array, y: tl.array, BM: tl.const = tl.auto, BN: tl.const = tl.auto
):
    n, s = tl.program_id(0) * BN, tl.program_id(1)
    first, end = tl.load(starts, s, ()), tl.load(starts, s + 1, ())
    segment = tl.window(x, (first, 0), (end - first, x.shape[1]))
    total = tl.zeros((BN,), tl.f32)
    for m in tl.range(0, end - first, BM):
        total += tl.sum(tl.load(segment, (m, n), (BM, BN)).to(tl.f32), 0)
    tl.store(y, (s, n), total[None, :].to(y.dtype))


@tilec.kernel(grid=lambda y, BM: tl.cdiv(y.shape[0], BM))
def multiply_vector(
    a: tl.array, x: tl.array, y: tl.array, BM: tl.const = tl.auto, BK: tl.const = tl.auto
):
    m = tl.program_id(0) * BM
    total = tl.zeros((BM, BK), tl.f32)
    for k in tl.range(0, a.shape[1], BK):
        total += tl.load(a, (m, k), (BM, BK)) * tl.load(x, k, BK)[None, :]
    tl.store(y, m, tl.sum(total, 1))


@tilec.kernel(grid=lambda x, BN: tl.cdiv(x.shape[1], BN))
def add_along_columns(x: tl.array, y: tl.array, BM: tl.const = tl.auto, BN: tl.const = tl.auto):
    n = tl.program_id(0) * BN
    before = tl.zeros((BN,), tl.f32)
    for m in tl.range(0, x.shape[0], BM):
        v = tl.load(x, (m, n), (BM, BN))
        tl.store(y, (m, n), tl.cumsum(v, 0) + before[None, :])
        before += tl.sum(v, 0)


@tilec.kernel(grid=lambda x, B: tl.cdiv(x.shape[1], B))
def smooth_columns(x: tl.array, y: tl.array, rate: tl.f32, B: tl.const = tl.auto):
    n = tl.program_id(0) * B
    mean = tl.zeros((B,), tl.f32)
    for t in tl.range(x.shape[0]):
        mean += rate * (tl.load(x, (t, n), B).to(tl.f32) - mean)
        tl.store(y, (t, n), mean.to(y.dtype))


def _affine(a, x, b, y):
    return a * b, b * x + y


@tilec.kernel(grid=lambda x, BC: tl.cdiv(x.shape[1], BC))
def decay(a: tl.array, x: tl.array, y: tl.array, BT: tl.const = tl.auto, BC: tl.const = tl.auto):
    c = tl.program_id(0) * BC
    state = tl.zeros((BC,), tl.f32)
    last = tl.arange(BT) == BT - 1
    for t in tl.range(0, x.shape[0], BT):
        factors = tl.load(a, (t, c), (BT, BC), padding=1).to(tl.f32)
        factors, sums = tl.associative_scan(
            (factors, tl.load(x, (t, c), (BT, BC)).to(tl.f32)), 0, _affine
        )
        found = sums + factors * state[None, :]
        tl.store(y, (t, c), found.to(y.dtype))
        state = tl.sum(tl.where(last[:, None], found, 0.0), 0)


TILES: list[dict[str, Any]] = [
    {},
    {"BM": 1, "BN": 128, "num_warps": 1},
    {"BM": 4, "BN": 32, "num_warps": 1},
    {"BM": 8, "BN": 64, "num_warps": 2},
    {"BM": 64, "BN": 16, "num_warps": 4},
]
"""That chosen by default, and others of those that are ranked."""


def variant(kernel: Kernel, given: dict[str, Any]) -> tuple[Kernel, dict[str, Any]]:
    demands = {name: n for name, n in given.items() if name == "num_warps"}
    rest = {name: n for name, n in given.items() if name not in demands}
    return kernel.demanding(**demands).on("emulator:check"), rest


@pytest.mark.parametrize("given", TILES)
@pytest.mark.parametrize(("rows", "columns"), [(36, 90), (108, 30), (891, 90), (9, 257)])
def test_sums_of_segments_are_right(rows: int, columns: int, given: dict[str, Any]) -> None:
    rng = np.random.default_rng()
    starts = np.sort(np.append(rng.integers(0, rows + 1, 8), [0, rows])).astype(np.int32)
    x = rng.standard_normal((rows, columns), dtype=np.float32)
    y = np.full((9, columns), np.nan, np.float32)
    kernel, tile = variant(sum_segments, given)
    kernel(x, starts, y, **tile)
    expected = [x[i:j].astype(np.float64).sum(0) for i, j in pairwise(starts)]
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("given", TILES)
@pytest.mark.parametrize("shape", [(780, 192), (37, 33), (5, 3), (3, 3000)])
def test_products_with_vectors_are_right(shape: tuple[int, int], given: dict[str, Any]) -> None:
    rng = np.random.default_rng()
    a, x = (rng.standard_normal(each, dtype=np.float32) for each in (shape, shape[1]))
    y = np.full(shape[0], np.nan, np.float32)
    kernel, tile = variant(multiply_vector, given)
    kernel(a, x, y, **{"BK" if name == "BN" else name: n for name, n in tile.items()})
    expected = a.astype(np.float64) @ x.astype(np.float64)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("given", TILES)
@pytest.mark.parametrize("shape", [(300, 58), (1, 70), (67, 5), (40, 260)])
def test_running_sums_are_right(shape: tuple[int, int], given: dict[str, Any]) -> None:
    x = np.random.default_rng().standard_normal(shape, dtype=np.float32)
    y = np.full(shape, np.nan, np.float32)
    kernel, tile = variant(add_along_columns, given)
    kernel(x, y, **tile)
    np.testing.assert_allclose(y, x.astype(np.float64).cumsum(0), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("given", [{}, {"B": 32, "num_warps": 1}, {"B": 64, "num_warps": 4}])
@pytest.mark.parametrize("shape", [(37, 470), (1, 33), (20, 3)])
def test_recurrences_of_columns_are_right(shape: tuple[int, int], given: dict[str, Any]) -> None:
    x = np.random.default_rng().standard_normal(shape, dtype=np.float32)
    y, mean, expected = np.full_like(x, np.nan), np.zeros(shape[1]), []
    kernel, tile = variant(smooth_columns, given)
    kernel(x, y, 0.25, **tile)
    for row in x.astype(np.float64):
        expected.append(mean := mean + 0.25 * (row - mean))
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


def taken(kernel: Kernel, values: dict[str, Any]) -> dict[str, int]:
    """The tile, and the warps if no rule chose them, for a call on an H200."""
    parameters = specialize(kernel.parameters, values).parameters
    first = choices(kernel, values).order(class_of(parameters, values, H200))[0]
    return dict(first.chosen) | first.demands


def segments(count: int, mean: int, columns: int) -> dict[str, Any]:
    arrays = {
        "x": array(count * mean, columns, dtype="f16"),
        "starts": array(count + 1, dtype="i32"),
        "y": array(count, columns, dtype="f16"),
    }
    return {**arrays, "BM": tl.auto, "BN": tl.auto}


def test_many_short_segments_take_whole_rows() -> None:
    """A program for each of their columns would begin thrice, and leave most of 32 rows empty."""
    found = taken(sum_segments, segments(16147, 8, 176))
    assert found["BN"] == 256
    assert found["BM"] <= 8
    assert found["num_warps"] <= 4


def test_few_columns_become_more_programs() -> None:
    """62 CTAs with 64 columns each would have half a megabyte under way."""
    arrays = {name: array(7619, 58 * 62, dtype="f32") for name in "xy"}
    few = {name: array(7619, 58, dtype="f32") for name in "xy"}
    auto = {"BM": tl.auto, "BN": tl.auto}
    assert taken(add_along_columns, {**arrays, **auto})["BN"] >= 32
    assert taken(add_along_columns, {**few, **auto})["BN"] <= 16


@pytest.mark.parametrize(("rows", "columns"), [(4751, 1536), (380, 5120)])
def test_scans_are_not_spread_over_warps_that_pass_on_more_than_they_do(
    rows: int, columns: int
) -> None:
    """In 16 warps each thread would hold what all others have of four columns, and spill."""
    kernel = decay.compile(
        [f"{name}:bf16[?,?:8;?:8,1]" for name in "axy"],
        target="sm_90a",
        sizes={name: (rows, columns) for name in "axy"},
    )
    assert kernel.threads <= 256
    assert not any(one["about"] == "registers" for one in kernel.report["decisions"])


@pytest.mark.parametrize(("rows", "columns"), [(268, 17131), (2628, 470)])
def test_rows_that_a_loop_takes_one_by_one_become_many_programs(rows: int, columns: int) -> None:
    """Of a usual elementwise tile, 2048 columns, there would be 9 programs, or one."""
    values = {name: array(rows, columns, dtype="f16") for name in "xy"}
    found = taken(smooth_columns, {**values, "rate": 0.5, "B": tl.auto})
    assert 32 <= found["B"] <= 128


def test_what_is_known_to_be_good_stays_where_others_promise_little() -> None:
    values = {
        "a": array(4096, 4096, dtype="f32"), "x": array(4096, dtype="f32"),
        "y": array(4096, dtype="f32"), "BM": tl.auto, "BK": tl.auto,
    }  # fmt: skip
    found = taken(multiply_vector, values)
    assert found["BM"] == 1
    assert "num_warps" not in found


def test_an_author_who_says_how_many_warps_gets_them() -> None:
    kernel = sum_segments.demanding(num_warps=8)
    found = choices(kernel, values := segments(16147, 8, 176))
    parameters = specialize(kernel.parameters, values).parameters
    order = found.order(class_of(parameters, values, H200))
    assert all(tiles.warps is None for tiles in order)


def test_shapes_hold_as_many_elements_and_no_more_than_there_are() -> None:
    usual = {"BM": 32, "BN": 64}
    assert shapes(usual, {}) == [
        {"BM": 2048 // n, "BN": n} for n in (2048, 1024, 512, 256, 128, 64, 32, 16)
    ]
    assert shapes(usual, {"BM": 20, "BN": 58}) == [
        {"BM": 32, "BN": 64}, {"BM": 32, "BN": 32}, {"BM": 32, "BN": 16},
    ]  # fmt: skip
    assert shapes({"B": 1024}, {"B": 100}) == [{"B": 128}]
    assert sizes({"BM": 32, "BN": 64}, {"BM": 20}) == [{"BM": n, "BN": 64} for n in (4, 8, 16)]
    assert sizes({"B": 512}, {"B": 470}) == [{"B": n} for n in (32, 64, 128, 256)]
