"""Grouped products: rows of `a`, sorted into groups, each group times a matrix of its own.

What a mixture-of-experts layer needs: tokens sorted by expert. Where the groups end stands in
memory, so the sizes may be the result of an earlier kernel; empty groups are fine.

Two kernels. In `grouped_gemm` each program searches for its group, and some find no rows: right
where all is over in a round or two. Before `arranged_gemm` a short kernel
lists the tiles that have rows, so that programs without any come last, and CTAs that stay for many
programs get equal shares.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tilec
import tilec.language as tl
from tilec.examples.running import compare, launch, poisoned
from tilec.examples.stream_k import tile_at
from tilec.ops.new_arrays import new_array
from tilec.runtime.arrays import describe

BITS = 3
"""Of the number of a group, found by a step of the search."""


@tilec.function
def find_tile(ends, tile, BM):
    """Group, first row and end of the group of the `tile`-th tile of rows; maybe an empty tile.

    Group g has the tiles from `start // BM + g` on, `start` its first row: at least as many as it
    takes, in any case one, and in ascending order: each step of the search loads seven ends, none
    of which waits for another, and leaves an eighth of the groups.
    """
    groups = ends.shape[0]
    group, steps = 0, tl.cdiv(count_bits(groups), BITS)
    for step in tl.range(steps):
        width = 1 << (BITS * (steps - 1 - step))
        passed = 0
        for part in tl.static_range(1, 1 << BITS):
            behind = group + part * width
            start = tl.load(ends, (tl.assume(tl.minimum(behind, groups), min=1) - 1,), ())
            passed = passed + tl.where((behind < groups) & (start // BM + behind <= tile), 1, 0)
        group = group + passed * width
    start = tl.where(group > 0, tl.load(ends, (tl.maximum(group, 1) - 1,), ()), 0)
    first = tl.assume(start + (tile - start // BM - group) * BM, min=0)
    return group, first, tl.load(ends, (group,), ())


@tilec.function
def count_bits(number):
    """Binary digits of a positive number below 2^16."""
    bits = 0
    for digit in tl.static_range(16):
        bits = bits + tl.where(number >> digit > 0, 1, 0)
    return bits


@tilec.function
def multiply_rows(a, b, c, group, m, stop, n, BM, BN, BK, stages=None, warp_specialize=None):
    """One BM x BN tile of c, of the rows from m on that are before `stop`; none, no work."""
    # Rows behind the end are the next group's, and outside of these.
    rows, results = (tl.window(x, (m, 0), (stop - m, None)) for x in (a, c))
    acc = tl.zeros((BM, BN), tl.f32)
    depth = tl.where(m < stop, a.shape[1], 0)
    for k in tl.range(0, depth, BK, stages=stages, warp_specialize=warp_specialize):
        acc = tl.dot(tl.load(rows, (0, k), (BM, BK)), tl.load(b, (group, k, n), (BK, BN)), acc)
    tl.store(results, (0, n), acc.to(c.dtype))


@tilec.kernel(
    grid=lambda c, ends, BM, BN: (
        tl.maximum(tl.cdiv(c.shape[0], BM) + ends.shape[0] - 1, 0),
        tl.cdiv(c.shape[1], BN),
    )
)
def grouped_gemm(
    a: tl.array,
    b: tl.array,
    c: tl.array,
    ends: tl.array,
    BM: tl.const = tl.auto,
    BN: tl.const = tl.auto,
    BK: tl.const = tl.auto,
):
    """c[rows of group g] = a[rows of group g] @ b[g]; ends[g]: the row behind group g's last."""
    group, m, stop = find_tile(ends, tl.program_id(0), BM)
    multiply_rows(a, b, c, group, m, stop, tl.program_id(1) * BN, BM, BN, BK)


LISTED_ROWS = 128
"""Of a listed tile: what groups of more than FEW_ROWS in the mean fill best (`listed_rows`)."""


@tilec.kernel(grid=lambda ends: (ends.shape[0],), num_warps=1)
def arrange_tiles(
    ends: tl.array,
    tiles: tl.array,
    BM: tl.const = LISTED_ROWS,
    GROUPS: tl.const = 128,
    ROWS: tl.const = 32,
):
    """tiles[i] = group, first row and end of the group of the i-th tile of rows; in the last row of
    `tiles`: how many there are. A program a group."""
    group, groups = tl.program_id(0), ends.shape[0]
    before = 0
    for first in tl.range(0, group, GROUPS):
        start, end = tl.load(ends, (first - 1,), (GROUPS,)), tl.load(ends, (first,), (GROUPS,))
        is_before = first + tl.arange(GROUPS) < group
        before = before + tl.sum(tl.where(is_before, tl.cdiv(end - start, BM), 0))
    start, stop = tl.load(ends, (group - 1,), ()), tl.load(ends, (group,), ())
    count = tl.cdiv(stop - start, BM)
    for tile in tl.range(0, count, ROWS):
        inside = tile + tl.arange(ROWS)
        values = (tl.zeros((ROWS,), tl.i32) + group, start + inside * BM, inside * 0 + stop)
        for column in tl.static_range(3):
            at = before + inside, inside * 0 + column
            tl.scatter(tiles, at, values[column].to(tl.i32), mask=inside < count)
    if group == groups - 1:
        tl.store(tiles, (tiles.shape[0] - 1, 0), (before + count).to(tl.i32))


