"""Who tells whom: what arrives at the two sides of a ring, or at mbarriers, and who waits there."""

from __future__ import annotations

from mlir import ir

from tilec.dialects.gpu_tile import (
    BarrierArriveOp,
    BarrierWaitOp,
    RemoteArriveOp,
    RingAcquireOp,
    RingPublishOp,
    RingWaitOp,
    Tcgen05CommitOp,
    Tcgen05MulticastCommitOp,
)
from tilec.dialects.gpu_tile.ring import COPIES, PRODUCTS, RingHandover

Place = tuple[ir.Value, str]
"""A ring and its side, "full" or "free"; mbarriers, and ""."""

WAITS = (BarrierWaitOp, RingAcquireOp, RingWaitOp)
"""Ops that wait for what others do."""
_COMMITS = (Tcgen05CommitOp, Tcgen05MulticastCommitOp)


def waits_at(view: ir.OpView) -> Place | None:
    """What an op waits at, None if for nothing."""
    if isinstance(view, BarrierWaitOp):
        return view.barrier, ""
    if isinstance(view, RingWaitOp):
        return view.ring, "full"
    return (view.ring, "free") if isinstance(view, RingAcquireOp) else None


def products_arrive_at(view: ir.OpView) -> Place | None:
    """Where an op lets the end of products arrive, None if it does not."""
    if isinstance(view, _COMMITS):
        return view.barrier, ""
    if isinstance(view, RingHandover) and view.by == PRODUCTS:
        return view.ring, _side(view)
    return None


def threads_arrive_at(view: ir.OpView) -> Place | None:
    """Where the threads of an op arrive, None if they do not."""
    if isinstance(view, (BarrierArriveOp, RemoteArriveOp)):
        return view.barrier, ""
    if isinstance(view, RingHandover) and view.by not in (COPIES, PRODUCTS):
        return view.ring, _side(view)
    return None


def ends_products(wait: ir.OpView) -> bool:
    """Whether products arrive at what an op waits at."""
    place = waits_at(wait)
    if place is None:
        return False
    return any(products_arrive_at(use.owner.opview) == place for use in place[0].uses)


def hears_of_threads_or_products(wait: ir.OpView) -> bool:
    """Whether more than copies arrive at what an op waits at."""
    place = waits_at(wait)
    if place is None:
        return False
    users = [use.owner.opview for use in place[0].uses]
    return any(place in (products_arrive_at(u), threads_arrive_at(u)) for u in users)


def _side(view: RingHandover) -> str:
    return "full" if isinstance(view, RingPublishOp) else "free"
