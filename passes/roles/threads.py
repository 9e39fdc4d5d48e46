"""Which roles one thread runs alone."""

from __future__ import annotations

from mlir import ir

from tilec.dialects import gpu_tile
from tilec.dialects.gpu_tile.ring import PRODUCTS
from tilec.dialects.gpu_tile.types import is_pending
from tilec.dialects.types import is_tile
from tilec.passes.rewriting.free_ops import is_one_element
from tilec.passes.rewriting.walk import find_ops

_ONE_THREAD_OPS = (
    gpu_tile.BarrierExpectOp,
    gpu_tile.BarrierWaitOp,
    gpu_tile.ClusterIdOp,
    gpu_tile.ClusterMaskOp,
    gpu_tile.ClusterPositionOp,
    gpu_tile.CtaIdOp,
    gpu_tile.GriddepcontrolOp,
    gpu_tile.MakeTensorMapOp,
    gpu_tile.NextProgramOp,
    gpu_tile.NextProgramReadOp,
    gpu_tile.NumClustersOp,
    gpu_tile.NumCtasOp,
    gpu_tile.RingAcquireOp,
    gpu_tile.RingAnnounceOp,
    gpu_tile.RingPositionOp,
    gpu_tile.RingSlotOp,
    gpu_tile.RingWaitOp,
    gpu_tile.ReshapeViewOp,
    gpu_tile.SlotOp,
    gpu_tile.Tcgen05CommitOp,
    gpu_tile.Tcgen05CopyOp,
    gpu_tile.Tcgen05MmaOp,
    gpu_tile.Tcgen05MulticastCommitOp,
    gpu_tile.TileOrderOp,
    gpu_tile.TmaCommitOp,
    gpu_tile.TmaLoadOp,
    gpu_tile.TmaMulticastOp,
    gpu_tile.TmaPairLoadOp,
    gpu_tile.TmaPairMulticastOp,
    gpu_tile.TmaStoreOp,
    gpu_tile.TmaWaitOp,
    gpu_tile.TransposeViewOp,
    gpu_tile.ViewOp,
)
"""Ops of `gpu_tile` that one thread may run for all."""
_ALONE_OPS = (
    gpu_tile.BarrierArriveOp,
    gpu_tile.NextProgramOp,
    gpu_tile.NextProgramReadOp,
    gpu_tile.RemoteArriveOp,
    gpu_tile.RingPublishOp,
    gpu_tile.RingReleaseOp,
    gpu_tile.Tcgen05CommitOp,
    gpu_tile.Tcgen05CopyOp,
    gpu_tile.Tcgen05MmaOp,
    gpu_tile.Tcgen05MulticastCommitOp,
    gpu_tile.TmaMulticastOp,
    gpu_tile.TmaPairLoadOp,
    gpu_tile.TmaPairMulticastOp,
    gpu_tile.TmaStoreOp,
)
"""Ops that no whole warp runs in a role that one thread could run."""
_ARRIVALS = (gpu_tile.BarrierArriveOp, gpu_tile.RemoteArriveOp)
_RING_ARRIVALS = (gpu_tile.RingPublishOp, gpu_tile.RingReleaseOp)
_SCALAR_PREFIXES = ("arith.", "math.", "scf.", "memref.dim", "gpu.yield")
_SCALAR_OPS = ("tile.program_id", "tile.num_programs", "tile.assume")


def runs_in_one_thread(role: gpu_tile.RoleOp) -> bool:
    """Whether the body holds nothing but scalars and what one thread does for all."""
    fits = True

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal fits
        fits = _is_for_one_thread(op) or is_one_element(op)
        return ir.WalkResult.ADVANCE if fits else ir.WalkResult.INTERRUPT

    for view in role.body.operations:
        if fits:
            view.operation.walk(visit)
    return fits


def runs_in_one_warp(role: gpu_tile.RoleOp) -> bool:
    """Whether a role that one thread could run does nothing but wait and issue tensor copies: a
    whole warp runs it, and elects a thread for each instruction.

    What one thread alone computes is in vector registers, and six moves to uniform registers stand
    between a wait and its copies. A whole warp computes in uniform registers, in front of the wait.
    """
    return (
        runs_in_one_thread(role)
        and bool(find_ops(role.operation, gpu_tile.TmaLoadOp))
        and not find_ops(role.operation, *_ALONE_OPS)
    )


def _is_for_one_thread(op: ir.Operation) -> bool:
    name, view = op.name, op.opview
    known = name.startswith(_SCALAR_PREFIXES) or name in _SCALAR_OPS
    known = known or isinstance(view, _ONE_THREAD_OPS)
    if not known and not _arrives_once(view):
        return False
    # A constant tile that was moved in here has no instruction of its own.
    return name == "arith.constant" or not any(
        is_tile(v) or is_pending(v) for v in (*op.operands, *op.results)
    )


def _arrives_once(view: ir.OpView) -> bool:
    if isinstance(view, _RING_ARRIVALS):
        return view.by in ("once", PRODUCTS)
    return isinstance(view, _ARRIVALS) and view.per == "once"
