"""Softmax of each row: in one tile, or in two passes over rows longer than a tile."""

from __future__ import annotations

import tilec
import tilec.language as tl


@tilec.kernel(grid=lambda x: x.shape[0])
def softmax(x: tl.array, y: tl.array, N: tl.const = 1024):
    """y = softmax(x) along rows of at most N elements, one row per program."""
    row = tl.program_id(0)
    v = tl.load(x, (row, 0), N, padding=-tl.inf).to(tl.f32)
    e = tl.exp(v - tl.max(v))
    tl.store(y, (row, 0), (e / tl.sum(e)).to(y.dtype))


def merge(m1, s1, m2, s2):
    """Joins two partial softmax sums s, each scaled by exp(-m)."""
    m = tl.maximum(m1, m2)
    return m, s1 * tl.exp(m1 - m) + s2 * tl.exp(m2 - m)


@tilec.kernel(grid=lambda x: x.shape[0])
def online_softmax(x: tl.array, y: tl.array, N: tl.const = 2048):
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
