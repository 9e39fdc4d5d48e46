"""Windows as parts of their arrays, and where accesses lie beside their edges."""

from __future__ import annotations

from dataclasses import replace

from mlir import ir

from tilec.dialects.tile import ArrayOp, WindowOp
from tilec.dialects.types import shape
from tilec.passes.analysis.divisibility import constant_of
from tilec.passes.analysis.signs import Signs
from tilec.passes.rewriting.scalars import binary
from tilec.records import dataclass


@dataclass(frozen=True)
class Edge:
    """A coordinate c along `dim` lies inside where 0 <= c + `shift` < `size`; None: no shift, and
    no end of its own."""

    dim: int
    shift: ir.Value | None
    size: ir.Value | None


@dataclass(frozen=True)
class View:
    """A window as a part of an array: where it begins along each dimension (None: at 0), and its
    edges."""

    array: ir.Value
    starts: tuple[ir.Value | None, ...]
    edges: tuple[Edge, ...]


def view_of(window: WindowOp, known: dict[ir.Value, View]) -> View:
    """The part of an array that a window is, by what is known of windows that it is a part of; sums
    are written in front of its op."""
    around = known.get(window.src)
    if around is None:
        around = View(window.src, (None,) * len(shape(window.src)), ())
    dim, start = window.dim, window.start
    with ir.InsertionPoint(window.operation), window.operation.location:
        starts = list(around.starts)
        starts[dim] = total(starts[dim], start)
        edges = [
            replace(edge, shift=total(edge.shift, start)) if edge.dim == dim else edge
            for edge in around.edges
        ]
    return View(around.array, tuple(starts), (*edges, Edge(dim, None, window.size)))


def total(one: ir.Value | None, other: ir.Value | None) -> ir.Value | None:
    """The sum of two indices, None standing for 0; written here where it takes an op."""
    if one is None or constant_of(one) == 0:
        return None if other is None or constant_of(other) == 0 else other
    if other is None or constant_of(other) == 0:
        return one
    return binary("arith.addi", one, other)


@dataclass(frozen=True)
class Place:
    """Where a tile lies beside an edge: from `offset` on along the edge's dimension, `extent`
    elements along `axis` of the tile; None: one element."""

    edge: Edge
    offset: ir.Value
    axis: int | None
    extent: int

    def first(self) -> ir.Value:
        """Where it begins, counted from the edge's beginning; written here."""
        shift = self.edge.shift
        return self.offset if shift is None else binary("arith.addi", self.offset, shift)

    def end(self) -> ir.Value:
        """Where it ends, counted from the edge's beginning; written here."""
        first = self.first()
        return binary("arith.addi", first, self.extent)

    def begins_inside(self, signs: Signs) -> bool:
        """Whether it is known not to begin in front of the edge."""
        shift = self.edge.shift
        parts = [self.offset] if shift is None else [self.offset, shift]
        return all(signs.is_never_negative(part) for part in parts)

    def ends_inside(self) -> bool:
        """Whether it is known to end in front of the edge's end."""
        if self.edge.size is None:
            return True
        shift = [] if self.edge.shift is None else [self.edge.shift]
        size, *parts = (constant_of(value) for value in (self.edge.size, self.offset, *shift))
        known = [part for part in parts if part is not None]
        return size is not None and len(known) == len(parts) and sum(known) + self.extent <= size

    def indices(self) -> list[ir.Value]:
        """What says where the tile and the edge lie."""
        parts = (self.offset, self.edge.shift, self.edge.size)
        return [part for part in parts if part is not None]

    def leaves_out_as(self, other: Place) -> bool:
        """Whether the same elements, along the axes of both, lie outside as of another place."""
        pairs = (
            (self.offset, other.offset),
            (self.edge.shift, other.edge.shift),
            (self.edge.size, other.edge.size),
        )
        return all(_are_same(*pair) for pair in pairs)


def places_of(access: ArrayOp, view: View) -> list[Place]:
    """Where the tile of a load or a store lies beside each edge; none of an indexed access."""
    if access.rectangle is None:
        return []
    sizes, places = shape(access.tile), []
    for edge in view.edges:
        axis = access.dims.index(edge.dim) if edge.dim in access.dims else None
        extent = 1 if axis is None else sizes[axis]
        places.append(Place(edge, access.offsets[edge.dim], axis, extent))
    return places


def _are_same(one: ir.Value | None, other: ir.Value | None) -> bool:
    if one is None or other is None:
        return one is other
    known = constant_of(one)
    return one == other or (known is not None and known == constant_of(other))
