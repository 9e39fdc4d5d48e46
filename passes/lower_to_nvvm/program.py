"""Lowers what asks about the launch: program ids, array sizes, fences; facts have served and
vanish."""

from __future__ import annotations

from mlir import ir

from tilec.dialects import gpu_tile, tile
from tilec.hardware.sizes import WARP_SIZE
from tilec.messages.diagnostics import InternalError
from tilec.passes.analysis.divisibility import constant_of
from tilec.passes.lower_to_nvvm.access import inline_asm
from tilec.passes.lower_to_nvvm.atomics import check_scope
from tilec.passes.lower_to_nvvm.state import Lowering
from tilec.passes.lower_to_nvvm.tile_order import lower_tile_order
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.scalars import resized

_AXES = "xyz"


def _special_register(name: str, axis: int, state: Lowering) -> ir.Value:
    value = state.special(f"{name}.{_AXES[axis]}")
    if axis == 0 and state.ctas_per_program > 1:
        value = state.arith("divui", value, state.ctas_per_program)
    return resized(value, state.index, signed=False)


def lower_program_id(op: tile.ProgramIdOp, state: Lowering) -> None:
    """Lowers to %ctaid. CompileError in a launch of one dimension, where that is no program's
    number."""
    if state.grid is not None:
        raise error_at(
            op.operation,
            "the launch of a persistent kernel, or of clusters, has one dimension: a program's "
            "number comes from gpu_tile.cta_id or gpu_tile.cluster_id",
        )
    state.values[op.result] = _special_register("ctaid", op.axis, state)


def lower_num_programs(op: tile.NumProgramsOp, state: Lowering) -> None:
    """Lowers to %nctaid, or to a parameter where the launch has fewer CTAs than programs."""
    if state.grid is not None:
        state.values[op.result] = state.to_index(state.grid[op.axis])
        return
    state.values[op.result] = _special_register("nctaid", op.axis, state)


_OF_ONE_DIMENSION = {
    gpu_tile.CtaIdOp: "ctaid.x",
    gpu_tile.NumCtasOp: "nctaid.x",
    gpu_tile.ClusterIdOp: "clusterid.x",
    gpu_tile.NumClustersOp: "nclusterid.x",
}
"""Special registers of a launch that has one dimension: persistent, or of clusters."""


def lower_place(op: ir.OpView, state: Lowering) -> None:
    """Lowers to the special register that `_OF_ONE_DIMENSION` names."""
    state.values[op.result] = state.special(_OF_ONE_DIMENSION[type(op)])


def lower_program_in_cta(op: gpu_tile.ProgramInCtaOp, state: Lowering) -> None:
    """Lowers to the number of this warp."""
    state.values[op.result] = state.program_in_cta()


def lower_programs_in_cta(op: gpu_tile.NumProgramsInCtaOp, state: Lowering) -> None:
    """Lowers to %ntid.x in programs."""
    threads = state.special("ntid.x")
    state.values[op.result] = state.arith("shrui", threads, state.total_threads.bit_length() - 1)


def lower_dim(op: ir.Operation, state: Lowering) -> None:
    """Lowers memref.dim of an argument to its size parameter."""
    axis = constant_of(op.operands[1])
    if axis is None:
        raise InternalError("memref.dim of a run-time dimension reached the lowering")
    state.values[op.results[0]] = state.values[op.operands[0]].sizes[axis]


def lower_assume(op: tile.AssumeOp, state: Lowering) -> None:
    """Facts were read by the analyses; no code remains."""


def lower_fence(op: tile.FenceOp, state: Lowering) -> None:
    """Writes PTX's `fence` as text, since LLVM drops the scope of its own."""
    check_scope(op, state)
    order = {"acq_rel": "acq_rel", "seq_cst": "sc"}[op.order]
    inline_asm(f"fence.{order}.{op.scope};", [], [], [])


def lower_sync(op: gpu_tile.SyncOp, state: Lowering) -> None:
    """Lowers to `bar.sync 0` for barrier 0 of the whole CTA; other barriers name their threads. A
    CTA of one warp meets as that, without a barrier, which ptxas 13.0 leaves where it is. One of
    several programs in a CTA is a warp, or a part of one, which meets alone."""
    threads = op.warps * state.context.target.warp_size
    whole = op.mode == "sync" and op.barrier == 0 and threads == state.total_threads
    if state.programs_per_cta > 1 or (whole and threads == WARP_SIZE):
        if state.lanes == WARP_SIZE:
            inline_asm("bar.warp.sync 0xffffffff;", [], [], [])
        else:
            inline_asm("bar.warp.sync $0;", ["r"], [state.members()], [])
        return
    if whole:
        ir.Operation.create("nvvm.barrier0")
        return
    inline_asm(f"bar.{op.mode} {op.barrier}, {threads};", [], [], [])


_PROXY_FENCES = {
    "async_shared": "fence.proxy.async.shared::cta;",
    "async_global": "fence.proxy.async.global;",
    "barrier_init": "fence.mbarrier_init.release.cluster;",
    "tcgen05_before": "tcgen05.fence::before_thread_sync;",
    "tcgen05_after": "tcgen05.fence::after_thread_sync;",
}


def lower_proxy_fence(op: gpu_tile.FenceOp, state: Lowering) -> None:
    """Lowers to fence.proxy.async, fence.mbarrier_init, or one of tcgen05."""
    inline_asm(_PROXY_FENCES[op.kind], [], [], [])


def lower_griddepcontrol(op: gpu_tile.GriddepcontrolOp, state: Lowering) -> None:
    """Lowers to griddepcontrol. What stands behind a wait stays there: it counts as a write to
    memory."""
    inline_asm(f"griddepcontrol.{op.kind};", [], [], [])


RULES = {
    tile.ProgramIdOp: lower_program_id,
    tile.NumProgramsOp: lower_num_programs,
    tile.AssumeOp: lower_assume,
    tile.FenceOp: lower_fence,
    gpu_tile.SyncOp: lower_sync,
    gpu_tile.FenceOp: lower_proxy_fence,
    gpu_tile.GriddepcontrolOp: lower_griddepcontrol,
    gpu_tile.TileOrderOp: lower_tile_order,
    **dict.fromkeys(_OF_ONE_DIMENSION, lower_place),
    gpu_tile.ProgramInCtaOp: lower_program_in_cta,
    gpu_tile.NumProgramsInCtaOp: lower_programs_in_cta,
    "memref.dim": lower_dim,
}
