"""prefetch-loads: what a loop loads into registers is loaded iterations ahead.

Before:   scf.for %t = %lower to %upper step %s iter_args(%h) {
            %x = "tile.load"(%a, %t) ...   work on %x and %h   "tile.store"(...)
          }
After:    %x0, %x1 = scf.if (%lower < %end) { "tile.load"(%a, %lower), (%a, %lower + %s) } else 0
          scf.for %t = %lower to %end step 2 %s iter_args(%h, %v0 = %x0, %v1 = %x1) {
            %at = select(%t + 2 %s < %end, %t + 2 %s, %t)
            work on %v0 and %h   "tile.store"(...)   %y0 = "tile.load"(%a, %at)
            work on %v1 ...      "tile.store"(...)   %y1 = "tile.load"(%a, %at + %s)
            scf.yield %.., %y0, %y1
          }
          scf.for %t = %end to %upper step %s ...    (what is left, as before)

A loop that walks along a sequence does little in an iteration, and waits for what it loads there:
ptxas moves no load across a store, and unrolls few loops. Copies into buffers would need a barrier
an iteration. On an H200 a selective scan (8 x 1024 steps of 1024 channels) takes 230 us for 884.

1. Of the tiles that a loop loads itself those qualify whose addresses follow from its counter, if
   nothing in it writes what they read (`address_ops`, `read_ahead_hazard`).
2. A loop in which no warp waits for another is unrolled, as often as `WORDS_AHEAD` registers hold
   what it loads, if that is little: the loads for the next time stand behind the last use of those
   before, in whose registers they come.
3. In a loop of products loads run one iteration ahead, issued in their place: what no ring brings
   (fp8 that goes through registers to be transposed, 4096 cubed, 384 us for 460; decays and values
   of a chunked recurrence, 75 for 88).
4. Past the last iteration the same tiles are loaded again: no access is wild, and nobody uses them.
Does not handle: tiles whose elements come one by one in less than a register; loops over programs;
kernels with roles, whose load roles run ahead by themselves; large tiles, of which the programs of
a multiprocessor have enough under way (rows in tiles of 8192 elements: 0.97 to 1.07 times as fast);
loops that end where memory says, maybe soon (rows of sparse matrices: 0.60 to 1.04).
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from tilec.dialects.effects import is_product
from tilec.dialects.gpu_tile import RoleOp
from tilec.dialects.gpu_tile.types import is_buffer, layout_of
from tilec.dialects.op import TileOp
from tilec.dialects.tile import ArrayOp
from tilec.dialects.types import is_tile, shape
from tilec.passes.analysis.addresses_ahead import address_ops
from tilec.passes.analysis.hazards import read_ahead_hazard
from tilec.passes.analysis.register_pressure import registers_of, tiles_apart
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.layouts.components import tile_bytes
from tilec.passes.programs.program_relations import read_their_length
from tilec.passes.rewriting.loops import (
    behind,
    clone_mapped,
    find_loops,
    in_block,
    is_program_loop,
    replace_yield,
    terminator,
    with_iteration_arguments,
)
from tilec.passes.rewriting.scalars import binary, constant, less, scalar_op
from tilec.passes.rewriting.unrolling import unroll
from tilec.passes.rewriting.walk import find_ops, kernels
from tilec.passes.roles.parts import Part, parts_of

AHEAD = "tile.loads_ahead"
"""Attribute of the loops that this pass has written: it leaves them when it meets them again."""
WORDS_AHEAD = 96
"""Registers of a thread that may hold what later iterations of an unrolled loop need."""
MOST_TIMES = 8
"""Iterations of an unrolled loop's body: beside 4, selective scans in 4 warps take 161 us for 213,
73 for 95 and 95 for 125 (H200)."""
LITTLE_BYTES = 4096
"""Of all tiles that an iteration loads: a multiprocessor needs some 30 KB under way for its share
of an H200's memory (4.8 TB/s over 132, for 800 ns), which eight CTAs with such tiles have."""
MOST_INSTRUCTIONS = 512
"""Of a thread in an unrolled loop's body, about: an element of a tile each."""


@dataclass(frozen=True)
class _Loads:
    """What a loop loads that may come ahead. `words`: registers of a thread that they take;
    `times`: iterations that the body gets."""

    loop: ir.Operation
    words: int
    times: int


@tile_pass(
    requires=Level.BUFFERS,
    ensures=Level.BUFFERS,
    behind={
        "specialize-warps": "loads move to a role, whose registers decide how far they run ahead",
        "alternate-programs": "sets of warps divide the registers",
    },
)
def prefetch_loads(module: ir.Module, context: PassContext) -> None:
    """Loads ahead what the loops of computing threads load into registers."""
    for function in kernels(module):
        if find_ops(function, RoleOp):
            continue
        (part,) = parts_of(function, context)
        for loop in find_loops(function):
            found = _find(function, part, loop)
            if found is not None:
                _prefetch(found, context)


