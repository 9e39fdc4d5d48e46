"""The tensor maps of a kernel: what the launcher is to encode, one hardware parameter each."""

from __future__ import annotations

from math import prod

from mlir import ir

from tilec.dialects.gpu_tile import MakeIm2colMapOp, TensorMapOp, TmaStoreOp, WarpTmaStoreOp
from tilec.dialects.gpu_tile.tma import SWIZZLE_BYTES
from tilec.dialects.gpu_tile.types import BOX_ALIGNMENT, BufferType
from tilec.dialects.types import element, shape, show
from tilec.executable.kernel import Im2col, TensorMap
from tilec.hardware.shared_layout import Parts
from tilec.passes.analysis.vector_width import contiguous_dim
from tilec.passes.rewriting.walk import find_ops


def tile_order(op: TensorMapOp) -> tuple[int, ...]:
    """The tile dimensions as a box lies in shared memory, fastest first: the one along the array's
    rows, then the others from the last."""
    fastest = contiguous_dim(op.array, op.dims)
    others = [d for d in reversed(range(len(op.dims))) if d != fastest]
    return (*(() if fastest is None else (fastest,)), *others)


def recipe_of(op: TensorMapOp) -> TensorMap:
    """Describes the tensor map that the launcher is to encode. Array dimensions that no tile
    dimension runs along come last."""
    order = tile_order(op)
    if isinstance(op, MakeIm2colMapOp):
        return _im2col_recipe(op, order)
    along = [op.dims[d] for d in order]
    others = [d for d in reversed(range(len(shape(op.array)))) if d not in along]
    return TensorMap(
        ir.BlockArgument(op.array).arg_number,
        (*along, *others),
        (*(op.box[d] for d in order), *(1 for _ in others)),
        SWIZZLE_BYTES[op.swizzle],
        str(element(op.array)),
        any(_writes(use.owner.opview) for use in op.result.uses),
    )


def _im2col_recipe(op: MakeIm2colMapOp, order: tuple[int, ...]) -> TensorMap:
    return TensorMap(
        ir.BlockArgument(op.array).arg_number,
        tuple(reversed(range(len(shape(op.array))))),
        tuple(op.box[d] for d in order),
        SWIZZLE_BYTES[op.swizzle],
        str(element(op.array)),
        im2col=Im2col(op.extents[::-1], op.lower[::-1], op.steps[::-1]),
    )


def _writes(op: ir.OpView) -> bool:
    if isinstance(op, WarpTmaStoreOp):
        return True
    return isinstance(op, TmaStoreOp) and op.combine == "none"


def tensor_maps(function: ir.Operation) -> tuple[TensorMap, ...]:
    """The distinct recipes of a kernel, in program order: the order of their parameters."""
    recipes = (recipe_of(op.opview) for op in find_ops(function, TensorMapOp))
    return tuple(dict.fromkeys(recipes))


def why_no_boxes(op: TensorMapOp, buffer: BufferType) -> str | None:
    """Says why a copy through this map does not fill (or read) a buffer box by box; None if it
    does.

    A box lies in shared memory in `tile_order`, under the map's swizzle, row behind row; rows
    narrower than the swizzle lie as far apart as it is wide (as an H200 does it). It starts at a
    multiple of 128 bytes. A wider buffer consists of panels, one box each.
    """
    swizzle = _swizzle_of_bytes(SWIZZLE_BYTES[op.swizzle])
    if buffer.layout.swizzle != swizzle:
        return f"the buffer {buffer.layout} does not have the map's swizzle {op.swizzle}"
    order = tile_order(op)
    if isinstance(op, MakeIm2colMapOp) and buffer.shape[order[1]] != op.box[order[1]]:
        return f"one box holds all rows of an im2col map's copy, found {show(op.box)}"
    pitch = SWIZZLE_BYTES[op.swizzle] // buffer.element_bytes or op.box[order[0]]
    for place, dim in enumerate(order):
        below = pitch * prod(op.box[d] for d in order[1:place]) if place else 1
        (size, stride), *outer = coalesced(buffer.layout.dims[dim])
        box = op.box[dim]
        if box > 1 and (stride != below or size % box):
            return (
                f"a box of {show(op.box)} does not lie row behind row in the buffer {buffer.layout}"
            )
        steps = [stride * box] if size > box else []
        steps += [step for count, step in outer if count > 1]
        if any(step * buffer.element_bytes % BOX_ALIGNMENT for step in steps):
            return f"not every box of the buffer {buffer.layout} starts at {BOX_ALIGNMENT} bytes"
    return None


def coalesced(parts: Parts) -> Parts:
    """Parts of one dimension, those that continue each other joined, those of size 1 left out."""
    joined: list[tuple[int, int]] = []
    for size, stride in parts:
        if joined and stride == joined[-1][0] * joined[-1][1]:
            joined[-1] = (joined[-1][0] * size, joined[-1][1])
        elif size > 1:
            joined.append((size, stride))
    return tuple(joined) or ((1, 0),)


def _swizzle_of_bytes(span: int) -> tuple[int, int, int] | None:
    """The swizzle of a 32, 64 or 128-byte pattern (PTX ISA 9.0, "Swizzling modes"); None for 0."""
    return (span.bit_length() - 5, 4, 3) if span else None
