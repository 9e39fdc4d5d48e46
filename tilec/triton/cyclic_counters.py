"""Counters that go round, of loops that are two in one.

    for _ in range(steps * tiles):
        k = where(k == steps - 1, 0, k + 1)         0, 1, ..., steps - 1, 0, 1, ...

Iteration by iteration such a counter is `first + step * place`, where the place goes from 0 to
the period's last and begins again. Found are arguments of the loop that are counted by a number
and set back by a comparison or by `%`, in front of what reads them or behind, in either direction;
and the loop's variable `% steps`, with its quotient. What compares the counter may tell the first
place or the last: an event.

Does not handle counters that loops carry and that start elsewhere than at the first place or in
front of it, nor two of which one counts on where the other goes round.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tilec.records import dataclass
from tilec.triton.forms import Forms, is_wide
from tilec.triton.polynomial import ONE, ZERO, Polynomial, Symbol
from tilec.triton.program import Op, Value, defining, walk

FIRST, LAST = "first", "last"


@dataclass(frozen=True)
class Comparison:
    """`scale * place >= least`, or `==` where it `is_equal`; `negated`: its contrary."""

    scale: int
    least: Polynomial
    is_equal: bool
    negated: bool = False


@dataclass(frozen=True)
class Event:
    """Whether a flag holds at the first place alone or at the last; `negated`: at all others."""

    kind: str
    negated: bool


@dataclass(frozen=True)
class Counting:
    """How a loop counts: `first` + `step` * place, by `place` the symbol. `counter`: what holds
    that; `carried`: the argument behind it, None of the loop's variable; `wrapped`: what holds the
    counter of the next iteration; `quotients`: how often it has gone round; `wrap`: what tells the
    last place; `period`: places, None where only a `Value` says it."""

    counter: Value
    carried: Value | None
    first: Value | int
    step: int
    wrapped: tuple[Value, ...]
    quotients: tuple[Value, ...]
    wrap: Comparison | None
    period: Polynomial | None


class Counters:
    """The counters of one loop."""

    def __init__(self, loop: Op, forms: Forms) -> None:
        self.loop, self.forms = loop, forms
        self.place = Symbol("place")
        self.body = loop.regions[0]

    def found(self) -> Iterator[Counting]:
        """Each counter that goes round."""
        yield from self._of_variable()
        for value in self.body.arguments[1:]:
            if value.type.shape is None and is_wide(value.type):
                yield from self._of_argument(value)

    def _of_variable(self) -> Iterator[Counting]:
        """The loop's variable by its remainders."""
        variable = self.body.arguments[0]
        by: dict[Value, dict[str, list[Value]]] = {}
        for op in walk(self.body):
            if op.name not in ("arith.remsi", "arith.divsi") or op.result.type.shape is not None:
                continue
            ahead = self._form(op.operands[0]) - self._form(variable)
            if ahead.constant in (0, 1) and self.is_outside(op.operands[1]):
                kind = "ahead" if ahead.constant else op.name
                if kind != "ahead" or op.name == "arith.remsi":
                    by.setdefault(op.operands[1], {}).setdefault(kind, []).append(op.result)
        for divisor, found in by.items():
            counters, quotients = found.get("arith.remsi", []), found.get("arith.divsi", [])
            if counters:
                wrapped, period = found.get("ahead", []), self._form(divisor)
                yield Counting(
                    counters[0], None, 0, 1, tuple(wrapped), tuple(quotients), None, period
                )

    def _of_argument(self, value: Value) -> Iterator[Counting]:
        """A loop's argument that is counted, and set back."""
        after = self.body.terminator.operands[value.number - 1]
        init = self.forms.integer(self.loop.operands[2 + value.number])
        counted = self._set_back(value, after)
        if init is None or counted is None:
            return
        first, step, wrap, period = counted
        start = Polynomial.of(first) if isinstance(first, int) else self._form(first)
        if init == start:
            yield Counting(value, value, first, step, (after,), (), wrap, period)
        elif init == start - Polynomial.of(step):
            yield Counting(after, value, first, step, (), (), wrap, period)

    def _set_back(
        self, value: Value, after: Value
    ) -> tuple[Value | int, int, Comparison | None, Polynomial | None] | None:
        """Where a counter begins again, what it counts by, what tells that, and its period."""
        remainder = defining(after, "arith.remsi")
        if remainder is not None:
            step = self._step(value, remainder.operands[0])
            period = self.forms.integer(remainder.operands[1])
            return (0, 1, None, period) if step == 1 and self._is_fixed(period) else None
        for flag, first, counted, negated in _choices(after):
            step, compared = self._step(value, counted), defining(flag, "arith.cmpi")
            start = self.forms.integer(first)
            if not step or compared is None or not self._is_fixed(start) or start is None:
                continue
            known = {
                s: start + Polynomial.of(self.place).scaled(step) for s in self._symbols(value)
            }
            test = self.test(compared, known)
            if test is None or test.negated != negated:
                continue
            wrap = replace(test, negated=False)
            period = wrap.least + ONE if wrap.scale == 1 else None
            return first, step, wrap, period
        return None

    def _step(self, value: Value, counted: Value) -> int | None:
        """What `counted` is more than `value`, where that is a number."""
        known = {s: ZERO for s in self._symbols(value)}
        form = self._form(counted)
        if form.symbols.isdisjoint(known):
            return None
        return (form - Polynomial.of(next(iter(form.symbols & set(known))))).constant

    def _symbols(self, value: Value) -> tuple[Symbol, ...]:
        """What stands for a value that a loop carries."""
        return self.forms.symbol("value", value), self.forms.symbol("carried", value)

    def _form(self, value: Value) -> Polynomial:
        found = self.forms.integer(value)
        return Polynomial.of(self.forms.symbol("value", value)) if found is None else found

    def is_outside(self, value: Value) -> bool:
        """Whether a value is made in front of the loop."""
        return self._is_fixed(Polynomial.of(self.forms.symbol("value", value)))

    def _is_fixed(self, form: Polynomial | None) -> bool:
        return form is not None and not any(self.forms.varies(s, self.loop) for s in form.symbols)

    def test(self, compared: Op, known: dict[Symbol, Polynomial]) -> Comparison | None:
        """What a comparison says of the place. `known`: symbols in terms of it."""
        sides = [self.forms.integer(value) for value in compared.operands]
        word = next((word for word in _WORDS if word in compared.words), None)
        if word is None or None in sides:
            return None
        one, two = (side.replaced(known) for side in sides if side is not None)
        total = one - two
        slope = total.factor_of(self.place)
        scale = None if slope is None else slope.constant
        if slope is None or not scale:
            return None
        rest = total - slope * Polynomial.of(self.place)
        return _normal(word, scale, rest) if self._is_fixed(rest) else None

    def event(self, flag: Value, counting: Counting) -> Event | None:
        """What a flag tells of the place, if it does."""
        compared = defining(flag, "arith.cmpi")
        if compared is None or counting.period is None:
            return None
        first = counting.first
        start = Polynomial.of(first) if isinstance(first, int) else self._form(first)
        at = start + Polynomial.of(self.place).scaled(counting.step)
        test = self.test(compared, {s: at for s in self._symbols(counting.counter)})
        if test is not None:
            return self._told(test, counting)
        sides = [self._form(value) for value in compared.operands]
        for next_one in counting.wrapped:
            ahead = Polynomial.of(self.forms.symbol("value", next_one)) - start
            if sides[0] - sides[1] in (ahead, -ahead) and {"eq", "ne"} & set(compared.words):
                return Event(LAST, "ne" in compared.words)
        return None

    def _told(self, test: Comparison, counting: Counting) -> Event | None:
        wrap, period = counting.wrap, counting.period
        is_last = wrap is not None and replace(test, negated=False) == wrap
        if period is not None and test.scale == 1:
            is_last = is_last or test.least == period - ONE
        if is_last:
            return Event(LAST, test.negated)
        if test.scale == 1 and test.least == (ZERO if test.is_equal else ONE):
            return Event(FIRST, test.negated != (not test.is_equal))
        return None


