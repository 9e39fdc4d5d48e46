"""Layouts of operands in bytes that lie across k in memory, which warpgroup instructions read along
k: threads turn blocks of them on the way to shared memory.

Of 128 x 128 bytes in 128 threads, rows along k: each thread loads 8 neighbours of 16 rows,

    T(8,4,4):(16@0,8@1,32@1) V(8,16):(1@1,1@0)

and stores what it has of each column, 16 bytes along k, in one access. Eight lanes, which do that
at a time, store 128 bytes along k of one column: all banks once. (A thread with bytes of one row
stores them one by one, at addresses a column apart: all lanes of a warp in one bank.) Four lanes
load 32 neighbours, a whole sector. Threads with fewer bytes have 8 or 4 rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.def_use import defining_op, of_kind
from tilec.dialects.elementwise import is_elementwise
from tilec.dialects.types import byte_width, element, is_tile, shape
from tilec.hardware.layout import Layout, Mode, normalize
from tilec.hardware.mma_shapes import find_instruction
from tilec.hardware.sizes import VECTOR_BYTES, WARP_SIZE
from tilec.passes.analysis.divisibility import Divisibility
from tilec.passes.analysis.vector_width import access_width, contiguous_dim
from tilec.passes.contract import PassContext
from tilec.passes.rewriting.walk import is_of

WORD = 4
"""Bytes that a thread loads, and stores, at once at least."""
STORING_LANES = 8
"""That store 16 bytes each at a time, and so fill all banks."""


def turned_layouts(
    ops: Sequence[ir.Operation], facts: Divisibility, context: PassContext
) -> dict[ir.Value, Layout]:
    """The loads among `ops` that are turned, with their layouts."""
    found: dict[ir.Value, Layout] = {}
    for dot in of_kind(ops, tile.DotOp):
        row = find_instruction(dot.options["instruction"])
        if not row.is_warpgroup or byte_width(element(dot.rhs)) > 1:
            continue
        for operand, along_k in ((dot.lhs, 1), (dot.rhs, 0)):
            loads = _loads(operand, along_k)
            if loads and all(_lies_across(load, along, facts) for load, along in loads):
                for load, along in loads:
                    layout = turned_layout(shape(load.result), along, context.num_threads)
                    if layout is not None:
                        found[load.result] = layout
    return found


def _loads(value: ir.Value, along_k: int) -> list[tuple[tile.LoadOp, int]]:
    """The loads of whole tiles that an operand is computed from, element by element, each with its
    dimension along k."""
    op = defining_op(value)
    if op is None or not is_tile(value):
        return []
    if is_of(op, tile.LoadOp):
        return [(op.opview, along_k)]
    if is_of(op, tile.TransposeOp):
        sources = op.opview.stripes(along_k)
    else:
        sources = [(operand, along_k) for operand in op.operands] if is_elementwise(op) else []
    return [found for source in sources for found in _loads(*source)]


def _lies_across(load: tile.LoadOp, along_k: int, facts: Divisibility) -> bool:
    """Whether a load brings bytes in words of neighbours across k."""
    run = contiguous_dim(load.src, load.dims)
    width, _ = access_width(load, facts)
    is_bytes = byte_width(element(load.result)) == 1 and len(shape(load.result)) == 2
    return is_bytes and run == 1 - along_k and width >= VECTOR_BYTES


def turned_layout(sizes: Sequence[int], along_k: int, num_threads: int) -> Layout | None:
    """The layout of a tile of bytes whose neighbours in memory lie across dimension `along_k`; None
    of one that threads do not fill with whole blocks."""
    depth, width = sizes[along_k], sizes[1 - along_k]
    each, warps = prod(sizes) // num_threads, num_threads // WARP_SIZE
    rows = min(VECTOR_BYTES, each // WORD, depth)
    if rows < WORD or any(n & (n - 1) for n in (*sizes, num_threads)):
        return None
    neighbours = min(each // rows, VECTOR_BYTES)
    lanes = min(STORING_LANES, depth // rows, neighbours)
    wide, high = neighbours * WARP_SIZE // lanes, rows * lanes
    across = min(warps, width // wide)
    down = warps // across if across else 0
    if not across or down * high > depth:
        return None
    threads = (
        Mode(lanes, rows, along_k),
        Mode(WARP_SIZE // lanes, neighbours, 1 - along_k),
        Mode(across, wide, 1 - along_k),
        Mode(down, high, along_k),
    )
    values = (
        Mode(neighbours, 1, 1 - along_k),
        Mode(rows, 1, along_k),
        Mode(width // (wide * across), wide * across, 1 - along_k),
        Mode(depth // (high * down), high * down, along_k),
    )
    return normalize(Layout(threads, values))
