"""Which coordinates are no less than 0, by where they come from: program numbers, sizes, loops that
count up from 0, and sums, products, quotients and remainders of those.

An index that is computed in 32 bits fits them, or was clamped as a 64-bit one (`coordinates.py`):
it does not wrap. For wider indices the largest number is followed along with the sign, and one that
may wrap may be anything; so may i32 and i64, in which authors compute. A tile is no less than 0
where all its elements are.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.def_use import defining_op
from tilec.dialects.op import TileOp
from tilec.dialects.tile import IotaOp
from tilec.dialects.types import is_index, number_type, shape
from tilec.executable.kernel import MOST_PROGRAMS
from tilec.passes.analysis.divisibility import number_of
from tilec.passes.demands.kernels import has_narrow_indices
from tilec.passes.rewriting.walk import is_of, kernel_of

_MOST_ELEMENTS = 2**48
"""No array has more: addresses have 48 or 49 bits, and one that repeats elements is none here."""
_HELD = 2**62
"""What 64 bits hold with room for a tile that hangs over."""

_NARROW = 2**31 - 1
"""What an index of 32 bits holds."""
_DEEPEST = 200
"""Ops that are looked through, one behind the other."""

_Bounds = tuple[bool, int | None]
"""Whether a number is 0 or more, and the most it comes to, None where that is not known."""


def is_never_negative(value: ir.Value) -> bool:
    """Whether a scalar integer is known to be 0 or more."""
    return Signs().is_never_negative(value)


def is_count(view: ir.OpView) -> bool:
    """Whether an op counts programs, CTAs or slots, or numbers one of them."""
    return isinstance(view, TileOp) and view.LEAST is not None


class Signs:
    """What is known of one function's integers, memoised. Build it anew after a change."""

    def __init__(self) -> None:
        self._known: dict[ir.Value, _Bounds] = {}
        self._depth = 0

    def is_never_negative(self, value: ir.Value) -> bool:
        """Whether an integer, or each element of a tile of integers, is known to be 0 or more."""
        return self._bounds(value)[0]

    def _bounds(self, value: ir.Value) -> _Bounds:
        if value not in self._known:
            if self._depth == _DEEPEST:
                return False, None
            self._depth += 1
            self._known[value] = self._derive(value)
            self._depth -= 1
        return self._known[value]

    def _derive(self, value: ir.Value) -> _Bounds:
        known = number_of(value)
        if known is not None:
            return known >= 0, known
        op = defining_op(value)
        if op is None:
            return self._of_argument(ir.BlockArgument(value))
        if is_count(op.opview):
            return True, MOST_PROGRAMS
        if op.name == "memref.dim":
            return True, _MOST_ELEMENTS
        if is_of(op, IotaOp):
            return True, shape(value)[op.opview.axis]
        if op.name in _SAME:
            return self._of_same(op)
        if op.name not in _RULES or not is_index(number_type(value)):
            return False, None
        return self._of_arithmetic(op)

    def _of_argument(self, argument: ir.BlockArgument) -> _Bounds:
        """The bounds of a block argument: a loop's variable lies between the loop's bounds, because
        steps are positive."""
        loop = argument.owner.owner
        if loop.name != "scf.for" or argument.arg_number:
            return False, None
        lower, upper = list(loop.operands)[:2]
        return self._bounds(lower)[0], self._bounds(upper)[1]

    def _of_same(self, op: ir.Operation) -> _Bounds:
        """The bounds of the operand, unless the result has too few bits for it."""
        positive, most = self._bounds(op.operands[0])
        kind = number_type(op.results[0])
        if isinstance(kind, ir.IntegerType) and not has_narrow_indices(kernel_of(op)):
            fits = most is not None and most < 2 ** (kind.width - 1)
            return (positive, most) if fits else (False, None)
        return positive, most

    def _of_arithmetic(self, op: ir.Operation) -> _Bounds:
        first, second = map(self._bounds, list(op.operands)[-2:])
        (positive, most), (other_positive, other_most) = first, second
        if op.name == "arith.minsi":
            known = [number for number in (most, other_most) if number is not None]
            return positive and other_positive, min(known, default=None)
        narrow = has_narrow_indices(kernel_of(op))
        if narrow:
            most, other_most = (_NARROW if each is None else each for each in (most, other_most))
        if most is None or other_most is None:
            return False, None
        if op.name == "arith.maxsi":
            return positive or other_positive, max(most, other_most)
        if not (positive and other_positive):
            return False, None
        bound = _RULES[op.name](most, other_most)
        if narrow:
            return True, min(bound, _NARROW)
        return (True, bound) if bound < _HELD else (False, None)


_SAME = ("arith.index_cast", "arith.extsi", "tensor.splat", "tile.broadcast")
"""Ops whose result has the numbers of the operand."""
_RULES = {
    "arith.addi": lambda a, b: a + b,
    "arith.muli": lambda a, b: a * b,
    **dict.fromkeys(("arith.divsi", "arith.floordivsi", "arith.divui"), lambda a, b: a),
    **dict.fromkeys(("arith.ceildivsi", "arith.ceildivui"), lambda a, b: a),
    **dict.fromkeys(("arith.remsi", "arith.remui"), min),
    "arith.minsi": min,
    "arith.maxsi": max,
    "arith.select": max,
}
"""The most of each, of operands from 0 on."""
