"""What forbids reading an array earlier than the program says."""

from __future__ import annotations

import functools
from collections.abc import Collection

from mlir import ir

from tilec.dialects.effects import whole_of, written_by
from tilec.dialects.op import names_where
from tilec.dialects.tile import Atomic, FenceOp, InlinePtxOp
from tilec.passes.rewriting.loops import enclosing_ops
from tilec.passes.rewriting.walk import kernel_of, ops_named


def orders_memory(view: ir.OpView) -> bool:
    """Whether an op orders accesses to memory for other programs."""
    return isinstance(view, FenceOp) or (isinstance(view, Atomic) and view.order != "relaxed")


def may_wait(view: ir.OpView) -> bool:
    """Whether a program may wait by an op for what others do: by an atomic of any order, if a loop
    goes on until it finds another number."""
    if orders_memory(view) or not isinstance(view, Atomic):
        return orders_memory(view)
    return any(op.name == "scf.while" for op in enclosing_ops(view.operation))


def may_write(view: ir.OpView) -> bool:
    """Whether an op is PTX that may write memory, for all anybody knows."""
    return isinstance(view, InlinePtxOp) and not view.pure


def read_ahead_hazard(
    op: ir.Operation,
    arrays: Collection[ir.Value],
    where: str,
    elsewhere: Collection[ir.Operation] = (),
) -> str | None:
    """An op inside `op` ("where": what to call it) that writes one of `arrays` or orders accesses
    to them. `elsewhere`: ops that write what nobody reads ahead (`own_stores.py`).

    Arrays that are different arguments are taken not to overlap. One that the kernel does not write
    stays as it is while the kernel runs, so that nothing orders reads of it, unless an order of
    scope "sys" speaks of what is outside the launch. Of one that it writes, any atomic may tell
    when it may be read: a relaxed one says nothing of other memory, but programs take locks by it,
    and no GPU reads behind a loop what it did not come to.
    """
    arrays = {whole_of(array) for array in arrays}
    for inner in ops_named(op, _concerned()):
        view = inner.opview
        if inner not in elsewhere and any(array in arrays for array in written_by(view)):
            return f"'{inner.name}' in {where} writes an array that a copy reads"
        tells = isinstance(view, (FenceOp, Atomic))
        if (orders_memory(view) and view.scope == "sys") or (tells and _writes(op, arrays)):
            return f"'{inner.name}' in {where} orders memory accesses"
        if may_write(view):
            return f"'{inner.name}' in {where} may write memory"
    return None


@functools.cache
def _concerned() -> frozenset[str]:
    """The names of the ops that may write memory or order accesses to it."""
    kinds = (FenceOp, Atomic, InlinePtxOp)
    return names_where(lambda kind: bool(kind.WRITES) or issubclass(kind, kinds))


def _writes(op: ir.Operation, arrays: Collection[ir.Value]) -> bool:
    """Whether the kernel around `op` writes one of `arrays` anywhere."""
    writers = ops_named(kernel_of(op), _concerned())
    return any(array in arrays for inner in writers for array in written_by(inner.opview))
