"""The ops that read buffers long after they are issued: tensor cores and the copy engine.

They see what threads wrote behind a fence only (insert-fences), and what they read may be written
again behind a wait only (insert-barriers, lifetimes, rings): wgmma_wait, tma_wait, or the mbarrier
at which products arrive. `warp_tma_store` is none of them: it fences and waits by itself.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.gpu_tile import (
    Tcgen05CopyOp,
    Tcgen05MmaOp,
    TmaStoreOp,
    WgmmaOp,
)
from tilec.passes.analysis.signals import WAITS, Place, products_arrive_at, waits_at
from tilec.passes.rewriting.loops import top_level
from tilec.passes.rewriting.walk import find_ops, role_of

PRODUCTS = (WgmmaOp, Tcgen05MmaOp)
"""Matrix instructions that take operands from buffers."""

COMMITTED = (Tcgen05MmaOp, Tcgen05CopyOp)
"""Issued by one thread, done when what it publishes, or releases, by them next is known to be."""

ASYNC_READERS = (*PRODUCTS, Tcgen05CopyOp, TmaStoreOp)


def operands_read(reader: ir.OpView) -> list[ir.Value]:
    """What one of `ASYNC_READERS` reads but for an accumulator: buffers, and fragments of wgmma."""
    return [reader.lhs, reader.rhs] if isinstance(reader, PRODUCTS) else [reader.src]


def awaited(multiply: Tcgen05MmaOp | Tcgen05CopyOp) -> ir.Operation | None:
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
    waits = [op for op in find_ops(inside, *WAITS) if waits_at(op.opview) in places]
    return waits[-1] if waits else None
