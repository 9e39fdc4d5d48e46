"""Which values want one layout: the graph behind layout inference.

Values joined by elementwise ops, loop-carried slots and branches form components. Edges are joined
heaviest first (bytes, ten times more per loop level); two components that each hold a hard anchor
of another layout are not joined: a conversion will stand on that edge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from math import prod

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.def_use import defining_op
from tilec.dialects.elementwise import is_elementwise
from tilec.dialects.op import TileOp
from tilec.dialects.types import byte_width, element, is_tile, shape
from tilec.hardware.layout import Layout
from tilec.passes.rewriting.loops import carried_by, inits_of, terminator, yielded_by
from tilec.passes.rewriting.walk import blocks_in, is_of
from tilec.records import dataclass

MATERIALIZED = ("arith.constant", "tensor.splat", "tile.iota", "tile.broadcast")
"""Ops cheap enough to be made anew in each layout that is wanted."""


@dataclass
class Component:
    """Values of one layout. `weight`: bytes its memory accesses move, and what computing is worth
    (`op_costs.py`), scaled by loop depth."""

    values: list[ir.Value]
    hard: Layout | None = None
    layout: Layout | None = None
    weight: int = 0


@dataclass
class Components:
    """A union-find over the tiles of one function."""

    _parent: dict[ir.Value, ir.Value] = field(default_factory=dict)
    _component: dict[ir.Value, Component] = field(default_factory=dict)

    def add(self, value: ir.Value) -> None:
        """Makes `value` a component of its own."""
        if value not in self._parent:
            self._parent[value] = value
            self._component[value] = Component([value])

    def of(self, value: ir.Value) -> Component:
        """The component `value` belongs to."""
        return self._component[self._root(value)]

    def all(self) -> list[Component]:
        """Lists every component."""
        return [self._component[v] for v in self._parent if self._parent[v] == v]

    def join(self, first: ir.Value, second: ir.Value) -> None:
        """Joins two components unless hard layouts or shapes keep them apart."""
        a, b = self._root(first), self._root(second)
        if a == b:
            return
        left, right = self._component[a], self._component[b]
        if left.hard and right.hard and left.hard != right.hard:
            return
        if len(left.values) < len(right.values):
            a, b, left, right = b, a, right, left
        self._parent[b] = a
        left.values += right.values
        left.hard = left.hard or right.hard
        left.weight += right.weight
        del self._component[b]

    def _root(self, value: ir.Value) -> ir.Value:
        while self._parent[value] != value:
            self._parent[value] = self._parent[self._parent[value]]
            value = self._parent[value]
        return value


def tile_bytes(value: ir.Value) -> int:
    """Bytes of a tile in memory."""
    return prod(shape(value)) * byte_width(element(value))


def is_thin(value: ir.Value) -> bool:
    """Whether a tile is a row, a column or one element, as scales are."""
    return sum(size > 1 for size in shape(value)) < 2


def depth_factor(op: ir.Operation) -> int:
    """How much more often an op runs than one outside all loops: 10 times for each loop around
    it."""
    factor, parent = 1, op.parent
    while parent is not None and parent.name != "func.func":
        if parent.name in ("scf.for", "scf.while"):
            factor *= 10
        parent = parent.parent
    return factor


def tied_values(op: ir.Operation) -> Iterator[tuple[ir.Value, ir.Value]]:
    """Pairs of tiles that one loop carries: the block argument and the loop's result, which stand
    for the same registers."""
    if op.name == "scf.for":
        arguments = list(op.regions[0].blocks[0].arguments)[1:]
    elif op.name == "scf.while":
        arguments = list(op.regions[1].blocks[0].arguments)
    else:
        return
    for argument, result in zip(arguments, op.results, strict=True):
        if is_tile(argument):
            yield argument, result


def equal_layout_edges(op: ir.Operation) -> Iterator[tuple[ir.Value, ir.Value]]:
    """Pairs (leader, follower) of tiles around `op` that want one layout, the leader's."""
    view = op.opview
    if op.name.startswith("scf."):
        yield from _control_edges(op)
    elif isinstance(view, TileOp):
        for group in view.alike():
            yield from _led(*group)
    elif is_elementwise(op):
        yield from _led(*op.results, *op.operands)


