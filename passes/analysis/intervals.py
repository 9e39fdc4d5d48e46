"""Interval arithmetic of the integer ops: what a result can be, of what its operands can be.

Exact where an op is monotone, and on the safe side elsewhere. A result may leave the type: whoever
uses these rules knows the type and says "anything".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mlir import ir

Interval = tuple[int, int]
"""(lowest, highest), both included."""

ANYTHING: Interval = (-(2**63), 2**63 - 1)
"""What an index can be: in a program it has 64 bits, whatever it is computed in."""
NARROW: Interval = (-(2**31), 2**31 - 1)
"""What 32 bits hold."""


def holds(outer: Interval, inner: Interval) -> bool:
    """Whether one interval is a part of the other."""
    return outer[0] <= inner[0] and inner[1] <= outer[1]


Rule = Callable[[Sequence[Interval]], Interval]
"""From the operands' intervals to the result's."""


def hull(intervals: Sequence[Interval | None]) -> Interval | None:
    """The smallest interval that holds all of `intervals`; None if one of them is unknown."""
    known = [interval for interval in intervals if interval is not None]
    if len(known) != len(intervals):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def joined(operands: Sequence[Interval]) -> Interval:
    """The rule of an op that gives one of its operands: the smallest interval that holds them
    all."""
    return min(low for low, _ in operands), max(high for _, high in operands)


def always(interval: Interval) -> Rule:
    """A rule that gives `interval` whatever the operands are."""
    return lambda _: interval


def constant_rule(attribute: ir.Attribute) -> Rule | None:
    """The rule of an `arith.constant`; None where its elements differ."""
    if isinstance(attribute, ir.DenseElementsAttr):
        if not attribute.is_splat:
            return None
        attribute = attribute.get_splat_value()
    if not isinstance(attribute, ir.IntegerAttr):
        return None
    number = int(attribute.value)
    if str(attribute.type) == "i1":
        number = abs(number)
    return always((number, number))


def _corners(combine: Callable[[int, int], int]) -> Rule:
    """The rule of an operation that is monotone in each operand: its extremes lie at the
    corners."""

    def rule(operands: Sequence[Interval]) -> Interval:
        left, right = operands
        found = [combine(a, b) for a in left for b in right]
        return min(found), max(found)

    return rule


def _quotient(round_: Callable[[int, int], int]) -> Rule:
    """The rule of a division: its extremes lie at the divisors nearest to 0 and furthest from it.

    Division by 0 gives some number: where no other divisor is possible, any.
    """

    def rule(operands: Sequence[Interval]) -> Interval:
        left, (low, high) = operands
        divisors = {n for n in (low, high, -1, 1) if n and low <= n <= high}
        if not divisors:
            return ANYTHING
        found = [round_(a, b) for a in left for b in divisors]
        return min(found), max(found)

    return rule


def _remainder(operands: Sequence[Interval]) -> Interval:
    """The rule of a remainder: it has the dividend's sign, is smaller than the divisor, and no
    larger than the dividend."""
    (low, high), divisor = operands
    most = max(abs(divisor[0]), abs(divisor[1]), 1) - 1
    return max(min(low, 0), -most), min(max(high, 0), most)


def modulo(operands: Sequence[Interval]) -> Interval:
    """The rule of the addition in `x % y` as Python has it: a remainder and its divisor, added
    where their signs differ, so that the sum is nearer to 0 than the divisor. Where they do not,
    the sum is not used, and may be cut off."""
    _, (low, high) = operands
    return min(low + 1, 0), max(high - 1, 0)


def _truncated(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def _bits(operands: Sequence[Interval]) -> Interval:
    """The rule of `|` and `^`: operands that are not negative set no bit above their highest."""
    if min(low for low, _ in operands) < 0:
        return ANYTHING
    return 0, (1 << max(high for _, high in operands).bit_length()) - 1


def _masked(operands: Sequence[Interval]) -> Interval:
    """The rule of `&`: the result does not exceed an operand that is not negative."""
    bounds = [high for low, high in operands if low >= 0]
    return (0, min(bounds)) if bounds else ANYTHING


def _shifted(combine: Callable[[int, int], int]) -> Rule:
    def rule(operands: Sequence[Interval]) -> Interval:
        value, (low, high) = operands
        if low < 0 or high > 63:
            return ANYTHING
        return _corners(combine)([value, (low, high)])

    return rule


def _unsigned(rule: Rule) -> Rule:
    """The rule of an unsigned operation, given the signed one's: they agree where nothing is
    negative."""

    def checked(operands: Sequence[Interval]) -> Interval:
        return ANYTHING if min(low for low, _ in operands) < 0 else rule(operands)

    return checked


def _least(operands: Sequence[Interval]) -> Interval:
    """The rule of an unsigned minimum: no larger than an operand without a sign bit."""
    return _corners(min)(operands) if min(map(min, operands)) >= 0 else _masked(operands)


_QUOTIENT = _quotient(_truncated)
RULES: Mapping[str, Rule] = {
    "arith.addi": _corners(lambda x, y: x + y),
    "arith.subi": _corners(lambda x, y: x - y),
    "arith.muli": _corners(lambda x, y: x * y),
    "arith.divsi": _QUOTIENT,
    "arith.divui": _unsigned(_QUOTIENT),
    "arith.floordivsi": _quotient(lambda x, y: x // y),
    "arith.ceildivsi": _quotient(lambda x, y: -(-x // y)),
    "arith.ceildivui": _unsigned(_quotient(lambda x, y: -(-x // y))),
    "arith.remsi": _remainder,
    "arith.remui": _unsigned(_remainder),
    "arith.minsi": _corners(min),
    "arith.maxsi": _corners(max),
    "arith.minui": _least,
    "arith.maxui": _unsigned(_corners(max)),
    "arith.andi": _masked,
    "arith.ori": _bits,
    "arith.xori": _bits,
    "arith.shli": _shifted(lambda x, n: x << n),
    "arith.shrsi": _shifted(lambda x, n: x >> n),
    "arith.shrui": _unsigned(_shifted(lambda x, n: x >> n)),
    "arith.select": lambda operands: joined(operands[1:]),
    "arith.extsi": joined,
    "arith.extui": _unsigned(joined),
    "arith.trunci": joined,
    "arith.index_cast": joined,
    "arith.index_castui": _unsigned(joined),
    "tensor.splat": joined,
    "tensor.extract": joined,
}
"""By the name of an op without regions."""
