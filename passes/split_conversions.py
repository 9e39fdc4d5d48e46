"""split-conversions: what moves elements between threads goes through a buffer.

Before:   %y = "gpu_tile.convert_layout"(%x) : (tensor<64x64xf32, #a>) -> tensor<64x64xf32, #b>
After:    %s = "gpu_tile.alloc"() {options = {}} : () -> !gpu_tile.buffer<tensor<64x64xf32>, ...>
          "gpu_tile.buffer_store"(%x, %s)
          %y = "gpu_tile.buffer_load"(%s)

Reshapes, joins and splits whose registers do not match go the same way. A conversion inside a
thread stays. insert-barriers orders store and load.
Does not handle: conversions by shuffles inside a warp, which would save the shared memory.
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
    ViewOp,
)
from tilec.dialects.gpu_tile.types import BufferType, buffer_of, layout_of
from tilec.dialects.types import element, shape
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.layouts.buffer_layouts import choose_shared_layout
from tilec.passes.layouts.maps import join_registers, register_permutation, reshape_registers
from tilec.passes.rewriting.scalars import i32_constant
from tilec.shared_layout import SharedLayout, strided


@tile_pass(requires=Level.LAYOUTS, ensures=Level.BUFFERS)
def split_conversions(module: ir.Module, context: PassContext) -> None:
    """Routes cross-thread moves through shared memory."""
    ops: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        ops.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for op in ops:
        split = _RULES.get(op.name)
        if split is not None:
            with ir.InsertionPoint(op), op.location:
                split(op.opview, context)


def _split_conversion(op: ConvertLayoutOp, context: PassContext) -> None:
    source, result = layout_of(op.src), layout_of(op.result)
    if register_permutation(source, result, shape(op.src)) is not None:
        return
    bytes_ = BufferType((), element(op.src), strided((), ())).element_bytes
    shared = choose_shared_layout(shape(op.src), bytes_, (source, result))
    buffer = _buffer(shape(op.src), op.src, shared)
    BufferStoreOp.build(op.src, buffer)
    context.report.add(
        "layout conversion",
        op.operation,
        f"{buffer_of(buffer).size_bytes} bytes of shared memory",
        f"{source} to {result} crosses threads",
    )
    _replace(op, [BufferLoadOp.build(buffer, results=[op.result.type])])


def _split_reshape(op: tile.ReshapeOp, context: PassContext) -> None:
    sizes, result_sizes = shape(op.src), shape(op.result)
    if reshape_registers(layout_of(op.src), sizes, layout_of(op.result), result_sizes) is not None:
        return
    buffer = _buffer(sizes, op.src, _row_major(sizes))
    BufferStoreOp.build(op.src, buffer)
    viewed = BufferType(result_sizes, element(op.src), _row_major(result_sizes)).type()
    view = ReshapeViewOp.build(buffer, results=[viewed])
    _replace(op, [BufferLoadOp.build(view, results=[op.result.type])])


def _split_join(op: tile.JoinOp, context: PassContext) -> None:
    if (
        join_registers(
            [layout_of(v) for v in op.inputs],
            [shape(v) for v in op.inputs],
            layout_of(op.result),
            shape(op.result),
            op.axis,
        )
        is not None
    ):
        return
    buffer = _buffer(shape(op.result), op.result, _row_major(shape(op.result)))
    for value, view in zip(op.inputs, _parts(buffer, op.inputs, op.axis), strict=True):
        BufferStoreOp.build(value, view)
    _replace(op, [BufferLoadOp.build(buffer, results=[op.result.type])])


def _split_split(op: tile.SplitOp, context: PassContext) -> None:
    if (
        join_registers(
            [layout_of(v) for v in op.parts],
            [shape(v) for v in op.parts],
            layout_of(op.src),
            shape(op.src),
            op.axis,
        )
        is not None
    ):
        return
    buffer = _buffer(shape(op.src), op.src, _row_major(shape(op.src)))
    BufferStoreOp.build(op.src, buffer)
    views = _parts(buffer, op.parts, op.axis)
    loads = [
        BufferLoadOp.build(view, results=[part.type])
        for view, part in zip(views, op.parts, strict=True)
    ]
    _replace(op, loads)


def _buffer(sizes: Sequence[int], like: ir.Value, shared: SharedLayout) -> ir.Value:
    return AllocOp.build(results=[BufferType(tuple(sizes), element(like), shared).type()])


def _row_major(sizes: Sequence[int]) -> SharedLayout:
    return strided(sizes, [prod(sizes[d + 1 :]) for d in range(len(sizes))])


def _parts(buffer: ir.Value, tiles: Sequence[ir.Value], axis: int) -> list[ir.Value]:
    """Views of the neighbouring parts of a buffer that hold `tiles` along `axis`."""
    whole, start, views = buffer_of(buffer), 0, []
    for value in tiles:
        offsets = [i32_constant(start if d == axis else 0) for d in range(len(whole.shape))]
        type_ = BufferType(shape(value), whole.element, whole.layout).type()
        views.append(ViewOp.build(buffer, offsets, results=[type_]))
        start += shape(value)[axis]
    return views


def _replace(op: Any, values: Sequence[ir.Value]) -> None:
    for old, new in zip(op.operation.results, values, strict=True):
        old.replace_all_uses_with(new)
    op.operation.erase()


_RULES = {
    ConvertLayoutOp.OPERATION_NAME: _split_conversion,
    tile.ReshapeOp.OPERATION_NAME: _split_reshape,
    tile.JoinOp.OPERATION_NAME: _split_join,
    tile.SplitOp.OPERATION_NAME: _split_split,
}
