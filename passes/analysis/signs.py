"""Which coordinates are no less than 0, by where they come from: program numbers, sizes, loops that
count up from 0, and sums, products, quotients and remainders of those.

An index computed in 32 bits fits them, or was clamped as a 64-bit one (`coordinates.py`). Of wider
ones the most that they come to is followed, so that what may wrap counts as anything; so do i32 and
i64, in which authors compute.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.op import TileOp
from tilec.executable.kernel import MOST_PROGRAMS
from tilec.passes.analysis.divisibility import constant_of

_MOST_ELEMENTS = 2**48
"""No array has more: addresses have 48 or 49 bits, and one that repeats elements is none here."""
_HELD = 2**62
"""What 64 bits hold with room for a tile that hangs over."""

_Bounds = tuple[bool, int | None]
"""Whether a number is 0 or more, and the most it comes to, None where that is not known."""


def is_never_negative(value: ir.Value) -> bool:
    """Whether a scalar integer is known to be 0 or more."""
    return _bounds(value)[0]


def _bounds(value: ir.Value) -> _Bounds:
    known = constant_of(value)
    if known is not None:
        return known >= 0, known
    if isinstance(value.owner, ir.Block):
        return _of_argument(ir.BlockArgument(value))
    op = value.owner
    if is_count(op.opview):
        return True, MOST_PROGRAMS
    if op.name == "memref.dim":
        return True, _MOST_ELEMENTS
    if op.name in ("arith.index_cast", "arith.extsi"):
        return _bounds(op.operands[0])
    if op.name not in _RULES or not isinstance(value.type, ir.IndexType):
        return False, None
    return _of_arithmetic(op)


def is_count(view: ir.OpView) -> bool:
    """Whether an op counts programs, CTAs or slots, or numbers one of them."""
    return isinstance(view, TileOp) and view.LEAST is not None


def _of_argument(argument: ir.BlockArgument) -> _Bounds:
    """The bounds of a block argument: a loop's variable lies between the loop's bounds, because
    steps are positive."""
    loop = argument.owner.owner
    if loop.name != "scf.for" or argument.arg_number:
        return False, None
    lower, upper = list(loop.operands)[:2]
    return _bounds(lower)[0], _bounds(upper)[1]


def _of_arithmetic(op: ir.Operation) -> _Bounds:
    (positive, most), (other_positive, other_most) = map(_bounds, op.operands)
    if op.name == "arith.minsi":
        known = [number for number in (most, other_most) if number is not None]
        return positive and other_positive, min(known, default=None)
    if most is None or other_most is None:
        return False, None
    if op.name == "arith.maxsi":
        return positive or other_positive, max(most, other_most)
    if not (positive and other_positive):
        return False, None
    bound = _RULES[op.name](most, other_most)
    return (True, bound) if bound < _HELD else (False, None)


_RULES = {
    "arith.addi": lambda a, b: a + b,
    "arith.muli": lambda a, b: a * b,
    "arith.divsi": lambda a, b: a,
    "arith.remsi": lambda a, b: min(a, b),
    "arith.minsi": min,
    "arith.maxsi": max,
}
"""The most of each, of operands from 0 on."""
