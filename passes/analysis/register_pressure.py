"""How many registers a thread holds at once, about: what a program's live tiles and scalars take.

Backward over each block with the values still needed; what a loop reads from outside lives
throughout it, a branch may be the last to read it. An op's results take the registers of the
operands that it uses last: elements go one by one. Constants, element numbers and copies of an
element take none of their own, nor does what integer instructions make of values that take fewer:
distances of rows and columns, masks, numbers of another width. Narrow elements share registers, but
not where they come one by one from memory. Runs of elementwise work on large tiles are computed
piece by piece (`piecewise_runs.py`): between their ops no tile is whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from mlir import ir

from tilec.dialects.def_use import defining_op
from tilec.dialects.elementwise import is_elementwise
from tilec.dialects.gpu_tile import BufferLoadOp, ConvertLayoutOp, MmaOp, WarpReduceOp
from tilec.dialects.gpu_tile.types import is_pending, is_tensor_buffer, layout_of, tile_of
from tilec.dialects.tile import GatherOp, LoadOp, ReduceOp, ReshapeOp, TransposeOp
from tilec.dialects.types import bit_width, element, is_tile
from tilec.hardware.sizes import WORD_BYTES
from tilec.passes.analysis.divisibility import Divisibility
from tilec.passes.analysis.index_runs import index_run
from tilec.passes.analysis.piecewise_runs import Run, runs_of
from tilec.passes.analysis.vector_width import element_bytes, provable_width
from tilec.passes.rewriting.free_ops import is_scalar, stays_in_thread
from tilec.passes.rewriting.loops import is_inside
from tilec.passes.rewriting.walk import all_ops, kernel_of

SUBJECT = "registers"
"""What reports of too many are about; `jit` warns of each."""

_CHEAP = (
    *("arith.addi", "arith.subi", "arith.muli", "arith.andi", "arith.ori", "arith.xori"),
    *("arith.cmpi", "arith.select", "arith.minsi", "arith.maxsi", "arith.minui", "arith.maxui"),
    *("arith.index_cast", "arith.extsi", "arith.extui", "arith.trunci", "arith.sitofp"),
    *("arith.addf", "arith.subf", "arith.mulf", "arith.negf", "arith.maximumf", "arith.minimumf"),
)
"""Elementwise ops of an instruction or none: what they compute of few registers is computed where
it is used."""

_ORDERS = (ReshapeOp, TransposeOp)
"""What gives the elements of a tile in another order."""
_CASTS = ("arith.extf", "arith.truncf", "arith.sitofp", "arith.extsi", "arith.trunci")
"""What gives each element in another width."""
AHEAD = 32
"""Registers of a tile that is loaded as it is used: what ptxas loads ahead without need
(product_with_tail of 128 x 256 takes 195; 261 of 264 verdicts agree)."""


@dataclass(frozen=True)
class Peak:
    """The place where values take the most 32-bit registers: how many are held in front of which
    op; None in an empty block."""

    registers: int
    op: ir.Operation | None


def most_live_registers(block: ir.Block, apart: Collection[ir.Value] = ()) -> int:
    """The most 32-bit registers that values of a block, and those inside its ops, take at once.

    `apart`: tiles each of whose elements has a register (`tiles_apart`).
    """
    return peak(block, apart).registers


def peak(block: ir.Block, apart: Collection[ir.Value] = ()) -> Peak:
    """Finds what `most_live_registers` counts, and the op in front of which it is so."""
    pressure = _Pressure(apart, _index_bits(block))
    pressure.note_runs(block)
    return pressure.most(block, ())


def _index_bits(block: ir.Block) -> int:
    attributes = kernel_of(block.owner.operation).attributes
    return attributes["tile.index_bits"].value if "tile.index_bits" in attributes else 64


def tiles_apart(function: ir.Operation, block: ir.Block) -> set[ir.Value]:
    """The tiles of a block of `function`, and inside its ops, whose elements are loaded one by one
    in less than a register, and what is computed from them."""
    facts, found = Divisibility(function), set()

    for op in (op for view in block.operations for op in all_ops(view.operation)):
        if isinstance(op.opview, LoadOp) and is_tile(op.results[0]):
            load = op.opview
            wrapped = load.options.get("wrapped", False)
            width, _ = provable_width(facts, load.src, load.offsets, load.dims, wrapped=wrapped)
            if width * element_bytes(load.src) < WORD_BYTES:
                found.add(op.results[0])
        elif isinstance(op.opview, GatherOp) and is_tile(op.results[0]):
            if index_run(op.opview, facts)[1] * element_bytes(op.opview.src) < WORD_BYTES:
                found.add(op.results[0])
        elif found and any(operand in found for operand in op.operands):
            found.update(filter(is_tile, op.results))
    return found


def registers_of(value: ir.Value, apart: Collection[ir.Value] = (), index_bits: int = 64) -> int:
    """The 32-bit registers of a thread that one tile or scalar takes; 0 for what is neither."""
    if not _is_tiled(value):
        return int(isinstance(value.type, (ir.IntegerType, ir.IndexType, ir.FloatType)))
    kind = tile_of(value) if is_pending(value) else value
    of = element(kind)
    bits = index_bits if isinstance(of, ir.IndexType) else bit_width(of)
    bits = max(32, bits) if value in apart else bits
    return -(-layout_of(kind).num_values * bits // (8 * WORD_BYTES))


class _Pressure:
    """The walk; `_sizes`, `_held`: of each value met so far, its registers, and the values whose
    registers hold it. `_elsewhere`, `_lost`: those that come from no buffer, and that go to
    more than products."""

    def __init__(self, apart: Collection[ir.Value], index_bits: int) -> None:
        self._apart, self._index_bits = apart, index_bits
        self._sizes: dict[ir.Value, int] = {}
        self._held: dict[ir.Value, frozenset[ir.Value]] = {}
        self._streams: dict[ir.Value, bool] = {}
        self._fragments: dict[ir.Value, bool] = {}
        self._elsewhere: set[ir.Value] = set()
        self._lost: set[ir.Value] = set()
        self._inside: set[ir.Value] = set()
        self._awaited: set[ir.Value] = set()

    def most(self, block: ir.Block, behind: Iterable[ir.Value]) -> Peak:
        """The peak of a block, behind which the values `behind` are still needed."""
        live = set(behind)
        held = self._together(live)
        most, place = held, None
        operations = [view.operation for view in block.operations]
        self._look_through(operations)
        for op in reversed(list(_as_computed(block))):
            for result in live.intersection(op.results):
                live.remove(result)
                held -= self._size(result)
            operands = list(op.operands)
            needed = self._holding(operands)
            if list(op.regions):
                outer = {v for v in self._holding(_read_inside(op)) if not is_inside(v, op)}
                repeats = op.name in ("scf.for", "scf.while")
                around = live.union(outer) if repeats else live
                for inner in (self.most(b, around) for r in op.regions for b in r.blocks):
                    if inner.registers > most:
                        most, place = inner.registers, inner.op
                needed |= outer
            for value in needed - live:
                live.add(value)
                held += self._size(value)
            here = held + self._read_now(operands)
            if here > most:
                most, place = here, op
        return Peak(most, place)

    def _read_now(self, operands: Sequence[ir.Value]) -> int:
        """The registers of operands that come as their op takes them: fragments, and a part of each
        stream."""
        fragments = {value for value in operands if self._is_fragment(value)}
        streams = [value for value in operands if self._is_stream(value)]
        return self._together(fragments) + sum(min(self._size(v), AHEAD) for v in streams)

    def note_runs(self, block: ir.Block) -> None:
        """Notes which values a run of a block, and of those inside its ops, computes for itself
        alone, and which it waits for with all their elements in registers: ptxas moves no load
        across its branches."""
        for each in runs_of(block):
            if isinstance(each, Run):
                results = {op.results[0] for op in each.ops}
                inside = [r for r in results if all(_made(use.owner) in results for use in r.uses)]
                self._inside.update(inside)
                if each.branches:
                    given = (v for op in each.ops for v in op.operands if v not in results)
                    self._awaited.update(given)
            else:
                for inner in (b for region in each.regions for b in region.blocks):
                    self.note_runs(inner)

    def _look_through(self, operations: list[ir.Operation]) -> None:
        """Backwards where values go, then forwards what holds them: each step knows the one before
        it, and a chain of thousands, as in a sorting network, is walked once."""
        for op in reversed(operations):
            for result in op.results:
                self._is_fragment(result)
        for op in operations:
            for result in op.results:
                self._holders(result)

    def _holding(self, values: Iterable[ir.Value]) -> set[ir.Value]:
        return {held for value in values for held in self._holders(value)}

    def _holders(self, value: ir.Value) -> frozenset[ir.Value]:
        """The values whose registers hold `value`: itself, or those that it is cheaply computed
        from."""
        found = self._held.get(value)
        if found is None:
            found = self._held[value] = self._find_holders(value)
        return found

    def _find_holders(self, value: ir.Value) -> frozenset[ir.Value]:
        itself = frozenset([value])
        op = defining_op(value)
        if op is None:
            return itself
        name, operands = op.name, op.operands
        if name in ("arith.constant", "tile.iota") or self._is_fragment(value):
            return frozenset()
        if self._is_stream(value):
            return frozenset()
        if name in ("tensor.splat", "tile.broadcast"):
            return frozenset(self._holding(operands))
        if value in self._inside or _is_added_up(value):
            return frozenset(self._holding(operands))
        if name not in _CHEAP or not is_tile(value):
            return itself
        parts = frozenset(self._holding(operands))
        return parts if self._together(parts) < self._size(value) else itself

    def _is_stream(self, value: ir.Value) -> bool:
        """Whether a tile is loaded for one elementwise op of the same block, maybe converted, and
        no op between could show other threads a difference. ptxas then loads its elements as that
        op takes them."""
        found = self._streams.get(value)
        if found is None:
            loaded = _is_tiled(value) and value not in self._apart and _is_loaded(value)
            loaded = loaded and value not in self._awaited
            found = self._streams[value] = loaded and _goes_to_one_op(value)
        return found

    def _is_fragment(self, value: ir.Value) -> bool:
        """Whether a tile comes from a buffer, maybe by cheap ops, for matrix instructions of the
        same block. It is then loaded in front of them; where registers are short, a part in front
        of each."""
        found = self._fragments.get(value)
        if found is None:
            loaded = _is_tiled(value) and self._comes_from_buffer(value)
            found = self._fragments[value] = loaded and self._goes_to_products(value)
        return found

    def _comes_from_buffer(self, value: ir.Value) -> bool:
        # Each value once: there may be exponentially many ways to it, as in a sorting network,
        # and what none of its values comes from, no later one does by way of them.
        pending, seen = [value], {value}
        while pending:
            op = defining_op(pending.pop())
            if op is None:
                continue
            if isinstance(op.opview, BufferLoadOp):
                return True
            if op.name in _CHEAP:
                operands = [v for v in op.operands if v not in seen and v not in self._elsewhere]
                pending += operands
                seen.update(operands)
        self._elsewhere |= seen
        return False

    def _goes_to_products(self, value: ir.Value) -> bool:
        pending, seen = [value], {value}
        while pending:
            block = pending[-1].owner.operation.block
            for use in pending.pop().uses:
                user = use.owner
                if user.operation.block != block:
                    return self._is_lost(value)
                if isinstance(user.opview, MmaOp):
                    continue
                if user.name not in _CHEAP or user.results[0] in self._lost:
                    return self._is_lost(value)
                if user.results[0] not in seen:
                    seen.add(user.results[0])
                    pending.append(user.results[0])
        return True

    def _is_lost(self, value: ir.Value) -> bool:
        self._lost.add(value)
        return False

    def _together(self, values: Iterable[ir.Value]) -> int:
        return sum(map(self._size, values))

    def _size(self, value: ir.Value) -> int:
        found = self._sizes.get(value)
        if found is None:
            found = self._sizes[value] = registers_of(value, self._apart, self._index_bits)
        return found


def _as_computed(block: ir.Block) -> Iterator[ir.Operation]:
    for each in runs_of(block):
        yield from (*each.ahead, *each.ops) if isinstance(each, Run) else (each,)


def _is_added_up(value: ir.Value) -> bool:
    """Whether a tile is computed element by element for the next op alone, a reduction: each thread
    adds up its elements as it computes them."""
    op = defining_op(value)
    if op is None or not is_elementwise(op):
        return False
    users = [use.owner for use in value.uses]
    if len(users) != 1 or users[0].operation.block != op.block:
        return False
    user = users[0].operation
    if isinstance(users[0], (ReduceOp, WarpReduceOp)):
        return len(user.operands) == 1
    return is_elementwise(user) and len(user.results) == 1 and _is_added_up(user.results[0])


def _made(user: ir.OpView) -> ir.Value | None:
    op = user.operation
    return op.results[0] if len(op.results) else None


def _is_tiled(value: ir.Value) -> bool:
    """Whether a value is a tile, or one that is on its way."""
    return is_tile(value) or is_pending(value)


def _is_loaded(value: ir.Value) -> bool:
    """Whether a tile comes from an array or a buffer, maybe converted or in another order."""
    op = defining_op(value)
    if op is None:
        return False
    if _passes_on(op):
        return _is_loaded(op.operands[0])
    if isinstance(op.opview, BufferLoadOp):
        return not is_tensor_buffer(op.opview.src)  # tcgen05.ld brings many registers at once
    return isinstance(op.opview, LoadOp) and is_tile(value)


def _passes_on(op: ir.Operation) -> bool:
    return isinstance(op.opview, (*_ORDERS, ConvertLayoutOp)) or op.name in _CASTS


def _goes_to_one_op(value: ir.Value) -> bool:
    users = [use.owner.operation for use in value.uses]
    here = value.owner.operation
    if len(users) != 1 or users[0].block != here.block:
        return False
    if _passes_on(users[0]):
        return _goes_to_one_op(users[0].results[0])
    return is_elementwise(users[0]) and all(map(_is_quiet, _between(here, users[0])))


def _between(first: ir.Operation, last: ir.Operation) -> Iterator[ir.Operation]:
    ops = iter(view.operation for view in first.block.operations)
    next(op for op in ops if op == first)
    return takewhile(lambda op: op != last, ops)


def _is_quiet(op: ir.Operation) -> bool:
    return stays_in_thread(op) or is_scalar(op) or isinstance(op.opview, _ORDERS)


def _read_inside(op: ir.Operation) -> list[ir.Value]:
    return [value for inner in all_ops(op) if inner != op for value in inner.operands]
