"""Reads from a kernel's tile-level IR what each of its programs does, whatever the sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from math import prod

from mlir import ir

from tilec.compile.compiler import find_kernel
from tilec.compile.program_facts import is_carried, is_needed
from tilec.compile.program_size import choose_num_warps
from tilec.compile.row_walks import Walk, walk_of
from tilec.costs.computing import (
    Source,
    instructions_of,
    is_added_up,
    is_used_twice,
    meets_product,
    passing_of,
    preparing,
    sides_of,
    source_of,
    waits_for_product,
)
from tilec.costs.dot_work import columns_of, flops_of, kind_of, shared_traffic, unit_of
from tilec.costs.operand_work import Fill, Operand
from tilec.costs.scalar_values import ScalarReader, Scalars
from tilec.costs.work import LoopWork, Unit
from tilec.dialects import tile
from tilec.dialects.def_use import defining_op
from tilec.dialects.demands import demanded
from tilec.dialects.effects import whole_of
from tilec.dialects.elementwise import is_elementwise
from tilec.dialects.tile import ArrayOp, Atomic
from tilec.dialects.tile.reduction import Combining
from tilec.dialects.types import bit_width, element, is_index, is_tile, shape
from tilec.executable.grid import GridRule, compile_grid
from tilec.executable.kernel import Parameter
from tilec.hardware.mma_shapes import WGMMA_M
from tilec.hardware.part_meeting import Meeting
from tilec.hardware.sizes import WORD_BYTES
from tilec.hardware.target import Target
from tilec.passes.contract import PassContext, Report
from tilec.passes.demands.kernels import teams_of
from tilec.passes.dissolve_windows import dissolve_windows
from tilec.passes.programs.program_relations import differ_in_length, program_axes
from tilec.passes.programs.shared_loads import why_apart
from tilec.passes.programs.sum_parts import (
    find_shared,
    find_sum,
    meeting_in_memory,
    parts_that_sum,
)
from tilec.passes.rewriting.op_tables import OpMap
from tilec.passes.rewriting.walk import all_ops, blocks_in, find_ops
from tilec.passes.simplify import simplify
from tilec.records import dataclass
from tilec.terms.demands import NUM_WARPS, STAGES, SUM_PARTS

Bounds = tuple[int, int, int]
"""Where scalars have the beginning, the end and the step of a loop."""


@dataclass(frozen=True)
class Body:
    """One iteration of a loop, or straight-line code: its `work` but for what loads for dots take,
    those loads (`fills`), the bytes `loaded` from each array, by name, the elements of each, by
    name, that meet a product's sums in registers (`met`), and the loops `around` it, by number."""

    work: LoopWork
    fills: tuple[Fill, ...]
    loaded: Mapping[str, int]
    met: Mapping[str, int]
    around: tuple[int, ...]


@dataclass(frozen=True)
class ProgramWork:
    """What a program of a kernel does. `bodies`: innermost ones first. `loops`: the bounds of each
    among `scalars`, None for a while loop, which has none. `walks`: what each walks along, None of
    those that walk along no rows. `rule`: for the grid, None where the
    kernel has none. `accumulators` to `row_bytes`: as in `Work`. `reads`, `writes`: names of
    arrays; `atomics`: of those that are read and written at once. `stored`: of arrays, the sides of
    the largest tile that a program stores there, one a dimension. `summed`: the number of the loop
    that CTAs share, by how many parts they may sum, empty where they may not; `sums`: 32-bit
    registers of each tile that they add up; `cut`: the loop of which any number of CTAs may sum a
    part each, and `meeting`: how these meet, in memory for one, None where they may not; `parts`:
    as many as the author demands, None where that is open; `demands_warps`: whether so many warps
    are what the author demands. `may_share`: whether clusters may load together what they share;
    `in_pairs`: whether long programs go with short ones, where a CTA has several
    (`passes/schedule_programs.py`)."""

    parameters: tuple[Parameter, ...]
    target: Target
    rule: GridRule | None
    warps: int
    teams: int
    bodies: tuple[Body, ...]
    loops: tuple[Bounds | None, ...]
    walks: tuple[Walk | None, ...]
    scalars: Scalars
    accumulators: int
    elements: int
    outer_bytes: int
    row_bytes: int
    reads: frozenset[str]
    writes: frozenset[str]
    atomics: frozenset[str]
    stored: Mapping[str, tuple[int, ...]]
    summed: Mapping[int, int]
    sums: tuple[int, ...]
    cut: int | None
    meeting: Meeting | None
    parts: int | None
    demands_warps: bool
    may_share: bool
    in_pairs: bool

    @property
    def loads_in_loops(self) -> bool:
        """Whether loops load what they do not multiply."""
        return any(body.around and body.loaded and not body.work.flops for body in self.bodies)


