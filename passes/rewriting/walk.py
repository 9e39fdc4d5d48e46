"""Which ops of a program a pass looks at, and what they belong to."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from mlir import ir
from mlir.rewrite import RewritePatternSet, walk_and_apply_patterns

from tilec.dialects.def_use import traced
from tilec.dialects.gpu_tile import AllocOp, BufferView, RoleOp
from tilec.dialects.op import class_of

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
    kind = class_of(op)
    return kind is not None and kind.PURE


def is_of(op: ir.Operation | ir.OpView, *kinds: type) -> bool:
    """Whether an op is of one of these classes. Its name tells, of which a view takes ten times as
    long to make."""
    return op.operation.name in _names_of(kinds)


def all_ops(inside: ir.Operation, *, inner_first: bool = False) -> list[ir.Operation]:
    """An op and all ops inside it, in program order; with `inner_first` each behind those inside
    it."""
    found: list[ir.Operation] = []

    def note(op: ir.Operation) -> ir.WalkResult:
        found.append(op)
        return _ADVANCE

    inside.walk(note, ir.WalkOrder.POST_ORDER if inner_first else ir.WalkOrder.PRE_ORDER)
    return found


def blocks_in(op: ir.Operation) -> list[ir.Block]:
    """The blocks of an op's regions, in order.

    Regions are counted here: MLIR ends an iteration over them by a C++ exception, which takes 4 us,
    and most ops have none.
    """
    regions = op.regions
    return [block for number in range(len(regions)) for block in regions[number].blocks]


def find_ops(inside: ir.Operation, *kinds: type) -> list[ir.Operation]:
    """The ops of these classes inside an op (or that op), in program order."""
    names = _names_of(kinds)
    if len(names) > _MANY_NAMES:
        return [op for op in all_ops(inside) if op.name in names]
    found: list[ir.Operation] = []
    for op in ops_named(inside, names):
        at = len(found)
        while at and op.regions and _is_around(op, found[at - 1]):
            at -= 1
        found.insert(at, op)
    return found


def ops_named(inside: ir.Operation, names: Collection[str]) -> list[ir.Operation]:
    """The ops of these names inside an op (or that op), in program order, those nested in one in
    front of it.

    MLIR compares the names, in 0.01 us an op, and Python sees what is found alone; a walk in Python
    takes 0.5 us an op.
    """
    if _has_jumps(inside):  # MLIR passes over blocks that nothing jumps to
        return [op for op in all_ops(inside, inner_first=True) if op.name in names]
    found: list[ir.Operation] = []

    def note(op: ir.OpView, rewriter: Any) -> bool:
        found.append(op.operation)
        return True  # nothing was rewritten

    patterns = RewritePatternSet(inside.context)
    for name in names:
        patterns.add(name, note)
    walk_and_apply_patterns(inside, patterns.freeze())
    if inside.name in names:  # MLIR looks inside it alone
        found.append(inside.operation)
    return found


_MANY_NAMES = 24
"""Names from which on a walk in Python takes no longer than telling MLIR of them."""


@functools.cache
def _names_of(kinds: tuple[type, ...]) -> frozenset[str]:
    """The names of the ops of some classes, and of those that inherit from them."""
    found = {kind.OPERATION_NAME for kind in kinds if hasattr(kind, "OPERATION_NAME")}
    for kind in kinds:
        found |= _names_of(tuple(kind.__subclasses__()))
    return frozenset(found)


def _is_around(op: ir.Operation, inner: ir.Operation) -> bool:
    """Whether `inner` lies in a region of `op`."""
    at = inner.parent
    while at is not None and at != op:
        at = at.parent
    return at is not None


def _has_jumps(op: ir.Operation) -> bool:
    """Whether a function, or one of a module's, has several blocks."""
    if op.name in MODULES:
        return any(_has_jumps(view.operation) for view in op.regions[0].blocks[0].operations)
    regions = op.regions
    return any(len(regions[number].blocks) > 1 for number in range(len(regions)))


def role_of(op: ir.Operation) -> ir.Operation | None:
    """The role around an op (or that op), None outside."""
    at = op
    while at is not None and not is_of(at, RoleOp):
        at = at.parent
    return at


def users_of(buffer: ir.Value) -> Iterator[ir.Operation]:
    """The ops that read or write a buffer, a slot or a part of it, or a view of those."""
    for use in buffer.uses:
        user = use.owner.operation
        if is_of(user, BufferView):
            yield from users_of(user.results[0])
        else:
            yield user


def alloc_of(buffer: ir.Value) -> AllocOp:
    """The alloc whose memory a buffer, a slot or a view lies in."""
    return traced(buffer, BufferView)[1].owner


def uses_behind(
    value: ir.Value, passed_on: Callable[[ir.OpOperand], Iterable[ir.Value]]
) -> Iterator[ir.OpOperand]:
    """Finds the uses of a value and of what follows from it: for each use, of the values that
    `passed_on` gives."""
    seen: set[ir.Value] = set()
    todo = [value]
    while todo:
        one = todo.pop()
        if one in seen:
            continue
        seen.add(one)
        for use in one.uses:
            yield use
            todo += passed_on(use)
