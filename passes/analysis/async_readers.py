"""The ops that read buffers long after they are issued: tensor cores and the copy engine.

They see what threads wrote behind a fence only (insert-fences), and what they read may be written
again behind a wait only (insert-barriers, lifetimes, rings): wgmma_wait, tma_wait, or the mbarrier
at which products arrive. `warp_tma_store` is none of them: it fences and waits by itself.
"""

from __future__ import annotations

import functools

from mlir import ir

from tilec.dialects.effects import until
from tilec.dialects.op import TileOp, names_where
from tilec.dialects.traits import Until
from tilec.passes.analysis.signals import Place, products_arrive_at, waits_at
from tilec.passes.rewriting.loops import top_level
from tilec.passes.rewriting.walk import ops_named, role_of


def ends_with_products(view: ir.OpView) -> bool:
    """Whether one thread issues an op and learns that it is done by an arrival of products: the
    next ring_publish, ring_release or commit `by = "products"` of that thread."""
    return until(view) is Until.PRODUCTS_TOLD


def reads_for_products(view: ir.OpView) -> bool:
    """Whether tensor cores read the buffers of an op."""
    return until(view) in (Until.PRODUCTS_TOLD, Until.PRODUCTS_WAITED)


def awaited(multiply: TileOp) -> ir.Operation | None:
    """The wait behind which `multiply` is done; None if nobody waits for it.

    It is the first wait in the instruction's own block for where its end arrives, else the last
    such wait in its role.
    """
    places: list[Place] = []
    issued = False
    for view in multiply.operation.block.operations:
        issued = issued or view.operation == multiply.operation
        place = products_arrive_at(view)
        if issued and place is not None:
            places.append(place)
        elif waits_at(view) in places:
            return view.operation
    inside = role_of(multiply.operation) or top_level(multiply.operation).parent
    waits = [op for op in ops_named(inside, _waits()) if waits_at(op.opview) in places]
    return waits[-1] if waits else None


@functools.cache
def _waits() -> frozenset[str]:
    return names_where(lambda kind: kind.waits_at is not TileOp.waits_at)