def read_program(module: ir.Module, parameters: Sequence[Parameter], target: Target) -> ProgramWork:
    """Reads what programs of the kernel of a `tile` module do."""
    with module.context, ir.Location.unknown():
        function = find_kernel(module, None)
        walks = [walk_of(op) for op in all_ops(function) if op.name == "scf.for"]  # in windows, too
        if find_ops(function, tile.WindowOp):  # what becomes of them decides what can be in parts
            simplify(module, PassContext(target))
            dissolve_windows(module, PassContext(target))
        outermost = find_sum(function)
        summed = parts_that_sum(function, target)
        meeting = meeting_in_memory(function, target)
        shared = {n: find_shared(outermost, n) for n in summed if outermost}
        found = _Found([p.name for p in parameters], target)
        _visit(function.regions[0].blocks[0], (), found)
        return ProgramWork(
            tuple(parameters),
            target,
            _rule_of(function, parameters),
            demanded(function, NUM_WARPS) or choose_num_warps(function, target, Report()),
            teams_of(function),
            tuple(found.bodies),
            tuple(found.loops),
            _of_loops(walks, found.loops),
            found.scalars.found(),
            found.accumulators,
            0 if found.accumulators else found.elements,
            found.outer_bytes,
            found.largest[1],
            frozenset(found.reads),
            frozenset(found.writes),
            frozenset(found.atomics),
            found.stored,
            {parts: found.numbers[loop] for parts, loop in shared.items()},
            tuple(_words(value) for value in outermost.results) if outermost and shared else (),
            None if meeting is None or outermost is None else found.numbers[outermost],
            meeting,
            demanded(function, SUM_PARTS),
            demanded(function, NUM_WARPS) is not None,
            why_apart(function, target) is None,
            differ_in_length(function),
        )


def _of_loops(
    walks: Sequence[Walk | None], loops: Sequence[Bounds | None]
) -> tuple[Walk | None, ...]:
    """What each of the loops walks along, of those that have bounds; nothing where some are gone
    since that was read."""
    counted = iter(walks if len(walks) == sum(one is not None for one in loops) else ())
    return tuple(None if one is None else next(counted, None) for one in loops)


def _rule_of(function: ir.Operation, parameters: Sequence[Parameter]) -> GridRule | None:
    if "tile.grid" not in function.attributes:
        return None
    return compile_grid([text.value for text in function.attributes["tile.grid"]], parameters)


@dataclass
class _Loop:
    """A loop body, or the code outside all loops, as far as it is read: its `work` but for what
    `Body` has beside it, and the registers of the sums that it holds at once; of so many
    `products`. `handed`: registers of their left operands that are computed. `crossed`: reductions
    and scans of a number for each row of products, of more rows than a warpgroup has. `met`: as in
    `Body`. `sizes`: of tiles that are loaded, `largest`: of those that are computed, in
    elements."""

    work: LoopWork
    products: int = 0
    sums: int = 0
    handed: int = 0
    crossed: int = 0
    loaded: dict[str, int] = field(default_factory=dict)
    met: dict[str, int] = field(default_factory=dict)
    fills: list[Fill] = field(default_factory=list)
    made: list[ir.Operation] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    largest: int = 0

    def count_spread(self) -> int:
        """Loads of rows or columns: of fewer elements than the largest tile has."""
        return sum(1 < size < self.largest for size in self.sizes)

    def add_prepared(self, dot: tile.DotOp, unit: Unit) -> None:
        """Notes what makes the operands of a dot, once if others read it, too: who multiplies has
        an lhs in registers, and what else warpgroups read of shared memory a load role computes."""
        for side in (dot.lhs, dot.rhs):
            new = [op for op in preparing(dot.operation, side) if op not in self.made]
            self.made += new
            count = sum(instructions_of(op)[0] for op in new)
            count += prod(shape(side)) if new else 0  # from memory or a buffer, and to the product
            if unit is Unit.WARPGROUPS and side == dot.rhs:
                self.work.filled += count
            else:
                self.work.prepared += count

    def add_waiting(self, rows: int) -> None:
        """Notes that a product of so many rows waits for what is computed from another one's."""
        groups = -(-rows // WGMMA_M)
        self.work.groups = min(self.work.groups, groups) if self.work.waiting_products else groups
        self.work.waiting_products += 1


@dataclass
class _Found:
    names: Sequence[str]
    target: Target
    numbers: OpMap[int] = field(default_factory=OpMap)
    scalars: ScalarReader = field(default_factory=ScalarReader)
    loops: list[Bounds | None] = field(default_factory=list)
    bodies: list[Body] = field(default_factory=list)
    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)
    accumulators: int = 0
    elements: int = 0
    outer_bytes: int = 0
    largest: tuple[int, int] = (0, 0)
    loads: list[ir.Operation] = field(default_factory=list)
    atomics: set[str] = field(default_factory=set)
    stored: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def is_new(self, load: tile.LoadOp | tile.GatherOp) -> bool:
        """Whether a load is met for the first time: what several dots read comes once."""
        is_new = load.operation not in self.loads
        self.loads.append(load.operation)
        return is_new


