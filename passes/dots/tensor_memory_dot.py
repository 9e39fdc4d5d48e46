"""How stage-operands turns a dot into a matrix instruction that adds up in tensor memory.

Before:   %d = "tile.dot"(%a, %b, %c) {options = {instruction = "tcgen05.m128n64k16.f32.bf16.bf16"}}
After:    %sa = "gpu_tile.alloc"() ...   "gpu_tile.buffer_store"(%a, %sa)      (and %sb for %b)
          %t = "gpu_tile.alloc"() ...    "gpu_tile.buffer_store"(%c, %t)       (in tensor memory)
          "gpu_tile.tcgen05_mma"(%sa, %sb, %t, %true) {instruction = ...}
          %slot = "gpu_tile.ring_slot"(%done, %count)
          "gpu_tile.ring_publish"(%done, %slot) {by = "products"}
          "gpu_tile.ring_wait"(%done, %count)
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
    BufferLoadOp,
    BufferStoreOp,
    RingPublishOp,
    RingSlotOp,
    RingWaitOp,
    Tcgen05MmaOp,
    Tcgen05MmaScaledOp,
)
from tilec.dialects.gpu_tile.ring import PRODUCTS
from tilec.dialects.gpu_tile.types import TensorBuffer, layout_of
from tilec.dialects.types import bit_width, element, shape
from tilec.hardware.fragments import HALF_LANES, tensor_memory_layout
from tilec.hardware.mma_instruction import MmaInstruction
from tilec.hardware.tensor_memory import COLUMN_BITS, blocked_tensor_memory
from tilec.passes.contract import PassContext
from tilec.passes.dots.block_scales import replace_dot, stage_scales
from tilec.passes.dots.operand_buffers import staged
from tilec.passes.rewriting.buffers import stored
from tilec.passes.rewriting.loops import add_counter
from tilec.passes.rewriting.rings import make_ring
from tilec.passes.rewriting.scalars import i1_constant, is_zero


def stage_tensor_memory_dot(dot: tile.DotOp, row: MmaInstruction, context: PassContext) -> None:
    """Rewrites `dot`, whose instruction is `row`."""
    done, count = _ring(dot.operation)
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
        if dot.scales:
            scales = [
                stage_scales(dot, value, k_dim, context)
                for value, k_dim in zip(dot.scales, (1, 0), strict=True)
            ]
            Tcgen05MmaScaledOp.build(lhs, rhs, acc, add, *scales, instruction=row.name)
        else:
            Tcgen05MmaOp.build(lhs, rhs, acc, add, instruction=row.name)
        RingPublishOp.build(done, RingSlotOp.build(done, count), by=PRODUCTS)
        RingWaitOp.build(done, count)
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
    type_ = TensorBuffer.of(dot.lhs, blocked_tensor_memory(sizes, (row.m, sizes[1]), bits))
    context.report.add(
        "dot operand",
        dot.operation,
        f"lhs in {type_.columns} columns of tensor memory",
        "its rows lie in the threads that reach their lanes",
    )
    return stored(dot.lhs, type_)


def _accumulator_type(dot: tile.DotOp, row: MmaInstruction) -> TensorBuffer:
    layout = blocked_tensor_memory(shape(dot.acc), (row.m, row.n), COLUMN_BITS)
    return TensorBuffer.of(dot.acc, layout)


def _ring(op: ir.Operation) -> tuple[ir.Value, ir.Value]:
    """A ring whose turns are the instructions at `op`, and how many there were so far.

    The count runs on through the loops around; select-mma leaves dots that stand in anything else
    to other instructions.
    """
    count = add_counter(op)
    return make_ring(op, fills=1), count
