"""Which ops of a program a pass looks at, and what they belong to."""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from tilec.dialects.gpu_tile import (
    AllocOp,
    ReshapeViewOp,
    RoleOp,
    SlotOp,
    TransposeViewOp,
    ViewOp,
)
from tilec.dialects.op import TileOp

VIEWS = (ViewOp, SlotOp, ReshapeViewOp, TransposeViewOp)
"""Ops whose result is (a part of) the buffer that is their first operand."""


def kernels(module: ir.Module) -> Iterator[ir.Operation]:
    """The functions of a module."""
    for view in module.body.operations:
        if view.operation.name == "func.func":
            yield view.operation


def kernel_of(op: ir.Operation) -> ir.Operation:
    """The function around an op (or that op)."""
    while op.name != "func.func":
        op = op.parent
    return op


def is_pure(op: ir.Operation) -> bool:
    """Whether an op of our dialects does nothing but compute its results."""
    view = op.opview
    return isinstance(view, TileOp) and view.PURE


def find_ops(inside: ir.Operation, *kinds: type) -> list[ir.Operation]:
    """The ops of these classes inside an op (or that op), in program order."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if isinstance(op.opview, kinds):
            found.append(op)
        return ir.WalkResult.ADVANCE

    inside.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def role_of(op: ir.Operation) -> ir.Operation | None:
    """The role around an op (or that op), None outside."""
    at = op
    while at is not None and not isinstance(at.opview, RoleOp):
        at = at.parent
    return at


def users_of(buffer: ir.Value) -> Iterator[ir.Operation]:
    """The ops that read or write a buffer, a slot or a part of it, or a view of those."""
    for use in buffer.uses:
        user = use.owner.operation
        if isinstance(user.opview, VIEWS):
            yield from users_of(user.results[0])
        else:
            yield user


def alloc_of(buffer: ir.Value) -> AllocOp:
    """The alloc whose memory a buffer, a slot or a view lies in."""
    op = buffer.owner
    while not isinstance(op, AllocOp):
        op = op.src.owner
    return op
