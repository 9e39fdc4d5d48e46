"""How many registers a thread holds at once, about: what a program's live tiles and scalars take.

Backward over each block with the values still needed; what a loop reads from outside lives
throughout it, a branch may be the last to read it. An op's results take the registers of the
operands that it uses last: elements go one by one. A tile that is for one op alone comes as that op
takes it, if what it is computed of stays anyway. Constants, element numbers and copies of an
element take none of their own, nor does what integer instructions make of values that take fewer:
distances of rows and columns, masks, numbers of another width, halves that become words. Narrow
elements share registers, but not where they come one by one from memory. Runs of elementwise work
on large tiles are computed piece by piece (`piecewise_runs.py`): between their ops no tile is
whole. What a product of warpgroups takes from registers stays in them until it is waited for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from mlir import ir

from tilec.dialects.def_use import defining_op, only_use
from tilec.dialects.elementwise import ELEMENTWISE, is_elementwise
from tilec.dialects.gpu_tile import BufferLoadOp, ConvertLayoutOp, MmaOp, WarpReduceOp, WgmmaOp
from tilec.dialects.gpu_tile.types import (
    is_pending,
    is_tensor_buffer,
    is_tiled,
    layout_of,
    tile_of,
)
from tilec.dialects.tile import BroadcastOp, GatherOp, LoadOp, ReduceOp, ReshapeOp, TransposeOp
from tilec.dialects.types import bit_width, element, is_index, is_tile
from tilec.hardware.sizes import WORD_BYTES
from tilec.passes.analysis.divisibility import Divisibility
from tilec.passes.analysis.index_runs import index_run
from tilec.passes.analysis.piecewise_runs import Run, runs_of
from tilec.passes.analysis.straight_code import bends
from tilec.passes.analysis.vector_width import access_width, element_bytes
from tilec.passes.rewriting.free_ops import is_scalar, stays_in_thread
from tilec.passes.rewriting.walk import all_ops, blocks_in, is_of, kernel_of
from tilec.records import dataclass

SUBJECT = "registers"
"""What reports of too many are about; `jit` warns of each."""

_CHEAP = (
    *("arith.addi", "arith.subi", "arith.muli", "arith.andi", "arith.ori", "arith.xori"),
    *("arith.cmpi", "arith.select", "arith.minsi", "arith.maxsi", "arith.minui", "arith.maxui"),
    *(
        "arith.index_cast",
        "arith.extsi",
        "arith.extui",
        "arith.trunci",
        "arith.sitofp",
        "arith.extf",
    ),
    *("arith.addf", "arith.subf", "arith.mulf", "arith.negf", "arith.maximumf", "arith.minimumf"),
)
"""Elementwise ops of an instruction or none: what they compute of few registers is computed where
it is used."""

_ORDERS = (ReshapeOp, TransposeOp)
"""What gives the elements of a tile in another order."""
_CASTS = ("arith.extf", "arith.truncf", "arith.sitofp", "arith.extsi", "arith.trunci")
"""What gives each element in another width."""
LONGEST_CHAIN = 8
"""Ops that are looked through for what a tile is computed of: a chain of thousands is no one's."""
AHEAD = 32
"""Registers of a tile that is loaded as it is used: what ptxas loads ahead without need
(product_with_tail of 128 x 256 takes 195; 256 of 262 verdicts agree)."""


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
    pressure.look_at(block)
    return pressure.most(block, ())


def _index_bits(block: ir.Block) -> int:
    attributes = kernel_of(block.owner.operation).attributes
    return attributes["tile.index_bits"].value if "tile.index_bits" in attributes else 64


def tiles_apart(function: ir.Operation, block: ir.Block) -> set[ir.Value]:
    """The tiles of a block of `function`, and inside its ops, whose elements are loaded one by one
    in less than a register, and what is computed from them."""
    facts, found = Divisibility(function), set()

    for op in all_ops(block.owner.operation):
        if op.name == LoadOp.OPERATION_NAME and is_tile(op.results[0]):
            load = op.opview
            width, _ = access_width(load, facts)
            if width * element_bytes(load.src) < WORD_BYTES:
                found.add(op.results[0])
        elif op.name == GatherOp.OPERATION_NAME and is_tile(op.results[0]):
            if index_run(op.opview, facts)[1] * element_bytes(op.opview.src) < WORD_BYTES:
                found.add(op.results[0])
        elif found and any(operand in found for operand in op.operands):
            found.update(filter(is_tile, op.results))
    return found


