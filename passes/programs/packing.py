"""Which programs may share a CTA, side by side and one behind the other: pass pack-programs."""

from __future__ import annotations

from mlir import ir

from tilec.dialects.gpu_tile import LaunchCount, MakeRingOp, RoleOp, TensorMapLoad, TmaCommitOp
from tilec.passes.analysis.hazards import may_wait
from tilec.passes.demands.kernels import ALONE, PERSISTENT, ctas_of, demanded_cluster
from tilec.passes.rewriting.walk import all_ops, find_ops


def why_alone(function: ir.Operation) -> str | None:
    """What forbids that programs of one warp share a CTA; None if nothing does."""
    if PERSISTENT in function.attributes or demanded_cluster(function) != ALONE:
        return "their order, or their cluster, was decided"
    if ctas_of(function) > 1:
        return "each is run by several CTAs"
    if find_ops(function, LaunchCount):
        return "the kernel orders its programs itself"
    if find_ops(function, RoleOp, MakeRingOp, TensorMapLoad, TmaCommitOp):
        return "copies of theirs arrive in rings"
    if any(may_wait(op.opview) for op in all_ops(function)):
        return "one may wait for what others do"
    return None