def is_apart(op: ir.Operation) -> bool:
    """Whether an op is a scatter, or an update by sums of a product whose old values nobody reads,
    and its mask and indices can be made anew in any layout. What it stores may then lie otherwise,
    converted, while they stay."""
    view = op.opview
    if is_of(op, tile.AtomicRmwOp):
        if view.gives_old or not _is_of_product(view.value):
            return False
    elif not is_of(op, tile.ScatterOp):
        return False
    return all(map(_is_made_anew, (view.mask, *view.indices)))


def _is_of_product(value: ir.Value) -> bool:
    """Whether a tile follows, element by element, from a product, or a loop's sum of such."""
    op = defining_op(value)
    if op is None or is_of(op, tile.DotOp):
        return op is not None
    if op.name == "scf.for":
        return _is_of_product(yielded_by(op)[list(op.results).index(value)])
    return is_elementwise(op) and any(map(_is_of_product, filter(is_tile, op.operands)))


def _is_made_anew(value: ir.Value) -> bool:
    """Whether a tile follows, element by element, from such as can be made in any layout."""
    op = defining_op(value)
    if op is None or op.name in MATERIALIZED:
        return op is not None
    return is_elementwise(op) and all(map(_is_made_anew, filter(is_tile, op.operands)))


def _control_edges(op: ir.Operation) -> Iterator[tuple[ir.Value, ir.Value]]:
    """Ties what goes into a loop or branch to what comes out of it."""
    if op.name == "scf.for":
        values = inits_of(op), carried_by(op), yielded_by(op)
        for init, argument, yielded in zip(*values, strict=True):
            yield from _led(argument, yielded, init)
    elif op.name == "scf.if":
        for region in op.regions:
            if region.blocks:
                for value, result in zip(
                    terminator(region.blocks[0]).operands, op.results, strict=False
                ):
                    yield from _led(result, value)
    elif op.name == "scf.while":
        before, after = (region.blocks[0] for region in op.regions)
        for init, argument, yielded in zip(
            op.operands, before.arguments, terminator(after).operands, strict=True
        ):
            yield from _led(argument, init, yielded)
        for passed, argument in zip(
            list(terminator(before).operands)[1:], after.arguments, strict=True
        ):
            yield from _led(argument, passed)


def _led(*values: ir.Value) -> Iterator[tuple[ir.Value, ir.Value]]:
    """An edge from the first tile among `values` to each other one."""
    leader, *followers = [v for v in values if is_tile(v)] or [None]
    for follower in followers:
        yield leader, follower


def walk(function: ir.Operation) -> list[ir.Operation]:
    """Lists every op inside `function`, outer before inner, but for the regions of reductions and
    scans."""
    found: list[ir.Operation] = []

    def visit(block: ir.Block) -> None:
        for op in block.operations:
            found.append(op.operation)
            if op.operation.name.startswith("scf."):
                for inner in blocks_in(op.operation):
                    visit(inner)

    visit(function.regions[0].blocks[0])
    return found


def _values(ops: Iterable[ir.Operation]) -> Iterator[ir.Value]:
    """Lists every value that `ops` define: their results, and the arguments of loops' blocks."""
    for op in ops:
        yield from op.results
        if op.name.startswith("scf."):
            for block in blocks_in(op):
                yield from block.arguments


def build_components(ops: Iterable[ir.Operation], hard: dict[ir.Value, Layout]) -> Components:
    """Components of the tiles among `ops`; `hard` gives the layouts that instructions dictate."""
    ops = list(ops)
    components = Components()
    for value in _values(ops):
        if is_tile(value):
            components.add(value)
    for op in ops:
        for argument, result in tied_values(op):
            components.join(argument, result)
    for value, layout in hard.items():
        components.of(value).hard = layout
    edges = [
        (tile_bytes(a) * depth_factor(op), number, a, b)
        for number, op in enumerate(ops)
        for a, b in equal_layout_edges(op)
        if not (is_apart(op) and b == op.opview.value)
    ]
    for _, _, a, b in sorted(edges, key=lambda edge: (-edge[0], edge[1])):
        components.join(a, b)
    return components
