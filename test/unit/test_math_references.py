"""The references of test_expand_math.py are better than what they judge: against other series.

Each is compared at a few points with 60 digits of Python's decimal arithmetic, which is the same on
every machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import cache

import numpy as np
import pytest
from math_errors import UNARY, reference_of, samples

DIGITS = 60
ONE, TWO = Decimal(1), Decimal(2)


def _sum(term: Decimal, ratio: Callable[[int], Decimal]) -> Decimal:
    """term * (1 + ratio(1) * (1 + ratio(2) * ...)), until the terms are below the last digit."""
    total = Decimal(0)
    for n in range(1, 100_000):
        total += term
        term *= ratio(n)
        if abs(term) < Decimal(10) ** -(DIGITS + 40):
            return total
    raise AssertionError("the series has no end")


def _sin(x: Decimal) -> Decimal:
    return _sum(x, lambda n: -x * x / (2 * n * (2 * n + 1)))


def _cos(x: Decimal) -> Decimal:
    return _sum(ONE, lambda n: -x * x / (2 * n * (2 * n - 1)))


def _atan(x: Decimal) -> Decimal:
    """Halved three times, then Euler's series."""
    for _ in range(3):
        x = x / (1 + (1 + x * x).sqrt())
    y = x * x / (1 + x * x)
    return 8 * _sum(x / (1 + x * x), lambda n: y * (2 * n) / (2 * n + 1))


def _asin(x: Decimal) -> Decimal:
    return 2 * _atan(x / (1 + (1 - x * x).sqrt()))


@cache
def _pi() -> Decimal:
    return 4 * _atan(ONE)


def _erf(x: Decimal) -> Decimal:
    scale = TWO / _pi().sqrt()
    return scale * (-x * x).exp() * _sum(x, lambda n: 2 * x * x / (2 * n + 1))


def _cbrt(x: Decimal) -> Decimal:
    return (abs(x).ln() / 3).exp().copy_sign(x) if x else x


EXACT: dict[str, Callable[[Decimal], Decimal]] = {
    "exp": lambda x: x.exp(),
    "exp2": lambda x: (x * TWO.ln()).exp(),
    "expm1": lambda x: x.exp() - 1,
    "log": lambda x: x.ln(),
    "log2": lambda x: x.ln() / TWO.ln(),
    "log10": lambda x: x.log10(),
    "log1p": lambda x: (1 + x).ln(),
    "sqrt": lambda x: x.sqrt(),
    "rsqrt": lambda x: 1 / x.sqrt(),
    "cbrt": _cbrt,
    "sin": _sin,
    "cos": _cos,
    "tan": lambda x: _sin(x) / _cos(x),
    "asin": _asin,
    "acos": lambda x: _pi() / 2 - _asin(x),
    "atan": _atan,
    "sinh": lambda x: (x.exp() - (-x).exp()) / 2,
    "cosh": lambda x: (x.exp() + (-x).exp()) / 2,
    "tanh": lambda x: 1 - 2 / ((2 * x).exp() + 1),
    "asinh": lambda x: (x + (x * x + 1).sqrt()).ln(),
    "acosh": lambda x: (x + (x * x - 1).sqrt()).ln(),
    "atanh": lambda x: ((1 + x) / (1 - x)).ln() / 2,
    "erf": _erf,
    "erfc": lambda x: 1 - _erf(x),
}
DOMAIN = {
    **dict.fromkeys(["log", "log2", "log10", "sqrt", "rsqrt"], (2.0**-60, 2.0**60)),
    **dict.fromkeys(["asin", "acos", "atanh"], (-0.999, 0.999)),
    **dict.fromkeys(["sin", "cos", "tan"], (-60.0, 60.0)),
    **dict.fromkeys(["exp2", "exp", "sinh", "cosh", "tanh"], (-80.0, 80.0)),
    **dict.fromkeys(["erf", "erfc"], (-6.0, 9.0)),
    "log1p": (-0.999, 2.0**60),
    "acosh": (1.0, 2.0**60),
    "expm1": (-40.0, 80.0),
}
"""Where the series converge soon; elsewhere all numbers of a few bits up to 2**60."""


def points(name: str) -> np.ndarray:
    """Some 30 numbers of f32: random ones of all sizes, and of the interval looked at closely."""
    low, high = DOMAIN.get(name, (-(2.0**60), 2.0**60))
    x = samples("f32", *UNARY[name][1], 40, seed=11)
    x = x[np.isfinite(x) & (x >= low) & (x <= high) & (np.abs(x) > 2.0**-60)]
    return x[:: max(1, x.size // 30)]


def exact(value: np.floating) -> Decimal:
    """A long double as a decimal number: its two halves are doubles."""
    high = float(value)
    return Decimal(high) + Decimal(float(value - np.longdouble(high)))


@pytest.mark.parametrize("name", UNARY)
def test_the_reference_is_right_to_60_bits(name: str) -> None:
    inputs = points(name)
    results = reference_of(name)(inputs)
    with localcontext() as context:
        context.prec = DIGITS + 60
        for x, result in zip(inputs, results, strict=True):
            wanted, got = EXACT[name](Decimal(float(x))), exact(result)
            assert abs(got - wanted) <= abs(wanted) * Decimal(2) ** -60, (x, got, wanted)


def test_decimal_series_know_their_constants() -> None:
    with localcontext() as context:
        context.prec = DIGITS + 60
        assert math.isclose(_pi(), math.pi, rel_tol=1e-15)
        assert abs(_sin(_pi())) < Decimal(10) ** -DIGITS
        assert abs(_erf(Decimal(9)) - 1) < Decimal(10) ** -30
