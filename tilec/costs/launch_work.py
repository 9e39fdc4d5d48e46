"""What a launch does, from what a kernel's programs do (`kernel_work`) and the sizes of a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import Any

from mlir import ir

from tilec.compile.row_walks import Walk
from tilec.costs.dot_work import Memory
from tilec.costs.kernel_work import ProgramWork, read_program
from tilec.costs.operand_work import filling
from tilec.costs.rates import rates_of
from tilec.costs.scalar_values import Numbers, Point
from tilec.costs.work import ALONE, LoopWork, Way, Work, in_stripes
from tilec.executable.grid import Grid, check_grid
from tilec.executable.kernel import Parameter
from tilec.hardware.part_meeting import Meeting
from tilec.hardware.sizes import LINE_BYTES, VECTOR_BYTES, WARPGROUP_WARPS, WORD_BYTES
from tilec.hardware.target import Target
from tilec.records import dataclass
from tilec.runtime.array_list import ArrayList
from tilec.runtime.arrays import ArrayView
from tilec.runtime.launcher import shape_of


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

    `values`, `grid` and ValueError: as in `launch_work`.
    """
    return launch_work(read_program(module, parameters, target), values, grid)


def _memories(arrays: Mapping[str, ArrayView]) -> dict[str, Memory]:
    """How arrays lie in memory, those that have a matrix."""
    return {
        name: _memory(x.pointer % LINE_BYTES, (*x.shape,), (*x.strides,), x.element_bytes)
        for name, x in arrays.items()
        if len(x.shape) > 1
    }


_memory = lru_cache(maxsize=256)(Memory.of)
"""A hundred launches of the same arrays are ranked for one choice of tiles."""


