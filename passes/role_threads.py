"""Which roles one thread runs alone."""

from __future__ import annotations

from mlir import ir

from tilec.dialects import gpu_tile
from tilec.dialects.gpu_tile.types import is_pending
from tilec.dialects.types import is_tile
from tilec.passes.program_slice import is_one_element

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
    gpu_tile.RingPositionOp,
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
_ARRIVALS = (gpu_tile.BarrierArriveOp, gpu_tile.RemoteArriveOp)
_SCALAR_PREFIXES = ("arith.", "math.", "scf.", "memref.dim", "gpu.yield")
_SCALAR_OPS = ("tile.program_id", "tile.num_programs", "tile.assume")


def runs_in_one_thread(role: gpu_tile.RoleOp) -> bool:
    """Whether the body holds nothing but scalars and what one thread does for all."""
    fits = True

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal fits
        known = isinstance(op.opview, _ONE_THREAD_OPS)
        known |= isinstance(op.opview, _ARRIVALS) and op.opview.per == "once"
        known |= op.name.startswith(_SCALAR_PREFIXES) or op.name in _SCALAR_OPS
        tiles = any(is_tile(v) or is_pending(v) for v in [*op.operands, *op.results])
        # A constant tile that was moved in here has no instruction of its own.
        scalar = known and (not tiles or op.name == "arith.constant")
        fits = fits and (scalar or is_one_element(op))
        return ir.WalkResult.ADVANCE

    for view in role.body.operations:
        view.operation.walk(visit)
    return fits
