"""Which integers are certainly 0 or more: coordinates of arrays have to be.

Arguments count as such: the launch looks, and imports a kernel anew, without that, for others
(`nonnegative`). So does what arguments and program ids decide, where a launch is asked (`trusts`):
it computes that for all programs (`program_numbers.py`). What is loaded may be anything.
"""

from __future__ import annotations

from tilec.triton.forms import Forms
from tilec.triton.polynomial import Polynomial, Symbol
from tilec.triton.program import Op, Value
from tilec.triton.program_numbers import decides


class Signs:
    """Proofs for one kernel. `nonnegative`: arguments that are not negative at this launch.
    `trusts`: whether the launch looks at what it can compute; `asked`: what it has to look at."""

    def __init__(self, forms: Forms, nonnegative: frozenset[str], trusts: bool) -> None:
        self.forms = forms
        self.nonnegative = nonnegative
        self.trusts = trusts
        self.asked: set[Value] = set()

    def of(self, form: Polynomial) -> bool:
        """Whether a polynomial is never negative."""
        terms = self.least(form).terms
        return all(n > 0 for n in terms.values()) and all(
            self._symbol(symbol) for monomial in terms for symbol in monomial
        )

    def least(self, form: Polynomial) -> Polynomial:
        """What a polynomial is never less than: the trips that it subtracts are the last ones of
        their loops, as in `64 * (n - 1 - trip)` of a loop that walks from the end."""
        for monomial, n in form.terms.items():
            trip = next((symbol for symbol in monomial if symbol.kind == "trip"), None)
            bound = self.forms.trips_of(trip) if trip is not None and n < 0 else None
            if trip is None or bound is None or n % bound.step:
                continue
            others = list(monomial)
            others.remove(trip)
            if all(map(self._symbol, others)):
                last = Polynomial({tuple(others): n // bound.step}) * bound.last
                return self.least(form + Polynomial({monomial: -n}) + last)
        return form

    def _symbol(self, symbol: Symbol) -> bool:
        if symbol.kind == "argument":
            return symbol.value.name in self.nonnegative
        if symbol.kind == "wrapped":
            wrap = self.forms.wraps[symbol]
            return self.of(wrap.exact)
        if symbol.kind in ("coordinate", "trip"):
            return True
        if symbol.kind != "value":
            return False
        proven = self.value(symbol.value)
        if not proven and self.trusts and decides(symbol.value):
            self.asked.add(symbol.value)
            return True
        return proven

    def value(self, value: Value) -> bool:
        """Whether a scalar is never negative, by what it is computed of."""
        if value in self.forms.at_least:
            return True
        form = self.forms.integer(value)
        if form is not None and form != Polynomial.of(self.forms.symbol("value", value)):
            alone = [s for s in form.symbols if s.value is value]
            if not alone:
                return self.of(form)
        if not isinstance(value.owner, Op):
            loop = value.owner.parent
            if loop is None or loop.name != "scf.for" or value.number:
                return False
            return self.value(loop.operands[0])
        op = value.owner
        rule = _RULES.get(op.name)
        if rule is None:
            return False
        known = [self.value(operand) for operand in op.operands[rule[0] :]]
        return rule[1](known)


def _first(known: list[bool]) -> bool:
    return known[0]


_RULES = {
    "tt.get_program_id": (0, lambda known: True),
    "tt.get_num_programs": (0, lambda known: True),
    "arith.divsi": (0, all),
    "arith.remsi": (0, _first),
    "arith.minsi": (0, all),
    "arith.maxsi": (0, any),
    "arith.andi": (0, any),
    "arith.extui": (0, lambda known: True),
    "arith.extsi": (0, _first),
    "arith.shrsi": (0, _first),
    "arith.select": (1, all),
}
"""From which operand on, and what of them has to be known."""