def launch_work(
    program: ProgramWork,
    values: Mapping[str, Any],
    grid: Any = None,
    parts: int = 1,
    cluster: tuple[int, int] = ALONE,
) -> KernelWork:
    """The work of a launch on described arguments.

    `values`: an ArrayView or a number a parameter, by name. `grid`: the caller's, if there is one.
    `parts`: how many CTAs run each program, each a part of its loop of products, if the kernel does
    not demand a number itself. `cluster`: programs along the first axes of the grid that load
    together what they share. ValueError where the kernel has no grid rule either.
    """
    parts = parts if program.parts is None else program.parts
    arguments = tuple(_plain(values[parameter.name]) for parameter in program.parameters)
    sizes = _grid_of(program, arguments, grid)
    points = [program.scalars.numbers(Point(arguments, sizes, one)) for one in _some_of(sizes)]
    trips, lengths, guessed = _all_trips(program, points, arguments)
    if parts > 1 and (shared := program.summed.get(parts, program.cut)) is not None:
        trips[shared] = -(-trips[shared] // parts)
    meeting = program.meeting or Meeting(tuple(program.summed), 0, 0)
    together = meeting.together(parts)
    around = [prod(trips[number] for number in body.around) for body in program.bodies]
    arrays = {name: v for name, v in values.items() if isinstance(v, ArrayView)}
    skips = any(program.scalars.skips(point) for point in points)
    ctas = prod(-(-n // side) * side for n, side in zip(sizes, (*cluster, 1), strict=True))
    busy, spread = _busy(program, ctas, arrays) if skips else (ctas, 0.0)
    busy *= parts
    uneven = [_uneven_rows(walk, arguments) for walk in program.walks]
    loops = _loops(program, around, uneven, arrays, cluster, busy)
    loops = tuple(in_stripes(loop, together) for loop in loops)  # behind sums
    used = program.reads | program.writes
    touched = [v for name, v in arrays.items() if name in used]
    twice = program.reads & program.writes - program.atomics
    touched += [v for name, v in arrays.items() if name in twice]
    held = sum(_elements(v) * v.element_bytes for v in (touched or arrays.values()))
    written = sum(_elements(v) * v.element_bytes for n, v in arrays.items() if n in program.writes)
    stored = sum(loop.trips * loop.stored_bytes for loop in loops)
    each = sum(loop.trips * loop.global_bytes for loop in loops) + stored
    work = Work(
        busy,
        program.warps,
        loops,
        min(held, int(busy * each)),  # programs may leave some of an array out
        program.accumulators,
        program.elements,
        tuple(guessed),
        program.teams,
        written_bytes=min(written, int(busy * stored)),
        outer_bytes=program.outer_bytes,
        longest=_longest(lengths),
        in_pairs=program.in_pairs,
        again_bytes=_again(program, around),
        parts=together,
        groups=parts // together,
        left_bytes=meeting.read_bytes(parts),
        sums=program.sums,
        cluster=prod(cluster),
        spread=parts * spread,
        access_bytes=_access_bytes(arrays),
        row_bytes=program.row_bytes,
    )
    return KernelWork(work, sizes, program.reads, program.writes)


PANEL_BYTES = 32 * 1024
"""Of shared memory that results leave through, at most, where rings are: two panels of 128 bytes by
128 rows."""


def _busy(
    program: ProgramWork, programs: int, arrays: Mapping[str, ArrayView]
) -> tuple[int, float]:
    """How many of a grid's programs have work where only memory says which skip their loops, as
    tiles behind the ends of groups do: of programs beyond those that the results fill there is one
    a group, which has half a tile beyond them if it has many, and a tile if it has few rows. Rows,
    the first dimension, are in groups; tiles of others begin where those before end. And by how
    many these may be more or fewer: half as many as where all groups end with whole tiles."""
    if not program.accumulators:
        return programs, 0.0
    written = [
        arrays[name].shape[0] * prod(map(_tiles, arrays[name].shape[1:], sides[1:])) // sides[0]
        for name, sides in program.stored.items()
        if name in arrays
    ]
    filled = max(written, default=0)
    beyond = max(0, programs - filled)
    if not filled:
        return programs, 0.0
    return max(programs - beyond // 2, beyond), beyond / 4


def _tiles(size: int, side: int) -> int:
    return -(-size // side)


def _loops(
    program: ProgramWork,
    around: Sequence[float],
    uneven: Sequence[int],
    arrays: Mapping[str, ArrayView],
    cluster: tuple[int, int],
    programs: int,
) -> tuple[LoopWork, ...]:
    """The loops of so many programs, each run so many times (`around`), of so many rows of uneven
    length, with the shared memory that results leave through beside rings."""
    rates, memories = rates_of(program.target), _memories(arrays)
    sizes = {name: max(1, _elements(v) * v.element_bytes) for name, v in arrays.items()}
    changes: list[dict[str, Any]] = []
    for body, trips in zip(program.bodies, around, strict=True):
        iterations = {name: programs * trips / size for name, size in sizes.items()}
        groups = program.warps // WARPGROUP_WARPS
        found = filling(body.work, body.fills, memories, rates, cluster, iterations, groups)
        narrow = [n for n in body.met if n in memories and memories[n].alignment < WORD_BYTES]
        found["beside"] = sum(body.met[name] for name in narrow)
        rows = uneven[body.around[-1]] if body.around else 0
        ahead = bool(body.around) and not (rows or body.work.meets)
        changes.append({**found, "trips": trips, "runs_ahead": ahead, "uneven_rows": rows})
    if any(one["way"] is Way.ENGINE for one in changes):
        for body, one in zip(program.bodies, changes, strict=True):
            one["leaving_bytes"] = min(body.work.stored_bytes, PANEL_BYTES)
    pairs = zip(program.bodies, changes, strict=True)
    return tuple(replace(body.work, **one) for body, one in pairs)


def _access_bytes(arrays: Mapping[str, ArrayView]) -> int:
    """Of a vector that begins with every row of all matrices."""
    return min((VECTOR_BYTES, *(m.alignment for m in _memories(arrays).values())))


def ruled_sizes(program: ProgramWork, values: Mapping[str, Any]) -> Grid | None:
    """The sizes of the grid by a kernel's own rule, if it has one, also of more programs than a
    launch has. ValueError where it divides by zero."""
    arguments = [_plain(values[parameter.name]) for parameter in program.parameters]
    return None if program.rule is None else program.rule.sizes(arguments)


def _grid_of(program: ProgramWork, arguments: Sequence[Any], grid: Any) -> Grid:
    if grid is not None:
        return check_grid(grid)
    if program.rule is None:
        raise ValueError("the kernel has no grid rule, and the call gives no grid")
    return program.rule(arguments)


def _plain(value: Any) -> Any:
    return shape_of(value) if isinstance(value, ArrayView) else value


def _elements(array: ArrayView) -> int:
    return array.elements if isinstance(array, ArrayList) else prod(array.shape)


def _some_of(grid: Grid) -> list[Grid]:
    """The first and the last program, and two between: what changes evenly has their mean."""
    x, y, z = grid
    of = [(n * (x - 1) // 3, n * (y - 1) // 3, n * (z - 1) // 3) for n in range(4)]
    return of if prod(grid) else of[:0]


def _all_trips(
    program: ProgramWork, points: Sequence[Numbers], arguments: Sequence[Any]
) -> tuple[list[float], list[list[int]], list[str]]:
    """Iterations of each loop, the mean of some programs, where memory says how long rows are those
    of a mean row, one where bounds are unknown; those of each program, of loops whose bounds are
    known; and what was guessed."""
    means: list[float] = []
    lengths: list[list[int]] = []
    guessed: list[str] = []
    for bounds, walk in zip(program.loops, program.walks, strict=True):
        if bounds is None:
            means.append(1)
            guessed.append("a while loop counts as one iteration")
            continue
        low, high, step = bounds
        found = [_trips(x[low], x[high], x[step]) for x in points]
        known = [number for number in found if number is not None]
        if len(known) == len(found):
            means.append(_mean(known))
            lengths.append(known)
        elif points and (length := _mean_row(walk, arguments)) is not None:
            each = points[0][step] or 1
            means.append(max(1.0, (length + each / 2) / each))
            guessed.append("a loop along rows whose length memory says counts as a mean one")
        else:
            means.append(1)
            guessed.append("a loop with bounds unknown before the run counts as one iteration")
    return means, lengths, guessed


def _mean_row(walk: Walk | None, arguments: Sequence[Any]) -> float | None:
    """Elements of a row that a loop walks along, where memory says where rows end: the mean of all.
    Half a step more is taken for what the last one holds."""
    rows = _uneven_rows(walk, arguments)
    return arguments[walk.number][walk.axis] / rows if walk is not None and rows else None


def _uneven_rows(walk: Walk | None, arguments: Sequence[Any]) -> int:
    """How many rows a loop walks along one of, where memory says where they end, else 0."""
    if walk is None or walk.ends is None:
        return 0
    return max(1, prod(arguments[walk.ends]) - walk.is_chained)


def _trips(low: int | None, high: int | None, step: int | None) -> int | None:
    if low is None or high is None or not step or step < 0:
        return None
    return max(0, -(-(high - low) // step))


def _mean(numbers: Sequence[int]) -> float:
    """Of some programs' iterations, whole where it is; 0 where the grid has none."""
    mean = sum(numbers) / len(numbers) if numbers else 0.0
    return int(mean) if mean.is_integer() else mean


def _again(program: ProgramWork, around: Sequence[float]) -> float:
    """Bytes that a program has loaded in another loop before; 0 where it multiplies, which loads
    other parts of an array in other loops."""
    if any(body.work.flops for body in program.bodies):
        return 0.0
    each: dict[str, list[float]] = {}
    for body, trips in zip(program.bodies, around, strict=True):
        for name, loaded in body.loaded.items():
            each.setdefault(name, []).append(trips * loaded)
    return sum(sum(loads) - max(loads) for loads in each.values())


def _longest(lengths: Sequence[Sequence[int]]) -> float:
    """How many times as long as the mean the longest program is, by its iterations."""
    each = [sum(numbers) for numbers in zip(*lengths, strict=True)]
    return max(each) * len(each) / sum(each) if sum(each) else 1.0
