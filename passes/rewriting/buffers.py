"""Buffers that hold tiles, and parts of buffers, as rewrites make them at the insertion point."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.dialects.gpu_tile import AllocOp, BufferStoreOp, ViewOp
from tilec.dialects.gpu_tile.types import BufferType, TensorBuffer, buffer_of
from tilec.passes.rewriting.scalars import i32_constant


def stored(value: ir.Value, type_: BufferType | TensorBuffer) -> ir.Value:
    """Makes a buffer that a tile is stored in."""
    buffer = AllocOp.build(results=[type_.type()])
    BufferStoreOp.build(value, buffer)
    return buffer


def view_part(buffer: ir.Value, origin: Sequence[int | ir.Value], sizes: Sequence[int]) -> ir.Value:
    """Makes a view of the part of a buffer that begins at `origin`."""
    at = [i32_constant(each) if isinstance(each, int) else each for each in origin]
    return ViewOp.build(buffer, at, results=[buffer_of(buffer).part(sizes).type()])
