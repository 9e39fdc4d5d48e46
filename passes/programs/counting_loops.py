"""Loops that do nothing but count: what they count to, without the loop."""

from __future__ import annotations

from mlir import ir

from tilec.dialects.def_use import defining_op
from tilec.passes.analysis.divisibility import constant_of
from tilec.passes.rewriting.loops import inits_of
from tilec.passes.rewriting.scalars import as_type, binary, constant, less, select
from tilec.passes.rewriting.walk import blocks_in


def fold_counting_loops(block: ir.Block) -> None:
    """Replaces loops of a block that do nothing but count by what they count to.

    Before:   %n = scf.for %k = %low to %high step %s iter_args(%i = %m) { scf.yield %i + %c1 }
    After:    %n = arith.addi %m, (%low < %high ? (%high - %low - 1) / %s + 1 : 0)

    Inner before outer: a loop around one that counts a different number each time stays.
    """
    for view in list(block.operations):
        op = view.operation
        for inner in blocks_in(op):
            fold_counting_loops(inner)
        if op.name == "scf.for":
            _fold_counting(op)


def _fold_counting(loop: ir.Operation) -> None:
    body = loop.regions[0].blocks[0]
    *steps, end = [view.operation for view in body.operations]
    counts = list(body.arguments)[1:]
    if any(op.name not in ("arith.constant", "arith.addi") for op in steps):
        return
    found = [_added(value, count) for value, count in zip(end.operands, counts, strict=True)]
    added = [step for step in found if step is not None]
    if len(added) < len(found):
        return
    with ir.InsertionPoint(loop), loop.location:
        trips = _trip_count(loop)
        for result, init, step in zip(loop.results, inits_of(loop), added, strict=True):
            whole = binary("arith.muli", trips, step)
            whole = as_type(whole, init.type)
            result.replace_all_uses_with(binary("arith.addi", init, whole))
    loop.erase()


def _added(value: ir.Value, count: ir.Value) -> int | None:
    """The constant by which `value` is more than `count`, or None."""
    if value == count:
        return 0
    op = defining_op(value, "arith.addi")
    if op is None:
        return None
    step, rest = constant_of(op.operands[1]), _added(op.operands[0], count)
    return None if step is None or rest is None else rest + step


def _trip_count(loop: ir.Operation) -> ir.Value:
    low, high, step = list(loop.operands)[:3]
    one, zero = constant(low.type, 1), constant(low.type, 0)
    span = binary("arith.subi", binary("arith.subi", high, low), one)
    trips = binary("arith.addi", binary("arith.divui", span, step), one)
    return select(less(low, high), trips, zero)