def _visit(
    block: ir.Block, around: tuple[int, ...], found: _Found, stages: int | None = None
) -> None:
    """Adds what a block does, and its inner loops, each as a loop of its own."""
    loop = _Loop(LoopWork(stages=stages))
    for view in block.operations:
        op = view.operation
        if op.name == "scf.for":
            body = op.regions[0].blocks[0]
            _visit(body, (*around, _enter(op, found)), found, demanded(op, STAGES))
        elif op.name in ("scf.while", "scf.if"):
            if op.name == "scf.while":
                found.loops.append(None)
            times = around[:-1] if _is_for_edges(op) else around
            for inner in blocks_in(op):
                _visit(inner, times, found)
        else:
            _look(op, loop, found)
    work = loop.work
    # Of warpgroups' products the second of two runs under the next iteration's work.
    work.is_rotated = loop.products <= 2 or work.unit is not Unit.WARPGROUPS
    sums = loop.sums + (loop.handed if work.is_rotated else 0)
    found.accumulators = max(found.accumulators, sums)
    work.line_bytes = work.global_bytes
    work.spread_loads = loop.count_spread()
    if work.flops:
        work.exchanges, work.crossed = 0, loop.crossed
    if work.flops or work.global_bytes or work.stored_bytes or work.computed:
        found.bodies.append(Body(work, tuple(loop.fills), loop.loaded, loop.met, around))


def _is_for_edges(op: ir.Operation) -> bool:
    """Whether a branch only changes tiles, and else leaves them as they are, as masks do: counted
    as taken once in a loop, at its end."""
    only_tiles = op.name == "scf.if" and len(op.results) and all(map(is_tile, op.results))
    return bool(only_tiles) and len(op.regions[1].blocks[0].operations) == 1


def _enter(op: ir.Operation, found: _Found) -> int:
    """The number of a loop, whose variable counts as its first value."""
    low, high, step = (found.scalars.place(value) for value in list(op.operands)[:3])
    found.scalars.bind(op.regions[0].blocks[0].arguments[0], low)
    found.loops.append((low, high, step))
    found.numbers[op] = len(found.loops) - 1
    return found.numbers[op]


def _look(op: ir.Operation, loop: _Loop, found: _Found) -> None:
    """Notes what one op does."""
    computed, functions = instructions_of(op)
    loop.work.computed += computed
    loop.work.functions += functions
    _see_results(op, loop, found)
    if is_elementwise(op):
        return
    view = op.opview
    if isinstance(view, tile.DotOp):
        _add_dot(view, loop, found)
    elif isinstance(view, ArrayOp) and not isinstance(view, Atomic):
        _access(view, loop, found)
    elif isinstance(view, Combining):
        _combine(view, loop)
    elif op.name != "memref.dim" and not isinstance(view, tile.lists.ListOp):
        # Atomics read and write; of an op nobody told us about the same is assumed.
        for operand in op.operands:
            if isinstance(operand.type, ir.MemRefType):
                _touch(found.reads, operand, found)
                _touch(found.writes, operand, found)
                _touch(found.atomics, operand, found)
        if isinstance(view, Atomic):
            loop.work.global_bytes += 2 * _bytes(view.tile)


def _see_results(op: ir.Operation, loop: _Loop, found: _Found) -> None:
    """Notes the sizes of what an op computes."""
    for result in filter(is_tile, op.results):
        of, size = element(result), prod(shape(result))
        wide = 1 if is_index(of) else max(32, bit_width(of)) // 32  # `widen-indices`: mostly a word
        loop.largest = max(loop.largest, size)
        found.elements = max(found.elements, wide * size)


def _combine(view: Combining, loop: _Loop) -> None:
    """Notes a reduction or scan."""
    sizes, needed = shape(view.inputs[0]), is_needed(view.operation)
    loop.work.exchanges += needed
    if needed or isinstance(view, tile.ScanOp):
        loop.work.meets = True
        loop.work.passings += (passing_of(view),)
    loop.crossed += sizes > (WGMMA_M,) and len(sizes) == 1


