"""How the scales of a product reach tensor memory: through shared memory, by tcgen05.cp.

Before:   %s : tensor<128x4xi8>                              (an operand of "tile.dot_scaled")
After:    %b = "gpu_tile.alloc"() : !gpu_tile.buffer<tensor<128x4xi8>, #gpu_tile.shared<
              "((32,4),4):((16,4),1)">>                      (512 bytes as the copy reads them)
          "gpu_tile.buffer_store"(%s, %b)
          %t = "gpu_tile.alloc"() : !gpu_tile.buffer<tensor<128x4xi8>, #gpu_tile.tmem<...>>
          "gpu_tile.tcgen05_copy"(%b, %t) {shape = "32x128b.warpx4"}

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
from tilec.dialects.gpu_tile import (
    AllocOp,
    BufferStoreOp,
    ConvertLayoutOp,
    ReshapeViewOp,
    Tcgen05CopyOp,
    TransposeViewOp,
)
from tilec.dialects.gpu_tile.types import BOX_ALIGNMENT, BufferType, TensorBuffer
from tilec.dialects.types import element, shape
from tilec.passes.contract import PassContext
from tilec.shared_layout import strided
from tilec.tensor_tiles import SCALES_COPY, scales_image, scales_layout

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


def _stored(value: ir.Value, whole: BufferType, k_dim: int) -> ir.Value:
    if k_dim:
        shared = AllocOp.build(results=[whole.type()])
        BufferStoreOp.build(value, shared)
        return shared
    turned = BufferType(shape(value), whole.element, whole.layout.permute((1, 0)))
    shared = AllocOp.build(results=[turned.type()])
    BufferStoreOp.build(value, shared)
    return TransposeViewOp.build(shared, permutation=(1, 0))


def _viewed(load: tile.LoadOp, whole: BufferType) -> ir.Value:
    sizes = shape(load.result)
    steps = [prod(sizes[d + 1 :]) for d in range(len(sizes))]
    type_ = BufferType(sizes, whole.element, strided(sizes, steps))
    shared = AllocOp.build(results=[type_.type()])
    BufferStoreOp.build(load.result, shared)
    return ReshapeViewOp.build(shared, results=[whole.type()])


def erase_moves(value: ir.Value) -> None:
    """Erases the reshapes and transposes that made scales, where nothing uses them any more."""
    while isinstance(value.owner, _MOVES) and not list(value.uses):
        op = value.owner
        value = op.src
        op.operation.erase()


def _loaded_image(value: ir.Value, whole: BufferType, k_dim: int) -> tile.LoadOp | None:
    """The load whose tile, row by row, is the image of the scales that `value` holds."""
    chain: list[ir.OpView] = []
    while isinstance(value.owner, _MOVES):
        chain.append(value.owner)
        value = value.owner.src
    load = value.owner
    if not chain or not isinstance(load, tile.LoadOp) or whole.size_bytes % BOX_ALIGNMENT:
        return None
    for at in product(*map(range, whole.shape)):
        source = at if k_dim else at[::-1]
        if _number(_traced(source, chain), shape(value)) != whole.layout.offset(at):
            return None
    return load


def _traced(at: tuple[int, ...], chain: Sequence[ir.OpView]) -> tuple[int, ...]:
    """Coordinates in the tile that a chain of moves began with."""
    for op in chain:
        if isinstance(op, tile.TransposeOp):
            before = [0] * len(at)
            for here, there in enumerate(op.permutation):
                before[there] = at[here]
            at = tuple(before)
        elif isinstance(op, tile.ReshapeOp):
            at = tuple(_coordinates(_number(at, shape(op.result)), shape(op.src)))[::-1]
    return at


def _number(at: Sequence[int], sizes: Sequence[int]) -> int:
    """The place of an element in row-major order."""
    number = 0
    for coordinate, size in zip(at, sizes, strict=True):
        number = number * size + coordinate
    return number


def _coordinates(number: int, sizes: Sequence[int]) -> Iterator[int]:
    """The coordinates of the element at a place in row-major order, the last first."""
    for size in reversed(sizes):
        number, digit = divmod(number, size)
        yield digit
