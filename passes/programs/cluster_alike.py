"""What the CTAs of a cluster do alike, and where they meet."""

from __future__ import annotations

from math import prod

from mlir import ir

from tilec.dialects.def_use import defining_op, of_kind
from tilec.dialects.gpu_tile import ClusterPositionOp, ClusterSyncOp
from tilec.dialects.gpu_tile.cluster import at
from tilec.dialects.gpu_tile.tma import TmaLoadOp
from tilec.dialects.integers import function_of
from tilec.passes.analysis.dependence import ops_behind
from tilec.passes.analysis.divisibility import constant_of
from tilec.passes.rewriting.loops import enclosing_ops
from tilec.passes.rewriting.walk import is_of


def axes_of(load: TmaLoadOp) -> set[int]:
    """The axes of the cluster along which a copy differs in where it reads or whether it runs."""
    behind = ops_behind([*load.coordinates, *_control(load.operation)])
    return {one.axis for one in of_kind(behind, ClusterPositionOp)}


def _control(op: ir.Operation) -> list[ir.Value]:
    """The values that decide how often an op runs: bounds of loops and conditions around it."""
    found: list[ir.Value] = []
    for around in enclosing_ops(op):
        if around.name == "scf.for":
            found += list(around.operands)[:3]
        elif around.name == "scf.if":
            found.append(around.operands[0])
        elif around.name == "scf.while":
            found.append(list(around.regions[0].blocks[0].operations)[-1].operands[0])
    return found


def runs_in(op: ir.Operation, shape: tuple[int, int, int]) -> list[int]:
    """The ranks of a cluster whose CTA runs an op: those that the branches around it let in.

    A branch on something else than the place in the cluster lets all in.
    """
    conditions = [around.operands[0] for around in enclosing_ops(op) if around.name == "scf.if"]
    ranks = range(prod(shape))
    return [r for r in ranks if all(_value(c, at(shape, r)) != 0 for c in conditions)]


def _value(value: ir.Value, place: list[int]) -> int | None:
    """The integer that `value` is in the CTA at `place` of its cluster; None if the place does not
    decide it."""
    op = defining_op(value)
    if op is None:
        return None
    if is_of(op, ClusterPositionOp):
        return place[op.opview.axis]
    known = constant_of(value)
    if known is not None:
        return known
    computed = function_of(op)
    operands = [_value(operand, place) for operand in op.operands]
    return None if computed is None or None in operands else computed(*operands)


def meet(function: ir.Operation) -> None:
    """The cluster meets at its end.

    That orders what was done to a neighbour's shared memory before the neighbour ends: an arrival
    at its mbarrier may be on its way long after the thread that made it has gone on, and the memory
    goes to the next CTA, or launch, at once. A relaxed meeting says nothing of it (PTX ISA,
    "barrier.cluster": .release and .acquire order memory accesses, .relaxed does not).
    await-arrivals takes it away where roles wait for all that comes.
    """
    body = function.regions[0].blocks[0]
    with ir.InsertionPoint(list(body.operations)[-1]), function.location:
        ClusterSyncOp.build(order="acq_rel")
