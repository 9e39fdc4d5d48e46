"""Lowers tile.gather and tile.scatter, and gives atomics (`atomics`) their addresses and guards.

An element is touched where its mask is true and every index lies inside the array; the comparison
is unsigned, so a negative index is a huge one. Along an unbounded dimension nothing is compared.
What writes leaves out phantoms and second copies.
Elements of a run (`index_runs`) that neighbour each other in registers, too, share one access, and
the first's mask and indices speak for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from math import gcd

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.def_use import defining_op
from tilec.dialects.gpu_tile.types import layout_of
from tilec.dialects.types import element, shape
from tilec.passes.layouts.runs import register_run
from tilec.passes.lower_to_nvvm.access import (
    load_words,
    pack,
    storage_bits,
    store_words,
    unpack,
    word_bits,
)
from tilec.passes.lower_to_nvvm.state import Lowering, Registers
from tilec.passes.lower_to_nvvm.values import Array, moved_pointer, without_constant
from tilec.passes.rewriting.scalars import binary, both, compare, resized
from tilec.records import dataclass


@dataclass(frozen=True)
class Elements:
    """The array elements that index tiles name, one a register."""

    state: Lowering
    array: Array
    mask: ir.Value
    indices: Sequence[ir.Value]

    @property
    def bits(self) -> int:
        """Bits an element takes in memory."""
        return storage_bits(self.array.element, self.state)

    def places(self, *, writes: bool, width: int = 1) -> Iterator[tuple[ir.Value, ir.Value | None]]:
        """Gives, for each `width` registers, the first's pointer, and whether they may be touched
        (i1; None: certainly)."""
        for indices, mask, own in self._runs(width, writes=writes):
            yield self._place(indices, both(own, mask))

    def sources(self, width: int) -> Iterator[tuple[ir.Value, ir.Value | None, ir.Value | None]]:
        """Gives, for each `width` registers, the first's pointer, whether they may be read there,
        and whether they are this thread's to fill in (i1; None: certainly)."""
        for indices, mask, own in self._runs(width, writes=True):
            yield (*self._place(indices, mask), own)

    def _runs(
        self, width: int, *, writes: bool
    ) -> Iterator[tuple[list[ir.Value], ir.Value, ir.Value | None]]:
        """Gives, for each `width` registers, the first's indices and mask, and whether it holds an
        element of the tile; with `writes`, one that no other thread has before."""
        state, layout = self.state, layout_of(self.mask)
        valid = state.valid(layout, shape(self.mask))
        mine = state.first_copy(layout) if writes else None
        columns = [state.registers(index) for index in self.indices]
        masks = state.registers(self.mask)
        for number in range(0, len(masks), width):
            own = both(mine, valid[number])
            yield [column[number] for column in columns], masks[number], own

    def _place(
        self, indices: Sequence[ir.Value], guard: ir.Value | None
    ) -> tuple[ir.Value, ir.Value | None]:
        state, block = self.state, ir.InsertionPoint.current.block
        still: list[ir.Value] = []
        moving: list[ir.Value] = []
        beyond = 0
        for axis, index in enumerate(indices):
            if axis not in self.array.unbounded:
                guard = both(guard, _is_inside(index, self.array.sizes[axis], state))
            index = resized(index, state.index)
            unit = self.array.static_strides[axis] == 1
            if unit:
                index, more = without_constant(index)
                beyond += more
            for part in _addends(index, block):
                term = part if unit else state.arith("muli", part, self.array.strides[axis])
                (moving if _block_of(part) == block else still).append(term)
        pointer = self.array.pointer
        if still or moving:
            sums = [reduce(_sum, terms) for terms in (still, moving) if terms]
            pointer = moved_pointer(pointer, reduce(_sum, sums), self.bits)
        return moved_pointer(pointer, beyond, self.bits) if beyond else pointer, guard


def _addends(index: ir.Value, block: ir.Block) -> list[ir.Value]:
    """What is added up in the body of a loop to give an index; elsewhere the index.

    So what of an address stays the same is computed in front of the loop, and what does not, once
    for all elements, where their numbers differ by what stays.
    """
    if block.owner.name != "scf.for" or _block_of(index) != block:
        return [index]
    op = defining_op(index, "arith.addi")
    if op is None:
        return [index]
    return [part for operand in op.operands for part in _addends(operand, block)]


def _block_of(value: ir.Value) -> ir.Block:
    return value.owner if isinstance(value.owner, ir.Block) else value.owner.operation.block


def _sum(left: ir.Value, right: ir.Value) -> ir.Value:
    return binary("arith.addi", left, right)


def _is_inside(index: ir.Value, size: ir.Value, state: Lowering) -> ir.Value:
    """Compares in the wider of the two types: narrowing a 64-bit index first could bring it
    inside."""
    wide = index.type if index.type.width > state.index.width else state.index
    return compare("ult", resized(index, wide), resized(size, wide))


def _width(op: tile.GatherOp | tile.ScatterOp) -> int:
    """Elements an access moves: of a run, as many as lie in neighbouring registers."""
    dim, width = op.options.get("run", (0, 1))
    return gcd(width, register_run(layout_of(op.mask), dim))


def _report(op: tile.GatherOp | tile.ScatterOp, bytes_: int, state: Lowering) -> None:
    kind = "loads" if isinstance(op, tile.GatherOp) else "stores"
    why = "neighbours in memory and in registers" if _width(op) > 1 else "an element each"
    state.context.report.add("memory access", op.operation, f"{bytes_}-byte {kind}", why)


def lower_gather(op: tile.GatherOp, state: Lowering) -> None:
    """Lowers tile.gather to a guarded load for each run; every copy of an element loads for
    itself."""
    elements, width = Elements(state, state.values[op.src], op.mask, op.indices), _width(op)
    kind, hint = element(op.result), op.options.get("cache")
    word, count = word_bits(elements.bits, width)
    registers: Registers = []
    others = state.registers(op.other)
    for pointer, guard in elements.places(writes=False, width=width):
        padding = pack(others[len(registers) : len(registers) + width], kind, state)
        words = load_words(pointer, word, count, guard, padding, hint)
        registers += unpack(words, kind, width, state)
    state.values[op.result] = registers
    _report(op, width * elements.bits // 8, state)


def lower_scatter(op: tile.ScatterOp, state: Lowering) -> None:
    """Lowers tile.scatter to a guarded store for each run."""
    elements, width = Elements(state, state.values[op.dst], op.mask, op.indices), _width(op)
    kind, hint = element(op.value), op.options.get("cache")
    values = state.registers(op.value)
    for number, (pointer, guard) in enumerate(elements.places(writes=True, width=width)):
        words = pack(values[number * width : (number + 1) * width], kind, state)
        store_words(pointer, words, guard, hint)
    _report(op, width * elements.bits // 8, state)


RULES = {tile.GatherOp: lower_gather, tile.ScatterOp: lower_scatter}
