"""When a while loop ends: the value that counts in it, what that is compared with, and a `break` in
front of all that an iteration does."""

from __future__ import annotations

from mlir import ir

from tilec.dialects.def_use import defining_op, made_by
from tilec.dialects.predicates import predicate_of
from tilec.dialects.tile import NumProgramsOp
from tilec.passes.analysis.dependence import needed_inside
from tilec.passes.analysis.divisibility import constant_of
from tilec.passes.analysis.hazards import read_ahead_hazard
from tilec.passes.rewriting.free_ops import erase_unused, is_one_element, is_scalar, is_total
from tilec.passes.rewriting.loops import clone_mapped, is_inside, terminator
from tilec.passes.rewriting.scalars import binary, i1_constant, negated, truth_of
from tilec.passes.rewriting.values import replace_op
from tilec.passes.rewriting.walk import kernel_of
from tilec.records import dataclass


@dataclass
class Counter:
    """A value that grows by a positive `step`; `number`: among what the loop carries."""

    number: int
    step: ir.Value


@dataclass
class Bound:
    """The value that a counter stays below. `alone`: whether nothing else ends the loop."""

    high: ir.Value
    alone: bool


def condition_of(loop: ir.Operation) -> ir.Value:
    """Whether an scf.while goes on, in its first block."""
    return terminator(loop.regions[0].blocks[0]).operands[0]


def passed_on(loop: ir.Operation) -> list[ir.Value]:
    """The values that the condition of an scf.while passes on to the body, and behind the loop."""
    return list(terminator(loop.regions[0].blocks[0]).operands)[1:]


def find_counter(loop: ir.Operation) -> Counter | None:
    """The first value of an scf.while that grows by a step known to be positive, None without."""
    before, body = (region.blocks[0] for region in loop.regions)
    for number, value in enumerate(terminator(body).operands):
        op = defining_op(value, "arith.addi")
        if op is None:
            continue
        base, step = op.operands
        if base.owner != body or not _is_positive(step, loop):
            continue
        if passed_on(loop)[ir.BlockArgument(base).arg_number] == before.arguments[number]:
            return Counter(number, step)
    return None


def _is_positive(step: ir.Value, loop: ir.Operation) -> bool:
    known = constant_of(step)
    if known is not None:
        return known > 0
    return made_by(step, NumProgramsOp) is not None and not is_inside(step, loop)


def find_bound(loop: ir.Operation, counter: Counter) -> Bound | None:
    """Finds what a counter is compared with by the condition of an scf.while, or by a part of it
    that must hold."""
    return _bound(condition_of(loop), counter, loop)


def _bound(condition: ir.Value, counter: Counter, loop: ir.Operation) -> Bound | None:
    op = defining_op(condition)
    if op is None:
        return None
    if op.name == "arith.cmpi":
        predicate, (left, right) = predicate_of(op), op.operands
        if predicate == "sgt":
            left, right = right, left
        argument = loop.regions[0].blocks[0].arguments[counter.number]
        fits = predicate in ("slt", "sgt") and _uncast(left) == argument
        return Bound(right, True) if fits and not is_inside(right, loop) else None
    # A branch that chooses whether another condition is asked gives false where it is not.
    parts = op.operands if op.name in ("arith.andi", "scf.if") else ()
    found = (_bound(part, counter, loop) for part in parts)
    bound = next((each for each in found if each is not None), None)
    return None if bound is None else Bound(bound.high, alone=False)


def _uncast(value: ir.Value) -> ir.Value:
    while defining_op(value, "arith.index_cast", "arith.extsi") is not None:
        (value,) = value.owner.operands
    return value


def test_break_ahead(loop: ir.Operation) -> None:
    """Has the condition of an scf.while compute the flag of a `break` in front of all that an
    iteration does, so that this iteration is none.

    Before:   scf.condition(%inside and not %broken) ...   do {
                %f = ...   %x = scf.if %f { yield %acc } else { ... }   scf.yield %f, %x }
    After:    %f = ...   scf.condition(%inside and not %broken and not %f) ...   do {
                ...   scf.yield false, ... }
    """
    found = _find_break(loop)
    if found is None:
        return
    flag, branch = found
    before, body = (region.blocks[0] for region in loop.regions)
    last = terminator(before)
    with ir.InsertionPoint(last), last.location:
        mapped = dict(zip(body.arguments, passed_on(loop), strict=True))
        for op in needed_inside([flag], body):
            clone_mapped(op, mapped)
        last.operands[0] = binary("arith.andi", last.operands[0], negated(mapped[flag]))
    _inline(branch)
    with ir.InsertionPoint.at_block_begin(body), last.location:
        flag.replace_all_uses_with(i1_constant(False))
    erase_unused(flag)


def _inline(branch: ir.Operation) -> None:
    """Puts what the second block of an scf.if holds in its place."""
    block = branch.regions[1].blocks[0]
    *ops, last = [view.operation for view in block.operations]
    for op in ops:
        op.move_before(branch)
    replace_op(branch, *list(last.operands))


def _find_break(loop: ir.Operation) -> tuple[ir.Value, ir.Operation] | None:
    """The flag by which an iteration leaves the loop, and the scf.if on it that does nothing then
    and is all that the iteration does besides; None without."""
    before, body = (region.blocks[0] for region in loop.regions)
    for number, flag in enumerate(terminator(body).operands):
        op = defining_op(flag)
        if op is None or op.block != body:
            continue
        users = [use.owner.operation for use in flag.uses]
        branch = next((op for op in users if op.name == "scf.if"), None)
        if branch is None or len(users) != 2 or branch.block != body:
            continue
        ends = _ends(condition_of(loop), before.arguments[number])
        if ends and _is_all(branch, body) and _leaves_alone(branch, loop):
            return flag, branch
    return None


def _ends(condition: ir.Value, flag: ir.Value) -> bool:
    """Whether a condition cannot hold where `flag` does."""
    op = defining_op(condition)
    if op is None:
        return False
    if op.name == "arith.xori":
        return op.operands[0] == flag and truth_of(op.operands[1]) is True
    if op.name == "scf.if" and op.operands[0] == flag:
        return truth_of(terminator(op.regions[0].blocks[0]).operands[0]) is False
    return op.name == "arith.andi" and any(_ends(part, flag) for part in op.operands)


def _is_all(branch: ir.Operation, body: ir.Block) -> bool:
    """Whether a loop's body is, but for `branch`, scalars that may be computed once more than they
    were, and no load among them reads what the kernel writes."""
    *others, _ = [view.operation for view in body.operations if view.operation != branch]
    arrays = [op.opview.src for op in others if op.name == "tile.load"]
    free = all((is_scalar(op) and is_total(op)) or is_one_element(op) for op in others)
    return free and read_ahead_hazard(kernel_of(branch), arrays, "the kernel") is None


def _leaves_alone(branch: ir.Operation, loop: ir.Operation) -> bool:
    """Whether the results that are used behind a loop are the same without its last iteration, in
    which `branch` takes its first block."""
    before, body = (region.blocks[0] for region in loop.regions)
    first = branch.regions[0].blocks[0]
    if len(list(first.operations)) != 1:
        return False
    skipped = dict(zip(branch.results, terminator(first).operands, strict=True))
    yielded = terminator(body).operands
    for result, passed, argument in zip(loop.results, passed_on(loop), body.arguments, strict=True):
        if not list(result.uses):
            continue
        if passed.owner != before:
            return False
        value = yielded[ir.BlockArgument(passed).arg_number]
        if skipped.get(value, value) != argument:
            return False
    return True
