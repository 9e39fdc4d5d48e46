"""reduce-divisions: quotients and remainders of a loop's counter are counted along; divisions of
other numbers that are not negative become unsigned.

Before:   scf.for %i = 0 to %end step 1 {
            %q = arith.floordivsi %i, %n          %r = arith.remsi %i, %n
            %low = arith.cmpi slt, %r, 0 ...
          }
After:    scf.for %i = 0 to %end step 1 iter_args(%q = 0, %r = 0) {
            ...   (%q, %r; %low is false)
            %1 = arith.addi %r, 1                 %full = arith.cmpi sge, %1, %n
            %2 = arith.addi %q, 1
            scf.yield select(%full, %2, %q), select(%full, 0, %1)
          }

No GPU has an instruction that divides integers: ptxas makes 17 to 40 of each division, most of them
waiting for the one before. A role that copies rows by number (a convolution's) would take longer
for an iteration than the products of it.

1. A quotient or remainder is counted where the dividend counts by one (the loop's variable, maybe
   plus a constant, or a quotient that is counted itself) and the divisor is no constant, comes from
   outside and is not negative.
2. So it is where the loop counts by another number from outside that is not negative, as a warp's
   programs do, and the next iteration's numbers are asked for, as by what is loaded ahead, in
   branches, too: the step's own quotient and remainder are added. One division an iteration costs
   no more than the two in front of a loop of two or three, as most are: gated halves, 19588 x 64
   f16, took 4.44 us for 4.28 so. Not around other loops, past which numbers that are carried take
   registers. Groups of 32 f16 to i8 by a largest of each take 99 instructions for 124 of a warp's
   four groups, and 387480 of them 17.3 us for 19.3 (H200).
3. Quotients of other numbers that are not negative (`analysis/signs.py`) become unsigned, and a
   comparison that asks whether such a number is below 0 is false.
Does not handle: what is in a branch or an inner loop, but for the next iteration's numbers.
"""

from __future__ import annotations

from dataclasses import field, replace

from mlir import ir

from tilec.dialects.def_use import defining_op
from tilec.dialects.predicates import predicate_of
from tilec.dialects.types import is_tile
from tilec.passes.analysis.divisibility import constant_of, number_of
from tilec.passes.analysis.signs import Signs
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.rewriting.loops import (
    enclosing_ops,
    find_loops,
    first_in,
    is_inside,
    replace_yield,
    terminator,
    with_iteration_arguments,
)
from tilec.passes.rewriting.scalars import (
    binary,
    constant,
    create,
    less,
    negated,
    select,
)
from tilec.passes.rewriting.values import replace_op
from tilec.passes.rewriting.walk import ops_named
from tilec.records import dataclass

_QUOTIENTS = ("arith.floordivsi", "arith.divsi", "arith.divui")
_REMAINDERS = ("arith.remsi", "arith.remui")
_UNSIGNED = {
    "arith.floordivsi": "arith.divui",
    "arith.divsi": "arith.divui",
    "arith.ceildivsi": "arith.ceildivui",
    "arith.remsi": "arith.remui",
}


@dataclass
class _Digit:
    """Quotient and remainder of a dividend by `divisor`. `below`: the digit whose quotient the
    dividend is, None where it is the loop's variable and `ahead`. `quotients`, `remainders`: the
    ops that they replace; `next_`: those that ask for the next iteration's."""

    divisor: ir.Value
    below: int | None
    ahead: int = 0
    quotients: list[ir.Operation] = field(default_factory=list)
    remainders: list[ir.Operation] = field(default_factory=list)
    next_quotients: list[ir.Operation] = field(default_factory=list)
    next_remainders: list[ir.Operation] = field(default_factory=list)

    def ops(self, *, is_next: bool) -> tuple[list[ir.Operation], list[ir.Operation]]:
        """Those that divide, and those that take remainders."""
        if is_next:
            return self.next_quotients, self.next_remainders
        return self.quotients, self.remainders


@kernel_pass(
    requires=Level.ALLOCATED,
    behind={
        "pipeline-loops": "what is carried on cannot be computed ahead",
        "expand-rings": "that plays what roles compute of their counters",
    },
)
def reduce_divisions(function: ir.Operation, context: PassContext) -> None:
    """Counts digits of loops' counters, and divides without signs where there are none."""
    if not ops_named(function, (*_UNSIGNED, *_QUOTIENTS, *_REMAINDERS)):
        return
    _without_signs(function)
    for loop in find_loops(function):
        _count_digits(loop)


