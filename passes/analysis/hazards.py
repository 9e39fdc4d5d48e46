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
from tilec.passes.rewriting.walk import kernel_of


def orders_memory(view: ir.OpView) -> bool:
    """Whether an op orders accesses to memory for other programs."""
    atomic = isinstance(view, (AtomicRmwOp, AtomicCasOp))
    return isinstance(view, FenceOp) or (atomic and view.order != "relaxed")


def read_ahead_hazard(op: ir.Operation, arrays: Collection[ir.Value], where: str) -> str | None:
    """An op inside `op` ("where": what to call it) that writes one of `arrays` or orders accesses
    to them.

    Arrays that are different arguments are taken not to overlap. One that the kernel does not write
    stays as it is while the kernel runs, so that nothing orders reads of it, unless an order of
    scope "sys" speaks of what is outside the launch.
    """
    found: list[str] = []
    is_written = _writes(op, arrays)

    def visit(inner: ir.Operation) -> ir.WalkResult:
        view = inner.opview
        atomic = isinstance(view, (AtomicRmwOp, AtomicCasOp))
        if (isinstance(view, (StoreOp, ScatterOp)) or atomic) and view.dst in arrays:
            found.append(f"'{inner.name}' in {where} writes an array that a copy reads")
        if orders_memory(view) and (is_written or view.scope == "sys"):
            found.append(f"'{inner.name}' in {where} orders memory accesses")
        if isinstance(view, InlinePtxOp) and not view.pure:
            found.append(f"'{inner.name}' in {where} may write memory")
        return ir.WalkResult.ADVANCE

    op.walk(visit)
    return found[0] if found else None


def _writes(op: ir.Operation, arrays: Collection[ir.Value]) -> bool:
    """Whether the kernel around `op` writes one of `arrays` anywhere."""
    found: list[ir.Operation] = []

    def visit(inner: ir.Operation) -> ir.WalkResult:
        view = inner.opview
        if isinstance(view, (StoreOp, ScatterOp, AtomicRmwOp, AtomicCasOp)) and view.dst in arrays:
            found.append(inner)
        return ir.WalkResult.ADVANCE

    kernel_of(op).walk(visit)
    return bool(found)
