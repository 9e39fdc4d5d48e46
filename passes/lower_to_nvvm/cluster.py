"""Lowers what a CTA asks of its cluster: where it is, who is like it, and meeting the others.

A persistent launch has one dimension, and so have its clusters: ranks follow one another there.
PTX ISA 9.0, "%cluster_ctarank", "barrier.cluster".
"""

from __future__ import annotations

from math import prod

from mlir import ir

from tilec.dialects import gpu_tile
from tilec.dialects.gpu_tile.cluster import ctas_alike
from tilec.passes.lower_to_nvvm.scalar_ops import create
from tilec.passes.lower_to_nvvm.state import Lowering


def lower_cluster_id(op: gpu_tile.ClusterIdOp, state: Lowering) -> None:
    """%clusterid.x."""
    state.values[op.result] = create("nvvm.read.ptx.sreg.clusterid.x", [], state.i32)


def lower_num_clusters(op: gpu_tile.NumClustersOp, state: Lowering) -> None:
    """%nclusterid.x."""
    state.values[op.result] = create("nvvm.read.ptx.sreg.nclusterid.x", [], state.i32)


def lower_position(op: gpu_tile.ClusterPositionOp, state: Lowering) -> None:
    """One digit of the rank; the sizes are powers of two."""
    state.values[op.result] = _position(op.axis, state)


def lower_mask(op: gpu_tile.ClusterMaskOp, state: Lowering) -> None:
    """The group that the first CTA is in, moved to where this one is along the other axes."""
    mask = state.i32_constant(sum(1 << rank for rank in ctas_alike(state.cluster, op.axes)))
    for axis in range(3):
        if axis in op.axes or state.cluster[axis] == 1:
            continue
        step = state.i32_constant(prod(state.cluster[:axis]))
        shift = create("arith.muli", [_position(axis, state), step], state.i32)
        mask = create("arith.shli", [mask, shift], state.i32)
    state.values[op.result] = mask


def lower_sync(op: gpu_tile.ClusterSyncOp, state: Lowering) -> None:
    """barrier.cluster, whose arrival releases unless it is relaxed; lanes may come apart: one of a
    warp may still issue copies."""
    relaxed = ".relaxed" if op.order == "relaxed" else ""
    ir.Operation.create(f"nvvm.cluster.arrive{relaxed}")
    ir.Operation.create("nvvm.cluster.wait")


def _position(axis: int, state: Lowering) -> ir.Value:
    size, below = state.cluster[axis], prod(state.cluster[:axis])
    if size == 1:
        return state.i32_constant(0)
    rank = create("nvvm.read.ptx.sreg.cluster.ctarank", [], state.i32)
    if below > 1:
        rank = create("arith.divui", [rank, state.i32_constant(below)], state.i32)
    if below * size < prod(state.cluster):
        rank = create("arith.andi", [rank, state.i32_constant(size - 1)], state.i32)
    return rank


RULES = {
    gpu_tile.ClusterIdOp: lower_cluster_id,
    gpu_tile.NumClustersOp: lower_num_clusters,
    gpu_tile.ClusterPositionOp: lower_position,
    gpu_tile.ClusterMaskOp: lower_mask,
    gpu_tile.ClusterSyncOp: lower_sync,
}
