"""wrap-rows: rows that begin anywhere are held wrapped, so that vectors are aligned in memory.

Before:   %x = "tile.load"(%a, %row, %c0) ... {options = {}} -> tensor<4224xf16>
          %i = "tile.iota"() {axis = 0 : i32} : () -> tensor<4224xi32>
          "tile.store"(%y, %b, %row, %c0) ... {options = {}}     rows of %a and %b: no multiple of 8
After:    %shift = "tile.misalignment"(%b, %row, %c0) {bytes = 32 : i32}       0 to 15 elements
          %from = 0 - %shift
          %x = "tile.load"(%a, %row, %from) ... {options = {wrapped = true}}
          %i = "tile.iota"() ... - %shift, and + 4224 where that is negative
          "tile.store"(%y, %b, %row, %from) ... {options = {wrapped = true}}

Rows of 4099 elements of 2 bytes begin at each multiple of 2, so that no vector is aligned in all of
them. Which element a thread holds matters to nothing that is computed element by element or reduced
in any order. So the tiles begin at the last aligned address in front of the row, and the elements
there are the tile's last: its columns wrap round, as far as the row lies behind the address.

1. The kernel holds tiles of one row of N elements alone, N a multiple of the longest shift, and
   does nothing with them but load, store, compute, repeat one element, reduce, and hand them on
   from iteration to iteration of a loop along the row.
2. Each access is to the same row of its array, along neighbouring elements, and is not aligned
   because of its array's strides. Rows that are known to be aligned, as of weights, would not be so
   any more: layer norm of 4099 columns takes 11 to 46 % longer in 16 bits. It begins at column 0,
   or at a multiple of the longest shift, as where a loop walks along the row: each part wraps for
   itself, by the same shift (`walked`).
3. Whole vectors save a warp more instructions than their edges take (`rows/wrapped_rows.py`): so
   in several warps, and in parts of one, of which each short access fills no sector. A warp alone
   with its row takes 0.77 to 0.87 of the time if it stays: 7982 rows of 250 bf16 to fp8 3.9 us for
   5.0, 60000 of 515 41.5 for 48.2, 24397 of 182 f32 to fp8 8.0 for 9.8. Two warps 0.89 to 1.00, but
   cross-entropy of 397 rows of 1343 bf16, a few warps a multiprocessor, 5.0 us for 3.2; 4000 rows
   of 4099 f16 in four 21.2 for 18.6, 62118 of 99 in parts of a warp 15.3 for 11.0. A loop along a
   row has 8 warps or more (`LOOPED_THREADS`).
4. The shift is taken from the first store, else the first load, as soon as its row is known. Arrays
   whose rows turn out to lie otherwise are accessed element by element
   (`lower_to_nvvm/wrapped_row.py`).

On an H200 softmax of rows of several warps, up to 16385 columns, took 0.88 to 1.00 of the time in
16 bits, 0.95 to 1.00 in 32; of 4099, 260 and 257 us for 294 and 270, where a copy takes 257.
Does not handle: tiles of several rows, which begin differently; parts of rows that begin anywhere;
rows that are known only behind the first access; what a loop over rows carries.
"""

from __future__ import annotations

from functools import partial

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.def_use import defining_op, of_kind
from tilec.passes.analysis.divisibility import Divisibility, constant_of
from tilec.passes.analysis.vector_width import element_bytes
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.rewriting.loops import enclosing_ops
from tilec.passes.rewriting.op_tables import OpMap
from tilec.passes.rewriting.scalars import binary, constant, less, select
from tilec.passes.rewriting.walk import is_of, kernel_of
from tilec.passes.rows.row_edits import begin_at, move_columns
from tilec.passes.rows.row_kernels import Access, RowKernel, find_rows, is_row, row_axis
from tilec.passes.rows.wrapped_rows import longest_shift, may_wrap, other_offsets, saves_slots


@kernel_pass(requires=Level.TILE, behind={"dissolve-windows": "rows begin in whole arrays"})
def wrap_rows(function: ir.Operation, context: PassContext) -> None:
    """Wraps rows whose elements are not known to be aligned."""
    rows = find_rows(function, carried=True)
    if rows is None or rows.has_order:
        return
    facts = Divisibility(function)
    if may_wrap(rows, facts) and saves_slots(rows, facts, context.num_threads):
        _wrap(rows, context)


def _wrap(rows: RowKernel, context: PassContext) -> None:
    accesses = rows.accesses
    stores = of_kind(accesses, tile.StoreOp)
    anchor = (stores or accesses)[0]
    place = _where_known(anchor, rows)
    if place is None:
        return
    array, longest = anchor.array, longest_shift(rows)
    with place, anchor.operation.location:
        row, along = list(anchor.offsets), row_axis(anchor, rows.size) or 0
        if constant_of(row[along]) != 0:
            row[along] = constant(row[along].type, 0)
        shift = tile.MisalignmentOp.build(array, row, bytes=longest * element_bytes(array))
        begin = binary("arith.subi", constant(shift.type, 0), shift)
    move_columns(rows.ops, rows.size, shift, partial(_wrapped, rows.size))
    for access in accesses:
        axis = row_axis(access, rows.size) or 0
        is_part = constant_of(access.offsets[axis]) != 0
        access.options = {**access.options, "wrapped": True}
        if is_part:
            access.options = {**access.options, "walked": longest}
        with ir.InsertionPoint(access.operation), access.operation.location:
            first = binary("arith.subi", access.offsets[axis], shift) if is_part else begin
        begin_at(access, axis, first)
    why = "their strides are no known multiples"
    context.report.add("rows", anchor.operation, "wrapped, so that vectors are aligned", why)


def _where_known(anchor: Access, rows: RowKernel) -> ir.InsertionPoint | None:
    """The point behind the ops that the anchor's row is computed from; None where something that
    needs the shift stands in front of it."""
    offsets = other_offsets(anchor, rows)
    makers = [op for offset in offsets if (op := defining_op(offset)) is not None]
    given = [offset.owner for offset in offsets if defining_op(offset) is None]
    entry = kernel_of(anchor.operation).regions[0].blocks[0]
    inner = max((entry, *(op.block for op in makers), *given), key=_depth)
    ops = list(inner.operations)
    order = OpMap((op, number) for number, op in enumerate(ops))
    last = max((order.get(op, -1) for op in makers), default=-1)
    for op in rows.ops:
        around = [op, *enclosing_ops(op)]
        position = next((order[each] for each in around if each in order), -1)
        if position <= last and not _is_free(op):
            return None
    return ir.InsertionPoint(ops[last + 1])


def _depth(block: ir.Block) -> int:
    """The number of ops that a block is inside."""
    op, depth = block.owner.operation, 0
    while op is not None:
        op, depth = op.parent, depth + 1
    return depth


def _is_free(op: ir.Operation) -> bool:
    """Whether an op gives every element of a row the same, or is an iota, whose users shift it."""
    if is_of(op, tile.BroadcastOp):
        return not is_row(op.opview.src)
    return op.name in ("arith.constant", "tensor.splat") or is_of(op, tile.IotaOp)


def _wrapped(size: int, columns: ir.Value, by: ir.Value) -> ir.Value:
    """The columns of wrapped elements."""
    column = binary("arith.subi", columns, by)
    around = binary("arith.addi", column, size)
    is_front = less(column, 0)
    return select(is_front, around, column)
