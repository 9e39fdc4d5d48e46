"""Which ops of a program a pass looks at."""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir


def kernels(module: ir.Module) -> Iterator[ir.Operation]:
    """The functions of a module."""
    for view in module.body.operations:
        if view.operation.name == "func.func":
            yield view.operation


def find_ops(inside: ir.Operation, *kinds: type) -> list[ir.Operation]:
    """The ops of these classes inside an op (or that op), in program order."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if isinstance(op.opview, kinds):
            found.append(op)
        return ir.WalkResult.ADVANCE

    inside.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found
