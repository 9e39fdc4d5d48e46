"""Ops that any number of threads may run as often as they like, and erasing them where nothing
needs them: scalars, loads of one element, and what a thread does with elements of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mlir import ir

from tilec.dialects.def_use import constant_attribute, defining_op
from tilec.dialects.elementwise import is_elementwise
from tilec.dialects.op import class_of
from tilec.dialects.tile import LoadOp
from tilec.dialects.types import is_tile, shape
from tilec.passes.rewriting.walk import is_pure


def is_scalar(op: ir.Operation) -> bool:
    """Whether an op computes scalars, positions and views, of scalars alone."""
    kind = class_of(op)
    if kind is not None:
        return kind.PURE and not kind.COMMON and op.opview.by_one_thread()
    scalar = op.name.startswith("arith.") or op.name == "memref.dim"
    return scalar and not any(is_tile(v) for v in [*op.operands, *op.results])


def is_one_element(op: ir.Operation) -> bool:
    """Whether an op loads one element of an array, which any number of threads may do, or takes it
    out of its tile."""
    if op.name == LoadOp.OPERATION_NAME:
        return not shape(op.results[0])
    return op.name == "tensor.extract" and not shape(op.operands[0])


def is_total(op: ir.Operation) -> bool:
    """Whether an op has a result whatever its operands are: it divides by no number that may be
    0."""
    if not op.name.startswith("arith.") or not any(word in op.name for word in ("div", "rem")):
        return True
    known = constant_attribute(op.operands[1])
    return isinstance(known, ir.IntegerAttr) and known.value != 0


def stays_in_thread(op: ir.Operation) -> bool:
    """Whether each thread computes its elements of a tile without those of others."""
    kind = class_of(op)
    if kind is not None:
        return kind.IN_THREAD
    return is_elementwise(op) or op.name == "tensor.splat"


def drop_unused(ops: Sequence[ir.Operation]) -> None:
    """Erases those of some ops, the last first, whose results nobody uses."""
    for op in reversed(ops):
        if not any(list(result.uses) for result in op.results):
            op.erase()


def erase_unused(value: ir.Value) -> None:
    """Erases the op of a value, and what only that needed, where nothing uses it any more."""
    pending = _unused([value])
    while pending:
        op = pending.pop()
        operands = list(op.operands)
        op.erase()
        pending += _unused(operands)


def _unused(values: Iterable[ir.Value]) -> list[ir.Operation]:
    """The different ops of values, where they may go."""
    found: list[ir.Operation] = []
    for value in values:
        op = defining_op(value)
        if op is None or op in found:
            continue
        used = any(list(result.uses) for result in op.results)
        free = is_scalar(op) or is_one_element(op) or stays_in_thread(op) or is_pure(op)
        if not used and free:
            found.append(op)
    return found
