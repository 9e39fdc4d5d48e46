"""Who tells whom: what arrives at the two sides of a ring, or at mbarriers, and who waits there."""

from __future__ import annotations

from mlir import ir

from tilec.dialects.def_use import users
from tilec.dialects.gpu_tile.mbarrier import BY_THREADS, PRODUCTS
from tilec.dialects.op import TileOp
from tilec.dialects.traits import Place


def waits_at(view: ir.OpView) -> Place | None:
    """The place, a side of a ring or an mbarrier, that an op waits at; None if it waits for
    nothing."""
    return view.waits_at() if isinstance(view, TileOp) else None


def products_arrive_at(view: ir.OpView) -> Place | None:
    """The place at which an op makes the end of products arrive, None if it does not."""
    return _arrive_at(view, PRODUCTS)


def threads_arrive_at(view: ir.OpView) -> Place | None:
    """The place at which the threads of an op arrive, None if they do not."""
    return _arrive_at(view, BY_THREADS)


def _arrive_at(view: ir.OpView, what: str) -> Place | None:
    found = view.arrives_at() if isinstance(view, TileOp) else None
    return found[0] if found is not None and found[1] == what else None


def ends_products(wait: ir.OpView) -> bool:
    """Whether products arrive at what an op waits at."""
    place = waits_at(wait)
    if place is None:
        return False
    return any(products_arrive_at(user) == place for user in users(place[0]))


def hears_of_threads_or_products(wait: ir.OpView) -> bool:
    """Whether more than copies arrive at what an op waits at."""
    place = waits_at(wait)
    if place is None:
        return False
    return any(place in (products_arrive_at(u), threads_arrive_at(u)) for u in users(place[0]))
