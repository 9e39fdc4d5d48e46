"""Softmax of each row: in one tile, or in two passes over rows longer than a tile may be."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilec
import tilec.language as tl
from tilec.call.device_target import target_of
from tilec.examples.running import compare, launch, poisoned
from tilec.hardware.target import Feature


@tilec.kernel(grid=lambda x: x.shape[0])
def softmax(x: tl.array, y: tl.array, N: tl.const = 1024):
    """y = softmax(x) along rows of at most N elements, one row per program."""
    row = tl.program_id(0)
    v = tl.load(x, (row, 0), N, padding=-tl.inf).to(tl.f32)
    e = tl.exp(v - tl.max(v), approx=True)
    tl.store(y, (row, 0), (e / tl.sum(e)).to(y.dtype))


def merge(m1, s1, m2, s2):
    """Joins two partial softmax sums s, each scaled by exp(-m)."""
    m = tl.maximum(m1, m2)
    return m, s1 * tl.exp(m1 - m) + s2 * tl.exp(m2 - m)


@tilec.kernel(grid=lambda x: x.shape[0])
def online_softmax(x: tl.array, y: tl.array, N: tl.const = tl.auto):
    """y = softmax(x) along rows of any length, N elements at a time, one row per program."""
    row = tl.program_id(0)
    columns = x.shape[1]
    highest, total = -tl.inf, 0.0
    for start in tl.range(0, columns, N):
        v = tl.load(x, (row, start), N, padding=-tl.inf).to(tl.f32)
        tile_highest = tl.max(v)
        tile_total = tl.sum(tl.exp(v - tile_highest))
        highest, total = merge(highest, total, tile_highest, tile_total)
    for start in tl.range(0, columns, N):
        v = tl.load(x, (row, start), N).to(tl.f32)
        tl.store(y, (row, start), (tl.exp(v - highest) / total).to(y.dtype))


LONGEST_TILE, LONGEST_ROW = 32768, 262144
"""Longest row that one CTA keeps, and a cluster of CTAs."""


def longest_row() -> int:
    """Elements of the longest row that a program keeps on the device at hand."""
    has_clusters = target_of(tilec.device()).supports(Feature.CLUSTERS)
    return LONGEST_ROW if has_clusters else LONGEST_TILE


def row_tile(columns: int) -> int:
    """Elements of a tile that keeps a row, of parts for each CTA of a cluster if it is long, with
    one for each lane of a warp if it is short."""
    if columns <= 128:
        return max(32, 1 << (columns - 1).bit_length())
    part = 128 if columns <= LONGEST_TILE else 256
    return tl.cdiv(columns, part) * part


def softmax_rows(x: Any, y: Any) -> None:
    """Softmax of each row of `x` into `y`, by the kernel that suits the row length."""
    columns = x.shape[1]
    if columns <= longest_row():
        softmax(x, y, N=row_tile(columns))
    else:
        online_softmax(x, y)


def reference(x: np.ndarray) -> np.ndarray:
    """Softmax of each row in float64."""
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def main() -> None:
    """Rows shorter and longer than a tile, in both kernels."""
    rng = np.random.default_rng(0)
    for rows, columns in ((1, 1), (5, 781), (3, 1024)):
        x = rng.standard_normal((rows, columns), dtype=np.float32) * 10
        y = poisoned(x.shape, np.float32)
        launch(softmax_rows, x, y)
        compare(f"softmax {rows}x{columns}", y, reference(x), 1e-5)
        y = poisoned(x.shape, np.float32)
        launch(online_softmax, x, y, N=256)
        compare(f"online_softmax {rows}x{columns}", y, reference(x), 1e-5)


if __name__ == "__main__":
    main()
