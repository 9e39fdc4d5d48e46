"""A product whose last, partial round of tiles is split along k, so that every worker has a part.

594 tiles on 132 multiprocessors take five rounds, and the fifth has 66 tiles. Here a program is a
whole tile as long as there is one for every worker; the tiles that are left become SPLITS programs
each, which sum a part of k. All but the last part of a tile go to memory as partial sums. The last
one waits for them, adds them up in the order of k and does the epilogue, so results do not differ
from call to call. Programs of one part read the same rows and columns at the same time: reads of
several multiprocessors are joined in front of the L2 cache, which alone could not serve them all.

Programs are dealt out in ascending order and wait for lower ones only, which have been dealt out
before: among all that have not ended the lowest waits for nobody, whatever number of CTAs runs.
"""
# ruff: noqa: RUF005 - the tile language has no starred tuples

# Of a kernel's functions only what a checker cannot infer is annotated.
# pyright: basic

from __future__ import annotations

from typing import Any

import tilec
import tilec.language as tl
from tilec.ops.matmul_kernel import accumulator_of, finish, rank_offsets


def tail_grid(c: Any, BM: int, BN: int, WORKERS: int, SPLITS: int) -> Any:
    """Whole tiles, then the parts of those that are left."""
    tiles = tl.cdiv(c.shape[-2], BM) * tl.cdiv(c.shape[-1], BN)
    for size in c.shape[:-2]:
        tiles = tiles * size
    return (tiles + (tiles % WORKERS) * (SPLITS - 1),)


def tile_at(number: Any, rows: Any, columns: Any, GROUP: int) -> Any:
    """Row and column of a tile: down GROUP rows, then to the next column, so that programs that run
    together share operands in the L2 cache."""
    group = number // (GROUP * columns)
    height = tl.assume(tl.minimum(rows - group * GROUP, GROUP), min=1)
    inside = number % (GROUP * columns)
    return group * GROUP + inside % height, inside // height


def as_stored(sums: Any) -> Any:
    """Partial sums in the order in which threads hold the accumulator of a warpgroup instruction
    (PTX ISA 9.0, "wgmma"): 16 bytes a thread, all threads side by side. Any order would do."""
    rows, columns = sums.shape
    x = tl.reshape(sums, (rows // 16, 2, 8, columns // 16, 2, 4, 2))
    return tl.reshape(tl.permute(x, (1, 3, 0, 2, 5, 4, 6)), (rows * columns,))


def as_summed(stored: Any, rows: int, columns: int) -> Any:
    """The opposite of `as_stored`."""
    x = tl.reshape(stored, (2, columns // 16, rows // 16, 8, 4, 2, 2))
    return tl.reshape(tl.permute(x, (2, 0, 3, 1, 5, 4, 6)), (rows, columns))


def part_of(program: Any, whole: Any, left: Any, SPLITS: int) -> Any:
    """Which part of which tile a program sums, of `whole` tiles and then parts of `left`."""
    part, before = 0, 0
    for number in tl.static_range(1, SPLITS):
        is_later = (program >= whole) & (program - whole >= number * left)
        part = tl.where(is_later, number, part)
        before = tl.where(is_later, number * left, before)
    return part, tl.assume(program - before, min=0)


def with_earlier_parts(acc: Any, sums: Any, flags: Any, slot: Any, left: Any, parts: Any) -> Any:
    """`acc` and what `parts` programs have left, from `slot` on, in this order."""
    for earlier in tl.range(parts):
        from_ = slot + earlier * left
        while tl.atomic_cas(flags, (from_,), 1, 0, order="acquire") == 0:
            pass
        stored = tl.load(sums, (from_, 0), (acc.shape[0] * acc.shape[1],))
        acc = acc + as_summed(stored, acc.shape[0], acc.shape[1])
    return acc


@tilec.kernel(grid=tail_grid)
def product_with_tail(
    a: tl.array,
    b: tl.array,
    c: tl.array,
    bias,
    row_scale,
    column_scale,
    scale,
    factor: tl.f64,
    residual,
    sums: tl.array,
    flags: tl.array,
    BM: tl.const = 128,
    BN: tl.const = 256,
    BK: tl.const = 64,
    WORKERS: tl.const = 132,
    SPLITS: tl.const = 2,
    GROUP: tl.const = 12,
    PARTS: tl.const = (),
    ACTIVATION: tl.const = None,
    ACC: tl.const = None,
    PRECISION: tl.const = "ieee",
):
    """`matmul_kernel.product` by WORKERS workers, the tiles of the last round in SPLITS parts.

    sums: (parts, BM * BN), in the accumulator's dtype. flags: at least as many i32, all 0 before
    and after a launch: 1 while partial sums wait for their reader, which takes the flag down.
    """
    depth = a.shape[a.ndim - 1]
    rows, columns = tl.cdiv(c.shape[c.ndim - 2], BM), tl.cdiv(c.shape[c.ndim - 1], BN)
    steps = tl.cdiv(depth, BK)
    tiles = rows * columns
    for size in c.shape[: c.ndim - 2]:
        tiles = tiles * size
    left = tiles % WORKERS
    whole = tiles - left
    slot = tl.program_id(0) - whole
    part, tile = part_of(tl.program_id(0), whole, left, SPLITS)
    is_whole = slot < 0
    low = part * steps // SPLITS
    high = tl.where(is_whole, steps, (part + 1) * steps // SPLITS)
    lead, number = (), tile
    if c.ndim > 2:
        lead = rank_offsets(tile // (rows * columns), c.shape[: c.ndim - 2])
        number = tile % (rows * columns)
    row, column = tile_at(number, rows, columns, GROUP)
    m, n = tl.assume(row * BM, min=0), tl.assume(column * BN, min=0)
    acc = tl.zeros((BM, BN), accumulator_of(a.dtype) if ACC is None else ACC)
    for k in tl.range(low * BK, high * BK, BK):
        x = tl.load(a, lead + (m, k), (BM, BK))
        acc = tl.dot(x, tl.load(b, lead + (k, n), (BK, BN)), acc, PRECISION)
    if (slot >= 0) & (part < SPLITS - 1):
        tl.store(sums, (slot, 0), as_stored(acc))
        tl.atomic_xchg(flags, (slot,), 1, order="release")
    else:
        parts = tl.where(is_whole, 0, SPLITS - 1)
        acc = with_earlier_parts(acc, sums, flags, tile - whole, left, parts)
        optional = (bias, row_scale, column_scale, scale, factor, residual)
        done = finish(acc, lead, m, n, c.dtype, optional, PARTS, ACTIVATION)
        tl.store(c, lead + (m, n), done)


@tilec.kernel(grid=lambda flags, BN: (tl.cdiv(flags.shape[0], BN),))
def clear(flags: tl.array, BN: tl.const = 256):
    """flags = 0."""
    tl.store(flags, (tl.program_id(0) * BN,), tl.zeros((BN,), flags.dtype))
