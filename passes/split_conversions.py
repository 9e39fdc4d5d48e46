"""split-conversions: elements move between threads by shuffles inside a warp, or through a buffer.

Before:   %y = "gpu_tile.convert_layout"(%x) : (tensor<64x64xf32, #a>) -> tensor<64x64xf32, #b>
After:    %s = "gpu_tile.alloc"() {options = {}} : () -> !gpu_tile.buffer<tensor<64x64xf32>, ...>
          "gpu_tile.buffer_store"(%x, %s)
          %y = "gpu_tile.buffer_load"(%s)

A conversion inside a thread stays, and so does one inside warps whose shuffles and selects
(`layouts/lane_moves.py`) cost less than the buffer and its barriers (`layouts/conversion_costs.py`;
in an explicit kernel, which gets no buffer, whatever they cost).

Before:   %y = "tile.reshape"(%x) : (tensor<64xf32, #a>) -> tensor<8x8xf32, #b>
After:    %r = "tile.reshape"(%x) : (tensor<64xf32, #a>) -> tensor<8x8xf32, #c>
          %y = "gpu_tile.convert_layout"(%r) : (tensor<8x8xf32, #c>) -> tensor<8x8xf32, #b>

Reshapes, joins and splits whose registers do not match become ones whose registers do (#c) and such
a conversion, or go through a buffer. insert-barriers orders store and load.
Does not handle: shuffles where phantoms are those of one layout alone; joins of tiles in several
layouts by shuffles.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.gpu_tile import (
    AllocOp,
    BufferLoadOp,
    BufferStoreOp,
    ConvertLayoutOp,
    ReshapeViewOp,
)
from tilec.dialects.gpu_tile.types import BufferType, buffer_of, layout_attr, layout_of
from tilec.dialects.types import byte_width, element, shape
from tilec.dialects.types import tile as tile_type
from tilec.hardware.layout import Layout
from tilec.hardware.shared_layout import strided
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.demands.kernels import is_explicit
from tilec.passes.layouts.buffer_layouts import buffer_for
from tilec.passes.layouts.conversion_costs import cheap_lane_move
from tilec.passes.layouts.lane_moves import lane_move
from tilec.passes.layouts.maps import register_permutation
from tilec.passes.layouts.parts import join_registers, split_registers, whole_layout
from tilec.passes.layouts.reshapes import reshape_registers, reshaped
from tilec.passes.rewriting.buffers import stored, view_part
from tilec.passes.rewriting.values import replace_op
from tilec.passes.rewriting.walk import kernel_of, ops_named


@tile_pass(requires=Level.LAYOUTS, ensures=Level.BUFFERS)
def split_conversions(module: ir.Module, context: PassContext) -> None:
    """Routes what moves between threads: shuffles, or shared memory."""
    for op in ops_named(module.operation, _RULES):
        with ir.InsertionPoint(op), op.location:
            _RULES[op.name](op.opview, context)


def _split_conversion(op: ConvertLayoutOp, context: PassContext) -> None:
    source, result = layout_of(op.src), layout_of(op.result)
    if register_permutation(source, result, shape(op.src)) is not None:
        return
    reason = _crosses_warps(op, op.src, source, result, context)
    if reason is None:
        return
    buffer = stored(op.src, buffer_for(op.src, source, result))
    context.report.add(
        "layout conversion",
        op.operation,
        f"{buffer_of(buffer).size_bytes} bytes of shared memory",
        f"{source} to {result} crosses threads, and not by shuffles: {reason}",
    )
    replace_op(op, BufferLoadOp.build(buffer, results=[op.result.type]))


def _crosses_warps(
    op: Any, like: ir.Value, source: Layout, result: Layout, context: PassContext
) -> str | None:
    """Says why a tile as large as `like` does not get from one layout to the other by shuffles;
    None, and a line in the report, where it does."""
    sizes, bytes_ = shape(like), byte_width(element(like))
    if is_explicit(kernel_of(op.operation)):
        move = lane_move(source, result, sizes)
    else:
        move = cheap_lane_move(sizes, bytes_, source, result)
    if isinstance(move, str):
        return move
    moved, others = move.counts(8 * bytes_)
    context.report.add(
        "layout conversion",
        op.operation,
        f"{moved} shuffles and {others} other instructions of each warp",
        f"{source} to {result} stays inside warps",
    )
    return None


def _split_reshape(op: tile.ReshapeOp, context: PassContext) -> None:
    source, result = layout_of(op.src), layout_of(op.result)
    sizes, result_sizes = shape(op.src), shape(op.result)
    if reshape_registers(source, sizes, result, result_sizes) is not None:
        return
    still = reshaped(source, sizes, result_sizes)
    if still is not None and _crosses_warps(op, op.result, still, result, context) is None:
        moved = tile.ReshapeOp.build(op.src, results=[_laid(op.result, still)])
        replace_op(op, ConvertLayoutOp.build(moved, results=[op.result.type]))
        return
    buffer = stored(op.src, _row_major(op.src))
    view = ReshapeViewOp.build(buffer, results=[_row_major(op.result).type()])
    replace_op(op, BufferLoadOp.build(view, results=[op.result.type]))


def _split_join(op: tile.JoinOp, context: PassContext) -> None:
    layouts, sizes = [layout_of(v) for v in op.inputs], [shape(v) for v in op.inputs]
    if join_registers(layouts, sizes, layout_of(op.result), shape(op.result), op.axis) is not None:
        return
    still = _still(op.inputs, op.axis)
    whole = layout_of(op.result)
    if still is not None and _crosses_warps(op, op.result, still, whole, context) is None:
        joined = tile.JoinOp.build(op.inputs, axis=op.axis, results=[_laid(op.result, still)])
        replace_op(op, ConvertLayoutOp.build(joined, results=[op.result.type]))
        return
    buffer = AllocOp.build(results=[_row_major(op.result).type()])
    for value, view in zip(op.inputs, _parts(buffer, op.inputs, op.axis), strict=True):
        BufferStoreOp.build(value, view)
    replace_op(op, BufferLoadOp.build(buffer, results=[op.result.type]))


def _split_split(op: tile.SplitOp, context: PassContext) -> None:
    layouts, sizes = [layout_of(v) for v in op.parts], [shape(v) for v in op.parts]
    if split_registers(layouts, sizes, layout_of(op.src), op.axis) is not None:
        return
    still = _still(op.parts, op.axis)
    whole = layout_of(op.src)
    if still is not None and _crosses_warps(op, op.src, whole, still, context) is None:
        converted = ConvertLayoutOp.build(op.src, results=[_laid(op.src, still)])
        op.src = converted
        return
    buffer = stored(op.src, _row_major(op.src))
    views = _parts(buffer, op.parts, op.axis)
    loads = [
        BufferLoadOp.build(view, results=[part.type])
        for view, part in zip(views, op.parts, strict=True)
    ]
    replace_op(op, *loads)


def _still(parts: Sequence[ir.Value], axis: int) -> Layout | None:
    """The layout of the whole in which the parts are registers of the same threads; None where
    they differ."""
    if len({part.type for part in parts}) > 1:
        return None
    return whole_layout(layout_of(parts[0]), axis, len(parts), shape(parts[0]))


def _laid(like: ir.Value, layout: Layout) -> ir.Type:
    return tile_type(shape(like), element(like), layout_attr(layout))


def _row_major(tile: ir.Value) -> BufferType:
    sizes = shape(tile)
    return BufferType.of(tile, strided(sizes, [prod(sizes[d + 1 :]) for d in range(len(sizes))]))


def _parts(buffer: ir.Value, tiles: Sequence[ir.Value], axis: int) -> list[ir.Value]:
    """Views of the neighbouring parts of a buffer that hold `tiles` along `axis`."""
    start, views = 0, []
    for value in tiles:
        origin = [start if d == axis else 0 for d in range(len(shape(value)))]
        views.append(view_part(buffer, origin, shape(value)))
        start += shape(value)[axis]
    return views


_RULES = {
    ConvertLayoutOp.OPERATION_NAME: _split_conversion,
    tile.ReshapeOp.OPERATION_NAME: _split_reshape,
    tile.JoinOp.OPERATION_NAME: _split_join,
    tile.SplitOp.OPERATION_NAME: _split_split,
}
