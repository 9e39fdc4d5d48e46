"""What each warp has of a row that several hold: its tile, and its way to all of them."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.dialects import gpu_tile, tile
from tilec.dialects.gpu_tile.types import layout_attr, layout_of
from tilec.dialects.types import bit_width, element, shape
from tilec.dialects.types import tile as tile_type
from tilec.hardware.layout import Layout
from tilec.messages.diagnostics import InternalError
from tilec.passes.contract import show_location
from tilec.passes.layouts.axis_levels import Level, is_nested, num_partials, partial_layout
from tilec.passes.layouts.buffer_layouts import cheapest_buffer
from tilec.passes.rewriting.buffers import stored


def partial_types(
    op: tile.ReduceOp | tile.ScanOp, layout: Layout, kept: tuple[Level, ...]
) -> list[ir.Type]:
    """Tiles whose axis numbers the partials that hold an element."""
    if not is_nested(kept):
        raise InternalError(
            f"{show_location(op.operation)}: warps interleave along axis {op.axis} of {layout}"
        )
    sizes = list(shape(op.inputs[0]))
    sizes[op.axis] = num_partials(sizes[op.axis], kept)
    encoding = layout_attr(partial_layout(layout, op.axis, kept))
    return [tile_type(sizes, element(value), encoding) for value in op.inputs]


def through_buffers(partials: Sequence[ir.Value], gathered: Sequence[Layout]) -> list[ir.Value]:
    """Stores each tile to a buffer of its own, then loads them, behind one sync, all in the one
    layout of those `gathered` in which the widest elements take least: they are combined
    together."""
    widest = max(partials, key=lambda partial: bit_width(element(partial)))
    _, layout = cheapest_buffer(widest, layout_of(widest), gathered)
    buffers = [
        stored(partial, cheapest_buffer(partial, layout_of(partial), (layout,))[0])
        for partial in partials
    ]
    types = [tile_type(shape(one), element(one), layout_attr(layout)) for one in partials]
    return [
        gpu_tile.BufferLoadOp.build(buffer, results=[type_])
        for buffer, type_ in zip(buffers, types, strict=True)
    ]
