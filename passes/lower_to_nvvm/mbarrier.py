"""Lowers mbarriers: made by a lane of each warp, arrived at per thread, warp or warpgroup, waited
for in a loop.

PTX ISA 9.0, "mbarrier": arriving releases, a successful wait acquires, both in the CTA's scope
unless other CTAs of the cluster arrive. Relaxed ones came with 8.6; for an older version they
release and acquire, too, which takes longer.
"""

from __future__ import annotations

from math import prod

from mlir import ir

from tilec.dialects import gpu_tile
from tilec.dialects.def_use import users
from tilec.dialects.gpu_tile.mbarrier import RemoteArriveOp
from tilec.hardware.ptx_forms import FORMS
from tilec.hardware.ptx_version import shown
from tilec.hardware.sizes import WARPGROUP_WARPS
from tilec.passes.analysis.divisibility import constant_of
from tilec.passes.lower_to_nvvm.access import inline_asm, issue_once
from tilec.passes.lower_to_nvvm.shared_address import barrier_pointer, one_barrier
from tilec.passes.lower_to_nvvm.state import Lowering
from tilec.passes.lower_to_nvvm.values import Barriers
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.scalars import compare, create

RELAXED = FORMS["mbarrier.try_wait"]["relaxed"]


def lower_init(op: gpu_tile.BarrierInitOp, state: Lowering) -> None:
    """Lowers to an mbarrier.init of every slot, by one lane of each warp in turn.

    A warp makes one after the other, whichever lanes ask (SYNCS.EXCH takes one address). Four rings
    of eleven slots are 88, as many as a program of a few turns has instructions.
    """
    barriers = Barriers(state.i32_constant(op.options["offset"]), op.slots)
    state.values[op.result] = barriers
    text = f"mbarrier.init.shared::cta.b64 [$0], {op.count};"
    lanes = state.context.target.warp_size
    warps = 1 if state.in_role else state.num_threads // lanes
    for done in range(0, op.slots, warps):
        if warps == 1:
            pointer = one_barrier(barriers, state.i32_constant(done), state)
            issue_once(text, ["r"], [pointer], state)
            continue
        slot = state.arith("addi", state.warp(), done)
        is_slot = compare("ult", slot, state.i32_constant(op.slots))
        guard = state.arith("andi", _first_of(lanes, state), is_slot)
        inline_asm(text, ["r"], [one_barrier(barriers, slot, state)], [], guard=guard)


def lower_expect(op: gpu_tile.BarrierExpectOp, state: Lowering) -> None:
    """Lowers to mbarrier.arrive.expect_tx by one thread."""
    text = f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], {op.bytes};"
    issue_once(text, ["r"], [barrier_pointer(op, state)], state)


def lower_arrive(op: gpu_tile.BarrierArriveOp, state: Lowering) -> None:
    """Lowers to mbarrier.arrive by every thread, by the first of each warp or warpgroup, or by one
    for a role.

    A warp's lanes meet first: its arrival stands for what all of them did. A warpgroup's is for
    instructions that it waited for together.
    """
    guard = None
    if op.per == "once" and not state.alone:
        _require_one_warp(op, state)
    if op.per == "warp" or (op.per == "once" and not state.alone):
        inline_asm("bar.warp.sync 0xffffffff;", [], [], [])
        guard = _first_of(state.context.target.warp_size, state)
    elif op.per == "warpgroup":
        guard = _first_of(state.context.target.warp_size * WARPGROUP_WARPS, state)
    text, pointer = "mbarrier.arrive.shared::cta.b64 _, [$0];", barrier_pointer(op, state)
    inline_asm(text, ["r"], [pointer], [], guard=guard)


def _require_one_warp(op: gpu_tile.BarrierArriveOp | RemoteArriveOp, state: Lowering) -> None:
    if not state.in_role or state.num_threads != state.context.target.warp_size:
        raise error_at(op.operation, "only a role of one thread or one warp arrives once")


