"""`tl.sort`, `tl.topk`, and `max` with positions, on the emulator against NumPy: every dtype, NaN,
infinities, equals, odd sizes, both axes, rows in one and in several warps."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from emulated import seed_of

import tilec
import tilec.language as tl

DTYPES = ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")


@tilec.kernel
def ordered(
    x: tl.array, y: tl.array, z: tl.array, S: tl.const, K: tl.const, A: tl.const, DOWN: tl.const
):
    """y: the first K along axis A of x in order, all sorted where K is None; z: where they were."""
    tile = tl.load(x, (0, 0), S)
    if K is None:
        found, at = tl.sort(tile, A, DOWN, return_indices=True)
        alone = tl.sort(tile, axis=A, descending=DOWN)
    else:
        found, at = tl.topk(tile, K, A, DOWN, True)
        alone = tl.topk(tile, K, axis=A, largest=DOWN)
    tl.store(y, (0, 0, 0), found[None])
    tl.store(y, (1, 0, 0), alone[None])
    tl.store(z, (0, 0), at)


def drawn(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Numbers over the whole range, many of them equal, and those at its ends."""
    kind, chance = np.dtype(dtype), rng.random(shape)
    if kind.kind == "f":
        x = rng.standard_normal(shape).astype(kind)
        ends = np.array([np.nan, -np.nan, np.inf, -np.inf, 1.5, -1.5], kind)
    else:
        low, high = np.iinfo(kind).min, np.iinfo(kind).max
        x = rng.integers(low, high, shape, dtype=kind, endpoint=True)
        ends = np.array([low, high, 1, 0], kind)
    return np.where(chance < 0.5, x, ends[rng.integers(len(ends), size=shape)])


def order(x: np.ndarray, axis: int, down: bool) -> np.ndarray:
    """Positions in order, NaN greatest, the first of equals first either way round."""
    nan = np.isnan(x)
    _, ranks = np.unique(np.where(nan, 0, x), return_inverse=True)
    keys = np.where(nan, x.size, ranks.reshape(x.shape))
    return np.argsort(-keys if down else keys, axis, kind="stable")


def check(
    shape: tuple[int, ...],
    dtype: str,
    k: int | None,
    axis: int,
    down: bool,
    warps: int | None = None,
) -> None:
    """`warps`: in so many, and in check mode."""
    kernel = ordered.demanding(num_warps=warps) if warps else ordered
    x = drawn(np.random.default_rng(seed_of(shape, dtype, k)), shape, dtype)
    wanted = order(x, axis, down).take(range(shape[axis] if k is None else k), axis)
    y = np.zeros((2, *wanted.shape), dtype)
    z = np.full(wanted.shape, -1, np.int32)
    kernel.on("emulator:check" if warps else "emulator")[1](
        x, y, z, S=shape, K=k, A=axis, DOWN=down
    )
    np.testing.assert_array_equal(z, wanted)
    for found in y:
        np.testing.assert_array_equal(found, np.take_along_axis(x, wanted, axis))


@pytest.mark.parametrize("dtype", DTYPES)
def test_order(dtype: str) -> None:
    rng = random.Random(seed_of(dtype))
    shape = (rng.choice([1, 3]), rng.choice([7, 16, 30, 33]))
    if rng.random() < 0.5:
        shape = shape[::-1]
    axis = int(shape[1] > shape[0])
    k = None if rng.random() < 0.5 else rng.randint(1, 7)
    check(shape, dtype, k, axis, rng.random() < 0.5)


@pytest.mark.parametrize(
    ("shape", "k"),
    [
        *[((1, 1), None), ((2, 1), 1), ((1, 64), 1), ((5, 2), 2), ((1, 2050), 3)],
        *[((1, 1100), 40), ((3, 60), 5), ((2, 33), 32)],
    ],
    ids=str,
)
def test_sizes(shape: tuple[int, int], k: int | None) -> None:
    """One element; one of many; of so many that warps have runs of their own; runs in several
    lanes, in several warps, in vectors, and hardly fewer than all."""
    check(shape, "i2", k, 1, True)


@pytest.mark.parametrize("k", [None, 16])
def test_runs_that_reach_over_warps(k: int | None) -> None:
    """Partners in other warps meet in shared memory, in check mode."""
    check((1, 64), "i4", k, 1, False, warps=8)


