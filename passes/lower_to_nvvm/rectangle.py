"""Where a rectangular tile lies in an array: each register's address, and whether it is inside."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Any

from mlir import ir

from tilec.hardware.layout import Layout
from tilec.messages.diagnostics import InternalError
from tilec.passes.lower_to_nvvm.access import storage_bits
from tilec.passes.lower_to_nvvm.state import Lowering
from tilec.passes.lower_to_nvvm.values import Array, moved_pointer, without_constant
from tilec.passes.rewriting.scalars import both, compare
from tilec.records import dataclass

FEW_STEPS = 4
"""Tests along a dimension that take no more registers, and instructions, one by one than from one
remainder (ptxas 13.5)."""
SHARED_BYTES = 4
"""Of accesses that have an address in common with others, but where nothing is tested: a stencil of
2023 x 351 bf16 by elements, 13 of them each, takes 6.1 us so for 5.1, with 48 registers for 32;
4020 x 2753 f16, where nothing is tested, 27.6 for 31.6. Diffusion of f32 by elements takes 2.24 for
2.60 and 1.87 for 2.23, stencils by vectors 7.8 for 8.0 and 2.12 for 2.26 (H200). Not in roles: an
address that lives longer is a register more, and one that loads spills with 48 (96 bytes)."""


@dataclass
class Rectangle:
    """The place of a tile in an array: addresses and bounds, per register.

    `never_negative`: per array dimension, whether its offset is known to be 0 or more;
    `is_inside`: whether the whole tile is known to lie in the array.
    """

    state: Lowering
    array: Array
    offsets: list[ir.Value]
    dims: tuple[int, ...]
    layout: Layout
    shape: tuple[int, ...]
    width: int
    contiguous: int | None
    whole_vectors: bool
    never_negative: tuple[bool, ...]
    is_inside: bool = False

    @cached_property
    def coordinates(self) -> tuple[tuple[int, ...], ...]:
        """The tile coordinates that each register adds to its thread's."""
        return self.layout.value_coordinates(len(self.shape))

    @cached_property
    def starts(self) -> list[ir.Value]:
        """The array index (index width) of this thread's register 0, per array dimension."""
        return self._starts(self.offsets)

    def _starts(self, offsets: Sequence[ir.Value]) -> list[ir.Value]:
        starts = list(offsets)
        at = self.state.thread_coordinates(self.layout, len(self.shape))
        for d, axis in enumerate(self.dims):
            step = self.state.to_index(at[d])
            starts[axis] = self.state.arith("addi", starts[axis], step)
        return starts

    @property
    def base(self) -> ir.Value:
        """Pointer to this thread's register 0."""
        more = self._beyond[1]
        return self.step(self.anchor, self.state.index_constant(more)) if more else self.anchor

    @cached_property
    def anchor(self) -> ir.Value:
        """Pointer to so many elements in front of this thread's register 0 as instructions add to
        their addresses by themselves: tiles that lie side by side have it in common."""
        return address(self.array, self._starts(self._beyond[0]), self.state)

    @cached_property
    def _beyond(self) -> tuple[list[ir.Value], int]:
        """The tile's offsets less what is added to those along neighbours, and how much that is."""
        offsets, total = list(self.offsets), 0
        bytes_ = self.width * storage_bits(self.array.element, self.state) // 8
        shares = (self.is_inside or bytes_ >= SHARED_BYTES) and not self.state.in_role
        for axis, stride in enumerate(self.array.static_strides):
            if stride == 1 and shares:
                offsets[axis], more = without_constant(offsets[axis])
                total += more
        return offsets, total

    def pointer(self, register: int) -> ir.Value:
        """Pointer to a register's element."""
        strides = [self.array.static_strides[axis] for axis in self.dims]
        at = self.coordinates[register]
        fixed = sum(n * s for n, s in zip(at, strides, strict=True) if s is not None)
        fixed += self._beyond[1]
        row = self._row(self._row_of(register))
        return self.step(row, self.state.index_constant(fixed)) if fixed else row

    def _row_of(self, register: int) -> tuple[int, ...]:
        """A register's coordinates, 0 where a step's bytes are known at compile time."""
        return tuple(
            0 if self.array.static_strides[axis] is not None else n
            for n, axis in zip(self.coordinates[register], self.dims, strict=True)
        )

    def _row(self, row: tuple[int, ...]) -> ir.Value:
        """Makes a pointer to a row, one addition from an earlier one (`_parents`): of n distances
        that a loop keeps in registers log2(n) remain, and as many additions are the longest
        chain."""
        if not any(row):
            return self.anchor
        if row not in self._rows:
            parent = self._parents[row]
            steps = tuple(n - m for n, m in zip(row, parent, strict=True))
            self._rows[row] = self.step(self._row(parent), self._distance(steps))
        return self._rows[row]

    def _distance(self, steps: tuple[int, ...]) -> ir.Value:
        """Elements between two rows."""
        total = None
        for n, axis in zip(steps, self.dims, strict=True):
            if n:
                term = self.state.arith("muli", self.array.strides[axis], n)
                total = term if total is None else self.state.arith("addi", total, term)
        if total is None:
            raise InternalError("two rows of a tile have the same coordinates")
        return total

    @cached_property
    def _parents(self) -> dict[tuple[int, ...], tuple[int, ...]]:
        """The row a row's pointer is made from: of row number n, n without its lowest bit."""
        rows = sorted({self._row_of(register) for register in range(self.layout.num_values)})
        return {row: rows[number & (number - 1)] for number, row in enumerate(rows) if number}

    @cached_property
    def _rows(self) -> dict[tuple[int, ...], ir.Value]:
        return {}

    def step(self, pointer: ir.Value, elements: ir.Value) -> ir.Value:
        """A pointer so many elements (index width) further on."""
        return _step(self.array, pointer, elements, self.state)

    @cached_property
    def _unbounded(self) -> Collection[int]:
        return range(len(self.offsets)) if self.is_inside else self.array.unbounded

    @cached_property
    def outside_dims(self) -> ir.Value | None:
        """Bounds of the array dimensions the tile does not run along."""
        flag = None
        for axis in range(len(self.offsets)):
            if axis not in self.dims and axis not in self._unbounded:
                flag = both(flag, compare("ult", self.offsets[axis], self.array.sizes[axis]))
        return flag

    def holds_tile(self) -> ir.Value:
        """Whether the whole tile lies in the array (i1), the same for all threads."""
        flag = self.outside_dims
        for axis, size in zip(self.dims, self.shape, strict=True):
            start, end = self.offsets[axis], self.array.sizes[axis]
            left = self.state.arith("subi", end, start)
            flag = both(flag, compare("ult", start, end))
            flag = both(flag, compare("ule", self.state.index_constant(size), left))
        if flag is None:
            raise InternalError("a tile without dimensions")
        return flag

    def inside(self, register: int, also: ir.Value | None = None) -> ir.Value | None:
        """Whether a register's element lies in the array and the tile, and `also` (i1) holds; None
        where certain.

        Unsigned comparison: a negative index is a huge one. Registers share the conjunction as far
        as they agree.
        """
        flag, agreed = both(also, self.outside_dims), (also,)
        for d in self._steadiest_dims:
            if self.dims[d] in self._unbounded:
                continue
            agreed = (*agreed, d, self.coordinates[register][d])
            if agreed not in self._tests:
                inside = self._inside(d, self.dims[d], self.coordinates[register][d])
                self._tests[agreed] = both(flag, inside)
            flag = self._tests[agreed]
        return both(flag, self._valid[register])

    @cached_property
    def _steadiest_dims(self) -> list[int]:
        """The tile's dimensions, those along which a thread holds few vectors first."""
        starts = self.coordinates[:: self.width]
        return sorted(range(len(self.dims)), key=lambda d: len({at[d] for at in starts}))

    def valid(self, register: int) -> ir.Value | None:
        """Whether a register lies in the tile (i1); None where certain."""
        return self._valid[register]

    @cached_property
    def _valid(self) -> list[ir.Value | None]:
        return self.state.valid(self.layout, self.shape)

    def _inside(self, d: int, axis: int, steps: int) -> ir.Value:
        key = (d, steps)
        if key not in self._tests:
            step = self.state.index_constant(steps)
            if self.never_negative[axis] and self._steps_along[d] > FEW_STEPS:
                self._tests[key] = compare("sgt", self._left(axis), step)
            else:
                at = self.starts[axis]
                at = self.state.arith("addi", at, step) if steps else at
                self._tests[key] = compare("ult", at, self.array.sizes[axis])
        return self._tests[key]

    def _left(self, axis: int) -> ir.Value:
        """Elements from this thread's first to the array's end: one register for any number of
        tests, where a loop would keep the index of each. Does not wrap: both are 0 or more."""
        if axis not in self._remainders:
            left = self.state.arith("subi", self.array.sizes[axis], self.starts[axis])
            self._remainders[axis] = left
        return self._remainders[axis]

    @cached_property
    def _remainders(self) -> dict[int, ir.Value]:
        return {}

    @cached_property
    def _steps_along(self) -> list[int]:
        return [len({at[d] for at in self.coordinates}) for d in range(len(self.dims))]

    @cached_property
    def _tests(self) -> dict[tuple[Any, ...], ir.Value]:
        return {}

    def enter_branch(self) -> None:
        """Forgets values that only the code before may use: of another branch, for instance."""
        self._tests.clear()
        self._rows.clear()
        self._remainders.clear()

    def all_inside(self) -> ir.Value | None:
        """Whether every register of this thread lies inside (i1): first and last along each
        dimension."""
        flag = self.outside_dims
        for valid in self._valid:
            flag = both(flag, valid)
        for d, axis in enumerate(self.dims):
            if axis in self._unbounded:
                continue
            steps = {at[d] for at in self.coordinates}
            flag = both(flag, self._inside(d, axis, 0))
            flag = both(flag, self._inside(d, axis, max(steps)))
        return flag


def address(array: Array, indices: Sequence[ir.Value], state: Lowering) -> ir.Value:
    """Pointer to the element of an array at `indices` (index width)."""
    total = None
    for axis, index in enumerate(indices):
        term = index
        if array.static_strides[axis] != 1:
            term = state.arith("muli", index, array.strides[axis])
        total = term if total is None else state.arith("addi", total, term)
    return array.pointer if total is None else _step(array, array.pointer, total, state)


def _step(array: Array, pointer: ir.Value, elements: ir.Value, state: Lowering) -> ir.Value:
    return moved_pointer(pointer, elements, storage_bits(array.element, state))
