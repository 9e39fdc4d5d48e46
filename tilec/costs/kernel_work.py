"""Reads from a kernel's tile-level IR what a launch does, and which arrays it reads and writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from mlir import ir

from tilec.compile.compiler import find_kernel
from tilec.compile.program_size import choose_num_warps, is_needed
from tilec.costs.computing import (
    Source,
    instructions_of,
    is_added_up,
    is_used_twice,
    source_of,
    waits_for_product,
)
from tilec.costs.dot_work import (
    Memory,
    columns_of,
    flops_of,
    line_bytes,
    narrow_loads,
    shared_traffic,
    unit_of,
    way_of,
)
from tilec.costs.rates import rates_of
from tilec.costs.scalar_values import ScalarValues
from tilec.costs.work import WAYS, LoopWork, Unit, Way, Work
from tilec.dialects import tile
from tilec.dialects.def_use import defining_op
from tilec.dialects.demands import demanded
from tilec.dialects.tile import ArrayOp, Atomic
from tilec.dialects.tile.reduction import Combining
from tilec.dialects.types import bit_width, element, is_tile, shape
from tilec.executable.grid import Grid, check_grid, compile_grid
from tilec.executable.kernel import Parameter
from tilec.hardware.mma_shapes import WGMMA_M
from tilec.hardware.sizes import LINE_BYTES, VECTOR_BYTES
from tilec.hardware.target import Target
from tilec.passes.contract import Report
from tilec.passes.demands.kernels import teams_of
from tilec.runtime.arrays import ArrayView
from tilec.terms.demands import NUM_WARPS, STAGES

PANEL_BYTES = 32 * 1024
"""Of shared memory that results leave through, at most, where rings are: two panels of 128 bytes by
128 rows."""


@dataclass(frozen=True)
class KernelWork:
    """A launch as the model sees it: its `work`, its grid, and the names of the arrays it reads and
    writes."""

    work: Work
    grid: Grid
    reads: frozenset[str]
    writes: frozenset[str]


def work_of(
    module: ir.Module,
    parameters: Sequence[Parameter],
    values: Mapping[str, Any],
    target: Target,
    grid: Any = None,
) -> KernelWork:
    """The work of launching the kernel of a `tile` module on described arguments.

    `values`: an ArrayView or a number a parameter, by name. `grid`: the caller's, if there is one.
    ValueError where the kernel has no grid rule either.
    """
    with module.context, ir.Location.unknown():
        function = find_kernel(module, None)
        sizes = _grid_of(function, parameters, values, grid)
        arguments = [_plain(values[parameter.name]) for parameter in parameters]
        names = [p.name for p in parameters]
        programs = [ScalarValues(arguments, sizes, one) for one in _some_of(sizes)]
        found = _Found(programs, names, values, target)
        _visit(function.regions[0].blocks[0], 1, found)
        arrays = [v for v in values.values() if isinstance(v, ArrayView)]
        used = found.reads | found.writes
        touched = [v for name, v in values.items() if isinstance(v, ArrayView) and name in used]
        touched += [values[name] for name in found.reads & found.writes - found.atomics]
        held = sum(prod(v.shape) * v.element_bytes for v in (touched or arrays))
        each = sum(loop.trips * (loop.global_bytes + loop.stored_bytes) for loop in found.loops)
        busy = _busy(prod(sizes), found)
        work = Work(
            busy,
            _warps(function, target),
            _with_panels(found.loops),
            min(held, int(busy * each)),  # programs may leave some of an array out
            found.accumulators,
            0 if found.accumulators else found.elements,
            tuple(found.guessed),
            teams_of(function),
            outer_bytes=found.outer_bytes,
            longest=_longest(found.lengths),
            again_bytes=_again(found),
        )
        return KernelWork(work, sizes, frozenset(found.reads), frozenset(found.writes))


def _busy(programs: int, found: _Found) -> int:
    """How many of a grid's programs have work. Where only memory says which skip their loops, as
    tiles behind the ends of groups do: of programs beyond those that the results fill there is one
    a group, which has half a tile beyond them if it has many, and a tile if it has few rows."""
    if not found.accumulators or not any(program.skips for program in found.programs):
        return programs
    written = [found.values[name] for name in found.writes]
    filled = max(
        (prod(v.shape) // found.accumulators for v in written if isinstance(v, ArrayView)),
        default=0,
    )
    beyond = max(0, programs - filled)
    return max(programs - beyond // 2, beyond) if filled else programs


def _with_panels(loops: Sequence[LoopWork]) -> tuple[LoopWork, ...]:
    """The same, with the shared memory that results leave through beside rings."""
    if not any(loop.way is Way.ENGINE for loop in loops):
        return tuple(loops)
    return tuple(replace(loop, leaving_bytes=min(loop.stored_bytes, PANEL_BYTES)) for loop in loops)


@dataclass
class _Loop:
    """The work of one loop body, or of the code outside all loops, each time that it runs."""

    trips: float
    stages: int | None = None
    flops: dict[str, int] = field(default_factory=dict)
    global_bytes: int = 0
    shared_bytes: int = 0
    staged_bytes: int = 0
    stored_bytes: int = 0
    wasted_bytes: int = 0
    narrow_loads: int = 0
    vector_copies: int = 0
    way: Way = Way.THREADS
    unit: Unit = Unit.WARPS
    columns: int = 0
    computed: int = 0
    functions: int = 0
    turns: int = 0
    groups: int = 0
    handed_on: int = 0
    is_waited_for: bool = False
    sums: int = 0
    exchanges: int = 0
    loaded: dict[str, float] = field(default_factory=dict)

    def frozen(self) -> LoopWork:
        return LoopWork(
            self.trips,
            self.flops,
            self.global_bytes,
            self.shared_bytes,
            self.staged_bytes,
            self.stages,
            self.stored_bytes,
            self.global_bytes + self.wasted_bytes,
            self.narrow_loads,
            self.vector_copies,
            self.way,
            self.unit,
            self.columns,
            computed=self.computed,
            functions=self.functions,
            turns=self.turns,
            groups=max(1, self.groups),
            handed_on=self.handed_on,
            is_waited_for=self.is_waited_for,
            exchanges=0 if self.flops else self.exchanges,
        )


@dataclass
class _Found:
    programs: Sequence[ScalarValues]
    names: Sequence[str]
    values: Mapping[str, Any]
    target: Target
    loops: list[LoopWork] = field(default_factory=list)
    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)
    accumulators: int = 0
    elements: int = 0
    outer_bytes: int = 0
    guessed: list[str] = field(default_factory=list)
    loads: list[ir.Operation] = field(default_factory=list)
    lengths: list[list[int]] = field(default_factory=list)
    atomics: set[str] = field(default_factory=set)
    loaded: dict[str, list[float]] = field(default_factory=dict)

    def is_new(self, load: tile.LoadOp) -> bool:
        """Whether a load is met for the first time: what several dots read comes once."""
        is_new = load.operation not in self.loads
        self.loads.append(load.operation)
        return is_new


def _grid_of(
    function: ir.Operation, parameters: Sequence[Parameter], values: Mapping[str, Any], grid: Any
) -> Grid:
    if grid is not None:
        return check_grid(grid)
    if "tile.grid" not in function.attributes:
        raise ValueError("the kernel has no grid rule, and the call gives no grid")
    rule = compile_grid([text.value for text in function.attributes["tile.grid"]], parameters)
    return rule([_plain(values[parameter.name]) for parameter in parameters])


def _plain(value: Any) -> Any:
    return value.shape if isinstance(value, ArrayView) else value


def _warps(function: ir.Operation, target: Target) -> int:
    return demanded(function, NUM_WARPS) or choose_num_warps(function, target, Report())


def _visit(block: ir.Block, trips: float, found: _Found, stages: int | None = None) -> None:
    """Adds what a block does, and its inner loops, each as a loop of its own."""
    loop = _Loop(trips, stages)
    for view in block.operations:
        op = view.operation
        if op.name == "scf.for":
            _visit(op.regions[0].blocks[0], trips * _trips(op, found), found, _stages(op))
        elif op.name in ("scf.while", "scf.if"):
            if op.name == "scf.while":
                found.guessed.append("a while loop counts as one iteration")
            for region in op.regions:
                for inner in region.blocks:
                    _visit(inner, trips, found)
        else:
            _look(op, loop, found)
    found.accumulators = max(found.accumulators, loop.sums)
    if loop.flops or loop.global_bytes or loop.stored_bytes or loop.computed:
        found.loops.append(loop.frozen())
    for name, loaded in loop.loaded.items():
        found.loaded.setdefault(name, []).append(trips * loaded)


def _stages(op: ir.Operation) -> int | None:
    return demanded(op, STAGES)


def _trips(op: ir.Operation, found: _Found) -> float:
    """Iterations of a loop, the mean of some programs; 0 where the grid has none."""
    trips = [_trips_of(op, program) for program in found.programs]
    if None in trips:
        found.guessed.append("a loop with bounds unknown before the run counts as one iteration")
        return 1
    known = [number for number in trips if number is not None]
    found.lengths.append(known)
    mean = sum(known) / len(known) if known else 0.0
    return int(mean) if mean.is_integer() else mean


def _trips_of(op: ir.Operation, program: ScalarValues) -> int | None:
    low, high, step = (program.evaluate(value) for value in list(op.operands)[:3])
    program.bind(op.regions[0].blocks[0].arguments[0], low)
    if low is None or high is None or not step or step < 0:
        return None
    return max(0, -(-(high - low) // step))


def _some_of(grid: Grid) -> list[Grid]:
    """The first and the last program, and two between: what changes evenly has their mean."""
    x, y, z = grid
    of = [(n * (x - 1) // 3, n * (y - 1) // 3, n * (z - 1) // 3) for n in range(4)]
    return of if prod(grid) else of[:0]


def _again(found: _Found) -> float:
    """Bytes that a program has loaded in another loop before; 0 where it multiplies, which loads
    other parts of an array in other loops."""
    if any(loop.flops for loop in found.loops):
        return 0.0
    return sum(sum(each) - max(each) for each in found.loaded.values())


def _longest(lengths: Sequence[Sequence[int]]) -> float:
    """How many times as long as the mean the longest program is, by its iterations."""
    each = [sum(numbers) for numbers in zip(*lengths, strict=True)]
    return max(each) * len(each) / sum(each) if sum(each) else 1.0


def _look(op: ir.Operation, loop: _Loop, found: _Found) -> None:
    """Notes what one op does."""
    view = op.opview
    computed, functions = instructions_of(op)
    loop.computed += computed
    loop.functions += functions
    for result in op.results:
        if is_tile(result):
            # An index mostly fits a word (`widen-indices`).
            is_index = isinstance(element(result), ir.IndexType)
            wide = 1 if is_index else max(32, bit_width(element(result))) // 32
            found.elements = max(found.elements, wide * prod(shape(result)))
    if isinstance(view, tile.DotOp):
        _add_dot(view, loop, found)
    elif isinstance(view, ArrayOp) and not isinstance(view, Atomic):
        _access(view, loop, found)
    elif isinstance(view, Combining):
        loop.exchanges += is_needed(op)
    elif op.name != "memref.dim":
        # Atomics read and write; of an op nobody told us about the same is assumed.
        for operand in op.operands:
            if isinstance(operand.type, ir.MemRefType):
                _touch(found.reads, operand, found)
                _touch(found.writes, operand, found)
                _touch(found.atomics, operand, found)
        if isinstance(view, Atomic):
            loop.global_bytes += 2 * _bytes(view.tile)


def _access(view: ArrayOp, loop: _Loop, found: _Found) -> None:
    """Notes a load or store."""
    names: set[str] = set()
    _touch(names, view.array, found)
    if view.is_load:
        loop.global_bytes += _bytes(view.tile)
        found.reads |= names
        loop.loaded |= {name: loop.loaded.get(name, 0) + _bytes(view.tile) for name in names}
    else:
        loop.stored_bytes += _bytes(view.tile)
        found.writes |= names


def _touch(names: set[str], array: ir.Value, found: _Found) -> None:
    """Adds the argument that an array is; all arrays where it comes from elsewhere."""
    if defining_op(array) is None:
        names.add(found.names[int(ir.BlockArgument(array).arg_number)])
    else:
        names.update(found.names)


def _bytes(value: ir.Value) -> int:
    return prod(shape(value)) * max(8, bit_width(element(value))) // 8


def _add_dot(dot: tile.DotOp, loop: _Loop, found: _Found) -> None:
    *batch, m, k = shape(dot.lhs)
    n = shape(dot.rhs)[-1]
    kind = _kind(str(element(dot.lhs)), dot.options.get("precision", ""))
    unit = unit_of(m, n, kind, found.target)
    loop.flops[kind] = loop.flops.get(kind, 0) + prod(batch) * flops_of(m, n, k, unit)
    loop.unit = unit if loop.unit is Unit.WARPS else loop.unit
    loop.columns += columns_of(m, n, unit)
    loop.shared_bytes += shared_traffic(m, n, _bytes(dot.lhs), _bytes(dot.rhs), unit)
    if dot.operation.parent.name == "scf.for":
        _add_operands(dot, unit, loop, found)
    if waits_for_product(dot.operation):
        loop.turns += 1
        if unit is Unit.WARPGROUPS and source_of(dot.lhs) is None:  # which registers hold, too
            loop.sums += prod(shape(dot.lhs)) * bit_width(element(dot.lhs)) // 32
        loop.groups = min(loop.groups or m, -(-m // WGMMA_M))
        loop.handed_on += prod(shape(dot.lhs))
    sums = prod(shape(dot.acc)) * max(32, bit_width(element(dot.acc))) // 32
    if is_added_up(dot):  # to what the loop carries beside it
        loop.turns += 1
        loop.groups = min(loop.groups or m, -(-m // WGMMA_M))
        loop.sums += sums
    if not _adds_to_a_dot(dot):
        loop.sums += sums


def _adds_to_a_dot(dot: tile.DotOp) -> bool:
    """Whether a dot adds to the sums of another one, in whose registers they stay."""
    return isinstance(dot.acc.owner, tile.DotOp)


def _add_operands(dot: tile.DotOp, unit: Unit, loop: _Loop, found: _Found) -> None:
    """Notes how operands of a dot come to where it reads them, each that is loaded once."""
    sources = [(source_of(dot.lhs), 1), (source_of(dot.rhs), 0)]
    before = [
        s for s, _ in sources if s is not None and s.load.operation.block != dot.operation.block
    ]
    found.outer_bytes += sum(_bytes(s.load.result) for s in before if found.is_new(s.load))
    here = [(s, axis) for s, axis in sources if s is not None and s not in before]
    here = [(s, axis) for s, axis in here if found.is_new(s.load)]
    if not here:
        return
    width = bit_width(element(here[0][0].load.result)) // 8
    operands = [(_memory(source, found), axis) for source, axis in here]
    way = way_of(operands, width, unit)
    if any(is_used_twice(source.load) for source, _ in here):
        loop.is_waited_for = True
        way = max(way, Way.THREADS, key=WAYS.index)
    loop.way = max(loop.way, way, key=WAYS.index) if loop.staged_bytes else way
    narrow, vectors = narrow_loads([prod(shape(s.tile)) for s, _ in here], operands, width, unit)
    loop.narrow_loads += narrow
    loop.vector_copies += vectors
    loop.staged_bytes += vectors * VECTOR_BYTES if way is Way.REGISTERS else 0
    for (source, _), (memory, _) in zip(here, operands, strict=True):
        loaded = _bytes(source.load.result)
        row = shape(source.tile)[-1 if memory.contiguous == 1 else -2] * width
        loop.wasted_bytes += line_bytes(loaded, row, memory, way, rates_of(found.target)) - loaded
        if way is not Way.REGISTERS:
            loop.staged_bytes += loaded


def _memory(source: Source, found: _Found) -> Memory:
    """Says how the array behind an operand lies in memory; the best where the load does not
    show."""
    view, array = source.load, None
    if defining_op(view.src) is None:
        array = found.values[found.names[int(ir.BlockArgument(view.src).arg_number)]]
    if not isinstance(array, ArrayView) or len(array.shape) < 2:
        return Memory(1, LINE_BYTES)
    memory = Memory.of(array.pointer, array.shape, array.strides, array.element_bytes)
    if source.is_turned and memory.contiguous is not None:
        return replace(memory, contiguous=1 - memory.contiguous)
    return memory


def _kind(dtype: str, precision: str) -> str:
    """Says which unit multiplies, see `model.TENSOR_SPEEDS`."""
    if dtype == "f32":
        return "tf32" if precision == "tf32" else "fma"
    return dtype if dtype in ("f64", "f16", "bf16", "i8") else "f8"
