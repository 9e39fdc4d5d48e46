"""Branches in front of a loop that are taken exactly where it has an iteration."""

from __future__ import annotations

from mlir import ir

from tilec.dialects.def_use import defining_op
from tilec.dialects.predicates import predicate_of

_BOUNDS = 2
"""Operands of an `scf.for` that say where it begins and ends."""


def is_taken_where_it_runs(branch: ir.Operation, loop: ir.Operation) -> bool:
    """Whether an `scf.if` without an else asks for the first iteration of an `scf.for` behind it:
    what is issued an iteration ahead stands in such a branch. A loop of no iteration comes behind a
    branch that was not taken."""
    if loop.name != "scf.for" or branch.regions[1].blocks:
        return False
    asked = defining_op(branch.operands[0], "arith.cmpi")
    if asked is None or predicate_of(asked) != "slt":
        return False
    return list(asked.operands) == list(loop.operands)[:_BOUNDS]
