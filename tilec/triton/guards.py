"""What the branches around an op say of its mask: a bound that they let nobody reach is none.

    if n >= end: return                       n = 32 * pid_n, end = 64 * (pid_m + 1)
    tl.load(p + i, mask=n + i < min(size, end))        ->  mask=n + i < size

`n < end` holds here, and both are multiples of 32: so does `n + i < end` for all 32 elements of the
tile. Such a minimum is its other side, which a launch may know.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilec.triton.forms import Forms
from tilec.triton.masks import terms_of
from tilec.triton.polynomial import ONE, Polynomial, Symbol, common_factor
from tilec.triton.program import Block, Op, defining
from tilec.triton.signs import Signs


class Guards:
    """The conditions of one kernel's branches."""

    def __init__(self, forms: Forms, signs: Signs) -> None:
        self._forms, self._signs = forms, signs

    def without_minima(
        self, op: Op, term: Polynomial, shape: Sequence[int]
    ) -> Iterator[Polynomial]:
        """What has to be positive, of a tile of that shape, for a term of the mask of `op` to be:
        where a side of a minimum in it always is, the other alone."""
        sides = next(filter(None, (self._sides(term, s) for s in term.symbols)), None)
        left = [side for side in sides or () if not self._holds(op, side, shape)]
        if sides is None or len(left) == len(sides):
            yield term
            return
        for side in left:
            yield from self.without_minima(op, side, shape)

    def _sides(self, term: Polynomial, symbol: Symbol) -> list[Polynomial] | None:
        """A term with each side of the minimum that a symbol stands for."""
        if symbol.kind != "value" or term.factor_of(symbol) != ONE:
            return None
        minimum = defining(symbol.value, "arith.minsi")
        if minimum is None:
            return None
        rest = term - Polynomial.of(symbol)
        found = [self._forms.usable(self._forms.integer(side)) for side in minimum.operands]
        return [rest + side for side in found if side is not None] if None not in found else None

    def _holds(self, op: Op, term: Polynomial, shape: Sequence[int]) -> bool:
        """Whether a term is positive for all elements of a tile, by a branch around `op`: what is
        positive there is a multiple of what all its coefficients are."""
        least = _at_the_end(term, shape)
        if least is None:
            return False
        for guard in self._around(op):
            beyond = (least - guard).constant
            if beyond is not None and common_factor(guard.terms.values()) + beyond > 0:
                return True
        return False

    def _around(self, op: Op) -> Iterator[Polynomial]:
        """What is positive where the branches around an op let it run."""
        block = op.block
        while block is not None and block.parent is not None:
            if block.parent.name == "scf.if":
                yield from self._said(block.parent, block)
            block = block.parent.block

    def _said(self, branch: Op, block: Block) -> Iterator[Polynomial]:
        terms = [t.positive for t in terms_of(branch.operands[0], self._forms, self._signs)]
        if block is branch.regions[0]:
            yield from (term for term in terms if term is not None)
        elif len(terms) == 1 and terms[0] is not None:
            yield ONE - terms[0]


def _at_the_end(term: Polynomial, shape: Sequence[int]) -> Polynomial | None:
    """What a term is never less than along the axes of a tile; None where it is no sum of
    coordinates."""
    ends = {}
    for symbol in term.symbols:
        if symbol.kind != "coordinate":
            continue
        factor = term.factor_of(symbol)
        if factor is None or factor.constant is None:
            return None
        ends[symbol] = Polynomial.of(shape[symbol.axis] - 1 if factor.constant < 0 else 0)
    return term.replaced(ends)
