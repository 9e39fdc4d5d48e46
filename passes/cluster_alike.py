"""What the CTAs of a cluster do alike, and where they meet."""

from __future__ import annotations

from mlir import ir

from tilec.dialects.gpu_tile import ClusterPositionOp, ClusterSyncOp, FenceOp, SyncOp
from tilec.dialects.gpu_tile.tma import TmaLoadOp
from tilec.passes.dependence import ops_behind
from tilec.passes.loops import enclosing_ops


def axes_of(load: TmaLoadOp) -> set[int]:
    """The axes of the cluster along which a copy differs in where it reads or whether it runs."""
    behind = ops_behind([*load.coordinates, *_control(load.operation)])
    return {op.opview.axis for op in behind if isinstance(op.opview, ClusterPositionOp)}


def _control(op: ir.Operation) -> list[ir.Value]:
    """What decides how often an op runs."""
    found: list[ir.Value] = []
    for around in enclosing_ops(op):
        if around.name == "scf.for":
            found += list(around.operands)[:3]
        elif around.name == "scf.if":
            found.append(around.operands[0])
    return found


def meet(function: ir.Operation) -> None:
    """The cluster meets behind its barriers' making, instead of the CTA, and at its end."""
    body = function.regions[0].blocks[0]
    made = False
    for view in list(body.operations):
        made = made or (isinstance(view, FenceOp) and view.kind == "barrier_init")
        if made and isinstance(view, SyncOp):
            with ir.InsertionPoint(view.operation), view.operation.location:
                ClusterSyncOp.build(order="relaxed")
            view.operation.erase()
            break
    with ir.InsertionPoint(list(body.operations)[-1]), function.location:
        ClusterSyncOp.build(order="relaxed")