@tilec.function
def find_arranged(tiles, number, columns, GROUP):
    """Group, first row, end of the group and column of program `number`, which has no rows if it is
    behind the last one's. Programs go down GROUP tiles of rows, then to the next column."""
    used = tl.load(tiles, (tiles.shape[0] - 1, 0), ()) * columns
    row, column = tile_at(tl.minimum(number, used - 1), used // columns, columns, GROUP)
    first = tl.assume(tl.load(tiles, (row, 1), ()), min=0)
    stop = tl.where(number < used, tl.load(tiles, (row, 2), ()), 0)
    column = tl.assume(tl.minimum(column, columns - 1), min=0)
    return tl.load(tiles, (row, 0), ()), first, stop, column


@tilec.kernel(
    grid=lambda c, tiles, BN: ((tiles.shape[0] - 1) * tl.cdiv(c.shape[1], BN),), persistent=True
)
def arranged_gemm(
    a: tl.array,
    b: tl.array,
    c: tl.array,
    tiles: tl.array,
    BM: tl.const = LISTED_ROWS,
    BN: tl.const = tl.auto,
    BK: tl.const = tl.auto,
    GROUP: tl.const = 12,
):
    """`grouped_gemm`, of the tiles of BM rows that `arrange_tiles` has listed. CTAs that stay get
    equal shares of them, because programs without rows are the last."""
    columns = tl.cdiv(c.shape[1], BN)
    group, m, stop, column = find_arranged(tiles, tl.program_id(0), columns, GROUP)
    multiply_rows(a, b, c, group, m, stop, column * BN, BM, BN, BK)


FEWEST_ROWS = 32
"""Of a group in the mean, most of which are one tile: with more, equal shares of tiles in a list
are better."""
FEW_ROWS = 64
"""Of a group in the mean, which tiles of 64 rows leave less of empty than those of 128, and read
a matrix of b no more often: in the fastest columns of each, groups of 0 to 96 rows took 0.98 of the
time so, of 0 to 168 1.25 in rows that begin inside of lines and 1.10 in whole lines, of 0 to 250
1.12, of 0 to 500 0.97, of 0 to 700 1.30, of 0 to 1952 1.32 (H200)."""
LITTLE_WORK = 2**30
"""Multiplications, which take 10 us or less: a list is a launch more. Of 1.4e9 to 3.7e9 it took
0.67 to 0.98 of the time of a search (4 products, H200)."""
MANY_TILES, WIDE_TILE = 200, 256
"""Groups times tiles of columns of which CTAs that stay get several each, however few rows a group
has: of 240 to 1134 a list took 0.65 to 0.97 of the time of a search (8 products of groups of 0 to
20, to 60 rows), of 256 and 2400 1.01, of 35 1.23 (H200)."""


def grouped_products(a: Any, b: Any, c: Any, ends: Any) -> None:
    """c[rows of group g] = a[rows of group g] @ b[g], with a tile for the mean group: how long each
    is, only the GPU knows.

    On an H200 ahead of torch's own in 11 of 11 cases (test/bench/results/README.md). Where rows are
    multiples of 16 bytes, another 1 to 13 % of most: `arranged_gemm.demanding(consumers="pingpong",
    num_warps=4)` with BN=192.
    """
    groups, (rows, columns) = ends.shape[0], c.shape
    is_small = rows <= FEWEST_ROWS * groups or rows * columns * a.shape[1] < LITTLE_WORK
    if is_small and groups * tl.cdiv(columns, WIDE_TILE) < MANY_TILES:
        grouped_gemm(a, b, c, ends)
    else:
        size = listed_rows(rows, groups)
        arranged_gemm(a, b, c, listed_tiles(ends, rows, size), BM=size)


def listed_rows(rows: int, groups: int) -> int:
    """The rows of a listed tile, for so many in so many groups."""
    return LISTED_ROWS // 2 if rows <= FEW_ROWS * groups else LISTED_ROWS


def listed_tiles(ends: Any, rows: int, BM: int = LISTED_ROWS) -> Any:
    """The tiles of `rows` rows in all, beside `ends`: what `arranged_gemm` takes."""
    shape = tl.cdiv(rows, BM) + ends.shape[0] + 1, 3
    tiles = new_array(ends, describe(ends), shape, tl.i32)
    arrange_tiles(ends, tiles, BM=BM)
    return tiles


def main() -> None:
    """Groups of many sizes, some empty, and all rows in one."""
    rng = np.random.default_rng(0)
    for sizes, n, k in (((5, 0, 40, 1, 64), 70, 96), ((0, 33), 24, 40), ((7,), 8, 8)):
        ends = np.cumsum(sizes, dtype=np.int32)
        a = rng.standard_normal((sum(sizes), k)).astype(np.float16)
        b = rng.standard_normal((len(sizes), k, n)).astype(np.float16)
        c = poisoned((sum(sizes), n), np.float16)
        launch(grouped_products, a, b, c, ends)
        starts = np.concatenate([[0], ends[:-1]])
        parts = [
            a[start:end].astype(float) @ matrix.astype(float)
            for start, end, matrix in zip(starts, ends, b, strict=True)
        ]
        compare(f"grouped_gemm {sizes} {n}x{k}", c, np.concatenate(parts), 2e-3)


if __name__ == "__main__":
    main()
