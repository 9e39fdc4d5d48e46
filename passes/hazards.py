"""What forbids reading an array earlier than the program says."""

from __future__ import annotations

from collections.abc import Collection

from mlir import ir

from tilec.dialects.tile import (
    AtomicCasOp,
    AtomicRmwOp,
    FenceOp,
    InlinePtxOp,
    ScatterOp,
    StoreOp,
)


def read_ahead_hazard(op: ir.Operation, arrays: Collection[ir.Value], where: str) -> str | None:
    """An op inside `op` ("where": what to call it) that writes one of `arrays` or orders memory.

    Arrays that are different arguments are taken not to overlap.
    """
    found: list[str] = []

    def visit(inner: ir.Operation) -> ir.WalkResult:
        view = inner.opview
        atomic = isinstance(view, (AtomicRmwOp, AtomicCasOp))
        if (isinstance(view, (StoreOp, ScatterOp)) or atomic) and view.dst in arrays:
            found.append(f"'{inner.name}' in {where} writes an array that a copy reads")
        if isinstance(view, FenceOp) or (atomic and view.order != "relaxed"):
            found.append(f"'{inner.name}' in {where} orders memory accesses")
        if isinstance(view, InlinePtxOp) and not view.pure:
            found.append(f"'{inner.name}' in {where} may write memory")
        return ir.WalkResult.ADVANCE

    op.walk(visit)
    return found[0] if found else None
