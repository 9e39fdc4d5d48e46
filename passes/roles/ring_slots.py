"""How many slots a ring has that a role keeps full."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from mlir import ir

from tilec.dialects.gpu_tile import (
    BufferStoreOp,
    MmaOp,
    RingSlotOp,
    Tcgen05MmaOp,
    WgmmaFenceOp,
    WgmmaOp,
)
from tilec.dialects.gpu_tile.types import buffer_of, is_buffer
from tilec.hardware.ring_stages import (
    BARRIER_BYTES,
    MANY_SLOTS,
    OUTER_SLOTS,
    USUAL_STAGES,
    ring_stages,
)
from tilec.passes.analysis.async_readers import reads_for_products
from tilec.passes.analysis.placement import shared_bytes
from tilec.passes.analysis.register_pressure import most_live_registers
from tilec.passes.contract import PassContext
from tilec.passes.copies.buffer_fills import products_of, readers
from tilec.passes.demands.kernels import teams_of
from tilec.passes.demands.loops import STAGES
from tilec.passes.programs.answers import answer_bytes
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.loops import enclosing_ops, innermost_loop
from tilec.passes.rewriting.op_tables import OpSet
from tilec.passes.rewriting.scalars import is_zero
from tilec.passes.rewriting.walk import find_ops
from tilec.passes.roles.registers import (
    COMPUTE_REGISTERS,
    FEWEST_COMPUTING,
    ctas_by_registers,
)
from tilec.passes.roles.rings import Ring
from tilec.passes.roles.short_programs import (
    MOST_BESIDE,
    RingSlots,
    slots_beside,
    turns_if_short,
)

MOST_WAITING = 3
"""CTAs on a multiprocessor whose threads and products wait for each other: with three, two of
mamba's gradients (ddAcs_stable, dcb) took 0.62 and 0.87 of the time with two, with four as long
(H200)."""
_MANY = (RingSlotOp, MmaOp, WgmmaOp, Tcgen05MmaOp)
LEAST_INNER = 3
"""Slots that rings of those loops have at least, or one CTA gets all of the memory: one is read
while two are on their way; one more of a third CTA. Not timed by itself."""
LEAST_INSIDE = 2
"""The same of two CTAs, where rings around loops take most of the memory: mamba's gradient of x
took 0.51 of the time of one CTA with three (H200)."""


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


def is_outer(ring: Ring) -> bool:
    """Whether a ring has one turn where a loop inside its own has many products or turns."""
    own = innermost_loop(ring.turn.operation)
    return any(innermost_loop(op) != own for op in find_ops(ring.loop, *_MANY))


def _sums_anew(ring: Ring) -> bool:
    """Whether a product of each turn starts from zero, so that threads wait for it and compute with
    it before the next: tensor cores are idle meanwhile, but for another CTA's products."""
    fences = find_ops(ring.loop, WgmmaFenceOp)
    return any(is_zero(fence.opview.acc) for fence in fences)


def _computes_operands(ring: Ring) -> bool:
    """Whether threads compute what is multiplied of what the ring brings: tensor cores wait for
    that."""
    return any(not is_buffer(multiply.opview.lhs) for multiply in find_ops(ring.loop, WgmmaOp))


def _meet(rings: Sequence[Ring]) -> bool:
    """Whether threads compute operands for each other in the loop of a ring: all wait for all of
    them, and then for products."""
    brought = OpSet(alloc for ring in rings for alloc in ring.allocs)
    stores = [op.opview.dst for ring in rings for op in find_ops(ring.loop, BufferStoreOp)]
    read = [view for dst in stores if dst.owner not in brought for view in readers(dst)]
    return any(reads_for_products(view) or products_of(view) for view in read)


