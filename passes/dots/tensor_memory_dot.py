"""How stage-operands turns a dot into a matrix instruction that adds up in tensor memory.

Before:   %d = "tile.dot"(%a, %b, %c) {options = {instruction = "tcgen05.m128n64k16.f32.bf16.bf16"}}
After:    %sa = "gpu_tile.alloc"() ...   "gpu_tile.buffer_store"(%a, %sa)      (and %sb for %b)
          %t = "gpu_tile.alloc"() ...    "gpu_tile.buffer_store"(%c, %t)       (in tensor memory)
          "gpu_tile.tcgen05_mma"(%sa, %sb, %t, %true) {instruction = ...}
          %slot, %parity = "gpu_tile.ring_position"(%count) {slots = 1 : i32}
          "gpu_tile.tcgen05_commit"(%done, %slot)   "gpu_tile.barrier_wait"(%done, %slot, %parity)
          %d = "gpu_tile.buffer_load"(%t)

A sum that starts with zeros is not stored: the instruction overwrites. An lhs that was computed in
the registers of another product's rows goes to tensor memory, too. keep-accumulators takes what a
loop only adds to out of the registers. Scales of a `tile.dot_scaled` go to tensor memory in
front of the product (`block_scales`).
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.gpu_tile import (
    AllocOp,
    BarrierInitOp,
    BarrierWaitOp,
    BufferLoadOp,
    BufferStoreOp,
    FenceOp,
    RingPositionOp,
    SyncOp,
    Tcgen05CommitOp,
    Tcgen05MmaOp,
    Tcgen05MmaScaledOp,
)
from tilec.dialects.gpu_tile.types import TensorBuffer, layout_of
from tilec.dialects.types import bit_width, element, shape
from tilec.fragments import HALF_LANES, tensor_memory_layout
from tilec.mma_instruction import MmaInstruction
from tilec.passes.contract import PassContext
from tilec.passes.dots.block_scales import replace_dot, stage_scales
from tilec.passes.dots.operand_buffers import staged
from tilec.passes.rewriting.loops import add_counter, enclosing_ops, top_level
from tilec.passes.rewriting.scalars import i1_constant, i32_constant, is_zero
from tilec.tensor_memory import COLUMN_BITS, blocked_tensor_memory


def stage_tensor_memory_dot(dot: tile.DotOp, row: MmaInstruction, context: PassContext) -> None:
    """Rewrites `dot`, whose instruction is `row`."""
    done, count = _barrier(dot.operation, context)
    # Counting rebuilt the loops around: the place to insert at is a new one.
    with ir.InsertionPoint(dot.operation):
        lhs = _in_tensor_memory(dot, row, context)
        if lhs is None:
            lhs = staged(dot, dot.lhs, 1, row, context)
        rhs = staged(dot, dot.rhs, 0, row, context)
        acc = AllocOp.build(results=[_accumulator_type(dot, row).type()])
        adds = not is_zero(dot.acc)
        if adds:
            BufferStoreOp.build(dot.acc, acc)
        add = i1_constant(adds)
        if isinstance(dot, tile.DotScaledOp):
            scales = [
                stage_scales(dot, value, k_dim, context)
                for value, k_dim in ((dot.lhs_scale, 1), (dot.rhs_scale, 0))
            ]
            Tcgen05MmaScaledOp.build(lhs, rhs, acc, add, *scales, instruction=row.name)
        else:
            Tcgen05MmaOp.build(lhs, rhs, acc, add, instruction=row.name)
        slot, parity = RingPositionOp.build(count, slots=1)
        Tcgen05CommitOp.build(done, slot)
        BarrierWaitOp.build(done, slot, parity)
        result = BufferLoadOp.build(acc, results=[dot.result.type])
    replace_dot(dot, result)


def _in_tensor_memory(
    dot: tile.DotOp, row: MmaInstruction, context: PassContext
) -> ir.Value | None:
    """The lhs stored beside the accumulator, where it was computed in the rows of another one.

    Of 64 rows threads hold columns by twos: elements of 8 bits would share a word, which is what
    threads store, with those of the next thread.
    """
    sizes, bits = shape(dot.lhs), bit_width(element(dot.lhs))
    if layout_of(dot.lhs) != tensor_memory_layout(sizes, context.num_warps):
        return None
    if sizes[0] == HALF_LANES and bits < COLUMN_BITS // 2:
        return None
    type_ = TensorBuffer(
        sizes, element(dot.lhs), blocked_tensor_memory(sizes, (row.m, sizes[1]), bits)
    )
    context.report.add(
        "dot operand",
        dot.operation,
        f"lhs in {type_.columns} columns of tensor memory",
        "its rows lie in the threads that reach their lanes",
    )
    buffer = AllocOp.build(results=[type_.type()])
    BufferStoreOp.build(dot.lhs, buffer)
    return buffer


def _accumulator_type(dot: tile.DotOp, row: MmaInstruction) -> TensorBuffer:
    sizes = shape(dot.acc)
    layout = blocked_tensor_memory(sizes, (row.m, row.n), COLUMN_BITS)
    return TensorBuffer(sizes, element(dot.acc), layout)


def _barrier(op: ir.Operation, context: PassContext) -> tuple[ir.Value, ir.Value]:
    """A barrier for the instructions at `op`, and how often it was waited for so far.

    The count runs on through the loops around; select-mma leaves dots that stand in anything else
    to other instructions.
    """
    place, count = op, None
    if enclosing_ops(op):
        place, count = add_counter(op.parent)
    with ir.InsertionPoint(top_level(place)), op.location:
        done = BarrierInitOp.build(slots=1, count=1)
        FenceOp.build(kind="barrier_init")
        SyncOp.build(warps=context.num_warps)
        return done, i32_constant(0) if count is None else count
