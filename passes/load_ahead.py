"""load-ahead: a loop whose warps wait for each other loads what its next iteration needs first.

Before:   scf.for %k = %lower to %upper step %s {
            %t = "tile.load"(%a, %row, %k) ...
            %m = "tile.reduce"(%t) ...                         (every warp waits for others)
            ...
          }
After:    %first = scf.if (%lower < %upper) { "tile.load"(%a, %row, %lower) } else { zeros }
          scf.for %k = %lower to %upper step %s iter_args(%t = %first) {
            %next = scf.if (%k + %s < %upper) { "tile.load"(%a, %row, %k + %s) } else { %t }
            %m = "tile.reduce"(%t) ...
            ...
            scf.yield %next
          }

Neither LLVM nor ptxas moves loads up across what threads wait for, so nothing would be under way
while they exchange what they have reduced, nor while they store. On an H200 gradients of RMS norm
(16384 rows of 1024, 264 programs) take 42 us for 56, cross-entropy of 445 rows of 86848 67 for 73.

Where an iteration loads little it takes less time than memory does: the loop is unrolled, as often
as hides that (`copies/iterations_ahead.py`), and each turn begins with the next one's loads; what
is left of the iterations loads one ahead. Numbers that tell no other load where it goes come with
the tiles.

A loop qualifies if in each iteration it reduces or scans tiles that several warps hold, and
multiplies none; if its loads may all be issued early (`copies/loads_ahead.py`), since nothing in
the loop writes what later iterations read, or orders accesses to it; and if few registers hold what
they load. Not where its author demands stages, or roles: those load ahead in their own way.
Does not handle: loads in branches; loops that only add up, which ptxas unrolls.
"""

from __future__ import annotations

from mlir import ir

from tilec.messages.diagnostics import InternalError
from tilec.passes.analysis.meetings import warps_meet
from tilec.passes.analysis.register_pressure import tiles_apart
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.copies.iterations_ahead import iterations_ahead
from tilec.passes.copies.loads_ahead import (
    AheadLoads,
    ahead_loads,
    find_ahead_loads,
    issue_ahead,
    number_loads,
    tile_loads,
)
from tilec.passes.demands.loops import demanded_stages, demands_roles
from tilec.passes.layouts.components import tile_bytes
from tilec.passes.rewriting.loops import find_loops, terminator
from tilec.passes.rewriting.unrolling import unroll
from tilec.passes.roles.parts import parts_of

FEW_REGISTERS, MORE_REGISTERS = 12, 24
"""Of a thread, for what is loaded ahead; the second where its CTA has a multiprocessor to itself
anyway. With 8 for cross-entropy it took 0.77 to 1.03 times as long (7 sizes, H200); with 16, which
leave room for fewer CTAs, 0.71 to 1.18."""

LITTLE_BYTES = 2048
"""Of all tiles that an iteration loads, where several are under way: of more a multiprocessor's
CTAs have enough."""


@kernel_pass(
    requires=Level.LAYOUTS, behind={"carry-partials": "that takes reductions out of loops"}
)
def load_ahead(function: ir.Operation, context: PassContext) -> None:
    """Issues the loads of loops whose threads wait for each other an iteration ahead."""
    if demands_roles(function) or not any(map(warps_meet, find_loops(function))):
        return
    apart = tiles_apart(function, function.regions[0].blocks[0])
    for found in find_ahead_loads(function, _room(function, context), apart):
        if _qualifies(found):
            more = _with_numbers(found)
            _issue(more, _times(function, more, context), context)


def _with_numbers(found: AheadLoads) -> AheadLoads:
    """The loads, and those of single numbers that may come with them."""
    numbers = [ahead_loads(found.loop, [load]) for load in number_loads(found.loop)]
    safe = [load for one in numbers if one is not None and one.is_safe for load in one.loads]
    return ahead_loads(found.loop, [*found.loads, *safe]) or found


def _times(function: ir.Operation, found: AheadLoads, context: PassContext) -> int:
    """How many iterations ahead loads come: one where much is loaded, or another loop is inside."""
    loaded = sum(tile_bytes(load.results[0]) for load in found.loads)
    if loaded > LITTLE_BYTES or len(find_loops(found.loop)) > 1:
        return 1
    (part,) = parts_of(function, context)
    held = part.peak(function).registers
    return iterations_ahead(found, part.registers - held, held, context.target)


def _issue(found: AheadLoads, times: int, context: PassContext) -> None:
    registers = times * found.registers
    context.report.add(
        "loads",
        found.loads[0],
        f"{times} iterations ahead" if times > 1 else "an iteration ahead",
        f"{registers} registers of a thread, which waits for others in the loop",
    )
    if times > 1:
        loop = unroll(found.loop, times)
        unrolled = ahead_loads(loop, tile_loads(loop))
        if unrolled is None:
            raise InternalError("an unrolled loop has none of its loads")
        issue_ahead(_with_numbers(unrolled))
    issue_ahead(found)


def _room(function: ir.Operation, context: PassContext) -> int:
    """Registers of a thread that may hold what is loaded ahead."""
    (part,) = parts_of(function, context)
    live = part.peak(function).registers
    is_alone = 2 * context.num_threads * live > context.target.registers_per_sm
    return min(MORE_REGISTERS if is_alone else FEW_REGISTERS, part.registers - live)


def _qualifies(found: AheadLoads) -> bool:
    if demanded_stages(found.loop) is not None or not warps_meet(found.loop):
        return False
    every = len(found.loads) == len(tile_loads(found.loop))
    return every and _is_used(found) and found.is_safe


def _is_used(found: AheadLoads) -> bool:
    """Whether the iteration reads all it loads: what it only yields is loaded ahead already."""
    last = terminator(found.loop.regions[0].blocks[0])
    users = [[use.owner.operation for use in load.results[0].uses] for load in found.loads]
    return all(any(user != last for user in each) for each in users)
