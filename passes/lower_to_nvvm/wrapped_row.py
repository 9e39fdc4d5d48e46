"""Lowers accesses to wrapped rows (pass wrap-rows) by whole aligned vectors, wherever rows begin.

The tile's first element lies a few columns in front of its row, at an aligned address if the pass
has its way; what is in front of column 0 are the tile's last columns. Addresses are looked at when
this runs, alike in all threads: where vectors turn out not to be aligned, because an array's rows
begin elsewhere than those that the shift is taken from, all goes element by element. Otherwise

1. a vector that lies wholly inside the row is one access under a predicate;
2. threads with a vector that the row's end cuts, or that has elements of the tile's end, take a
   branch, and in it one more for each such vector, which goes element by element.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, partial, reduce
from typing import Any

from mlir import ir

from tilec.dialects import tile
from tilec.hardware.sizes import SECTOR_BYTES
from tilec.messages.diagnostics import InternalError
from tilec.passes.lower_to_nvvm.access import (
    inline_asm,
    load_words,
    pack,
    storage_bits,
    store_words,
    unpack,
    word_bits,
)
from tilec.passes.lower_to_nvvm.rectangle import Rectangle, address
from tilec.passes.lower_to_nvvm.state import Lowering, Registers
from tilec.passes.lower_to_nvvm.values import Array
from tilec.passes.rewriting.control import either
from tilec.passes.rewriting.scalars import both, compare, create, resized, select
from tilec.records import dataclass

Options = Mapping[str, Any]
_NOWHERE = -(1 << 30)
"""A column in front of all that a tile may have."""


def lower_misalignment(op: tile.MisalignmentOp, state: Lowering) -> None:
    """Lowers tile.misalignment."""
    array = state.values[op.src]
    indices = [state.values[offset] for offset in op.offsets]
    state.values[op.result] = _past(array, indices, op.bytes, state)


def _past(array: Array, indices: list[ir.Value], bytes_: int, state: Lowering) -> ir.Value:
    """Elements (index width) from the last multiple of `bytes_` to the element at `indices`."""
    number = create(
        "llvm.ptrtoint", [address(array, indices, state)], ir.IntegerType.get_signless(64)
    )
    number = resized(number, state.index)
    low = state.arith("andi", number, bytes_ - 1)
    size = storage_bits(array.element, state) // 8
    return state.arith("shrui", low, size.bit_length() - 1)


@dataclass
class _Row:
    """The vectors of a thread: `place.width` neighbours each, in neighbouring registers. `mine`:
    whether the thread accesses its own (i1), None where certain. `walked`: the part of the row
    begins at a multiple of so many columns, or at 0 where it is 0.

    Columns count from where the part begins: those in front are the tile's last."""

    place: Rectangle
    state: Lowering
    mine: ir.Value | None = None
    walked: int = 0

    def __post_init__(self) -> None:
        # Made here, so that all branches may use them.
        _ = self.begin, self.size, self.place.anchor

    @cached_property
    def dim(self) -> int:
        """The tile dimension along the row."""
        if self.place.contiguous is None:
            raise InternalError("a wrapped tile whose elements are no neighbours in memory")
        return self.place.contiguous

    @cached_property
    def bits(self) -> int:
        """The bits of an element in memory."""
        return storage_bits(self.place.array.element, self.state)

    @cached_property
    def size(self) -> ir.Value:
        """Columns of the array from the part on, none where the row itself lies outside."""
        state, none = self.state, self.state.index_constant(0)
        size = self.place.array.sizes[self.place.dims[self.dim]]
        if self.walked:
            size = state.arith("maxsi", state.arith("subi", size, self._part), none)
        return select(self.place.outside_dims, size, none)

    @cached_property
    def begin(self) -> ir.Value:
        """The column of this thread's register 0; may be negative."""
        return self._counted(self.place.starts[self.place.dims[self.dim]])

    @cached_property
    def _part(self) -> ir.Value:
        """The column of the row at which its part begins: the next multiple of `walked`."""
        state, start = self.state, self.place.offsets[self.place.dims[self.dim]]
        up = state.arith("addi", start, self.walked - 1)
        return state.arith("andi", up, -self.walked)

    def _counted(self, column: ir.Value) -> ir.Value:
        """A column of the row as one of its part."""
        return self.state.arith("subi", column, self._part) if self.walked else column

    @cached_property
    def is_aligned(self) -> ir.Value:
        """Whether every vector's address is a multiple of its bytes (i1), alike in all threads."""
        bytes_ = self.place.width * self.bits // 8
        past = _past(self.place.array, self.place.offsets, bytes_, self.state)
        return compare("eq", past, self.state.index_constant(0))

    @cached_property
    def vectors(self) -> list[tuple[int, int]]:
        """Gives, for each vector, its first register and the columns that it adds to its
        thread's."""
        firsts = range(0, self.place.layout.num_values, self.place.width)
        return [(first, self.place.coordinates[first][self.dim]) for first in firsts]

    @cached_property
    def room(self) -> ir.Value:
        """The columns, from 0 on, at which a whole vector fits into the row."""
        state = self.state
        left = state.arith("subi", self.size, self.place.width - 1)
        return state.arith("maxsi", left, 0)

    @cached_property
    def tail(self) -> ir.Value:
        """The first column of the vector that the row's end cuts; in front of all if none is."""
        state = self.state
        start = self._counted(self.place.offsets[self.place.dims[self.dim]])
        columns = state.arith("subi", self.size, start)
        rest = state.arith("andi", columns, self.place.width - 1)
        column = state.arith("subi", self.size, rest)
        some = compare("ne", rest, state.index_constant(0))
        return select(some, column, state.index_constant(_NOWHERE))

    def whole(self) -> list[ir.Value]:
        """Whether each vector lies wholly inside the row (i1)."""
        return [
            self.owned(first, compare("ult", self._column(columns), self.room))
            for first, columns in self.vectors
        ]

    def cut(self) -> list[ir.Value]:
        """Whether each vector lies in the row in parts (i1): the row's end cuts it, or some of its
        elements are the tile's last."""
        flags = []
        for first, columns in self.vectors:
            flag = compare("eq", self._column(columns), self.tail)
            if columns < SECTOR_BYTES:
                before = compare("slt", self._column(columns), self.state.index_constant(0))
                flag = self.state.arith("ori", flag, before)
            flags.append(self.owned(first, flag))
        return flags

    def elements(self, columns: int) -> Iterator[tuple[ir.Value, ir.Value]]:
        """Gives a pointer to each element of a vector `columns` further on than this thread's
        first, and whether it lies in the row (i1)."""
        state, none = self.state, self.state.index_constant(0)
        for number in range(columns, columns + self.place.width):
            column, step = self._column(number), state.index_constant(number)
            if number < SECTOR_BYTES:
                size = state.index_constant(self.place.shape[self.dim])
                around = select(compare("slt", column, none), size, none)
                column = state.arith("addi", column, around)
                step = state.arith("addi", step, around)
            yield self.place.step(self.place.base, step), compare("ult", column, self.size)

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Hides the row's begin and base from LLVM in a block that few threads run. It would
        compute what it finds in the blocks of other accesses, too, once in front of all, a register
        an element."""
        known = self.begin, self.place.anchor
        self.begin, self.place.anchor = map(_opaque, known)
        yield
        self.begin, self.place.anchor = known

    def _column(self, columns: int) -> ir.Value:
        return self.state.arith("addi", self.begin, columns)

    def owned(self, first: int, flag: ir.Value) -> ir.Value:
        """A flag (i1) and whether the vector lies in the tile and is this thread's to access."""
        also = both(self.mine, self.place.valid(first))
        return flag if also is None else self.state.arith("andi", flag, also)


