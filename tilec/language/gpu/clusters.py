"""CTAs that run side by side as a cluster: `@tilec.kernel(persistent=True, cluster=(2, 1))`.

A CTA's rank counts through the box of programs, its first axis fastest; a set of CTAs is a mask,
bit r for rank r.
"""

from __future__ import annotations

from typing import Any

from tilec.language.builtin import builtin

__all__ = [
    "cluster_id",
    "cluster_mask",
    "cluster_position",
    "cluster_sync",
    "num_clusters",
    "remote_arrive",
    "tma_multicast",
    "tma_pair_load",
]


@builtin
def cluster_id() -> Any:
    """The number of this CTA's cluster in the launch of a persistent kernel, an i32.

    As many clusters are launched as run side by side, at most what holds `tl.num_programs`.
    """


@builtin
def num_clusters() -> Any:
    """How many clusters the launch of a persistent kernel has, an i32."""


@builtin
def cluster_position(axis: int) -> Any:
    """Where this CTA is in the box of its cluster along an axis of the grid, an i32."""


@builtin
def cluster_mask(axes: Any) -> Any:
    """The CTAs that differ from this one along `axes` only, itself among them, an i32."""


@builtin
def cluster_sync(order: str = "acq_rel") -> Any:
    """All threads of the cluster meet.

    "acq_rel" orders their accesses; "relaxed" tells that all are there, and of barriers that a
    `fence("barrier_init")` followed. A CTA whose barriers others still arrive at must not end.
    """


@builtin
def remote_arrive(barrier: Any, slot: Any, mask: Any, per: str = "thread") -> Any:
    """`barrier_arrive` at `barrier[slot]` of every CTA that `mask` has."""


@builtin
def tma_multicast(
    map: Any,
    dst: Any,
    barrier: Any,
    slot: Any,
    mask: Any,
    coordinates: Any,
    cache: str = "normal",
) -> Any:
    """`tma_load` into `dst` of every CTA that `mask` has.

    The bytes arrive at `barrier[slot]` of each of them, which announces them itself.
    """


@builtin
def tma_pair_load(
    map: Any, dst: Any, barrier: Any, slot: Any, coordinates: Any, cache: str = "normal"
) -> Any:
    """`tma_load` whose bytes arrive at `barrier[slot]` of the CTA of even rank.

    That one announces the bytes of both of the pair, multiplies when they are there, and tells both
    by `tcgen05_multicast_commit`.
    """
