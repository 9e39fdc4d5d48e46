"""Grouped products: rows of `a`, sorted into groups, each group times a matrix of its own.

What a mixture-of-experts layer needs: tokens sorted by expert. Where the groups end stands in
memory, so the sizes may be the result of an earlier kernel; empty groups are fine.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tilec
import tilec.language as tl
from tilec.examples.running import compare, launch, poisoned


@tilec.function
def find_tile(ends, tile, BM):
    """Group, first row and end of the group of the `tile`-th tile of rows; maybe an empty tile.

    Group g has the tiles from `start // BM + g` on, `start` its first row: at least as many as it
    takes, in any case one, and in ascending order, so that the search halves what is left.
    """
    groups = ends.shape[0]
    group = 0
    for step in tl.range(count_bits(groups)):
        half = group + (1 << (count_bits(groups) - 1 - step))
        start = tl.load(ends, (tl.minimum(half, groups) - 1,), ())
        group = tl.where((half < groups) & (start // BM + half <= tile), half, group)
    start = tl.where(group > 0, tl.load(ends, (tl.maximum(group, 1) - 1,), ()), 0)
    first = start + (tile - start // BM - group) * BM
    return group, first, tl.load(ends, (group,), ())


@tilec.function
def count_bits(number):
    """Binary digits of a positive number below 2^16."""
    bits = 0
    for digit in tl.static_range(16):
        bits = bits + tl.where(number >> digit > 0, 1, 0)
    return bits


@tilec.kernel(
    grid=lambda c, ends, BM, BN: (
        tl.cdiv(c.shape[0], BM) + ends.shape[0],
        tl.cdiv(c.shape[1], BN),
    )
)
def grouped_gemm(
    a: tl.array,
    b: tl.array,
    c: tl.array,
    ends: tl.array,
    BM: tl.const = 128,
    BN: tl.const = 128,
    BK: tl.const = 64,
):
    """c[rows of group g] = a[rows of group g] @ b[g]; ends[g]: the row behind group g's last."""
    n = tl.program_id(1) * BN
    group, m, stop = find_tile(ends, tl.program_id(0), BM)
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, tl.where(m < stop, a.shape[1], 0), BK):
        acc = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(b, (group, k, n), (BK, BN)), acc)
    result = acc.to(c.dtype)
    if m + BM <= stop:
        tl.store(c, (m, n), result)
    else:
        # The rows behind the end are the next group's.
        rows, columns = m + tl.arange(BM), n + tl.arange(BN)
        tl.scatter(c, (rows[:, None], columns[None, :]), result, mask=(rows < stop)[:, None])


FEW_ROWS = 96
"""Of a group in the mean: with more the larger tiles are better."""

one_program_each = grouped_gemm.demanding(persistent=False)
"""Programs without rows end at once, and their CTAs make room."""


def grouped_products(a: Any, b: Any, c: Any, ends: Any) -> None:
    """`grouped_gemm` with a tile for the mean group: how long each is, only the GPU knows.

    On an H200 within 2 % of the best of 24 tiles in 8 of 9 cases, 8 % behind in the other
    (test/bench/results/README.md).
    """
    rows = a.shape[0] / max(1, ends.shape[0])
    width = next((width for width in (64, 128) if c.shape[1] <= width), 256)
    one_program_each(a, b, c, ends, BM=64 if rows <= FEW_ROWS else 128, BN=width)


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