def registers_of(value: ir.Value, apart: Collection[ir.Value] = (), index_bits: int = 64) -> int:
    """The 32-bit registers of a thread that one tile or scalar takes; 0 for what is neither."""
    if not is_tiled(value):
        return int(isinstance(value.type, (ir.IntegerType, ir.IndexType, ir.FloatType)))
    kind = tile_of(value) if is_pending(value) else value
    of = element(kind)
    bits = index_bits if is_index(of) else bit_width(of)
    bits = max(32, bits) if value in apart else bits
    return -(-layout_of(kind).num_values * bits // (8 * WORD_BYTES))


class _Nest(NamedTuple):
    """The blocks of an op, the values that ops in them read, in order, and those of their own."""

    blocks: list[ir.Block]
    reads: dict[ir.Value, None]
    own: set[ir.Value]


class _Step(NamedTuple):
    """An op, what it reads and makes, and what is inside it, of one that is computed here."""

    op: ir.Operation
    name: str
    operands: list[ir.Value]
    results: list[ir.Value]
    nest: _Nest | None


class _Pressure:
    """The walk; `_steps`: what each block computes, in the order of the code; `_makers`: of each
    value met so far, what makes it, None for a block's argument. `_sizes`, `_held`: its registers,
    and the values whose registers hold it. `_loaded`, `_from_buffer`: those that are loaded, maybe
    in another order, and that come from a buffer by cheap ops; of those are the `_streams` and
    `_fragments`. `_lost`: those that go to more than products."""

    def __init__(self, apart: Collection[ir.Value], index_bits: int) -> None:
        self._apart, self._index_bits = apart, index_bits
        self._steps: dict[ir.Block, list[_Step]] = {}
        self._makers: dict[ir.Value, _Step | None] = {}
        self._sizes: dict[ir.Value, int] = {}
        self._held: dict[ir.Value, frozenset[ir.Value]] = {}
        self._loaded: set[ir.Value] = set()
        self._from_buffer: set[ir.Value] = set()
        self._streams: set[ir.Value] = set()
        self._fragments: set[ir.Value] = set()
        self._lost: set[ir.Value] = set()
        self._added: dict[ir.Value, bool] = {}
        self._sinking: dict[ir.Value, _Step | None] = {}
        self._bends: dict[ir.Block, dict[ir.Value, int]] = {}
        self._inside: set[ir.Value] = set()
        self._awaited: set[ir.Value] = set()

    def look_at(self, block: ir.Block) -> None:
        """Reads a block, and those inside its ops. Backwards where values go, then forwards what
        holds them: each step knows the one before it, and a chain of thousands, as in a sorting
        network, is walked once."""
        self._read(block)
        for steps in self._steps.values():
            made = [result for step in steps for result in step.results]
            self._fragments.update(filter(self._is_fragment, reversed(made)))
            self._streams.update(filter(self._is_stream, made))
            for value in made:
                self._holders(value)

    def most(self, block: ir.Block, behind: Iterable[ir.Value]) -> Peak:
        """The peak of a block, behind which the values `behind` are still needed."""
        live = set(behind)
        held = self._together(live)
        most, place = held, None
        for step in reversed(self._steps[block]):
            for result in live.intersection(step.results):
                live.remove(result)
                held -= self._size(result)
            needed = self._needed(step.operands, live)
            if step.nest is not None:
                outer = self._holding(step.nest.reads) - step.nest.own
                repeats = step.name in ("scf.for", "scf.while")
                around = live.union(outer) if repeats else live
                for inner in (self.most(each, around) for each in step.nest.blocks):
                    if inner.registers > most:
                        most, place = inner.registers, inner.op
                needed |= outer
            for value in needed - live:
                live.add(value)
                held += self._size(value)
            here = held + self._read_now(step.operands)
            if here > most:
                most, place = here, step.op
        return Peak(most, place)

    def _needed(
        self, operands: Iterable[ir.Value], live: set[ir.Value], depth: int = 0
    ) -> set[ir.Value]:
        """The values whose registers hold operands, in front of their op: of a tile that is for
        this op alone those that it is computed of, where those that are `live` behind the op anyway
        make them fewer. ptxas computes its elements as the op takes them."""
        needed: set[ir.Value] = set()
        for value in operands:
            held = self._holders(value)
            if depth < LONGEST_CHAIN and (maker := self._sunk(value)) is not None:
                parts = self._needed(maker.operands, live, depth + 1)
                held = min(held, parts, key=lambda found: self._together(found - live))
            needed |= held
        return needed

    def _sunk(self, value: ir.Value) -> _Step | None:
        """The op that computes a tile for one elementwise op alone, of the same block of
        instructions; None of others."""
        if value not in self._sinking:
            maker = self._maker(value)
            cheap = maker is not None and maker.name in _CHEAP and is_tile(value)
            self._sinking[value] = maker if cheap and self._is_for_one_op(value) else None
        return self._sinking[value]

    def _is_for_one_op(self, value: ir.Value) -> bool:
        use, block = only_use(value), value.owner.operation.block
        user = None if use is None else use.owner.operation
        if user is None or user.block != block or not is_elementwise(user):
            return False
        if block not in self._bends:
            self._bends[block] = bends(step.op for step in self._steps[block])
        found = self._bends[block]
        return found[value] == found[user.results[0]]

    def _read_now(self, operands: Sequence[ir.Value]) -> int:
        """The registers of operands that come as their op takes them: fragments, and a part of each
        stream."""
        fragments = self._fragments.intersection(operands)
        streams = self._streams.intersection(operands)
        return self._together(fragments) + sum(min(self._size(v), AHEAD) for v in streams)

    def _read(self, block: ir.Block) -> None:
        """Notes the steps of a block, and of those inside its ops, and of their runs which values
        they compute for themselves alone, and which they wait for with all their elements in
        registers: ptxas moves no load across their branches."""
        steps = self._steps[block] = []
        for each in runs_of(block):
            if isinstance(each, Run):
                steps += map(self._step, (*each.ahead, *each.ops))
                results = {op.results[0] for op in each.ops}
                inside = [r for r in results if all(_made(use.owner) in results for use in r.uses)]
                self._inside.update(inside)
                if each.branches:
                    given = (v for op in each.ops for v in op.operands if v not in results)
                    self._awaited.update(given)
            else:
                steps.append(self._step(each))

    def _step(self, op: ir.Operation) -> _Step:
        blocks = blocks_in(op)
        step = _step(op, self._nest(blocks) if blocks else None)
        self._makers.update((result, step) for result in step.results)
        self._note_source(step)
        return step

    def _note_source(self, step: _Step) -> None:
        """Notes whether an op loads, or does it to what was loaded, as `_loaded` and `_from_buffer`
        say."""
        if step.name == BufferLoadOp.OPERATION_NAME:
            self._from_buffer.update(step.results)
            # tcgen05.ld brings many registers at once.
            loads = not is_tensor_buffer(step.operands[0])
        elif step.name == LoadOp.OPERATION_NAME:
            loads = is_tile(step.results[0])
        else:
            if step.name in _CHEAP and not self._from_buffer.isdisjoint(step.operands):
                self._from_buffer.update(step.results)
            loads = _passes_on(step.op) and step.operands[0] in self._loaded
        if loads:
            self._loaded.update(step.results)

    def _nest(self, blocks: list[ir.Block]) -> _Nest:
        nest = _Nest(blocks, {}, set())
        for block in blocks:
            self._read(block)
            nest.own.update(block.arguments)
            for step in self._steps[block]:
                nest.reads.update(dict.fromkeys(step.operands))
                nest.own.update(step.results)
                if step.nest is not None:
                    nest.reads.update(step.nest.reads)
                    nest.own.update(step.nest.own)
        return nest

    def _maker(self, value: ir.Value) -> _Step | None:
        """The op that defines a value, None for a block's argument."""
        if value not in self._makers:
            op = defining_op(value)
            self._makers[value] = None if op is None else _step(op, None)
        return self._makers[value]

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
        maker = self._maker(value)
        if maker is None:
            return itself
        name, operands = maker.name, maker.operands
        if name in ("arith.constant", "tile.iota"):
            return frozenset()
        if value in self._fragments or value in self._streams:
            return frozenset()
        if name == WgmmaOp.OPERATION_NAME:  # reads its registers until it is waited for
            return itself | self._holding(filter(is_tiled, operands[:1]))
        if name in ("tensor.splat", "tile.broadcast"):
            return frozenset(self._holding(operands))
        if value not in self._inside and not is_tile(value):
            return itself
        is_computed = name.startswith(ELEMENTWISE)
        if value in self._inside or (is_computed and self._is_added_up(value)):
            return frozenset(self._holding(operands))
        if name not in _CHEAP:
            return itself
        parts = frozenset(self._holding(operands))
        return parts if self._together(parts) < self._size(value) else itself

    def _is_added_up(self, value: ir.Value) -> bool:
        """Whether a tile is computed element by element for the next op alone, a reduction, or one
        on the way to it: each thread adds up its elements as it computes them."""
        chain, found = [], False
        while value not in self._added:
            chain.append(value)
            use = only_use(value)
            if use is None or use.owner.operation.block != value.owner.operation.block:
                break
            user = use.owner.operation
            if is_of(user, ReduceOp, WarpReduceOp):
                found = len(user.operands) == 1
                break
            if not is_elementwise(user) or len(user.results) != 1:
                break
            value = user.results[0]
        else:
            found = self._added[value]
        self._added.update(dict.fromkeys(chain, found))
        return found

    def _is_stream(self, value: ir.Value) -> bool:
        """Whether a tile is loaded for one elementwise op of the same block, maybe converted, and
        no op between could show other threads a difference. ptxas then loads its elements as that
        op takes them."""
        if value not in self._loaded or value in self._apart or value in self._awaited:
            return False
        return is_tiled(value) and _goes_to_one_op(value)

    def _is_fragment(self, value: ir.Value) -> bool:
        """Whether a tile comes from a buffer, maybe by cheap ops, for matrix instructions of the
        same block. It is then loaded in front of them; where registers are short, a part in front
        of each."""
        if value not in self._from_buffer or not is_tiled(value):
            return False
        return self._goes_to_products(value)

    def _goes_to_products(self, value: ir.Value) -> bool:
        pending, seen = [value], {value}
        while pending:
            block = pending[-1].owner.operation.block
            for use in pending.pop().uses:
                user = use.owner
                if user.operation.block != block:
                    return self._is_lost(value)
                if is_of(user, MmaOp):
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


def _step(op: ir.Operation, nest: _Nest | None) -> _Step:
    return _Step(op, op.name, list(op.operands), list(op.results), nest)


def _made(user: ir.OpView) -> ir.Value | None:
    op = user.operation
    return op.results[0] if len(op.results) else None


def _passes_on(op: ir.Operation) -> bool:
    if is_of(op, BroadcastOp):  # no stream where an element is used again and again
        return registers_of(op.operands[0]) == registers_of(op.results[0])
    return op.name in _CASTS or is_of(op, *_ORDERS, ConvertLayoutOp)


def _goes_to_one_op(value: ir.Value) -> bool:
    use, here = only_use(value), value.owner.operation
    if use is None or use.owner.operation.block != here.block:
        return False
    user = use.owner.operation
    if _passes_on(user):
        return _goes_to_one_op(user.results[0])
    return is_elementwise(user) and all(map(_is_quiet, _between(here, user)))


def _between(first: ir.Operation, last: ir.Operation) -> Iterator[ir.Operation]:
    ops = iter(view.operation for view in first.block.operations)
    next(op for op in ops if op == first)
    return takewhile(lambda op: op != last, ops)


def _is_quiet(op: ir.Operation) -> bool:
    return stays_in_thread(op) or is_scalar(op) or is_of(op, *_ORDERS)
