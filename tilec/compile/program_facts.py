"""What a kernel's IR at tile level says of one program, as far as its number of warps follows.

Each class has what ops of one kind say, and reads it off one op after the other. What follows from
it is said elsewhere (`product_warps.py`, `memory_warps.py`).
"""

from __future__ import annotations

import functools
from dataclasses import field
from math import prod

from mlir import ir

from tilec.compile.moved_words import MovedWords
from tilec.dialects import tile
from tilec.dialects.def_use import constant_attribute, defining_op
from tilec.dialects.elementwise import is_elementwise
from tilec.dialects.tile import ArrayOp, Atomic, Combining
from tilec.dialects.types import bit_width, element, is_tile, shape
from tilec.hardware.mma_shapes import MMA_M, WGMMA_K_BITS
from tilec.hardware.powers import power_above
from tilec.hardware.sizes import WORD_BITS
from tilec.hardware.target import Target
from tilec.passes.analysis.dependence import ops_behind
from tilec.passes.analysis.divisibility import Divisibility
from tilec.passes.analysis.index_runs import Indexed, index_run
from tilec.passes.analysis.vector_width import contiguous_dim
from tilec.passes.demands.kernels import MANY, few_of, programs_per_sm, sms_per_program
from tilec.passes.layouts.components import depth_factor
from tilec.passes.layouts.op_costs import combining_slots, issue_slots
from tilec.passes.layouts.product_rows import keeps_rows, reduces_columns, reduces_rhs
from tilec.passes.programs.packing import why_alone
from tilec.passes.programs.program_relations import have_uneven_loops
from tilec.passes.rewriting.loops import innermost_loop, is_inside
from tilec.passes.rewriting.walk import all_ops, find_ops, is_of
from tilec.passes.rows.stripes import count_stripes
from tilec.records import dataclass

Shape = tuple[int, ...]

_LOOPS = ("scf.for", "scf.while")
_SEEN = (tile.DotOp, ArrayOp, Combining, tile.ExchangeOp)
_SUMS = ("arith.addf", "arith.addi")
"""Ops that add what an iteration brings to what those before did: no iteration waits for that."""