def _without_signs(function: ir.Operation) -> None:
    """Writes false for each comparison that asks whether what is never negative is below 0, and
    unsigned divisions of such numbers."""
    signs, replaced = Signs(), []
    for op in ops_named(function, ("arith.cmpi", *_UNSIGNED)):
        first, second = op.operands
        kind = op.results[0].type
        if not signs.is_never_negative(first):
            continue
        with ir.InsertionPoint(op), op.location:
            if op.name == "arith.cmpi":
                is_less = predicate_of(op) == "slt"
                below = is_less and number_of(second) == 0
                made = constant(kind, 0) if below else None
            else:
                positive = signs.is_never_negative(second)
                made = create(_UNSIGNED[op.name], [first, second], kind) if positive else None
        if made is not None:
            op.results[0].replace_all_uses_with(made)
            replaced.append(op)
    for op in replaced:  # not before: `signs` knows them
        op.erase()


def _count_digits(loop: ir.Operation) -> None:
    signs = Signs()
    lower, _, step = list(loop.operands)[:3]
    if not (signs.is_never_negative(lower) and signs.is_never_negative(step)):
        return
    by_one = constant_of(step) == 1
    if not by_one and len(find_loops(loop)) > 1:
        return
    digits = _find_digits(loop, signs)
    asks = any(digit.next_quotients or digit.next_remainders for digit in digits)
    if not digits or not (by_one or asks):
        return
    with ir.InsertionPoint(_place_of_starts(digits, loop)), loop.location:
        starts = _starts(digits, lower)
        steps = None if by_one else _starts([replace(digit, ahead=0) for digit in digits], step)
    _take_starts(digits, starts, loop)
    loop, carried = with_iteration_arguments(loop, starts)
    body = loop.regions[0].blocks[0]
    last = terminator(body)
    with ir.InsertionPoint(body.operations[0] if asks else last), loop.location:
        if steps is None:
            following = _following(digits, carried)
        else:
            following = _following_by(digits, carried, steps)
    replace_yield(last, [*list(last.operands)[: -len(carried)], *following])
    for is_next, values in ((False, carried), (True, following)):
        for digit, *pair in zip(digits, values[::2], values[1::2], strict=True):
            for ops, value in zip(digit.ops(is_next=is_next), pair, strict=True):
                for op in ops:
                    replace_op(op, value)


def _find_digits(loop: ir.Operation, signs: Signs) -> list[_Digit]:
    """What is counted in a loop, each digit behind the one that it counts with."""
    digits: list[_Digit] = []
    for op in ops_named(loop, (*_QUOTIENTS, *_REMAINDERS)):
        if is_tile(op.results[0]):
            continue
        dividend, divisor = op.operands
        known = constant_of(divisor) is not None or is_inside(divisor, loop)
        if known or not signs.is_never_negative(divisor):
            continue
        is_next = _is_next(dividend, loop, digits)
        if not is_next and op.parent != loop:
            continue
        digit = _digit_of(dividend, divisor, loop, digits, is_next=is_next)
        if digit is not None:
            quotients, remainders = digit.ops(is_next=is_next)
            (quotients if op.name in _QUOTIENTS else remainders).append(op)
    return digits


def _is_next(dividend: ir.Value, loop: ir.Operation, digits: list[_Digit]) -> bool:
    """Whether a dividend is the loop's variable in the next iteration, or a quotient that is
    counted there."""
    if any(dividend in _results(digit.next_quotients) for digit in digits):
        return True
    op, step = defining_op(dividend, "arith.addi"), loop.operands[2]
    pair = [loop.regions[0].blocks[0].arguments[0], step]
    return op is not None and list(op.operands) in (pair, pair[::-1])


def _results(ops: list[ir.Operation]) -> list[ir.Value]:
    return [op.results[0] for op in ops]


def _digit_of(
    dividend: ir.Value,
    divisor: ir.Value,
    loop: ir.Operation,
    digits: list[_Digit],
    *,
    is_next: bool,
) -> _Digit | None:
    """The digit of a division, added to `digits` if it is new; None where the dividend is not
    counted. `is_next`: it is that in the next iteration."""
    counter = loop.regions[0].blocks[0].arguments[0]
    found = (n for n, d in enumerate(digits) if dividend in _results(d.ops(is_next=is_next)[0]))
    below = next(found, None)
    ahead = 0 if below is not None or is_next else _distance(dividend, counter)
    if ahead is None or ahead < 0:
        return None
    for digit in digits:
        if (digit.below, digit.ahead, digit.divisor) == (below, ahead, divisor):
            return digit
    digits.append(_Digit(divisor, below, ahead))
    return digits[-1]