def slots_that_fit(
    function: ir.Operation, rings: Sequence[Ring], context: PassContext, *, multiply: bool
) -> RingSlots:
    """Slots of every ring beside the other buffers, which each team has for itself, and those of
    rings around loops: few where more CTAs of short programs (`short_programs.py`), or a second one
    of programs whose threads and products wait for each other, then fit on the multiprocessor; else
    as many, if they are many, or two, or one where the others would have one, too.
    `multiply`: whether products get a role of their own."""
    other = shared_bytes(function, without=[alloc for ring in rings for alloc in ring.allocs])
    other *= teams_of(function)
    leaders = [ring for ring in rings if ring.leader is None]
    own = [buffer_of(alloc.results[0]) for ring in leaders for alloc in ring.allocs]
    most = context.allowance.stages
    other += answer_bytes(function)
    other += max(buffer.alignment_bytes for buffer in own)
    around = [ring for ring in leaders if is_outer(ring)]
    once = _slot_bytes(around)
    each = _slot_bytes(leaders) - once
    stages = max(1, min(ring_stages(each + once, other, context.target), most))
    turns = turns_if_short(rings) if not multiply and teams_of(function) == 1 else None
    meet = _meet(rings)
    waits = around or meet or any(_sums_anew(r) or _computes_operands(r) for r in leaders)
    live = most_live_registers(function.regions[0].blocks[0]) if waits or turns is not None else 0
    if turns is not None:
        sizes = each + once, once if each else 0
        needed = live + COMPUTE_REGISTERS
        ctas = ctas_by_registers(function, context, needed, MOST_BESIDE, meet=meet)
        found = slots_beside(ctas, sizes, other, turns, context.target)
        if found is not None:
            return found._replace(each=min(found.each, stages), around=min(found.around, stages))
    found = None
    if waits and not find_ops(function, Tcgen05MmaOp):
        needed = live + FEWEST_COMPUTING
        ctas = ctas_by_registers(function, context, needed, MOST_WAITING, meet=meet)
        found = _slots_of_ctas(ctas, other, (each, once), context, is_short=turns is not None)
    if found is not None:
        return found
    if not around or not each or stages >= MANY_SLOTS:
        return RingSlots(stages, stages)
    outer = OUTER_SLOTS[0 if stages > 1 else 1]
    inner = ring_stages(each, other + outer * once, context.target)
    return RingSlots(max(1, min(inner, most)), min(outer, most))


def _slots_of_ctas(
    ctas: int, other: int, slot_bytes: tuple[int, int], context: PassContext, *, is_short: bool
) -> RingSlots | None:
    """The slots with which a multiprocessor holds most CTAs, up to `ctas` and two at least; None
    where its memory does not. `slot_bytes`: of rings inside, and of those around loops;
    `is_short`: whether a program has few turns, which want a slot each."""
    each, once = slot_bytes
    fewest = LEAST_INSIDE if once and not is_short else LEAST_INNER
    for count in range(ctas, 1, -1):
        room = context.target.bytes_beside(count) - other
        least = fewest if count == 2 else LEAST_INNER + 1
        for around, slots in _tried(each > 0, least, context.allowance.stages):
            if around * once + slots * each <= room:
                return RingSlots(slots, around, count)
    return None


def _tried(has_inner: bool, least: int, most: int) -> Iterator[tuple[int, int]]:
    """Slots of rings around loops, and of the others: the first that fit are taken."""
    if not has_inner:
        yield OUTER_SLOTS[0], OUTER_SLOTS[0]
        return
    usual = range(min(USUAL_STAGES, most), LEAST_INNER - 1, -1)
    yield from ((around, slots) for around, slots in product(OUTER_SLOTS, usual) if slots >= least)
    if least <= LEAST_INSIDE <= most:
        yield OUTER_SLOTS[-1], LEAST_INSIDE


def _slot_bytes(rings: Sequence[Ring]) -> int:
    """Shared memory for a slot of each ring: its buffers, and two barriers."""
    buffers = [buffer_of(alloc.results[0]) for ring in rings for alloc in ring.allocs]
    return sum(buffer.slot_bytes for buffer in buffers) + 2 * BARRIER_BYTES * len(rings)
