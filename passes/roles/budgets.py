"""The registers of each role of a kernel, and what a load role that holds tiles makes of its own.

A role that issues tensor copies needs few registers, and the others get the rest. Where tiles go
through the load role's registers, what they take decides:

1. The tiles move to the role's own threads, which hold more of each.
2. If they are too many at once, the role turns to one buffer after the other, and loads in pieces
   what fills one (`copies/fill_pieces.py`). If it would still spill, the other roles keep only the
   least that they need. If even that does not suffice, the others get theirs first, since they
   would spill between products and the load role spills ahead of its readers. The report says so,
   and the author gets a PerformanceWarning.
3. If there is room for what an iteration loads twice, the loads run one ahead (`loads_ahead`). Of
   few registers those of two iterations come together, a turn ahead: threads that compute little
   wait for memory in each turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from mlir import ir

from tilec.dialects.gpu_tile import RoleOp, ThreadCopy
from tilec.messages.diagnostics import InternalError
from tilec.passes.analysis.register_pressure import (
    SUBJECT,
    Peak,
    most_live_registers,
    peak,
    tiles_apart,
)
from tilec.passes.analysis.role_threads import runs_in_one_thread
from tilec.passes.contract import PassContext
from tilec.passes.copies.fill_pieces import fill_in_pieces
from tilec.passes.copies.loads_ahead import (
    AheadLoads,
    ahead_loads,
    find_ahead_loads,
    issue_ahead,
    tile_loads,
)
from tilec.passes.rewriting.loops import find_loops
from tilec.passes.rewriting.unrolling import unroll
from tilec.passes.rewriting.walk import find_ops
from tilec.passes.roles.registers import (
    COMPUTE_REGISTERS,
    FEWEST_COMPUTING,
    FEWEST_FILLING,
    FILL_REGISTERS,
    MOST_REGISTERS,
    RoleShape,
)
from tilec.passes.roles.tiles import fold_threads, sink_tiles

TURN, MOST_IN_TURNS = 2, 24
"""Iterations whose loads come together, and registers of a thread, beside those of one iteration,
that they may take."""
Plan = Callable[[int, int], Mapping[str, RoleShape]]
"""Shapes by what a thread of the load role wants, and what the others' tiles take."""


def share_registers(
    function: ir.Operation, roles: Mapping[str, RoleOp], plan: Plan, context: PassContext
) -> None:
    """Sets the registers of each role, where the load role holds tiles."""
    load = roles["load"]
    if runs_in_one_thread(load):
        return
    fold_threads(load.body, context.num_warps // load.warps)
    live = most_live_registers(roles["compute"].body)
    most = plan(MOST_REGISTERS, live)["load"].registers or MOST_REGISTERS
    apart = tiles_apart(function, load.body)
    least = FILL_REGISTERS + most_live_registers(load.body, apart)
    if least > most:
        sink_tiles(load.body)
        found = partial(_peak, function, load.body)
        fill_in_pieces(found, most - FILL_REGISTERS)
        least = FILL_REGISTERS + found().registers
        apart = tiles_apart(function, load.body)
    ahead = find_ahead_loads(load.operation, most - least, apart)
    least += max([_issue(loads, most - least, context) for loads in ahead], default=0)
    shapes = _shapes(plan, least, live)
    taken, left = least - FILL_REGISTERS + FEWEST_FILLING, shapes["load"].registers
    if 0 < left < taken:
        context.report.add(
            SUBJECT,
            function,
            f"about {taken} for a thread of role 'load', which has {left}",
            "its loads pass through them: the rest is spilled to memory",
        )
    for name, role in roles.items():
        role.registers = shapes[name].registers


def _issue(loads: AheadLoads, room: int, context: PassContext) -> int:
    """Issues loads of the role ahead, in `room` registers of a thread; gives how many more it
    holds."""
    more, when = loads.registers, "an iteration"
    if (TURN - 1) * more + TURN * more <= min(room, MOST_IN_TURNS) and _is_simple(loads):
        loop = unroll(loads.loop, TURN)
        turns = ahead_loads(loop, tile_loads(loop))
        if turns is None:
            raise InternalError("an unrolled loop has none of its loads")
        issue_ahead(turns)
        more, when = (TURN - 1) * more + turns.registers, f"{TURN} iterations"
    why = f"{more} registers a thread hold what is under way"
    context.report.add("producer", loads.loop, f"loads {when} ahead", why)
    issue_ahead(loads)
    return more


def _is_simple(loads: AheadLoads) -> bool:
    """Whether a loop loads nothing else, as rows by the numbers that come ahead, and has no loop
    inside."""
    if find_ops(loads.loop, ThreadCopy) or len(find_loops(loads.loop)) > 1:
        return False
    return len(tile_loads(loads.loop)) == len(loads.loads)


def _shapes(plan: Plan, least: int, live: int) -> Mapping[str, RoleShape]:
    """Plans with all that each role can use; where the load role then spills, with the least that
    each needs."""
    shapes = plan(least, live)
    taken = least - FILL_REGISTERS + FEWEST_FILLING
    if not 0 < shapes["load"].registers < taken:
        return shapes
    tight = plan(taken, live - COMPUTE_REGISTERS + FEWEST_COMPUTING)
    return max(tight, shapes, key=lambda each: each["load"].registers)


def _peak(function: ir.Operation, block: ir.Block) -> Peak:
    return peak(block, tiles_apart(function, block))