def _distance(value: ir.Value, counter: ir.Value) -> int | None:
    """The constant that a value is more than `counter`, None if it is none."""
    if value == counter:
        return 0
    op = defining_op(value, "arith.addi")
    if op is None:
        return None
    first, second = op.operands
    return constant_of(second) if first == counter else None


def _starts(digits: list[_Digit], lower: ir.Value) -> list[ir.Value]:
    """Quotient and remainder of each digit in the first iteration."""
    found: list[ir.Value] = []
    for digit in digits:
        if digit.below is not None:
            dividend = found[2 * digit.below]
        else:
            dividend = binary("arith.addi", lower, digit.ahead)
        # A loop without iterations may have divisors of 0.
        divisor = binary("arith.maxsi", digit.divisor, constant(lower.type, 1))
        found += [binary(name, dividend, divisor) for name in ("arith.divui", "arith.remui")]
    return found


def _place_of_starts(digits: list[_Digit], loop: ir.Operation) -> ir.Operation:
    """Where digits begin: in front of the loop, and of what is done for its first iteration there,
    if their divisors are known."""
    lower, places = loop.operands[0], [loop]
    for digit in digits:
        places += _divisions(lower, digit.divisor, loop)
    first = first_in(loop.block, places)
    values = [lower, loop.operands[2], *(digit.divisor for digit in digits)]
    made = (defining_op(value) for value in values)
    known = (op is None or op.block != loop.block or op.is_before_in_block(first) for op in made)
    return first if all(known) else loop


def _divisions(dividend: ir.Value, divisor: ir.Value, loop: ir.Operation) -> list[ir.Operation]:
    """The divisions of one number by another beside a loop, in its block or branches of that."""
    users = [use.owner.operation for use in dividend.uses]
    both = [op for op in users if list(op.operands) == [dividend, divisor]]
    divisions = [op for op in both if op.name in (*_QUOTIENTS, *_REMAINDERS)]
    around = ([op, *enclosing_ops(op)] for op in divisions)
    beside = (any(each.block == loop.block for each in ops) and loop not in ops for ops in around)
    return [op for op, is_beside in zip(divisions, beside, strict=True) if is_beside]


def _take_starts(digits: list[_Digit], starts: list[ir.Value], loop: ir.Operation) -> None:
    """Has what is done in front of a loop for its first iteration take the digits' starts."""
    for digit, quotient, remainder in zip(digits, starts[::2], starts[1::2], strict=True):
        dividend = loop.operands[0] if digit.below is None else starts[2 * digit.below]
        for op in _divisions(dividend, digit.divisor, loop) if digit.ahead == 0 else ():
            replace_op(op, quotient if op.name in _QUOTIENTS else remainder)


def _following(digits: list[_Digit], carried: list[ir.Value]) -> list[ir.Value]:
    """The same in the next iteration."""
    found: list[ir.Value] = []
    overflows: list[ir.Value] = []
    for digit, quotient, remainder in zip(digits, carried[::2], carried[1::2], strict=True):
        kind = quotient.type
        more = binary("arith.addi", remainder, constant(kind, 1))
        full = negated(less(more, digit.divisor))
        rest = select(full, constant(kind, 0), more)
        if digit.below is not None:
            counted = overflows[digit.below]
            full = binary("arith.andi", counted, full)
            rest = select(counted, rest, remainder)
        overflows.append(full)
        up = binary("arith.addi", quotient, constant(kind, 1))
        found += [select(full, up, quotient), rest]
    return found


def _following_by(
    digits: list[_Digit], carried: list[ir.Value], steps: list[ir.Value]
) -> list[ir.Value]:
    """The same where the loop counts by another number than one; `steps`: quotient and remainder of
    that in each digit. No sum is as large as the divisor, which may be as large as numbers are."""
    found: list[ir.Value] = []
    overflows: list[ir.Value] = []
    pairs = zip(carried[::2], carried[1::2], steps[::2], steps[1::2], strict=True)
    for digit, (quotient, remainder, times, rest) in zip(digits, pairs, strict=True):
        one = constant(quotient.type, 1)
        room, more = binary("arith.subi", digit.divisor, rest), rest
        if digit.below is not None:
            counted = overflows[digit.below]
            room = select(counted, binary("arith.subi", room, one), room)
            more = select(counted, binary("arith.addi", more, one), more)
        full = negated(less(remainder, room))
        overflows.append(full)
        left = binary("arith.subi", remainder, room)
        up = binary("arith.addi", times, one)
        found += [
            binary("arith.addi", quotient, select(full, up, times)),
            select(full, left, binary("arith.addi", remainder, more)),
        ]
    return found
