"""Polynomials with integer coefficients over symbols: how indices and addresses are written down.

`pid * 64 + i0 + k * stride` has the symbols of a program id, a coordinate, a loop and an argument.
Sums, differences and products of such are exact, as Triton takes the arithmetic of addresses to be
(its own analysis of contiguity does): an i32 that runs over is not modelled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from itertools import count
from math import gcd
from typing import Any

from tilec.records import dataclass

_NUMBERS = count()


@dataclass(frozen=True, eq=False)
class Symbol:
    """One unknown of polynomials, equal to itself alone.

    `kind`: "argument" of the kernel; "coordinate" of an element along `axis` of its tile; "trip",
    how often a loop (`value`: its variable) has gone round; "wrapped", a coordinate that wraps or
    is clamped; "value", any other scalar; "carried", what a loop carries. `value`: what it stands
    for. `made`: where arguments alone decide it, the op that computes it and of what.
    """

    kind: str
    value: Any = None
    axis: int = 0
    made: tuple[str, tuple[Polynomial, ...]] | None = None
    number: int = field(default_factory=lambda: next(_NUMBERS))

    @property
    def is_known(self) -> bool:
        """Whether a launch knows its value."""
        return self.kind == "argument" or self.made is not None

    def __str__(self) -> str:
        if self.kind == "coordinate":
            return f"i{self.axis}"
        if self.made is None:
            return str(self.value.name)
        name, parts = self.made
        return f"{name.partition('.')[2]}({', '.join(map(str, parts))})"


Monomial = tuple[Symbol, ...]


class Polynomial:
    """A sum of monomials, each with its coefficient; none is 0. Immutable."""

    __slots__ = ("terms",)

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        self.terms = {monomial: n for monomial, n in terms.items() if n}

    @classmethod
    def of(cls, value: int | Symbol) -> Polynomial:
        """A number, or a symbol alone."""
        return cls({(): value} if isinstance(value, int) else {(value,): 1})

    def __add__(self, other: Polynomial) -> Polynomial:
        terms = dict(self.terms)
        for monomial, n in other.terms.items():
            terms[monomial] = terms.get(monomial, 0) + n
        return Polynomial(terms)

    def __neg__(self) -> Polynomial:
        return self.scaled(-1)

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + -other

    def __mul__(self, other: Polynomial) -> Polynomial:
        terms: dict[Monomial, int] = {}
        for one, n in self.terms.items():
            for two, m in other.terms.items():
                product = tuple(sorted((*one, *two), key=lambda s: s.number))
                terms[product] = terms.get(product, 0) + n * m
        return Polynomial(terms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def scaled(self, factor: int) -> Polynomial:
        """All coefficients times a number."""
        return Polynomial({monomial: n * factor for monomial, n in self.terms.items()})

    @property
    def constant(self) -> int | None:
        """Its value where it has no symbol."""
        return self.terms.get((), 0) if not any(self.terms) else None

    @property
    def symbols(self) -> set[Symbol]:
        """All symbols in it."""
        return {symbol for monomial in self.terms for symbol in monomial}

    @property
    def is_known(self) -> bool:
        """Whether a launch knows its value: arguments alone decide it."""
        return all(symbol.is_known for symbol in self.symbols)

    @property
    def arguments(self) -> set[Symbol]:
        """The arguments in it, and in what is computed of arguments."""
        made = [part for symbol in self.symbols if symbol.made for part in symbol.made[1]]
        own = {symbol for symbol in self.symbols if symbol.kind == "argument"}
        return own.union(*(part.arguments for part in made))

    def part(self, chosen: Callable[[Monomial], bool]) -> Polynomial:
        """The sum of some of its monomials."""
        return Polynomial({monomial: n for monomial, n in self.terms.items() if chosen(monomial)})

    def has(self, kind: str) -> bool:
        """Whether a symbol of that kind is in it."""
        return any(symbol.kind == kind for symbol in self.symbols)

    def factor_of(self, symbol: Symbol) -> Polynomial | None:
        """What `symbol` is multiplied by; None where it occurs in another power than the first."""
        terms = {}
        for monomial, n in self.terms.items():
            if symbol in monomial:
                if monomial.count(symbol) > 1:
                    return None
                terms[tuple(s for s in monomial if s is not symbol)] = n
        return Polynomial(terms)

    def divided(self, by: Polynomial) -> Polynomial | None:
        """Each monomial by the one monomial of `by`; None where one is no multiple of it."""
        if len(by.terms) != 1:
            return None
        ((divisor, m),) = by.terms.items()
        terms: dict[Monomial, int] = {}
        for monomial, n in self.terms.items():
            left = list(monomial)
            for symbol in divisor:
                if symbol not in left:
                    return None
                left.remove(symbol)
            if n % m:
                return None
            terms[tuple(left)] = n // m
        return Polynomial(terms)

    def replaced(self, found: Mapping[Symbol, Polynomial]) -> Polynomial:
        """With polynomials for some symbols."""
        if self.symbols.isdisjoint(found):
            return self
        total = Polynomial({})
        for monomial, n in self.terms.items():
            product = Polynomial({(): n})
            for symbol in monomial:
                product = product * found.get(symbol, Polynomial.of(symbol))
            total = total + product
        return total

    def __str__(self) -> str:
        parts = []
        for monomial, n in sorted(self.terms.items(), key=lambda t: [s.number for s in t[0]]):
            factors = [str(symbol) for symbol in monomial]
            parts.append("*".join(factors if n == 1 and factors else [str(n), *factors]))
        return " + ".join(parts) or "0"


ZERO = Polynomial({})
ONE = Polynomial.of(1)


def common_factor(numbers: Iterable[int]) -> int:
    """The greatest number that divides all; 1 of none."""
    return gcd(*numbers) or 1
