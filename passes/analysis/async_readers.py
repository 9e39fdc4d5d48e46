"""The ops that read buffers long after they are issued: tensor cores and the copy engine.

They see what threads wrote behind a fence only (insert-fences), and what they read may be written
again behind a wait only (insert-barriers, lifetimes, rings): wgmma_wait, tma_wait, or the mbarrier
of a tcgen05_commit. `warp_tma_store` is none of them: it fences and waits by itself.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.gpu_tile import Tcgen05CopyOp, Tcgen05MmaOp, TmaStoreOp, WgmmaOp

PRODUCTS = (WgmmaOp, Tcgen05MmaOp)
"""Matrix instructions that take operands from buffers."""

COMMITTED = (Tcgen05MmaOp, Tcgen05CopyOp)
"""Issued by one thread, done when the mbarrier of its next commit is."""

ASYNC_READERS = (*PRODUCTS, Tcgen05CopyOp, TmaStoreOp)


def operands_read(reader: ir.OpView) -> list[ir.Value]:
    """What one of `ASYNC_READERS` reads but for an accumulator: buffers, and fragments of wgmma."""
    return [reader.lhs, reader.rhs] if isinstance(reader, PRODUCTS) else [reader.src]
