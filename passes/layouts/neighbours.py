"""Links between components across ops that change shape: what one side's layout proposes to the
other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.types import shape
from tilec.layout import Layout
from tilec.passes.layouts.components import depth_factor
from tilec.passes.layouts.maps import (
    broadcast_source,
    expanded,
    part_layout,
    reshaped,
    whole_layout,
)


@dataclass(frozen=True)
class Link:
    """`other`'s layout proposes `propose(layout)` to the component of `value`; None: no
    proposal."""

    value: ir.Value
    other: ir.Value
    propose: Callable[[Layout], Layout | None]
    depth: int


def links(ops: list[ir.Operation]) -> Iterator[Link]:
    """Every link, in both directions where both make sense."""
    for op in ops:
        view, depth = op.opview, depth_factor(op)
        if isinstance(view, tile.ReduceOp):
            yield from _reduce_links(view, depth)
        elif isinstance(view, tile.BroadcastOp):
            yield from _broadcast_links(view, depth)
        elif isinstance(view, tile.TransposeOp):
            yield from _transpose_links(view, depth)
        elif isinstance(view, tile.ReshapeOp):
            source, result = shape(view.src), shape(view.result)
            yield Link(view.result, view.src, _reshape(source, result), depth)
            yield Link(view.src, view.result, _reshape(result, source), depth)
        elif isinstance(view, tile.JoinOp):
            yield from _part_links(view.inputs, view.result, view.axis, depth)
        elif isinstance(view, tile.SplitOp):
            yield from _part_links(view.parts, view.src, view.axis, depth)


def _reshape(source: tuple[int, ...], result: tuple[int, ...]) -> Callable[[Layout], Layout | None]:
    return lambda layout: reshaped(layout, source, result)


def _reduce_links(op: tile.ReduceOp, depth: int) -> Iterator[Link]:
    axis = op.axis
    for source, result in zip(op.inputs, op.outputs, strict=True):
        size = shape(source)[axis]
        yield Link(result, source, lambda layout: layout.slice(axis), depth)
        yield Link(source, result, lambda layout, size=size: expanded(layout, axis, size), depth)


def _broadcast_links(op: tile.BroadcastOp, depth: int) -> Iterator[Link]:
    dims, source = op.dims, shape(op.src)
    yield Link(op.src, op.result, lambda layout: broadcast_source(layout, dims, source), depth)


def _transpose_links(op: tile.TransposeOp, depth: int) -> Iterator[Link]:
    permutation = op.permutation
    inverse = [permutation.index(i) for i in range(len(permutation))]
    yield Link(op.result, op.src, lambda layout: layout.permute(permutation), depth)
    yield Link(op.src, op.result, lambda layout: layout.permute(inverse), depth)


def _part_links(parts: list[ir.Value], whole: ir.Value, axis: int, depth: int) -> Iterator[Link]:
    """Equal parts that a thread's registers hold one after another: then nothing moves."""
    if len({shape(part) for part in parts}) > 1:
        return
    sizes, count = shape(parts[0]), len(parts)
    for part in parts:
        yield Link(part, whole, lambda layout: part_layout(layout, axis, count, sizes), depth)
        yield Link(whole, part, lambda layout: whole_layout(layout, axis, count, sizes), depth)
