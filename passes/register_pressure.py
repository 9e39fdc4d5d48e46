"""How many registers a thread holds at once, about: what a program's live tiles and scalars take.

Backward over each block with the values still needed; what a loop reads from outside lives
throughout it, a branch may be the last to read it. An op's results take the registers of the
operands that it uses last: elements go one by one. Constants, copies of an element and element
numbers take none, nor do numbers that are so much greater or smaller.
"""

from __future__ import annotations

from collections.abc import Iterable

from mlir import ir

from tilec.dialects.gpu_tile.types import is_pending, layout_of, tile_of
from tilec.dialects.types import bit_width, element, is_tile
from tilec.passes.loops import is_inside

_FREE = ("arith.constant", "tensor.splat", "tile.broadcast", "tile.iota")
"""Ops whose results are other values' registers, or follow from the thread's number."""

_SUMS = ("arith.addi", "arith.subi", "arith.index_cast", "tile.broadcast", "tile.reshape")


def most_live_registers(block: ir.Block, *, packed: bool = True) -> int:
    """The most 32-bit registers that values of a block, and those inside its ops, take at once.

    `packed`: narrow elements share registers, else each has one.
    """
    return _Pressure(packed).most(block, ())


class _Pressure:
    """The walk; `_sizes`: registers of each value met so far."""

    def __init__(self, packed: bool) -> None:
        self._packed = packed
        self._sizes: dict[ir.Value, int] = {}

    def most(self, block: ir.Block, behind: Iterable[ir.Value]) -> int:
        """Of a block behind which the values `behind` are needed."""
        live = set(behind)
        held = sum(map(self._size, live))
        most = held
        for view in reversed(list(block.operations)):
            op = view.operation
            for result in live.intersection(op.results):
                live.remove(result)
                held -= self._size(result)
            needed = list(op.operands)
            if list(op.regions):
                outer = [v for v in _read_inside(op) if not is_inside(v, op)]
                repeats = op.name in ("scf.for", "scf.while")
                around = live.union(outer) if repeats else live
                most = max(most, *(self.most(b, around) for r in op.regions for b in r.blocks))
                needed += outer
            for value in needed:
                if value not in live:
                    live.add(value)
                    held += self._size(value)
            most = max(most, held)
        return most

    def _size(self, value: ir.Value) -> int:
        if value not in self._sizes:
            self._sizes[value] = _registers(value, self._packed)
        return self._sizes[value]


def _read_inside(op: ir.Operation) -> list[ir.Value]:
    found: list[ir.Value] = []

    def visit(inner: ir.Operation) -> ir.WalkResult:
        if inner != op:
            found.extend(inner.operands)
        return ir.WalkResult.ADVANCE

    op.walk(visit)
    return found


def _is_free(value: ir.Value) -> bool:
    owner = value.owner
    if isinstance(owner, ir.Block):
        return False
    return owner.name in _FREE or (is_tile(value) and _is_numbering(value))


def _is_numbering(value: ir.Value) -> bool:
    """Whether a tile's elements are its scalars and element numbers, added up."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return False
    if owner.name in _SUMS:
        return all(map(_is_numbering, owner.operands))
    return owner.name in ("arith.constant", "tensor.splat", "tile.iota")


def _registers(value: ir.Value, packed: bool) -> int:
    if _is_free(value):
        return 0
    if is_tile(value) or is_pending(value):
        kind = tile_of(value) if is_pending(value) else value
        bits = bit_width(element(kind)) if packed else max(32, bit_width(element(kind)))
        return -(-layout_of(kind).num_values * bits // 32)
    return int(isinstance(value.type, (ir.IntegerType, ir.IndexType, ir.FloatType)))