@tilec.kernel
def extremes(x: tl.array, y: tl.array, z: tl.array, S: tl.const):
    tile = tl.load(x, (0, 0), S)
    for number, (value, at) in enumerate(
        (
            tl.max(tile, 1, return_indices=True),
            tl.min(tile, 1, return_indices=True),
            (tl.max(tile, 1), tl.argmax(tile, 1)),
            (tl.min(tile, 1), tl.argmin(tile, 1)),
        )
    ):
        tl.store(y, (number, 0), value[None])
        tl.store(z, (number, 0), at[None])


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4", "u2", "u8"])
def test_positions_of_extremes(dtype: str) -> None:
    """The first of equals, of NaNs where there is one: NaN is greatest and smallest."""
    x = drawn(np.random.default_rng(5), (6, 45), dtype)
    x[4:] = np.where(np.isnan(x[4:]), x.dtype.type(1), x[4:])
    y, z = np.zeros((4, 6), dtype), np.full((4, 6), -1, np.int32)
    extremes.on("emulator")[1](x, y, z, S=x.shape)
    for number, (value, at) in enumerate([(np.max, np.argmax), (np.min, np.argmin)] * 2):
        np.testing.assert_array_equal(y[number], value(x, 1))
        np.testing.assert_array_equal(z[number], at(x, 1))


@tilec.kernel(grid=lambda x: x.shape[0])
def sort_rows(x: tl.array, y: tl.array, N: tl.const, R: tl.const = 1):
    tl.store(y, (0, 0), tl.sort(tl.load(x, (0, 0), (R, N))))


@tilec.kernel(grid=lambda x: x.shape[0])
def largest(x: tl.array, y: tl.array, N: tl.const, K: tl.const):
    tl.store(y, (0, 0), tl.topk(tl.load(x, (0, 0), (1, N)), K))


@tilec.kernel(grid=lambda x: x.shape[0])
def largest_one_by_one(x: tl.array, y: tl.array, N: tl.const, K: tl.const):
    row = tl.program_id(0)
    v, columns = tl.load(x, (row, 0), N), tl.arange(N)
    for k in tl.static_range(K):
        tl.store(y, (row, k), tl.max(v))
        v = tl.where(columns == tl.argmax(v, 0), -tl.inf, v)


ALIGNED = "x:f32[?,?:4;?:4,1]"


def code(
    kernel: tilec.call.jit.Kernel, x: str = "x:f32[?,?]", **constants: int
) -> tuple[str, dict[str, Any]]:
    alone = kernel.demanding(persistent=False)
    compiled = alone.compile([x, "y:f32[?,?]"], constants, target="sm_90a")
    warps = next(d for d in compiled.report["decisions"] if d["about"] == "warps")
    return compiled.ptx, warps


def test_a_row_is_sorted_in_its_warp() -> None:
    """Lanes of 16 elements each exchange registers in 15 of 45 steps; no threads wait."""
    ptx, warps = code(sort_rows, N=512)
    assert warps["num_warps"] == 1
    assert "bar.sync" not in ptx
    assert ptx.count("shfl.sync") <= 15 * 16 + 2 * 16  # and two conversions


def test_rows_get_a_warp_each() -> None:
    ptx, warps = code(sort_rows, N=128, R=8)
    assert warps["num_warps"] == 8
    assert "bar.sync" not in ptx


def test_few_of_many_are_merged_in_few_shuffles() -> None:
    """A run of 8 in the registers of each lane: half of what a merge has left moves, and then what
    it puts in order over so many lanes."""
    ptx, warps = code(largest, ALIGNED, N=1024, K=8)
    assert warps["num_warps"] == 1
    assert "bar.sync" not in ptx
    assert ptx.count("shfl.sync") == (4 + 4) + (2 + 2 * 2) + (1 + 3) + 2 * (1 + 3) + 2
    assert ptx.count("ld.global.v4") == 8  # as loaded


def test_what_is_left_of_several_warps_is_merged_in_each() -> None:
    """It passes through shared memory once; half as many elements after each merge."""
    ptx, warps = code(largest, ALIGNED, N=8192, K=8)
    assert warps["num_warps"] == 8
    assert ptx.count("bar.sync") == 1
    assert ptx.count("shfl.sync") <= 46


def test_long_runs_stay_in_their_warp() -> None:
    """A run of 64 in two lanes: of 21 steps that sort it one is between lanes, and of each merge as
    many as a run has lane bits. The mirrored run comes in one shuffle."""
    ptx, _ = code(largest, ALIGNED, N=1024, K=64)
    assert "bar.sync" not in ptx
    merges = 16 * (1 + 2) + 8 * (1 + 3) + 4 * (1 + 4) + 2 * (1 + 5)
    assert ptx.count("shfl.sync") <= 32 + merges + 2


def test_reductions_of_one_row_over_and_over_stay_in_one_warp() -> None:
    """The largest is found once, by one instruction an element, and where it is by another."""
    ptx, warps = code(largest_one_by_one, N=512, K=4)
    assert warps["num_warps"] == 1
    assert "bar.sync" not in ptx
    assert ptx.count("shfl.sync") == 4 * 5
    assert ptx.count("redux.sync.min") == 3
