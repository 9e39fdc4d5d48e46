"""How the scales of a product reach its instruction: through shared memory, and from there by
tcgen05.cp to tensor memory, or as fragments to registers.

Before:   %s : tensor<128x4xi8>                              (an operand of "tile.dot_scaled")
After, for tcgen05.mma:
          %b = "gpu_tile.alloc"() : !gpu_tile.buffer<tensor<128x4xi8>, #gpu_tile.shared<
              "((32,4),4):((16,4),1)">>                      (512 bytes as the copy reads them)
          "gpu_tile.buffer_store"(%s, %b)
          %t = "gpu_tile.alloc"() : !gpu_tile.buffer<tensor<128x4xi8>, #gpu_tile.tmem<...>>
          "gpu_tile.tcgen05_copy"(%b, %t) {shape = "32x128b.warpx4"}
After, for mma.sync:
          %b = ...   "gpu_tile.buffer_store"(%s, %b)   %v = "gpu_tile.view"(%b, %0, %0)
          %f = "gpu_tile.buffer_load"(%v) : ... -> tensor<128x4xi8, #gpu_tile.layout<
              "T(4,8,2,2):(8@0,1@0,64@0,0) V(4,2):(1@1,32@0)">>
              (`tilec/hardware/scale_fragments.py`)

An array that lies as those 512 bytes, piece by piece, in rows of 256 (`tl.block_scales` says what
that means), needs no thread to rearrange it: the loaded tile is stored as it is, which a tensor
copy can do, and a view gives it the shape of the scales.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.def_use import made_by, traced
from tilec.dialects.gpu_tile import (
    AllocOp,
    BufferLoadOp,
    ConvertLayoutOp,
    ReshapeViewOp,
    Tcgen05CopyOp,
    TransposeViewOp,
)
from tilec.dialects.gpu_tile.types import (
    BOX_ALIGNMENT,
    BufferType,
    TensorBuffer,
    layout_attr,
    layout_of,
)
from tilec.dialects.types import element, shape
from tilec.hardware.mma_instruction import MmaInstruction
from tilec.hardware.scale_fragments import WORD_SCALES, scale_layout
from tilec.hardware.shared_layout import strided
from tilec.hardware.tensor_tiles import SCALE_ROWS, SCALES_COPY, scales_image, scales_layout
from tilec.passes.contract import PassContext
from tilec.passes.dots.operand_buffers import staged_as
from tilec.passes.layouts.buffer_layouts import buffer_for
from tilec.passes.layouts.reshapes import row_major_number
from tilec.passes.rewriting.buffers import stored, view_part
from tilec.passes.rewriting.values import replace_op

_MOVES = (tile.TransposeOp, tile.ReshapeOp, ConvertLayoutOp)


def stage_scales(
    dot: tile.DotScaledOp, value: ir.Value, k_dim: int, context: PassContext
) -> ir.Value:
    """The scales of one side in tensor memory, (rows, blocks), written at the insertion point.

    `k_dim`: the dimension of `value` along k.
    """
    rows, blocks = shape(value)[1 - k_dim], shape(value)[k_dim]
    whole = BufferType((rows, blocks), element(value), scales_image(rows, blocks))
    load = _loaded_image(value, whole, k_dim)
    shared = _stored(value, whole, k_dim) if load is None else _viewed(load, whole)
    there = TensorBuffer((rows, blocks), element(value), scales_layout(rows, blocks))
    buffer = AllocOp.build(results=[there.type()])
    Tcgen05CopyOp.build(shared, buffer, shape=SCALES_COPY)
    context.report.add(
        "dot operand",
        dot.operation,
        f"scales of {'lhs' if k_dim else 'rhs'} in {there.columns} columns of tensor memory",
        "rearranged by threads" if load is None else "they lie in the array as they are copied",
    )
    return buffer


def stage_scale_fragments(
    dot: tile.DotScaledOp, row: MmaInstruction, context: PassContext
) -> tuple[ir.Value, ir.Value]:
    """The scales of both sides in the registers that the instruction `row` finds them in, read at
    the insertion point: all of k at once, since a register holds four of a row."""
    return (
        _scale_fragments(dot, dot.lhs_scale, 0, row, context),
        _scale_fragments(dot, dot.rhs_scale, 1, row, context),
    )


def _scale_fragments(
    dot: tile.DotScaledOp, value: ir.Value, axis: int, row: MmaInstruction, context: PassContext
) -> ir.Value:
    sizes, side = shape(value), f"scales of {'rhs' if axis else 'lhs'}"
    fragment = scale_layout(row, layout_of(dot.acc), sizes[1 - axis], axis)
    buffer = _arranged(dot, value, axis, side, context)
    if buffer is None:
        type_ = buffer_for(value, fragments=((fragment, sizes),))
        why = "the lanes that hold them did not load them"
        buffer = staged_as(dot, value, type_, context, side, why)
    view = view_part(buffer, [0] * len(sizes), sizes)
    tile_type = ir.RankedTensorType.get(sizes, element(value), layout_attr(fragment))
    return BufferLoadOp.build(view, results=[tile_type])


def _arranged(
    dot: tile.DotScaledOp, value: ir.Value, axis: int, side: str, context: PassContext
) -> ir.Value | None:
    """A buffer of scales that is filled as their array lies, None if that is not their image."""
    rows, blocks = shape(value)[axis], shape(value)[1 - axis]
    if rows % SCALE_ROWS or blocks % WORD_SCALES:
        return None
    whole = BufferType((rows, blocks), element(value), scales_image(rows, blocks))
    load = _loaded_image(value, whole, 1 - axis)
    if load is None:
        return None
    chosen = f"{side} in {whole.size_bytes} bytes of shared memory"
    why = "they lie there as in the array, a word for each row"
    context.report.add("dot operand", dot.operation, chosen, why)
    viewed = _viewed(load, whole)
    return TransposeViewOp.build(viewed, permutation=(1, 0)) if axis else viewed


def _stored(value: ir.Value, whole: BufferType, k_dim: int) -> ir.Value:
    if k_dim:
        return stored(value, whole)
    shared = stored(value, BufferType.of(value, whole.layout.permute((1, 0))))
    return TransposeViewOp.build(shared, permutation=(1, 0))


def _viewed(load: tile.LoadOp, whole: BufferType) -> ir.Value:
    sizes = shape(load.result)
    steps = [prod(sizes[d + 1 :]) for d in range(len(sizes))]
    shared = stored(load.result, BufferType.of(load.result, strided(sizes, steps)))
    return ReshapeViewOp.build(shared, results=[whole.type()])


def replace_dot(dot: tile.DotOp, result: ir.Value) -> None:
    """Puts `result` in a dot's place, and erases what made its scales, if nothing else uses it."""
    scales = dot.scales
    replace_op(dot, result)
    for value in scales:
        _erase_moves(value)


