"""Lowers mbarriers: made by one thread, arrived at per thread, warp or warpgroup, waited for in a
loop.

PTX ISA 9.0, "mbarrier": arriving releases, a successful wait acquires, both in the CTA's scope.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.dialects import gpu_tile
from tilec.dialects.gpu_tile.role import WARPGROUP_WARPS
from tilec.passes.lower_to_nvvm.access import inline_asm
from tilec.passes.lower_to_nvvm.shared_address import barrier_pointer
from tilec.passes.lower_to_nvvm.state import Barriers, Lowering, compare, create


def lower_init(op: gpu_tile.BarrierInitOp, state: Lowering) -> None:
    """mbarrier.init of every slot."""
    barriers = Barriers(state.i32_constant(op.options["offset"]))
    state.values[op.result] = barriers
    for slot in range(op.slots):
        pointer = barrier_pointer(barriers, state.i32_constant(slot), state)
        _issue(f"mbarrier.init.shared::cta.b64 [$0], {op.count};", [pointer], state.single_thread())


def lower_expect(op: gpu_tile.BarrierExpectOp, state: Lowering) -> None:
    """mbarrier.arrive.expect_tx by one thread."""
    text = f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], {op.bytes};"
    _issue(text, [_pointer(op, state)], state.single_thread())


def lower_arrive(op: gpu_tile.BarrierArriveOp, state: Lowering) -> None:
    """mbarrier.arrive by every thread, or by the first of each warp or warpgroup.

    A warp's lanes meet first: its arrival stands for what all of them did. A warpgroup's is for
    instructions that it waited for together.
    """
    guard = None
    if op.per == "warp":
        inline_asm("bar.warp.sync 0xffffffff;", [], [], [])
        guard = _first_of(state.context.target.warp_size, state)
    elif op.per == "warpgroup":
        guard = _first_of(state.context.target.warp_size * WARPGROUP_WARPS, state)
    _issue("mbarrier.arrive.shared::cta.b64 _, [$0];", [_pointer(op, state)], guard)


def lower_wait(op: gpu_tile.BarrierWaitOp, state: Lowering) -> None:
    """mbarrier.try_wait.parity until it succeeds; it suspends the thread by itself."""
    parity = create("arith.extui", [state.values[op.parity]], state.i32)
    text = (
        "{\n\t.reg .pred complete;\n"
        "again:\n\t"
        "mbarrier.try_wait.parity.shared::cta.b64 complete, [$0], $1;\n\t"
        "@!complete bra again;\n\t}"
    )
    inline_asm(text, ["r", "r"], [_pointer(op, state), parity], [])


def lower_cp_async_arrive(op: gpu_tile.CpAsyncArriveOp, state: Lowering) -> None:
    """cp.async.mbarrier.arrive.noinc: the barrier counts these arrivals from the start."""
    text = "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [$0];"
    inline_asm(text, ["r"], [_pointer(op, state)], [])


def _pointer(op: ir.OpView, state: Lowering) -> ir.Value:
    return barrier_pointer(state.values[op.barrier], state.values[op.slot], state)


def _first_of(threads: int, state: Lowering) -> ir.Value:
    """Whether this is the first of every so many threads (i1)."""
    mask = state.i32_constant(threads - 1)
    number = create("arith.andi", [state.thread(), mask], state.i32)
    return compare("eq", number, state.i32_constant(0))


def _issue(text: str, pointers: Sequence[ir.Value], guard: ir.Value | None) -> None:
    """Runs `text` where `guard` holds (None: everywhere)."""
    if guard is None:
        inline_asm(text, ["r"], pointers, [])
    else:
        inline_asm(f"@$1 {text}", ["r", "b"], [*pointers, guard], [])


RULES = {
    gpu_tile.BarrierInitOp: lower_init,
    gpu_tile.BarrierExpectOp: lower_expect,
    gpu_tile.BarrierArriveOp: lower_arrive,
    gpu_tile.BarrierWaitOp: lower_wait,
    gpu_tile.CpAsyncArriveOp: lower_cp_async_arrive,
}