def _access(view: ArrayOp, loop: _Loop, found: _Found) -> None:
    """Notes a load or store."""
    names: set[str] = set()
    _touch(names, view.array, found)
    if view.is_load:
        loop.work.global_bytes += _bytes(view.tile)
        loop.sizes.append(prod(shape(view.tile)))
        sides = [side for side in shape(view.tile) if side > 1]
        if len(sides) > 1 and meets_product(view):
            loop.met |= {name: loop.met.get(name, 0) + prod(sides) for name in names}
        found.largest = max(found.largest, (_bytes(view.tile), _row_bytes(view.tile)))
        found.reads |= names
        loop.loaded |= {name: loop.loaded.get(name, 0) + _bytes(view.tile) for name in names}
    else:
        loop.work.stored_bytes += _bytes(view.tile)
        found.writes |= names
        if isinstance(view, tile.StoreOp):
            found.stored.update((name, sides_of(view, found.stored.get(name))) for name in names)


def _touch(names: set[str], array: ir.Value, found: _Found) -> None:
    """Adds the argument that an array is, or the list that it is out of; all arrays where it comes
    from elsewhere."""
    array = whole_of(array)
    if defining_op(array) is None:
        names.add(found.names[int(ir.BlockArgument(array).arg_number)])
    else:
        names.update(found.names)


def _bytes(value: ir.Value) -> int:
    return prod(shape(value)) * max(8, bit_width(element(value))) // 8


def _row_bytes(value: ir.Value) -> int:
    """Of a tile's last dimension."""
    sizes = shape(value)
    return _bytes(value) // prod(sizes[:-1]) if sizes else 0


def _add_dot(dot: tile.DotOp, loop: _Loop, found: _Found) -> None:
    *batch, m, k = shape(dot.lhs)
    n = shape(dot.rhs)[-1]
    kind = kind_of(str(element(dot.lhs)), dot.options.get("precision", ""))
    unit = unit_of(m, n, kind, found.target)
    work = loop.work
    flops = work.flops.get(kind, 0) + prod(batch) * flops_of(m, n, k, unit)
    work.flops = {**work.flops, kind: flops}
    work.unit = unit if work.unit is Unit.WARPS else work.unit
    work.columns += columns_of(m, n, unit)
    in_registers = unit is Unit.WARPGROUPS and source_of(dot.lhs) is None
    work.shared_bytes += shared_traffic(m, n, _bytes(dot.lhs), _bytes(dot.rhs), unit)
    loop.handed += _bytes(dot.lhs) // WORD_BYTES if in_registers else 0
    loop.products += 1
    loop.add_prepared(dot, unit)
    if dot.operation.parent.name == "scf.for":
        _add_operands(dot, unit, loop, found)
    if waits_for_product(dot.operation):
        loop.add_waiting(m)
        work.handed_on += prod(shape(dot.lhs))
    work.recurs |= any(map(is_carried, (dot.lhs, dot.rhs)))
    sums = _words(dot.acc)
    if is_added_up(dot):  # to what the loop carries beside it
        loop.add_waiting(m)
        loop.sums += sums
    if not _adds_to_a_dot(dot):
        loop.sums += sums


def _words(value: ir.Value) -> int:
    """Registers that a tile of sums takes."""
    return prod(shape(value)) * max(32, bit_width(element(value))) // 32


def _adds_to_a_dot(dot: tile.DotOp) -> bool:
    """Whether a dot adds to the sums of another one, in whose registers they stay."""
    return isinstance(dot.acc.owner, tile.DotOp)


def _add_operands(dot: tile.DotOp, unit: Unit, loop: _Loop, found: _Found) -> None:
    """Notes which operands of a dot are loaded for it, each that is loaded once."""
    sources = [(source_of(dot.lhs), 1), (source_of(dot.rhs), 0)]
    before = [
        s for s, _ in sources if s is not None and s.load.operation.block != dot.operation.block
    ]
    found.outer_bytes += sum(_bytes(s.load.result) for s in before if found.is_new(s.load))
    here = [(s, axis) for s, axis in sources if s is not None and s not in before]
    here = [(s, axis) for s, axis in here if found.is_new(s.load)]
    if here:
        operands = tuple(_operand(source, axis, found) for source, axis in here)
        width = bit_width(element(dot.lhs)) // 8
        twice = any(is_used_twice(source.load) for source, _ in here)
        groups = -(-shape(dot.acc)[-2] // WGMMA_M)
        loop.fills.append(Fill(operands, width, unit, twice, groups))


def _operand(source: Source, axis: int, found: _Found) -> Operand:
    array = source.load.src
    name = None
    if defining_op(array) is None:
        name = found.names[int(ir.BlockArgument(array).arg_number)]
    axes = frozenset(program_axes(source.load.operation.operands))
    nbytes, tile_shape = _bytes(source.load.result), shape(source.tile)
    return Operand(name, nbytes, tile_shape, axis, source.is_transposed, axes)
