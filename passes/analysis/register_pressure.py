"""How many registers a thread holds at once, about: what a program's live tiles and scalars take.

Backward over each block with the values still needed; what a loop reads from outside lives
throughout it, a branch may be the last to read it. An op's results take the registers of the
operands that it uses last: elements go one by one. Constants, copies of an element and element
numbers take none, nor do numbers that are so much greater or smaller. Narrow elements share
registers, but not where they come one by one from memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from mlir import ir

from tilec.dialects.gpu_tile.types import is_pending, layout_of, tile_of
from tilec.dialects.tile import GatherOp, LoadOp
from tilec.dialects.types import bit_width, element, is_tile
from tilec.passes.analysis.divisibility import Divisibility
from tilec.passes.analysis.index_runs import index_run
from tilec.passes.analysis.vector_width import element_bytes, provable_width
from tilec.passes.rewriting.loops import is_inside

REGISTER_BYTES = 4
SUBJECT = "registers"
"""What reports of too many are about; `jit` warns of each."""

_FREE = ("arith.constant", "tensor.splat", "tile.broadcast", "tile.iota")
"""Ops whose results are other values' registers, or follow from the thread's number."""

_SUMS = ("arith.addi", "arith.subi", "arith.index_cast", "tile.broadcast", "tile.reshape")


def most_live_registers(block: ir.Block, apart: Collection[ir.Value] = ()) -> int:
    """The most 32-bit registers that values of a block, and those inside its ops, take at once.

    `apart`: tiles each of whose elements has a register (`tiles_apart`).
    """
    return _Pressure(apart).most(block, ())


def tiles_apart(function: ir.Operation, block: ir.Block) -> set[ir.Value]:
    """The tiles of a block of `function`, and inside its ops, whose elements are loaded one by one
    in less than a register, and what is computed from them."""
    facts, found = Divisibility(function), set()

    def visit(op: ir.Operation) -> ir.WalkResult:
        if isinstance(op.opview, LoadOp) and is_tile(op.results[0]):
            load = op.opview
            width, _ = provable_width(facts, load.src, load.offsets, load.dims)
            if width * element_bytes(load.src) < REGISTER_BYTES:
                found.add(op.results[0])
        elif isinstance(op.opview, GatherOp) and is_tile(op.results[0]):
            if index_run(op.opview, facts)[1] * element_bytes(op.opview.src) < REGISTER_BYTES:
                found.add(op.results[0])
        elif any(operand in found for operand in op.operands):
            found.update(filter(is_tile, op.results))
        return ir.WalkResult.ADVANCE

    for view in block.operations:
        view.operation.walk(visit)
    return found


def registers_of(tile: ir.Value, apart: Collection[ir.Value] = ()) -> int:
    """What one tile takes."""
    return _registers(tile, tile not in apart)


class _Pressure:
    """The walk; `_sizes`: registers of each value met so far."""

    def __init__(self, apart: Collection[ir.Value]) -> None:
        self._apart = apart
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
            self._sizes[value] = registers_of(value, self._apart)
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
