"""How what several CTAs have of a value that a loop carries is put together, if each of them runs
some of its iterations.

Sums are added up. The least or greatest of what iterations bring is that of what all CTAs have,
from whatever the loop starts with, and what stands beside it (its place, say) is that of the CTA
whose number wins, which a comparison decides as in the loop: of equals the first, as all are
strict. Nothing else may see such values on the way.

Where a number is NaN, the place beside it may be that of an earlier one than in the loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.dialects.def_use import defining_op, only_use, only_user, users
from tilec.dialects.merges import EXTREMES, SUMS, TURNED, Merge
from tilec.dialects.predicates import predicate_of
from tilec.dialects.tile import DotOp
from tilec.dialects.types import bit_width, is_float, is_index, is_tile, number_type
from tilec.passes.rewriting.loops import carried_by, inits_of, yielded_by
from tilec.passes.rewriting.scalars import binary, compare, is_zero, select
from tilec.passes.rewriting.walk import is_of

PART_BITS = 32
"""Of a sum: parts of narrower ones would be rounded before they are added up."""
COMPARISONS = ("arith.cmpf", "arith.cmpi")


def later(
    merges: Sequence[Merge], before: Sequence[ir.Value], brought: Sequence[ir.Value]
) -> list[ir.Value]:
    """What CTAs have of all values put together with what the next one brings of them."""
    found = []
    for merge, had, new in zip(merges, before, brought, strict=True):
        if merge.by is None:
            found.append(binary(merge.op, had, new))
        else:
            wins = compare(merge.op, brought[merge.by], before[merge.by])
            found.append(select(wins, new, had))
    return found


def merges_of(loop: ir.Operation) -> list[Merge | None]:
    """How parts of each value that a loop carries are merged, None for those that cannot be."""
    carried, ends = carried_by(loop), yielded_by(loop)
    found: list[Merge | None] = []
    for argument, init, end in zip(carried, inits_of(loop), ends, strict=True):
        if is_sum(argument, end):
            found.append(Merge(SUMS[not is_float(number_type(end))]) if is_zero(init) else None)
        else:
            found.append(_winner(argument, end, carried, ends))
    return found


def is_sum(argument: ir.Value, end: ir.Value) -> bool:
    """Whether products, or other terms, are added to a carried tile, here or by an inner loop, and
    nothing else uses it."""
    if not _is_wide(argument):
        return False
    at = argument
    while at != end:
        user = only_user(at)
        if user is None or user.operation.block != argument.owner:
            return False
        after = _summed(user.operation, at)
        if after is None:
            return False
        at = after
    return only_use(at) is not None


def _is_wide(value: ir.Value) -> bool:
    """Whether a value is a tile, or a number, that parts of sums keep their bits in."""
    kind = number_type(value)
    return not is_index(kind) and bit_width(kind) >= PART_BITS


def _summed(op: ir.Operation, at: ir.Value) -> ir.Value | None:
    """What is `at` with more added to it, if that is all that an op does with it."""
    if op.name in SUMS or (is_of(op, DotOp) and op.opview.acc == at):
        return op.results[0]
    if op.name != "scf.for" or at not in inits_of(op):
        return None
    number = inits_of(op).index(at)
    return op.results[number] if is_sum(carried_by(op)[number], yielded_by(op)[number]) else None


def _winner(
    argument: ir.Value, end: ir.Value, carried: list[ir.Value], ends: list[ir.Value]
) -> Merge | None:
    """How the least or greatest that a loop has met is merged, or what goes with it."""
    if _brought(argument, end) is None or only_use(end) is None:
        return None
    makers = [op for value in ends if (op := defining_op(value)) is not None]
    for user in users(argument):
        is_asked = user.operation.name in COMPARISONS
        seen = users(user.operation.results[0]) if is_asked else [user]
        if not all(one.operation in makers for one in seen):
            return None
    op = defining_op(end)
    assert op is not None
    if op.name in EXTREMES:
        return Merge(op.name)
    return next(
        (
            Merge(predicate, number)
            for number, pair in enumerate(zip(carried, ends, strict=True))
            if (predicate := _decided(op.operands[0], *pair)) is not None
        ),
        None,
    )


def _brought(argument: ir.Value, end: ir.Value) -> ir.Value | None:
    """What an iteration brings that may take the place of a carried tile."""
    op = defining_op(end)
    if op is None or not _is_wide(argument):
        return None
    if op.name in EXTREMES and list(op.operands).count(argument) == 1:
        return op.operands[int(op.operands[0] == argument)]
    if op.name == "arith.select" and is_tile(op.operands[0]) and op.operands[2] == argument:
        return None if op.operands[1] == argument else op.operands[1]
    return None


def _decided(condition: ir.Value, argument: ir.Value, end: ir.Value) -> str | None:
    """The strict predicate by which a condition says that what an iteration brings wins over a
    carried number, if it does and the loop carries on with the winner."""
    comparison, brought = defining_op(condition), _brought(argument, end)
    maker = defining_op(end)
    if comparison is None or comparison.name not in COMPARISONS or maker is None:
        return None
    compared, predicate = list(comparison.operands), predicate_of(comparison)
    if compared == [argument, brought]:
        predicate = TURNED.get(predicate, "")
    elif compared != [brought, argument]:
        return None
    if maker.name in EXTREMES:
        return predicate if EXTREMES[maker.name] == predicate else None
    return predicate if maker.operands[0] == condition and predicate in TURNED else None
