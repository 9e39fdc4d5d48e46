"""Which ops of a program a pass looks at, and what they belong to."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from mlir import ir
from mlir.rewrite import RewritePatternSet, walk_and_apply_patterns

from tilec.dialects.gpu_tile import AllocOp, BufferView, RoleOp
from tilec.dialects.op import TileOp

MODULES = ("builtin.module", "gpu.module")
"""Ops that hold functions."""
_ADVANCE = ir.WalkResult.ADVANCE
"""Looked up once: that costs as much as a step of a walk."""


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


def all_ops(inside: ir.Operation, *, inner_first: bool = False) -> list[ir.Operation]:
    """An op and all ops inside it, in program order; with `inner_first` each behind those inside
    it."""
    found: list[ir.Operation] = []

    def note(op: ir.Operation) -> ir.WalkResult:
        found.append(op)
        return _ADVANCE

    inside.walk(note, ir.WalkOrder.POST_ORDER if inner_first else ir.WalkOrder.PRE_ORDER)
    return found


_BY_NAME: dict[tuple[type, ...], dict[str, bool]] = {}
"""Whether ops of a name are of these classes: a view takes seven times as long as a name."""


def find_ops(inside: ir.Operation, *kinds: type) -> list[ir.Operation]:
    """The ops of these classes inside an op (or that op), in program order."""
    known = _BY_NAME.setdefault(kinds, {})
    found = []
    for op in all_ops(inside):
        name = op.name
        if name not in known:
            known[name] = isinstance(op.opview, kinds)
        if known[name]:
            found.append(op)
    return found


def ops_named(inside: ir.Operation, names: Collection[str]) -> list[ir.Operation]:
    """The ops of these names inside a module or function, in program order, those nested in one in
    front of it.

    For programs of thousands of scalar ops: MLIR compares the names, in 0.01 us an op, and Python
    sees what is found alone; a walk in Python takes 0.5 us an op.
    """
    found: list[ir.Operation] = []
    if _has_jumps(inside):  # MLIR passes over blocks that nothing jumps to
        return [op for op in all_ops(inside, inner_first=True) if op.name in names]

    def note(op: ir.OpView, rewriter: Any) -> bool:
        found.append(op.operation)
        return True  # nothing was rewritten

    patterns = RewritePatternSet(inside.context)
    for name in names:
        patterns.add(name, note)
    walk_and_apply_patterns(inside, patterns.freeze())
    return found


def _has_jumps(op: ir.Operation) -> bool:
    """Whether a function, or one of a module's, has several blocks."""
    if op.name in MODULES:
        return any(_has_jumps(view.operation) for view in op.regions[0].blocks[0].operations)
    return any(len(region.blocks) > 1 for region in op.regions)


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
        if isinstance(user.opview, BufferView):
            yield from users_of(user.results[0])
        else:
            yield user


def alloc_of(buffer: ir.Value) -> AllocOp:
    """The alloc whose memory a buffer, a slot or a view lies in."""
    op = buffer.owner
    while not isinstance(op, AllocOp):
        op = op.src.owner
    return op
