"""Loads of blocks that some iterations skip, as copies in front of the branch.

Before:   scf.for %k ... {
            scf.if %p { %t = "tile.load"(%a, %m, %k)   "gpu_tile.buffer_store"(%t, %s) ... }
After:    scf.for %k ... {
            "gpu_tile.cp_async"(%a, %s, %p, %m, %k)                   (for iterations that take it)
            scf.if %p { ... reads %s ... }

A pipeline can issue such a copy ahead, if it can know %p ahead.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.def_use import defining_op, of_kind
from tilec.dialects.tile import LoadOp
from tilec.passes.analysis.hazards import read_ahead_hazard
from tilec.passes.copies.buffer_fills import Uses
from tilec.passes.rewriting.free_ops import is_one_element, is_scalar
from tilec.passes.rewriting.loops import clone_mapped, enclosing_ops, is_inside
from tilec.passes.rewriting.op_tables import OpSet
from tilec.passes.rewriting.scalars import binary, negated
from tilec.passes.rewriting.walk import all_ops


def move_in_front(load: LoadOp, uses: Uses) -> ir.Value | None:
    """Moves a load and what fills buffers from it in front of the branches around it, inside its
    loop; returns whether an iteration takes them, an i1. Where that cannot be, and without
    branches, all stays as it is, and None comes back."""
    branches = _branches(load.operation)
    fills = [fill.store.operation for fill in uses.fills]
    allocs = [fill.store.dst.owner.operation for fill in uses.fills]
    needed = _needed(load, branches)
    if needed is None:
        return None
    place = branches[-1]
    with ir.InsertionPoint(place), load.operation.location:
        mapped: dict[ir.Value, ir.Value] = {}
        for op in needed:
            clone_mapped(op, mapped)
        taken: ir.Value | None = None
        inner = [load.operation, *branches]
        for below, branch in reversed(list(zip(inner, branches, strict=False))):
            condition = mapped.get(branch.operands[0], branch.operands[0])
            first = below.block == branch.regions[0].blocks[0]
            condition = condition if first else negated(condition)
            taken = condition if taken is None else binary("arith.andi", taken, condition)
    for op in (*allocs, load.operation, *reversed(uses.views), *fills):
        op.move_before(place)
    for number, operand in enumerate(load.operation.operands):
        load.operation.operands[number] = mapped.get(operand, operand)
    return taken


def _branches(op: ir.Operation) -> list[ir.Operation]:
    """The branches around an op inside its loop, innermost first."""
    found = []
    for around in enclosing_ops(op):
        if around.name != "scf.if":
            return found if around.name == "scf.for" else []
        found.append(around)
    return []


def _needed(load: LoadOp, branches: list[ir.Operation]) -> list[ir.Operation] | None:
    """The scalars inside the branches that the load's address and the branches themselves follow
    from, in order; None without branches, or where the load may not run before them."""
    if not branches:
        return None
    outer = branches[-1]
    needed, pending = (
        OpSet(),
        [load.src, *load.offsets, *(branch.operands[0] for branch in branches)],
    )
    while pending:
        value = pending.pop()
        if not is_inside(value, outer):
            continue
        op = defining_op(value)
        if op is None or op.regions or not (is_scalar(op) or is_one_element(op)):
            return None
        needed.add(op)
        pending += op.operands
    loaded = [load.src for load in of_kind(needed, LoadOp)]
    if read_ahead_hazard(outer, [load.src, *loaded], "the branch") is not None:
        return None
    return [op for op in all_ops(outer) if op in needed]
