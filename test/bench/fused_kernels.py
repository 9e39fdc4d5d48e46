"""Products with work of their own in or behind the loop: nothing here is known to the compiler."""

from __future__ import annotations

from typing import Any

import tilec
import tilec.language as tl
from tilec.examples.grouped_gemm import LISTED_ROWS, find_arranged, find_tile, multiply_rows


def _tiles(c: Any, BM: int, BN: int) -> tuple[int, int]:
    return tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)


@tilec.kernel(grid=_tiles)
def activated_product(
    a: tl.array, b: tl.array, c: tl.array,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
    STAGES: tl.const = None, WARP_SPECIALIZE: tl.const = None,
):  # fmt: skip
    """c = relu(a) @ b."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK, stages=STAGES, warp_specialize=WARP_SPECIALIZE):
        x = tl.maximum(tl.load(a, (m, k), (BM, BK)), 0.0)
        acc = tl.dot(x, tl.load(b, (k, n), (BK, BN)), acc)
    tl.store(c, (m, n), acc.to(c.dtype))


@tilec.kernel(grid=_tiles)
def dequantised_product(
    a: tl.array, b: tl.array, c: tl.array,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
    STAGES: tl.const = None, WARP_SPECIALIZE: tl.const = None,
):  # fmt: skip
    """c = a @ b, where a has one byte an element and is multiplied as what b is."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK, stages=STAGES, warp_specialize=WARP_SPECIALIZE):
        x = tl.load(a, (m, k), (BM, BK)).to(b.dtype)
        acc = tl.dot(x, tl.load(b, (k, n), (BK, BN)), acc)
    tl.store(c, (m, n), acc.to(c.dtype))


@tilec.kernel(grid=_tiles)
def gated_product(
    a: tl.array, b: tl.array, g: tl.array, c: tl.array,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
    STAGES: tl.const = None, WARP_SPECIALIZE: tl.const = None,
):  # fmt: skip
    """c = silu(a @ g) * (a @ b): both products read a once."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc, gate = tl.zeros((BM, BN), tl.f32), tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK, stages=STAGES, warp_specialize=WARP_SPECIALIZE):
        x = tl.load(a, (m, k), (BM, BK))
        acc = tl.dot(x, tl.load(b, (k, n), (BK, BN)), acc)
        gate = tl.dot(x, tl.load(g, (k, n), (BK, BN)), gate)
    tl.store(c, (m, n), (gate / (1 + tl.exp(-gate)) * acc).to(c.dtype))


@tilec.kernel(
    grid=lambda c, ends, BM, BN: (
        tl.maximum(tl.cdiv(c.shape[0], BM) + ends.shape[0] - 1, 0),
        tl.cdiv(c.shape[1], BN),
    )
)
def searched_groups(
    a: tl.array, b: tl.array, ends: tl.array, c: tl.array,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
    STAGES: tl.const = None, WARP_SPECIALIZE: tl.const = None,
):  # fmt: skip
    """`tilec.examples.grouped_gemm`; STAGES and WARP_SPECIALIZE demand of the loop."""
    group, m, stop = find_tile(ends, tl.program_id(0), BM)
    n = tl.program_id(1) * BN
    multiply_rows(a, b, c, group, m, stop, n, BM, BN, BK, STAGES, WARP_SPECIALIZE)


@tilec.kernel(
    grid=lambda c, tiles, BN: ((tiles.shape[0] - 1) * tl.cdiv(c.shape[1], BN),), persistent=True
)
def arranged_groups(
    a: tl.array, b: tl.array, tiles: tl.array, c: tl.array,
    BM: tl.const = LISTED_ROWS, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
    GROUP: tl.const = 12,
    STAGES: tl.const = None, WARP_SPECIALIZE: tl.const = None,
):  # fmt: skip
    """The same of `arranged_gemm` there."""
    columns = tl.cdiv(c.shape[1], BN)
    group, m, stop, column = find_arranged(tiles, tl.program_id(0), columns, GROUP)
    n = column * BN
    multiply_rows(a, b, c, group, m, stop, n, BM, BN, BK, STAGES, WARP_SPECIALIZE)