def _opaque(value: ir.Value) -> ir.Value:
    """The same number or pointer, of which LLVM does not know that it is."""
    wide = str(value.type) != "i32"
    text, letter = ("mov.b64 $0, $1;", "l") if wide else ("mov.b32 $0, $1;", "r")
    return inline_asm(text, [f"={letter}", letter], [value], [value.type])[0]


def load_wrapped(
    place: Rectangle, padding: tuple[ir.Value, ir.Value], options: Options, state: Lowering
) -> Registers:
    """The registers of a wrapped tile, by the load's options. `padding`: as an element's bits, and
    as a word's."""
    row = _Row(place, state, walked=options.get("walked", 0))
    element, width, hint = place.array.element, place.width, options.get("cache")
    word, count = word_bits(row.bits, width)

    def one_by_one(columns: int) -> Registers:
        elements: Registers = []
        for pointer, inside in row.elements(columns):
            bits = load_words(pointer, row.bits, 1, inside, [padding[0]], hint)
            elements += unpack(bits, element, 1, state)
        return pack(elements, element, state)

    def scattered() -> Registers:
        with row.apart():
            return [word for _, columns in row.vectors for word in one_by_one(columns)]

    def whole() -> Registers:
        loaded: Registers = []
        for (first, _), inside in zip(row.vectors, row.whole(), strict=True):
            pads = [padding[1]] * count
            loaded += load_words(place.pointer(first), word, count, inside, pads, hint)
        cut = row.cut()

        def mended() -> Registers:
            words: Registers = []
            for number, (_, columns) in enumerate(row.vectors):
                known = loaded[number * count : (number + 1) * count]
                with row.apart():
                    words += either(cut[number], partial(one_by_one, columns), lambda k=known: k)
            return words

        return either(reduce(partial(state.arith, "ori"), cut), mended, lambda: loaded)

    words = either(row.is_aligned, whole, scattered)
    registers: Registers = []
    for at in range(0, len(words), count):
        registers += unpack(words[at : at + count], element, width, state)
    return registers


def store_wrapped(
    place: Rectangle, registers: Registers, mine: ir.Value | None, options: Options, state: Lowering
) -> None:
    """Stores a wrapped tile where `mine` (i1) holds, by the store's options."""
    row = _Row(place, state, mine, options.get("walked", 0))
    element, width, hint = place.array.element, place.width, options.get("cache")

    def one_by_one(first: int, columns: int) -> Registers:
        held = registers[first : first + width]
        for register, (pointer, inside) in zip(held, row.elements(columns), strict=True):
            guard = row.owned(first, inside)
            store_words(pointer, pack([register], element, state), guard, hint)
        return []

    def scattered() -> Registers:
        with row.apart():
            for first, columns in row.vectors:
                one_by_one(first, columns)
        return []

    def whole() -> Registers:
        for (first, _), inside in zip(row.vectors, row.whole(), strict=True):
            words = pack(registers[first : first + width], element, state)
            store_words(place.pointer(first), words, inside, hint)
        cut = row.cut()

        def mended() -> Registers:
            for number, (first, columns) in enumerate(row.vectors):
                with row.apart():
                    either(cut[number], partial(one_by_one, first, columns), list)
            return []

        return either(reduce(partial(state.arith, "ori"), cut), mended, list)

    either(row.is_aligned, whole, scattered)


RULES = {tile.MisalignmentOp: lower_misalignment}
