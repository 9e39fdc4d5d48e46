"""Clusters: CTAs that run side by side and reach each other's shared memory (PTX ISA 9.0, "Cluster
of Cooperative Thread Arrays").

The programs of a cluster are a box of the launch grid, `tile.cluster` of the kernel. A CTA's rank
counts through that box, its first axis fastest; a set of CTAs is a mask, bit r for rank r.
"""

from __future__ import annotations

from math import prod
from typing import Any

from mlir import ir

from tilec.dialects.attributes import INT, INTS, one_of
from tilec.dialects.constraints import BUFFER, I32, TILE
from tilec.dialects.demands import demanded
from tilec.dialects.gpu_tile.dialect import Op
from tilec.dialects.gpu_tile.schedule import LaunchCount
from tilec.dialects.gpu_tile.types import buffer_of
from tilec.dialects.op import Attribute, Operand, Result
from tilec.dialects.types import count_stripes, element, shape, show
from tilec.hardware.sizes import PORTABLE_CTAS
from tilec.hardware.target import Feature
from tilec.terms.demands import CLUSTER


def cluster_shape(function: ir.Operation) -> tuple[int, int, int]:
    """Programs of a kernel's cluster along x, y, z; 1, 1, 1 without clusters.

    ValueError for what no cluster has.
    """
    x, y, z = (*(demanded(function, CLUSTER) or ()), 1, 1, 1)[:3]
    count = x * y * z
    if count > PORTABLE_CTAS or count & (count - 1):
        raise ValueError(f"a cluster has 1, 2, 4 or {PORTABLE_CTAS} CTAs, found {x} x {y} x {z}")
    return x, y, z


def ctas_alike(shape: tuple[int, ...], axes: tuple[int, ...]) -> list[int]:
    """Ranks of the CTAs that differ from the first one along `axes` only."""
    ranks = range(prod(shape))
    return [r for r in ranks if all(axis in axes or not p for axis, p in enumerate(at(shape, r)))]


def at(shape: tuple[int, ...], rank: int) -> list[int]:
    """The place of a rank in its cluster, along each axis."""
    found = []
    for size in shape:
        found.append(rank % size)
        rank //= size
    return found


class _AboutTheCluster(Op, pure=True, needs=Feature.CLUSTERS, one_thread=True, in_cta=True):
    """An op that asks where in its cluster a CTA is, or what that is like."""

    result = Result(I32)

    @classmethod
    def infer_types(cls, *_: Any, **__: Any) -> list[ir.Type]:
        return [ir.IntegerType.get_signless(32)]


class ClusterIdOp(LaunchCount, name="cluster_id", needs=Feature.CLUSTERS, least=0):
    """The number of this CTA's cluster in the launch of a persistent kernel.

    Example:
        %first = "gpu_tile.cluster_id"() : () -> i32
    """


class NumClustersOp(LaunchCount, name="num_clusters", needs=Feature.CLUSTERS, least=1):
    """Gives how many clusters the launch of a persistent kernel has.

    Example:
        %step = "gpu_tile.num_clusters"() : () -> i32
    """


class ClusterPositionOp(_AboutTheCluster, name="cluster_position", least=0):
    """Gives where this CTA's program is in the box of its cluster, along one axis of the grid.

    Example:
        %x = "gpu_tile.cluster_position"() {axis = 0 : i32} : () -> i32
    """

    axis = Attribute(INT)

    def check(self) -> str | None:
        return None if 0 <= self.axis <= 2 else f"axis must be 0, 1 or 2, found {self.axis}"


class ClusterMaskOp(_AboutTheCluster, name="cluster_mask"):
    """The CTAs of the cluster that differ from this one along `axes` only, itself among them.

    Example:
        %row = "gpu_tile.cluster_mask"() {axes = array<i32: 1>} : () -> i32
    """

    axes = Attribute(INTS)

    def check(self) -> str | None:
        if len(set(self.axes)) < len(self.axes) or any(not 0 <= a <= 2 for a in self.axes):
            return f"axes must be distinct and 0, 1 or 2, found {list(self.axes)}"
        return None


class ClusterSyncOp(Op, name="cluster_sync", needs=Feature.CLUSTERS, in_cta=True):
    """All threads of the cluster meet.

    "acq_rel" orders their accesses to memory, also to each other's shared memory. "relaxed" tells
    that all are there, and of barriers that a `fence` of kind "barrier_init" followed.

    Example:
        "gpu_tile.cluster_sync"() {order = "relaxed"} : () -> ()
    """

    order = Attribute(one_of("acq_rel", "relaxed"), default="acq_rel")


class ClusterStoreOp(
    Op, name="cluster_store", needs=Feature.CLUSTERS, in_cta=True, own_buffers=True
):
    """Writes one element to `dst` of every CTA of the cluster, at the rank of this one.

    All CTAs must have begun, and none end before a `cluster_sync` behind it.

    Example:
        "gpu_tile.cluster_store"(%sum, %sums) : (tensor<f32, #gpu_tile.layout<"T(128):(0) V():()">>, !gpu_tile.buffer<tensor<8xf32>, #gpu_tile.shared<"(8):(1)">>) -> ()
    """

    value = Operand(TILE)
    dst = Operand(BUFFER, writes=True)

    def check(self) -> str | None:
        to = buffer_of(self.dst)
        if shape(self.value):
            return f"value must be one element, found {show(shape(self.value))}"
        if len(to.shape) != 1 or to.element != element(self.value):
            return f"dst must be a row of {element(self.value)}, found {self.dst.type}"
        return None


class ClusterSendOp(Op, name="cluster_send", needs=Feature.CLUSTERS, in_cta=True, own_buffers=True):
    """Writes a tile from registers to CTAs of the cluster: its stripes along `axis`, each as large as
    `dst`, to `dst` of the CTA of their number, whoever runs it.

    All CTAs must have begun, and they read behind a `cluster_sync` that follows.

    Example:
        "gpu_tile.cluster_send"(%sums, %slot) {axis = 0 : i32} : (tensor<64x64xf32, #gpu_tile.layout<"T(16,8):(4@1,1@0) V(4,8):(1@1,8@0)">>, !gpu_tile.buffer<tensor<16x64xf32>, #gpu_tile.shared<"(16,64):(68,1)">>) -> ()
    """

    value = Operand(TILE)
    dst = Operand(BUFFER, writes=True)
    axis = Attribute(INT)

    def check(self) -> str | None:
        to, sizes = buffer_of(self.dst), shape(self.value)
        if not 0 <= self.axis < len(sizes):
            return f"axis {self.axis} is out of range for rank {len(sizes)}"
        if to.element == element(self.value) and count_stripes(sizes, to.shape, self.axis):
            return None
        return f"dst must be a buffer for a stripe of {self.value.type}, found {self.dst.type}"