def lower_remote_arrive(op: RemoteArriveOp, state: Lowering) -> None:
    """Lowers to mbarrier.arrive at the same place in other CTAs, each by a thread of its own.

    Of a warp or warpgroup thread r arrives in the CTA of rank r, where the mask has it; one thread
    after the other would arrive for all of them otherwise. What threads did is released in the
    cluster's scope, by a fence that takes longer than a product. Instructions that were waited for
    are over, and a relaxed arrival says so.
    """
    order = "relaxed" if op.per == "warpgroup" and _has_relaxed(op, state) else "release"
    ranks = prod(state.cluster)
    pointer, mask = barrier_pointer(op, state), state.values[op.mask]
    if op.per == "thread" or (op.per == "once" and state.alone):
        known = constant_of(mask)
        for rank in range(ranks):
            if known is not None and not known >> rank & 1:
                continue
            number = state.i32_constant(rank)
            _arrive_at(number, pointer, _has(mask, number, state), order)
        return
    threads = state.context.target.warp_size
    if op.per == "once":
        _require_one_warp(op, state)
    if op.per != "warpgroup":
        inline_asm("bar.warp.sync 0xffffffff;", [], [], [])
    else:
        threads *= WARPGROUP_WARPS
    number = state.arith("andi", state.thread(), threads - 1)
    one_of_them = compare("ult", number, state.i32_constant(ranks))
    guard = state.arith("andi", one_of_them, _has(mask, number, state))
    _arrive_at(number, pointer, guard, order)


def _has(mask: ir.Value, rank: ir.Value, state: Lowering) -> ir.Value:
    """Whether a mask has the CTA of a rank (i1)."""
    if constant_of(mask) == (1 << prod(state.cluster)) - 1:
        return state.constant(state.i1, 1)
    # Ranks are those of a cluster wherever this counts; a shift by more would be undefined.
    inside = state.arith("andi", rank, prod(state.cluster) - 1)
    bit = state.arith("shrui", mask, inside)
    return create("arith.trunci", [bit], state.i1)


def _arrive_at(rank: ir.Value, pointer: ir.Value, guard: ir.Value, order: str) -> None:
    text = (
        "{\n\t.reg .b32 remote;\n\t"
        "mapa.shared::cluster.u32 remote, $0, $1;\n\t"
        f"@$2 mbarrier.arrive.{order}.cluster.shared::cluster.b64 _, [remote];\n\t}}"
    )
    inline_asm(text, ["r", "r", "b"], [pointer, rank, guard], [])


def lower_wait(op: gpu_tile.BarrierWaitOp, state: Lowering) -> None:
    """Repeats mbarrier.try_wait.parity until it succeeds; it suspends the thread by itself.

    Where threads of other CTAs release, it acquires in the cluster's scope.
    """
    remote = {arrive.per == "warpgroup" for arrive in users(op.barrier, RemoteArriveOp)}
    relaxed = all(remote) and _has_relaxed(op, state)
    order = "" if not remote else ".relaxed.cluster" if relaxed else ".acquire.cluster"
    parity = create("arith.extui", [state.values[op.parity]], state.i32)
    text = (
        "{\n\t.reg .pred complete;\n"
        "again:\n\t"
        f"mbarrier.try_wait.parity{order}.shared::cta.b64 complete, [$0], $1;\n\t"
        "@!complete bra again;\n\t}"
    )
    inline_asm(text, ["r", "r"], [barrier_pointer(op, state), parity], [])


def lower_cp_async_arrive(op: gpu_tile.CpAsyncArriveOp, state: Lowering) -> None:
    """Lowers to cp.async.mbarrier.arrive.noinc: the barrier counts these arrivals from the
    start."""
    text = "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [$0];"
    inline_asm(text, ["r"], [barrier_pointer(op, state)], [])


def _has_relaxed(op: ir.OpView, state: Lowering) -> bool:
    """Whether the program may say that an operation on a barrier orders nothing else."""
    version = state.context.ptx_version
    if version < RELAXED:
        why = f"PTX ISA {shown(version)} has no relaxed one, {shown(RELAXED)} does"
        chosen = f"{op.operation.name} orders what is around it"
        state.context.report.add("barrier", op.operation, chosen, why)
    return version >= RELAXED


def _first_of(threads: int, state: Lowering) -> ir.Value:
    """Whether this is the first of every so many threads (i1)."""
    number = state.arith("andi", state.thread(), threads - 1)
    return compare("eq", number, state.i32_constant(0))


RULES = {
    gpu_tile.BarrierInitOp: lower_init,
    gpu_tile.BarrierExpectOp: lower_expect,
    gpu_tile.BarrierArriveOp: lower_arrive,
    RemoteArriveOp: lower_remote_arrive,
    gpu_tile.BarrierWaitOp: lower_wait,
    gpu_tile.CpAsyncArriveOp: lower_cp_async_arrive,
}