def _find(function: ir.Operation, part: Part, loop: ir.Operation) -> _Loads | None:
    loads = _loads_of(loop)
    if not loads or is_program_loop(loop) or AHEAD in loop.attributes:
        return None
    if read_ahead_hazard(loop, {load.opview.array for load in loads}, "the loop") is not None:
        return None
    apart = tiles_apart(function, part.block)
    if any(load.results[0] in apart for load in loads):
        return None
    words = sum(registers_of(load.results[0]) for load in loads)
    room = part.registers - part.peak(function).registers
    multiplies = any(is_product(op.opview) for op in find_ops(loop, TileOp))
    times = 1 if multiplies or read_their_length(function) else MOST_TIMES
    while times > 1 and not _fits(loop, words, times, room):
        times //= 2
    small = sum(tile_bytes(load.results[0]) for load in loads) <= LITTLE_BYTES
    worthwhile = multiplies or (times > 1 and small and _is_alone(loop))
    return _Loads(loop, words, times) if worthwhile and words <= room else None


def _loads_of(loop: ir.Operation) -> list[ir.Operation]:
    """The loads and gathers of tiles in a loop's own body whose addresses are known ahead."""
    views = loop.regions[0].blocks[0].operations
    loads = [v.operation for v in views if isinstance(v, ArrayOp) and v.is_load and shape(v.tile)]
    return [load for load in loads if not isinstance(address_ops(loop, [load]), str)]


def _is_alone(loop: ir.Operation) -> bool:
    """Whether no warp of a loop waits for another, and there is no other loop in it."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        meets = any(map(is_buffer, op.operands))
        if op != loop and (meets or op.name in ("scf.for", "scf.while")):
            found.append(op)
        return ir.WalkResult.ADVANCE

    loop.walk(visit)
    return not found


def _fits(loop: ir.Operation, words: int, times: int, room: int) -> bool:
    """Whether `times` iterations may be under way, each of which loads `words`."""
    body = loop.regions[0].blocks[0]
    tiles = [r for view in body.operations for r in view.operation.results if is_tile(r)]
    work = sum(layout_of(tile).num_values for tile in tiles)
    return times * words <= min(room, WORDS_AHEAD) and times * work <= MOST_INSTRUCTIONS


def _prefetch(found: _Loads, context: PassContext) -> None:
    many = found.times > 1
    context.report.add(
        "loads",
        found.loop,
        f"{found.times} iterations ahead" if many else "an iteration ahead",
        f"{found.times * found.words} registers a thread hold what is under way",
    )
    found.loop.attributes[AHEAD] = ir.UnitAttr.get(found.loop.context)
    loop = unroll(found.loop, found.times) if many else found.loop
    loads = _loads_of(loop)
    lower, upper, step = list(loop.operands)[:3]
    with ir.InsertionPoint(loop), loop.location:
        first = _first(loop, loads, lower, upper)
    loop, carried = with_iteration_arguments(loop, first)
    body = loop.regions[0].blocks[0]
    at = body.arguments[0]
    with ir.InsertionPoint.at_block_begin(body), loop.location:
        ahead = binary("arith.addi", at, step)
        # Past the end the tiles of this time again: nobody vouches for other addresses.
        ahead = scalar_op("arith.select", [less(ahead, upper), ahead, at], at.type)
    mapped = {at: ahead}
    places = [_behind_uses(load) if many else load for load in loads]
    for number in sorted(range(len(loads)), key=lambda number: _order(places[number])):
        load = loads[number]
        with ir.InsertionPoint(places[number]), load.location:
            for op in _addresses(loop, load):
                if op.results[0] not in mapped:
                    clone_mapped(op, mapped)
            clone_mapped(load, mapped)
    following = [mapped[load.results[0]] for load in loads]
    for load, tile in zip(loads, carried, strict=True):
        load.results[0].replace_all_uses_with(tile)
        load.erase()
    last = terminator(body)
    replace_yield(last, [*list(last.operands)[: -len(carried)], *following])


def _first(
    loop: ir.Operation, loads: list[ir.Operation], lower: ir.Value, upper: ir.Value
) -> list[ir.Value]:
    """What the first iteration needs; zeros, which nobody uses, if there is none."""
    types = [load.results[0].type for load in loads]
    branch = ir.Operation.create("scf.if", [*types], [less(lower, upper)], regions=2)
    there, nowhere = (region.blocks.append() for region in branch.regions)
    mapped = {loop.regions[0].blocks[0].arguments[0]: lower}
    with ir.InsertionPoint(there):
        for load in loads:
            for op in _addresses(loop, load):
                if op.results[0] not in mapped:
                    clone_mapped(op, mapped)
            clone_mapped(load, mapped)
        ir.Operation.create("scf.yield", operands=[mapped[load.results[0]] for load in loads])
    with ir.InsertionPoint(nowhere):
        ir.Operation.create("scf.yield", operands=[constant(type_, 0) for type_ in types])
    return list(branch.results)


def _addresses(loop: ir.Operation, load: ir.Operation) -> list[ir.Operation]:
    found = address_ops(loop, [load])
    assert not isinstance(found, str)  # else the loop does not qualify
    return found


def _behind_uses(load: ir.Operation) -> ir.Operation:
    """The op in front of which nothing of the load's block uses its tile any more."""
    users = [in_block(use.owner.operation, load.block) for use in load.results[0].uses]
    return behind(max([load, *users], key=_order))


def _order(op: ir.Operation) -> int:
    """Where in its block an op stands."""
    return [view.operation for view in op.block.operations].index(op)
