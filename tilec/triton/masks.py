"""Masks taken apart: a conjunction of comparisons, each a polynomial that has to be positive.

    %m = andi (cmpi slt %rows, %M), (cmpi slt %cols, %N)     ->  M - i0 - pid*64 > 0, N - i1 > 0

What is no such comparison is a term without a form: the remainder of a mask.
"""

from __future__ import annotations

from collections.abc import Callable

from tilec.records import dataclass
from tilec.triton.forms import Forms, is_wide
from tilec.triton.op_facts import constant_integer, moved_axes
from tilec.triton.polynomial import ONE, Polynomial
from tilec.triton.program import Op, Value
from tilec.triton.signs import Signs


@dataclass(frozen=True)
class Term:
    """A part of a mask: `positive` > 0; None of what has no form."""

    positive: Polynomial | None


def terms_of(mask: Value | None, forms: Forms, signs: Signs) -> list[Term]:
    """What all has to hold where a mask (None: everywhere) is true."""
    return [] if mask is None else _Masks(forms, signs).terms(mask, lambda axis: axis)


class _Masks:
    def __init__(self, forms: Forms, signs: Signs) -> None:
        self.forms, self.signs = forms, signs

    def terms(self, mask: Value, axes: Callable[[int], int]) -> list[Term]:
        """The terms of a mask whose axes have other numbers further on."""
        op = mask.owner
        if not isinstance(op, Op):
            return [Term(None)]
        if op.name in ("arith.andi", "arith.muli"):  # of flags the same
            return [term for part in op.operands for term in self.terms(part, axes)]
        if op.name in ("tt.splat", "tt.broadcast"):
            return self.terms(op.operands[0], axes)
        if op.name in ("tt.expand_dims", "tt.trans"):
            move = moved_axes(op)
            return self.terms(op.operands[0], lambda axis: axes(move(axis)))
        if op.name == "arith.constant" and constant_integer(op) == 1:
            return []
        if op.name == "arith.cmpi":
            return [Term(self.forms.usable(self._compared(op, axes)))]
        return [Term(None)]

    def _compared(self, op: Op, axes: Callable[[int], int]) -> Polynomial | None:
        if not all(is_wide(value.type) for value in op.operands):
            return None
        left, right = (self.forms.usable(self.forms.integer(value)) for value in op.operands)
        if left is None or right is None:
            return None
        found = next((row for word, row in _PREDICATES.items() if word in op.words), None)
        if found is None:
            return None
        flip, or_equal, unsigned = found
        if unsigned and not (self.signs.of(left) and self.signs.of(right)):
            return None
        low, high = (right, left) if flip else (left, right)
        positive = high - low + (ONE if or_equal else ONE - ONE)
        return self.forms.moved(positive, axes)


_PREDICATES = {
    "slt": (False, False, False),
    "sle": (False, True, False),
    "sgt": (True, False, False),
    "sge": (True, True, False),
    "ult": (False, False, True),
    "ule": (False, True, True),
    "ugt": (True, False, True),
    "uge": (True, True, True),
}
"""arith.cmpi's: whether the left is the larger, may be equal, and has no sign."""