def _erase_moves(value: ir.Value) -> None:
    """Erases the reshapes and transposes that made scales, where nothing uses them any more."""
    while (op := made_by(value, *_MOVES)) is not None and not list(value.uses):
        value = op.src
        op.operation.erase()


def _loaded_image(value: ir.Value, whole: BufferType, k_dim: int) -> tile.LoadOp | None:
    """The load whose tile, row by row, is the image of the scales that `value` holds."""
    chain, value = traced(value, *_MOVES)
    load = made_by(value, tile.LoadOp)
    if not chain or load is None or whole.size_bytes % BOX_ALIGNMENT:
        return None
    for at in product(*map(range, whole.shape)):
        source = at if k_dim else at[::-1]
        if row_major_number(_source_of(source, chain), shape(value)) != whole.layout.offset(at):
            return None
    return load


def _source_of(at: tuple[int, ...], chain: Sequence[ir.OpView]) -> tuple[int, ...]:
    """Coordinates in the tile that a chain of moves began with."""
    for op in chain:
        if isinstance(op, tile.TransposeOp):
            before = [0] * len(at)
            for here, there in enumerate(op.permutation):
                before[there] = at[here]
            at = tuple(before)
        elif isinstance(op, tile.ReshapeOp):
            at = tuple(_coordinates(row_major_number(at, shape(op.result)), shape(op.src)))[::-1]
    return at


def _coordinates(number: int, sizes: Sequence[int]) -> Iterator[int]:
    """The coordinates of the element at a place in row-major order, the last first."""
    for size in reversed(sizes):
        number, digit = divmod(number, size)
        yield digit
