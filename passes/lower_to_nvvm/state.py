"""What a lowering rule works with: the value map, constants, and each thread's coordinates.

A tile value becomes the list of its registers (scalars, in the order of its layout's values), a
pending one those of the tensor cores (f16 in pairs); an array becomes an `Array`; a buffer becomes
a `Buffer`; a scalar stays one value, `index` as an integer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mlir import ir

from tilec.dialects.gpu_tile.types import (
    is_pending,
    layout_of,
    tile_of,
)
from tilec.dialects.types import bit_width, element, is_index, is_tile
from tilec.executable.kernel import TensorMap
from tilec.hardware.layout import Layout
from tilec.hardware.mma_instruction import WARPGROUP_THREADS
from tilec.hardware.sizes import WARP_SIZE
from tilec.messages.diagnostics import InternalError
from tilec.passes.analysis.divisibility import Divisibility
from tilec.passes.contract import PassContext
from tilec.passes.rewriting.scalars import binary, both, compare, constant, create, resized

Registers = list[ir.Value]


class Lowering:
    """State of lowering one kernel. Rules create ops at the current insertion point."""

    def __init__(
        self,
        context: PassContext,
        divisibility: Divisibility,
        prologue: ir.Operation,
        total_threads: int,
    ) -> None:
        self.context = context
        self.divisibility = divisibility
        self.total_threads = total_threads
        """Threads of the CTA, or of one of its programs, roles' included."""
        self.lower_block: Callable[[ir.Block, Lowering], None] = _no_driver
        self.values: dict[ir.Value, Any] = {}
        self.vectors: dict[ir.Value, Any] = {}
        """Of loaded tiles: words that each thread has of their array, by their place in it."""
        self.piece = 0
        """Which of a whole tile's registers `values` has first, in a run lowered piece by piece."""
        self.prologue = ir.InsertionPoint(prologue)
        """Before this everything dominates the whole body (inside a role: the role's); constants
        and thread coordinates go here."""
        self.entry = self.prologue
        """The kernel's own, where memory on the stack is made."""
        self.shared: ir.Value | None = None
        self.tensor_address: int | None = None
        """Where in shared memory the address of the CTA's tensor memory is (bytes)."""
        self.tensor_ctas = 1
        """CTAs that multiply together, in all products of a kernel (PTX ISA 9.0, ".cta_group")."""
        self.tensor_base: ir.Value | None = None
        """That address (i32), once it was read."""
        self.grid: tuple[ir.Value, ...] | None = None
        """The author's grid (i32 each), where it is a parameter of a persistent kernel."""
        self.dynamic = False
        """Whether the launch has a CTA for each program of a persistent kernel."""
        self.cluster: tuple[int, ...] = (1, 1, 1)
        """Programs of a cluster along each axis of the grid."""
        self.stripes, self.ctas_per_program = 1, 1
        """CTAs that run each program together, and all."""
        self.programs_per_cta = 1
        self.lanes = WARP_SIZE
        """Programs that a CTA runs side by side."""
        self.program_bytes = 0
        """Of shared memory, from the part of one of those to the part of the next."""
        self.tensor_maps: dict[TensorMap, ir.Value] = {}
        """The parameter of each tensor map, as a generic pointer."""
        self._constants: dict[tuple[str, Any], ir.Value] = {}
        self._coordinates: dict[tuple[Layout, int, bool], tuple[ir.Value, ...]] = {}
        self._first_copy: dict[Layout, ir.Value | None] = {}
        self._types: dict[ir.Type, ir.Type] = {}
        self._numbers: dict[str, ir.Value] = {}
        self._wholes: dict[tuple[ir.Value, ...], ir.Value] = {}
        self.in_role, self.first_thread = False, 0
        """Number of the first thread that runs what is lowered now: a role's, else the CTA's."""
        self.num_threads = total_threads
        """How many threads run it."""
        self.alone = False
        """Whether one thread runs it alone, its neighbours passing by."""
        self.certain: Sequence[ir.Value] | None = None
        """In a combining region: what is true where its values are elements, if that is known."""
        sizes = (1, 32, context.index_bits)
        self.i1, self.i32, self.index = map(ir.IntegerType.get_signless, sizes)

    # Types and values ------------------------------------------------------------------------

    def scalar_type(self, type_: ir.Type) -> ir.Type:
        """The lowered type of a scalar: index becomes an integer."""
        if type_ not in self._types:
            self._types[type_] = self.index if is_index(type_) else type_
        return self._types[type_]

    def register_types(self, value: ir.Value) -> list[ir.Type]:
        """The lowered types of a scalar or tile value, one per register."""
        if is_tile(value):
            return [self.scalar_type(element(value))] * layout_of(value).num_values
        if is_pending(value):
            tile = tile_of(value)
            count = layout_of(tile).num_values
            halves = bit_width(element(tile)) == 16
            return [self.i32] * (count // 2) if halves else [element(tile)] * count
        return [self.scalar_type(value.type)]

    def registers(self, value: ir.Value) -> Registers:
        """The registers of a tile, or a scalar as a list of one."""
        lowered = self.values[value]
        return lowered if isinstance(lowered, list) else [lowered]

    def flatten(self, values: Iterable[ir.Value]) -> Registers:
        """The registers of several values, in order."""
        return [register for value in values for register in self.registers(value)]

    def bind(self, values: Iterable[ir.Value], registers: Sequence[ir.Value]) -> None:
        """The inverse of `flatten`: gives each value its own of `registers`."""
        at = 0
        for value in values:
            if is_tile(value) or is_pending(value):
                count = len(self.register_types(value))
                self.values[value] = list(registers[at : at + count])
                at += count
            else:
                self.values[value] = registers[at]
                at += 1

    def note_whole(self, members: Sequence[ir.Value], whole: ir.Value) -> None:
        """Notes that these values are a word or a vector taken apart: its elements, the lowest bits
        first."""
        self._wholes[tuple(members)] = whole

    def whole(self, members: Sequence[ir.Value]) -> ir.Value | None:
        """The word or vector that values have been taken out of; None where they are no whole
        one."""
        return self._wholes.get(tuple(members))

    # Constants and arithmetic ----------------------------------------------------------------

    def constant(self, type_: ir.Type, value: Any) -> ir.Value:
        """A scalar constant (a Python number or a typed attribute), made once in the prologue."""
        # Numbers by value, what else there is as text: 0.0 equals -0.0, a NaN not even itself.
        key = (type_, value if isinstance(value, int) else str(value))
        if key not in self._constants:
            with self.prologue, ir.Location.unknown():
                self._constants[key] = constant(type_, value)
        return self._constants[key]

    def i32_constant(self, value: int) -> ir.Value:
        """An i32 constant."""
        return self.constant(self.i32, value)

    def index_constant(self, value: int) -> ir.Value:
        """A constant of the index width."""
        return self.constant(self.index, value)

    def arith(self, name: str, lhs: ir.Value, rhs: ir.Value | int) -> ir.Value:
        """The `arith` op of this name of two integers of one type, whose type the result has."""
        if isinstance(rhs, int):
            rhs = self.constant(lhs.type, rhs)
        return create(f"arith.{name}", [lhs, rhs], lhs.type)

    def plus(self, value: ir.Value, step: int) -> ir.Value:
        """An integer and so much more: itself where that is nothing."""
        return self.arith("addi", value, step) if step else value

    def special(self, register: str) -> ir.Value:
        """A special register of PTX, i32."""
        return create(f"nvvm.read.ptx.sreg.{register}", [], self.i32)

    def to_index(self, value: ir.Value) -> ir.Value:
        """An i32 as an index-width integer (signed)."""
        return resized(value, self.index)

    # Threads and layouts ---------------------------------------------------------------------

    @contextmanager
    def part(
        self, marker: ir.Operation, first_thread: int, num_threads: int, *, alone: bool
    ) -> Iterator[None]:
        """Lowers what is inside for a role: its threads, counted from 0, run it, and what they have
        in common goes before `marker`."""
        outer = {name: getattr(self, name) for name in _PARTS}
        self.prologue = ir.InsertionPoint(marker)
        self._constants = dict(self._constants)
        self._coordinates, self._first_copy, self._numbers = {}, {}, {}
        self.first_thread, self.num_threads = first_thread, num_threads
        self.in_role, self.alone = True, alone
        try:
            yield
        finally:
            for name, value in outer.items():
                setattr(self, name, value)

    def _number(self, name: str, compute: Callable[[], ir.Value]) -> ir.Value:
        """A number of this thread, computed once in the prologue."""
        if name not in self._numbers:
            with self.prologue, ir.Location.unknown():
                self._numbers[name] = compute()
        return self._numbers[name]

    def thread(self) -> ir.Value:
        """This thread's number in the CTA, or in its role, i32."""

        def compute() -> ir.Value:
            number = self.special("tid.x")
            if self.programs_per_cta > 1:
                return self.arith("andi", number, self.total_threads - 1)
            if not self.first_thread:
                return number
            return self.arith("subi", number, self.first_thread)

        return self._number("thread", compute)

    def program_in_cta(self) -> ir.Value:
        """Which of the programs of the CTA this thread works for, i32; the same for all lanes, as
        ptxas must know, but where they work for several."""

        def compute() -> ir.Value:
            number = self.special("tid.x")
            if self.lanes < WARP_SIZE:
                return self.arith("shrui", number, self.lanes.bit_length() - 1)
            return self._group(number, self.total_threads)

        return self._number("program in CTA", compute)

    def members(self) -> ir.Value:
        """The lanes of this warp that work for this thread's program, a bit each (i32)."""
        if self.lanes == WARP_SIZE:
            return self.i32_constant(-1)

        def compute() -> ir.Value:
            number = self.special("tid.x")
            first = self.arith("andi", number, WARP_SIZE - self.lanes)
            return binary("arith.shli", self.i32_constant((1 << self.lanes) - 1), first)

        return self._number("members", compute)

    def warp(self) -> ir.Value:
        """This thread's warp in the CTA or role, i32, the same for all lanes as ptxas must know."""
        return self._number(
            "warp", lambda: self._group(self.thread(), self.context.target.warp_size)
        )

    def warpgroup(self) -> ir.Value:
        """This thread's warpgroup in the CTA or role, i32, like `warp`."""
        return self._number("warpgroup", lambda: self._group(self.thread(), WARPGROUP_THREADS))

    def _group(self, thread: ir.Value, threads: int) -> ir.Value:
        """The number of this group of so many threads, read from lane 0: all lanes run this
        together."""
        number = self.arith("shrui", thread, threads.bit_length() - 1)
        operands = [self.i32_constant(-1), number, self.i32_constant(0), self.i32_constant(31)]
        kind = ir.Attribute.parse("#nvvm<shfl_kind idx>")
        return create("nvvm.shfl.sync", operands, self.i32, kind=kind)

    def single_thread(self) -> ir.Value | None:
        """Whether this is the one thread that issues what must be issued once (i1): a role's or the
        CTA's first, of a role of one warp the one it elects. None where only that one runs here.

        Behind `elect.sync` ptxas knows that a warp issues together and keeps what addresses need in
        uniform registers; a thread compared by number costs a tcgen05.mma a dozen instructions.
        """
        if self.alone:
            return None
        if self.in_role and self.num_threads == self.context.target.warp_size:
            return self.elected()
        return self._number("single", lambda: compare("eq", self.thread(), self.i32_constant(0)))

    def elected(self) -> ir.Value | None:
        """Whether this is the thread that its warp elects (i1), always the same one; None where one
        thread runs alone."""
        if self.alone:
            return None
        return self._number("elected", lambda: create("nvvm.elect.sync", [], self.i1))

    def thread_coordinates(
        self, layout: Layout, rank: int, *, first_lane: bool = False
    ) -> tuple[ir.Value, ...]:
        """Coordinates (i32) of this thread's register 0, computed once in the prologue.

        `first_lane`: those of the first thread of its warp, the same for all lanes as ptxas must
        know."""
        key = (layout, rank, first_lane)
        if key not in self._coordinates:
            with self.prologue, ir.Location.unknown():
                thread = self._first_of_warp() if first_lane else self.thread()
                self._coordinates[key] = self._compute_coordinates(layout, rank, thread)
        return self._coordinates[key]

    def _first_of_warp(self) -> ir.Value:
        return self.arith("shli", self.warp(), self.context.target.warp_size.bit_length() - 1)

    def _compute_coordinates(
        self, layout: Layout, rank: int, thread: ir.Value
    ) -> tuple[ir.Value, ...]:
        sums: list[ir.Value | None] = [None] * rank
        below = 1
        for mode in layout.threads:
            if mode.stride:
                term = self._digit(thread, below, mode.size)
                term = self.arith("muli", term, mode.stride)
                known = sums[mode.dim]
                sums[mode.dim] = term if known is None else self.arith("addi", known, term)
            below *= mode.size
        return tuple(self.i32_constant(0) if s is None else s for s in sums)

    def _digit(self, digit: ir.Value, below: int, size: int) -> ir.Value:
        """Gives (digit / below) % size; both are powers of two, but for the size of the slowest."""
        if below > 1:
            digit = self.arith("shrui", digit, below.bit_length() - 1)
        if below * size < self.num_threads:
            if size & (size - 1):
                return self.arith("remui", digit, size)
            digit = self.arith("andi", digit, size - 1)
        return digit

    def first_copy(self, layout: Layout) -> ir.Value | None:
        """Whether this thread holds the first of several copies (i1); None where all are first."""
        if layout not in self._first_copy:
            with self.prologue, ir.Location.unknown():
                self._first_copy[layout] = self._compute_first_copy(layout)
        return self._first_copy[layout]

    def _compute_first_copy(self, layout: Layout) -> ir.Value | None:
        bits, below = 0, 1
        for mode in layout.threads:
            if not mode.stride:
                bits |= ((1 << (mode.size - 1).bit_length()) - 1) * below
            below *= mode.size
        # Threads past the layout's last one hold copies of the first ones.
        used = (1 << (below - 1).bit_length()) - 1
        bits |= ((1 << (self.num_threads - 1).bit_length()) - 1) & ~used
        if not bits:
            return None
        masked = self.arith("andi", self.thread(), bits)
        return compare("eq", masked, self.i32_constant(0))

    def valid(self, layout: Layout, tile_shape: Sequence[int]) -> list[ir.Value | None]:
        """Says of each register whether it lies inside the tile (i1); None where that is
        certain."""
        rank = len(tile_shape)
        extents = layout.extents(rank)
        ragged = [d for d in range(rank) if extents[d] > tile_shape[d]]
        if not ragged:
            return [None] * layout.num_values
        at = self.thread_coordinates(layout, rank)
        tests: dict[tuple[int, int], ir.Value | None] = {}
        largest = _largest_thread_coordinates(layout, rank)
        flags: list[ir.Value | None] = []
        for offsets in layout.value_coordinates(rank):
            flag: ir.Value | None = None
            for d in ragged:
                key = (d, offsets[d])
                if key not in tests:
                    limit = tile_shape[d] - offsets[d]
                    # A bound no thread can cross needs no test.
                    certain = limit > largest[d]
                    tests[key] = (
                        None if certain else compare("slt", at[d], self.i32_constant(limit))
                    )
                flag = both(flag, tests[key])
            flags.append(flag)
        return flags


_PARTS = (
    "prologue",
    "first_thread",
    "num_threads",
    "in_role",
    "alone",
    "_constants",
    "_coordinates",
    "_first_copy",
    "_numbers",
)
"""What a role has of its own."""


def _no_driver(block: ir.Block, state: Lowering) -> None:
    raise InternalError("a block is lowered before the driver has begun")


def _largest_thread_coordinates(layout: Layout, rank: int) -> tuple[int, ...]:
    largest = [0] * rank
    for mode in layout.threads:
        if mode.stride:
            largest[mode.dim] += (mode.size - 1) * mode.stride
    return tuple(largest)
