"""How stage-operands turns a dot into a warpgroup instruction.

Before:   %d = "tile.dot"(%a, %b, %c) {options = {instruction = "wgmma.m64n128k16.f32.bf16.bf16"}}
After:    %sa = "gpu_tile.alloc"() ...   "gpu_tile.buffer_store"(%a, %sa)      (and %sb for %b)
          %p = "gpu_tile.wgmma_fence"(%c)
          %q = "gpu_tile.wgmma"(%sa, %sb, %p) {instruction = ...}
          %d = "gpu_tile.wgmma_wait"(%q) {pending = 0 : i32}

The buffers lie as the instruction reads them (`operand_buffers`). An lhs stays in registers where
its elements lie in the threads that need them, or can be computed there (`computed_lhs`): so can
one that is contiguous along m, of elements that instructions read along k alone.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.gpu_tile import (
    BufferLoadOp,
    ConvertLayoutOp,
    WgmmaFenceOp,
    WgmmaOp,
    WgmmaWaitOp,
)
from tilec.dialects.gpu_tile.types import layout_attr, layout_of
from tilec.dialects.types import element, shape
from tilec.dialects.types import tile as tile_type
from tilec.hardware.fragments import lhs_fragments
from tilec.hardware.mma_instruction import MmaInstruction
from tilec.passes.contract import PassContext
from tilec.passes.dots.computed_lhs import ComputedOperands
from tilec.passes.dots.operand_buffers import staged
from tilec.passes.layouts.maps import register_permutation
from tilec.passes.rewriting.values import replace_op


def stage_warpgroup_dot(
    dot: tile.DotOp, row: MmaInstruction, computed: ComputedOperands, context: PassContext
) -> None:
    """Rewrites `dot`, whose instruction is `row`, at the current insertion point. `computed`: the
    operands of its function that are computed in registers."""
    lhs = _in_registers(dot, row, context)
    if lhs is None and computed.qualifies(dot, row):
        issued = computed.multiply(dot, row, staged(dot, dot.rhs, 0, row, context))
    else:
        if lhs is None:
            lhs = staged(dot, dot.lhs, 1, row, context)
            if row.paired:  # the instruction reads fragments only
                lhs = BufferLoadOp.build(lhs, results=[_fragment_type(dot, row)])
        rhs = staged(dot, dot.rhs, 0, row, context)
        issued = WgmmaOp.build(lhs, rhs, WgmmaFenceOp.build(dot.acc), instruction=row.name)
    result = WgmmaWaitOp.build(issued, results=[dot.result.type], pending=0)
    replace_op(dot, result)


def _fragment_type(dot: tile.DotOp, row: MmaInstruction) -> ir.Type:
    sizes = shape(dot.lhs)
    fragments = lhs_fragments(row, layout_of(dot.acc), len(sizes), sizes[-1])
    return tile_type(sizes, element(dot.lhs), layout_attr(fragments))


def _in_registers(dot: tile.DotOp, row: MmaInstruction, context: PassContext) -> ir.Value | None:
    """The lhs as fragments, where its elements already lie in the threads that need them."""
    type_ = _fragment_type(dot, row)
    if register_permutation(layout_of(dot.lhs), layout_of(type_), shape(dot.lhs)) is None:
        return None
    context.report.add(
        "dot operand",
        dot.operation,
        "lhs in registers",
        "its elements lie in the threads that need them",
    )
    return ConvertLayoutOp.build(dot.lhs, results=[type_])
