"""Links between components across ops that change shape: what one side's layout proposes to the
other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from math import prod

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.def_use import of_kind
from tilec.dialects.elementwise import is_elementwise
from tilec.dialects.types import byte_width, element, shape
from tilec.hardware.layout import Layout
from tilec.passes.layouts.components import depth_factor, is_apart, tile_bytes
from tilec.passes.layouts.conversion_costs import conversion_cost
from tilec.passes.layouts.maps import (
    broadcast_source,
    expanded,
    register_permutation,
    spread_out,
)
from tilec.passes.layouts.parts import part_layout, whole_layout
from tilec.passes.layouts.reshapes import reshaped
from tilec.passes.rewriting.walk import is_of, uses_behind
from tilec.records import dataclass


@dataclass(frozen=True)
class Link:
    """What the layout of `other` means to the component of `value`.

    `propose(layout)`: layouts that suit it. `ends(own, layout)`: the layouts between which the op
    would have the tile `moved` converted, equal where it need not be; None: the op moves elements
    whatever the layouts are.
    """

    value: ir.Value
    other: ir.Value
    propose: Callable[[Layout], list[Layout]]
    ends: Callable[[Layout, Layout], tuple[Layout, Layout] | None]
    moved: ir.Value
    depth: int
    held_up: int = 0
    """Bytes of tiles that no copy engine or load role can fetch behind a conversion here."""

    @property
    def reorders(self) -> bool:
        """Whether the two have the same elements."""
        return prod(shape(self.value)) == prod(shape(self.other))

    def cost(self, own: Layout, layout: Layout) -> int:
        """Bytes of traffic that a conversion between the two is worth, if there is one that moves
        elements between threads."""
        ends = self.ends(own, layout)
        if ends is None or ends[0] == ends[1]:
            return 0
        if register_permutation(*ends, shape(self.moved)) is not None:
            return 0
        bytes_ = byte_width(element(self.moved))
        converted = conversion_cost(shape(self.moved), bytes_, *ends)
        return self.depth * (converted + self.held_up)


Map = Callable[[Layout], Layout | None]


LinkKind = Callable[[ir.Value, ir.Value, Map, int], Link]


def _read(value: ir.Value, other: ir.Value, to_value: Map, depth: int) -> Link:
    """A link of an op's operand to its result, each of whose layouts wants one of the operand."""
    return _mapped(value, other, to_value, depth, lambda own, wanted: (own, wanted))


def _made(value: ir.Value, other: ir.Value, to_value: Map, depth: int) -> Link:
    """A link of an op's result to its operand, each of whose layouts gives one of the result."""
    return _mapped(value, other, to_value, depth, lambda own, given: (given, own))


def _mapped(
    value: ir.Value,
    other: ir.Value,
    to_value: Map,
    depth: int,
    order: Callable[[Layout, Layout], tuple[Layout, Layout]],
) -> Link:
    def propose(layout: Layout) -> list[Layout]:
        found = to_value(layout)
        return [] if found is None else [found]

    def ends(own: Layout, layout: Layout) -> tuple[Layout, Layout] | None:
        found = to_value(layout)
        return None if found is None else order(own, found)

    return Link(value, other, propose, ends, value, depth)


def links(ops: list[ir.Operation]) -> Iterator[Link]:
    """Yields every link, in both directions where both make sense."""
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
            yield _made(view.result, view.src, _reshape(source, result), depth)
            yield _read(view.src, view.result, _reshape(result, source), depth)
        elif isinstance(view, tile.JoinOp):
            yield from _part_links(view.inputs, view.result, view.axis, depth, _read, _made)
        elif isinstance(view, tile.SplitOp):
            yield from _part_links(view.parts, view.src, view.axis, depth, _made, _read)
        elif is_apart(op):
            yield from _scatter_links(view, depth)


def _reshape(source: tuple[int, ...], result: tuple[int, ...]) -> Map:
    return lambda layout: reshaped(layout, source, result)


def _reduce_links(op: tile.ReduceOp, depth: int) -> Iterator[Link]:
    """The source lies as its result along the other axes; along its own in whatever threads hold
    copies of the result, or in one each."""
    axis = op.axis
    for source, result in zip(op.inputs, op.outputs, strict=True):
        size = shape(source)[axis]

        def propose(layout: Layout, size: int = size) -> list[Layout]:
            return [spread_out(layout, axis, size), expanded(layout, axis, size)]

        def ends(own: Layout, layout: Layout) -> tuple[Layout, Layout]:
            return own.slice(axis), layout

        yield _made(result, source, lambda layout: layout.slice(axis), depth)
        yield Link(source, result, propose, ends, result, depth)


def _broadcast_links(op: tile.BroadcastOp, depth: int) -> Iterator[Link]:
    dims, source = op.dims, shape(op.src)
    link = _read(op.src, op.result, lambda layout: broadcast_source(layout, dims, source), depth)
    # In front of a loop numbers may be converted before anybody fetches.
    yield replace(link, held_up=_gathered_bytes(op.result) if depth > 1 else 0)
    result = shape(op.result)
    if prod(source) == prod(result) and list(dims) == sorted(dims):  # dimensions of one element
        yield _made(op.result, op.src, _reshape(source, result), depth)


def _gathered_bytes(value: ir.Value) -> int:
    """Bytes of the tiles that are gathered by numbers that follow from `value`, element by element:
    who fetches them ahead computes the numbers again, but has nobody's to convert."""

    def passed_on(use: ir.OpOperand) -> Iterable[ir.Value]:
        op = use.owner.operation
        passes = is_elementwise(op) or is_of(op, tile.BroadcastOp)
        return op.results if passes else ()

    users = [use.owner.opview for use in uses_behind(value, passed_on)]
    return max((tile_bytes(op.result) for op in of_kind(users, tile.GatherOp)), default=0)


def _transpose_links(op: tile.TransposeOp, depth: int) -> Iterator[Link]:
    permutation = op.permutation
    inverse = [permutation.index(i) for i in range(len(permutation))]
    yield _made(op.result, op.src, lambda layout: layout.permute(permutation), depth)
    yield _read(op.src, op.result, lambda layout: layout.permute(inverse), depth)


def _scatter_links(op: tile.ScatterOp, depth: int) -> Iterator[Link]:
    """Links what a scatter stores with its mask: it lies as the indices do, or is converted."""

    def propose(layout: Layout) -> list[Layout]:
        return [layout]

    def given(own: Layout, layout: Layout) -> tuple[Layout, Layout]:
        return layout, own

    def wanted(own: Layout, layout: Layout) -> tuple[Layout, Layout]:
        return own, layout

    yield Link(op.mask, op.value, propose, given, op.value, depth)
    yield Link(op.value, op.mask, propose, wanted, op.value, depth)


def _part_links(
    parts: list[ir.Value],
    whole: ir.Value,
    axis: int,
    depth: int,
    of_part: LinkKind,
    of_whole: LinkKind,
) -> Iterator[Link]:
    """Links a whole with its equal parts: nothing moves where a thread's registers hold these one
    after another."""
    if len({shape(part) for part in parts}) > 1:
        return
    sizes, count = shape(parts[0]), len(parts)
    for part in parts:
        yield of_part(part, whole, lambda layout: part_layout(layout, axis, count, sizes), depth)
        yield of_whole(whole, part, lambda layout: whole_layout(layout, axis, count, sizes), depth)
