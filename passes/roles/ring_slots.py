"""How many slots rings of buffers have that a role of its own keeps full."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.dialects.gpu_tile.types import buffer_of
from tilec.hardware.ring_stages import BARRIER_BYTES, ring_stages
from tilec.passes.analysis.placement import shared_bytes
from tilec.passes.contract import PassContext
from tilec.passes.demands.kernels import teams_of
from tilec.passes.demands.loops import STAGES
from tilec.passes.programs.answers import answer_bytes
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.loops import enclosing_ops
from tilec.passes.roles.rings import Ring
from tilec.passes.roles.short_programs import ctas_by_registers, slots_beside, turns_if_short


def wanted_stages(rings: list[Ring]) -> int:
    """The stages that loops demand, 0 without. CompileError where they demand different numbers."""
    loops = list(filter(None, map(staged_loop, rings)))
    wanted = {loop.attributes[STAGES].value: loop for loop in reversed(loops)}
    if len(wanted) > 1:
        raise error_at(
            next(iter(wanted.values())),
            f"loops of one kernel share their load role and so their stages: {sorted(wanted)}",
        )
    return next(iter(wanted), 0)


def staged_loop(ring: Ring) -> ir.Operation | None:
    """The innermost loop around a ring that demands stages."""
    around = [ring.loop, *enclosing_ops(ring.loop)]
    return next((loop for loop in around if STAGES in loop.attributes), None)


def is_outer(ring: Ring, rings: Sequence[Ring]) -> bool:
    """Whether a loop inside the loop of a ring has a ring of its own: the outer ring has one turn
    where the inner one has many."""
    return any(ring.loop in enclosing_ops(other.loop) for other in rings)


def slots_that_fit(
    function: ir.Operation, rings: Sequence[Ring], context: PassContext, *, multiply: bool
) -> tuple[int, int]:
    """Slots of every ring beside the other buffers, which each team has for itself, and those of
    rings around others: as many, or one where the others would have one, too, or where more CTAs of
    short programs then fit on a multiprocessor (`short_programs.py`). `multiply`: whether products
    get a role of their own."""
    other = shared_bytes(function, without=[alloc for ring in rings for alloc in ring.allocs])
    other *= teams_of(function)
    leaders = [ring for ring in rings if ring.leader is None]
    own = [buffer_of(alloc.results[0]) for ring in leaders for alloc in ring.allocs]
    most = context.allowance.stages
    other += answer_bytes(function)
    other += max(buffer.alignment_bytes for buffer in own)
    stages = ring_stages(_slot_bytes(leaders), other, context.target)
    around = [ring for ring in leaders if is_outer(ring, rings)]
    stages = max(1, min(stages, most))
    turns = turns_if_short(rings)
    if turns is not None and not multiply and teams_of(function) == 1:
        sizes = _slot_bytes(leaders), _slot_bytes(around) if len(around) < len(leaders) else 0
        ctas = ctas_by_registers(function, context)
        found = slots_beside(ctas, sizes, other, turns, context.target)
        if found is not None:
            return min(found[0], stages), min(found[1], stages)
    if stages > 1 or not around or len(around) == len(leaders):
        return stages, stages
    once = _slot_bytes(around)
    each = _slot_bytes(leaders) - once
    return max(1, min(ring_stages(each, other + once, context.target), most)), 1


def _slot_bytes(rings: Sequence[Ring]) -> int:
    """Shared memory for a slot of each ring: its buffers, and two barriers."""
    buffers = [buffer_of(alloc.results[0]) for ring in rings for alloc in ring.allocs]
    return sum(buffer.slot_bytes for buffer in buffers) + 2 * BARRIER_BYTES * len(rings)
