"""Functions of f32 computed in f64, where their formulas have digits to spare, and rounded.

`erfinv`: M. Giles, "Approximating the erfinv function" (GPU Computing Gems 2, 2012), the table for
single precision, then one step of Newton's method. `lgamma`: Stirling's series at x + 8 (NIST DLMF
5.11.1), the recurrence down from there (5.5.1), and for x < 1/2 reflection (5.5.3). `normcdf`: by
the error function (DLMF 7.18).
"""

from __future__ import annotations

import math

from mlir import ir

from tilec.triton.formula import Formula

_CENTRAL = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
)  # fmt: skip
"""Of Giles' table 1: in w - 2.5 below 5, the highest power first."""
_TAIL = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
    -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
)  # fmt: skip
"""Of the same table: in sqrt(w) - 3 from there on."""
_STIRLING = (-691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)
"""Coefficients of 1 / x**11, ... 1 / x: Bernoulli numbers over 2k (2k - 1), k from 6 down."""
_SHIFT = 8
"""Terms of the recurrence: what the series leaves out at 8.5 is below 1e-14."""


_LARGE = 1e30
"""From there on the product, whose eighth power still is an f64, is as nothing beside x log(x)."""


def erfinv(f: Formula, x: ir.Value) -> ir.Value:
    """The number whose erf is x; infinities of 1 and -1, NaN outside of them."""
    wide, one = f.wide(x), f.wide_number(1.0)
    inside = f.arith("mulf", f.arith("subf", one, wide), f.arith("addf", one, wide))
    w = f.arith("negf", f.math("log", inside))
    near = f.polynomial(f.arith("subf", w, f.wide_number(2.5)), _CENTRAL)
    root = f.arith("subf", f.math("sqrt", w), f.wide_number(3.0))
    is_central = f.compare("olt", w, f.wide_number(5.0))
    y = f.arith("mulf", f.select(is_central, near, f.polynomial(root, _TAIL)), wide)
    slope = f.arith(
        "mulf", f.math("exp", f.arith("mulf", y, y)), f.wide_number(math.sqrt(math.pi) / 2)
    )
    off = f.arith("subf", f.math("erf", y), wide)
    y = f.arith("subf", y, f.arith("mulf", off, slope))
    at_end = f.compare("oeq", f.math("absf", wide), one)
    infinity = f.math("copysign", f.wide_number(math.inf), wide)
    return f.narrow(f.select(at_end, infinity, y))


def lgamma(f: Formula, x: ir.Value) -> ir.Value:
    """The logarithm of the magnitude of the gamma function; infinity at whole numbers up to 0."""
    wide, one = f.wide(x), f.wide_number(1.0)
    reflected = f.compare("olt", wide, f.wide_number(0.5))
    right = _lgamma_right(f, f.select(reflected, f.arith("subf", one, wide), wide))
    # |sin(pi x)| by what x is away from a whole number, which f64 has exactly.
    away = f.arith("subf", wide, f.math("roundeven", wide))
    sine = f.math("absf", f.math("sin", f.arith("mulf", away, f.wide_number(math.pi))))
    left = f.math("log", f.arith("divf", f.wide_number(math.pi), sine))
    found = f.select(reflected, f.arith("subf", left, right), right)
    found = f.select(f.is_infinite(wide), f.wide_number(math.inf), found)
    for zero in (1.0, 2.0):
        found = f.select(f.compare("oeq", wide, f.wide_number(zero)), f.wide_number(0.0), found)
    return f.narrow(found)


def _lgamma_right(f: Formula, x: ir.Value) -> ir.Value:
    """Of x from 1/2 on."""
    some = f.arith("minnumf", x, f.wide_number(_LARGE))
    product = some
    for step in range(1, _SHIFT):
        product = f.arith("mulf", product, f.arith("addf", some, f.wide_number(float(step))))
    z = f.arith("addf", x, f.wide_number(float(_SHIFT)))
    inverse = f.arith("divf", f.wide_number(1.0), z)
    series = f.polynomial(f.arith("mulf", inverse, inverse), _STIRLING)
    series = f.math("fma", series, inverse, f.wide_number(math.log(2 * math.pi) / 2))
    leading = f.arith("mulf", f.arith("subf", z, f.wide_number(0.5)), f.math("log", z))
    total = f.arith("addf", f.arith("subf", leading, z), series)
    return f.arith("subf", total, f.math("log", product))


def normcdf(f: Formula, x: ir.Value) -> ir.Value:
    """The share of the normal distribution below x."""
    scaled = f.arith("mulf", f.wide(x), f.wide_number(-math.sqrt(0.5)))
    return f.narrow(f.arith("mulf", f.wide_number(0.5), f.math("erfc", scaled)))