@dataclass
class Products:
    """Dots. `accumulators`: elements that the sums of all dots of one block have, of the block
    where they are most; `count`: its dots; `rows`: of one of its sums. `row_groups`: groups of
    `MMA_M` rows, a power of two, of the dot with the most of those whose rows stay with their
    warps; `shares_rows`: whether there is another; `rows_meet`: whether each iteration of a loop
    needs what all rows of one, or of its rhs, come to. `uses_fma`: whether one is of f32 as it is;
    `is_ragged`: whether one sums over no whole steps of an instruction of warpgroups; `recurs`:
    whether one multiplies what a loop carries; `least_rows`: of the sum that has fewest.
    """

    accumulators: int = 0
    count: int = 0
    rows: int = 0
    row_groups: int = 0
    shares_rows: bool = False
    rows_meet: bool = False
    uses_fma: bool = False
    is_ragged: bool = False
    recurs: bool = False
    least_rows: int = 0
    _blocks: dict[ir.Block, list[int]] = field(default_factory=dict)

    def see(self, view: ir.OpView) -> None:
        """Adds what an op says."""
        if isinstance(view, tile.DotOp):
            self._see_dot(view)

    def _see_dot(self, dot: tile.DotOp) -> None:
        together = self._blocks.setdefault(dot.operation.block, [])
        together.append(prod(shape(dot.acc)))
        bits = shape(dot.lhs)[-1] * bit_width(element(dot.lhs))
        self.is_ragged = self.is_ragged or bits % WGMMA_K_BITS != 0
        if sum(together) > self.accumulators:
            self.accumulators, self.count = sum(together), len(together)
            self.rows = shape(dot.acc)[-2]
        if keeps_rows(dot):
            groups = power_above(-(-shape(dot.acc)[-2] // MMA_M))
            self.row_groups = max(self.row_groups, groups)
        else:
            self.shares_rows = True
        met = (found.operation for found in (*reduces_columns(dot), *reduces_rhs(dot)))
        self.rows_meet |= any(depth_factor(op) > 1 and is_needed(op) for op in met)
        self.recurs |= any(map(is_carried, (dot.lhs, dot.rhs)))
        self.least_rows = min(self.least_rows or shape(dot.acc)[-2], shape(dot.acc)[-2])
        is_exact = dot.options.get("precision") != "tf32"
        self.uses_fma |= str(element(dot.lhs)) == "f32" and is_exact


@dataclass
class Results:
    """Tiles that ops compute. `elements`: of the largest; `carried`: of the largest that a loop
    hands on; `slots`: of the instructions of all their elements (`passes/layouts/op_costs.py`)."""

    elements: int = 1
    carried: int = 0
    slots: int = 0

    def see(self, op: ir.Operation) -> None:
        """Adds what an op says."""
        for result in filter(is_tile, op.results):
            elements = prod(shape(result))
            self.elements = max(self.elements, elements)
            self.slots += issue_slots(op) * elements
            if op.name in _LOOPS:
                self.carried = max(self.carried, elements)


@dataclass
class Accesses:
    """Loads and stores. `bytes`: of the largest tile; `once`: elements of each load that no loop
    repeats, `numbered`: of each of those that goes by numbers; `streamed`: those that the loads of
    a loop's body have, of the body where they are most, 0 without; `largest`: the most of one such
    load; `gathers`: whether a loop loads rows by numbers that it loads; `rows_along`: by shapes of
    tiles that are loaded, the dimensions along which elements are neighbours in memory; `narrow`:
    the bits of the narrowest elements of tiles, by how many elements these have; `gathers_once`:
    those that no loop repeats."""

    bytes: int = 1
    narrow: dict[int, int] = field(default_factory=dict)
    once: list[int] = field(default_factory=list)
    numbered: list[int] = field(default_factory=list)
    largest: int = 0
    gathers: bool = False
    gathers_once: list[tile.GatherOp] = field(default_factory=list)
    rows_along: dict[Shape, set[int | None]] = field(default_factory=dict)
    _bodies: dict[ir.Block, int] = field(default_factory=dict)

    @property
    def streamed(self) -> int:
        """See the class."""
        return max(self._bodies.values(), default=0)

    def see(self, view: ir.OpView) -> None:
        """Adds what an op says."""
        if not isinstance(view, ArrayOp) or isinstance(view, Atomic):
            return
        elements, width = prod(shape(view.tile)), max(8, bit_width(element(view.tile)))
        self.bytes = max(self.bytes, elements * width // 8)
        self.narrow[elements] = min(width, self.narrow.get(elements, width))
        if view.is_load:
            self._see_load(view)

    def _see_load(self, load: ArrayOp) -> None:
        op, sizes = load.operation, shape(load.tile)
        if not isinstance(load, Indexed):
            along = contiguous_dim(load.array, load.dims)
            self.rows_along.setdefault(sizes, set()).add(along)
        if op.parent is None or op.parent.name not in _LOOPS:
            self.once.append(prod(sizes))
            if isinstance(load, tile.GatherOp):
                self.numbered.append(prod(sizes))
                self.gathers_once.append(load)
            return
        self._bodies[op.block] = self._bodies.get(op.block, 0) + prod(sizes)
        self.largest = max(self.largest, prod(sizes))
        has_rows = sum(size > 1 for size in sizes) > 1
        self.gathers |= has_rows and isinstance(load, tile.GatherOp) and _looks_up(load)


def _looks_up(load: tile.GatherOp) -> bool:
    """Whether a gather goes where its iteration loads: others compute that, as pointers do."""
    behind = (op for op in ops_behind(load.indices) if op.block == load.operation.block)
    return any(isinstance(op.opview, ArrayOp) for op in behind)


@dataclass
class Reductions:
    """Reductions and scans. `any`: whether there is one; `scans`: of scans, how many numbers the
    elements of one are at most, 0 without, and `scan_slots` the instructions of one step of one, of
    the scan where they are most; `once`: how many no loop repeats; `waited`: elements of
    the largest tile that a loop reduces and needs the result of, 0 without, and `waits` how many
    there are of these; `held`: words of the tiles that such a loop has in registers throughout, of
    the loop where they are most; `between`: of the largest that a loop without products does;
    `along`: shapes of tiles, with the axes that are combined."""

    any: bool = False
    scans: int = 0
    scan_slots: int = 0
    once: int = 0
    waited: int = 0
    waits: int = 0
    held: int = 0
    between: int = 0
    along: set[tuple[Shape, int]] = field(default_factory=set)

    def see(self, view: ir.OpView) -> None:
        """Adds what an op says."""
        if not isinstance(view, Combining):
            return
        op = view.operation
        self.any = True
        if isinstance(view, tile.ScanOp):
            self.scans = max(self.scans, len(view.inputs))
            self.scan_slots = max(self.scan_slots, combining_slots(view))
        self.along.add((shape(view.inputs[0]), view.axis))
        if depth_factor(op) == 1:
            self.once += 1
        elif is_needed(op):
            elements = prod(shape(op.operands[0]))
            self.waited, self.waits = max(self.waited, elements), self.waits + 1
            loop = innermost_loop(op)
            if loop is not None and not find_ops(loop, tile.DotOp):
                self.between = max(self.between, elements)
                self.held = max(self.held, _held_words(loop))


def _held_words(loop: ir.Operation) -> int:
    """Of the tiles that a loop carries, or computes with and does not make; constants take no
    registers."""
    bits = sum(
        prod(shape(value)) * bit_width(element(value)) for value in filter(is_tile, loop.results)
    )
    seen: set[ir.Value] = set()
    for op in all_ops(loop):
        for value in op.operands if op != loop else ():
            if value in seen or not is_tile(value) or constant_attribute(value) is not None:
                continue
            seen.add(value)
            if not is_inside(value, loop):
                bits += prod(shape(value)) * bit_width(element(value))
    return bits // WORD_BITS


@dataclass
class Exchanges:
    """Steps in which elements change places, as a sort's. `moved`: elements, as often as they do
    so. `_axes`: by shapes of tiles, the axes along which they do; `_steps`: by shapes, axes and
    masks, the words of what changes places together, by dtypes."""

    moved: int = 0
    _axes: dict[Shape, set[int]] = field(default_factory=dict)
    _steps: dict[tuple[Shape, int, int], dict[str, int]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Tells whether there are any."""
        return bool(self._axes)

    def see(self, view: ir.OpView) -> None:
        """Adds what an op says."""
        if not isinstance(view, tile.ExchangeOp):
            return
        sizes, dtype = shape(view.src), element(view.src)
        self._axes.setdefault(sizes, set()).add(view.axis)
        step = self._steps.setdefault((sizes, view.axis, view.mask), {})
        step[str(dtype)] = -(-bit_width(dtype) // WORD_BITS)
        self.moved += prod(sizes) * depth_factor(view.operation)

    @property
    def words(self) -> int:
        """Of the elements that change places together, a power of two."""
        return power_above(max((sum(each.values()) for each in self._steps.values()), default=1))

    @property
    def met(self) -> int:
        """Elements that change places with each other, of the tile where they are most."""
        axes: dict[int, set[int]] = {}
        for sizes, along in self._axes.items():
            axes.setdefault(len(sizes), set()).update(along)
        return max(
            (prod(sizes[axis] for axis in axes[len(sizes)]) for sizes in self._axes), default=0
        )


@dataclass
class ProgramFacts:
    """What is known of a program by which its tiles and warps are chosen. `recurs`: whether a loop
    computes a tile from itself. `elements`, `bytes`: of the largest tile computed, and of the
    largest in memory, each in one of the `stripes` in which a program works
    (`passes/rows/stripes.py`). `is_few`: whether launches have few programs. `gathered`: accesses
    of gathers that no loop repeats, each of a run of neighbours. `crowd`: programs a multiprocessor
    of the launches that it is for, 0 for any number; `is_crowded`: whether these are many.
    `may_pack`: whether those of one warp may share a CTA (pass pack-programs). What no program with
    products asks for is read off the `kernel` when it is asked for."""

    kernel: ir.Operation
    stripes: int
    is_few: bool = False
    products: Products = field(default_factory=Products)
    results: Results = field(default_factory=Results)
    accesses: Accesses = field(default_factory=Accesses)
    reductions: Reductions = field(default_factory=Reductions)
    exchanges: Exchanges = field(default_factory=Exchanges)
    recurs: bool = False
    crowd: int = 0

    @property
    def is_crowded(self) -> bool:
        """See the class."""
        return self.crowd > MANY

    @functools.cached_property
    def gathered(self) -> int:
        """See the class."""
        if not (gathers := self.accesses.gathers_once):
            return 0
        known = Divisibility(self.kernel)
        return sum(prod(shape(one.mask)) // index_run(one, known)[1] for one in gathers)

    @functools.cached_property
    def words(self) -> MovedWords:
        """How tiles in memory get to registers and back."""
        return MovedWords(self.kernel)

    @functools.cached_property
    def may_pack(self) -> bool:
        """See the class."""
        return why_alone(self.kernel) is None

    @functools.cached_property
    def is_uneven(self) -> bool:
        """Whether memory says how often its loops go round."""
        return have_uneven_loops(self.kernel)

    @property
    def packs_crowds(self) -> bool:
        """Whether it is one of many that may share CTAs."""
        return self.is_crowded and self.may_pack and self.stripes == 1

    @property
    def parts(self) -> tuple[Products | Accesses | Reductions | Exchanges, ...]:
        """What reads ops of `_SEEN`."""
        return self.products, self.accesses, self.reductions, self.exchanges

    @property
    def elements(self) -> int:
        """Elements of the largest tile that is computed, of one stripe."""
        return self.results.elements // self.stripes

    @property
    def bytes(self) -> int:
        """Bytes of the largest tile in memory, of one stripe."""
        return self.accesses.bytes // self.stripes

    @property
    def narrow_bytes(self) -> int:
        """Bytes of the narrowest tile in memory that has as many elements as the largest computed;
        of the largest in memory where none has."""
        width = self.accesses.narrow.get(self.results.elements)
        return self.bytes if width is None else self.elements * width // 8

    @property
    def meets(self) -> bool:
        """Whether threads need what others have."""
        return self.reductions.any or bool(self.exchanges)

    @property
    def meets_across(self) -> bool:
        """Whether the largest tiles are loaded, and their elements meet along another dimension
        than the one in which they are neighbours in memory, and only so."""
        largest = [each for each in self.reductions.along if prod(each[0]) == self.elements]
        rows_along = self.accesses.rows_along
        return bool(largest) and all(
            sizes in rows_along and axis not in rows_along[sizes] for sizes, axis in largest
        )

    @property
    def rows_loaded(self) -> int:
        """Loads, outside of loops, of tiles as large as the largest."""
        return self.accesses.once.count(self.elements)

    @property
    def parts_loaded(self) -> int:
        """Loads, outside of loops, of smaller tiles, but for single elements."""
        return sum(1 < elements < self.elements for elements in self.accesses.once)

    @property
    def rows_numbered(self) -> int:
        """Those of them that go by numbers: neighbours often share what they find."""
        return self.accesses.numbered.count(self.elements)


def facts_of(function: ir.Operation, target: Target) -> ProgramFacts:
    """Says what a program of a kernel does."""
    stripes = count_stripes(function, target, 1)[0]
    shared = stripes > 1 and sms_per_program(function) > 1
    program = ProgramFacts(function, stripes, shared or bool(few_of(function)))
    program.crowd = programs_per_sm(function)
    for op in all_ops(function):
        program.results.see(op)
        if is_of(op, *_SEEN):
            view = op.opview
            for part in program.parts:
                part.see(view)
        program.recurs |= op.name == "scf.for" and _recurs(op)
    return program


def _recurs(loop: ir.Operation) -> bool:
    """Whether an iteration computes with a tile of the one before, other than adding to it."""
    body = loop.regions[0].blocks[0]
    *_, last = body.operations
    for argument, yielded in zip(list(body.arguments)[1:], last.operation.operands, strict=True):
        users = [use.owner.operation for use in argument.uses]
        added = len(users) == 1 and users[0].name in _SUMS and users[0].results[0] == yielded
        if is_tile(argument) and users and not added:
            return True
    return False


def is_carried(value: ir.Value) -> bool:
    """Whether a tile is one that a loop carries, or computed from such, element by element."""
    while True:
        op = defining_op(value)
        if op is None:
            return is_tile(value) and _is_of_loop(value)
        tiles = [operand for operand in op.operands if is_tile(operand)]
        if not is_elementwise(op) or len(tiles) != 1:
            return False
        value = tiles[0]


def _is_of_loop(value: ir.Value) -> bool:
    loop = value.owner.owner if isinstance(value, ir.BlockArgument) else None
    return loop is not None and loop.name in _LOOPS


def is_needed(reduction: ir.Operation) -> bool:
    """Whether more is done with a result than adding it to something, which can wait."""
    users = [use.owner.operation for result in reduction.results for use in result.uses]
    extracted = [user for user in users if user.name == "tensor.extract"]
    users += [use.owner.operation for user in extracted for use in user.results[0].uses]
    return any(user.name not in ("tensor.extract", *_SUMS) for user in users)