_WORDS = ("eq", "ne", "slt", "sle", "sgt", "sge")


def _normal(word: str, scale: int, rest: Polynomial) -> Comparison:
    """`scale * place + rest` compared with 0."""
    if word in ("eq", "ne"):
        exact = (-rest).divided(Polynomial.of(scale))
        found = Comparison(1, exact, True) if exact is not None else _signed(scale, rest)
        return replace(found, negated=word == "ne")
    least = -rest + (ONE if word in ("sgt", "sle") else ZERO)  # scale * place >= least
    negated = word in ("slt", "sle")
    if scale < 0:
        scale, least, negated = -scale, ONE - least, not negated
    exact = least.divided(Polynomial.of(scale))
    if exact is None and least.constant is not None:
        exact = Polynomial.of(-(-least.constant // scale))
    return (
        Comparison(scale, least, False, negated)
        if exact is None
        else Comparison(1, exact, False, negated)
    )


def _signed(scale: int, rest: Polynomial) -> Comparison:
    return Comparison(scale, -rest, True) if scale > 0 else Comparison(-scale, rest, True)


def _choices(value: Value) -> Iterator[tuple[Value, Value, Value, bool]]:
    """A flag, a value where it holds, the other, and whether the flag's contrary is meant: both
    ways of a select or a branch."""
    op = value.owner
    if not isinstance(op, Op) or op.name not in ("arith.select", "scf.if"):
        return
    one, two = chosen(op, value.number)
    yield op.operands[0], one, two, False
    yield op.operands[0], two, one, True


def chosen(op: Op, number: int) -> tuple[Value, Value]:
    """What a select or a branch gives where its flag holds, and where not."""
    if op.name == "arith.select":
        return op.operands[1], op.operands[2]
    one, two = (region.terminator.operands[number] for region in op.regions)
    return one, two


Factor = Value | int


def parts_of_bound(
    bound: Value, counting: Counting, forms: Forms
) -> tuple[Factor, list[Factor]] | None:
    """A loop's bound as the period and what it is multiplied by; None where the period is no
    factor, or 1."""
    if counting.period == ONE:
        return None
    if _is_period(bound, counting, forms):
        return bound, []
    product = defining(bound, "arith.muli")
    for one, other in (product.operands, product.operands[::-1]) if product else ():
        found = parts_of_bound(one, counting, forms)
        if found is not None:
            return found[0], [*found[1], other]
    period = counting.period and counting.period.constant
    total = forms.integer(bound)
    if not period or total is None:
        return None
    shifted = defining(bound, "arith.shli")
    if shifted and total == Polynomial.of(period) * (forms.integer(shifted.operands[0]) or ZERO):
        return period, [shifted.operands[0]]
    whole = total.constant is not None and total.divided(Polynomial.of(period))
    return (period, [whole.constant or 0]) if whole else None


def _is_period(value: Value, counting: Counting, forms: Forms) -> bool:
    """Whether a factor is the period; of a counter in steps, the quotient that is."""
    form, wrap = forms.integer(value), counting.wrap
    if counting.period is not None or wrap is None:
        return form == counting.period
    quotient = defining(value, "arith.divsi")
    if quotient is None or wrap.is_equal:
        return False
    above, by = map(forms.integer, quotient.operands)
    rounded_up = wrap.least + Polynomial.of(2 * wrap.scale - 1)
    return above == rounded_up and by == Polynomial.of(wrap.scale)
