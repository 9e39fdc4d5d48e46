"""Elementwise arithmetic and math, on tiles and scalars alike.

f16 and bf16 compute in their own precision where the hardware does, fp8 must be cast first,
integers given to a floating-point function become f32. Accuracies are listed in
passes/math/README.md; `approx=True` allows the hardware's approximation (`fastmath<afn>`) instead.
"""

# The frontend has the bodies.
# pyright: reportReturnType=false

from __future__ import annotations

from tilec.language.builtin import builtin
from tilec.language.tile import Tile
from tilec.terms.numbers import Number

__all__ = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "clamp",
    "cos",
    "cosh",
    "div",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "fma",
    "isnan",
    "log",
    "log1p",
    "log2",
    "log10",
    "maximum",
    "minimum",
    "pow",
    "round",
    "rsqrt",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
]


@builtin
def maximum(x: Number, y: Number) -> Tile:
    """The greater of each pair; NaN if either is."""


@builtin
def minimum(x: Number, y: Number) -> Tile:
    """The smaller of each pair; NaN if either is."""


@builtin
def clamp(x: Number, low: Number, high: Number) -> Tile:
    """`x` limited to [low, high]; NaN stays NaN."""


@builtin
def abs(x: Number) -> Tile:
    """Absolute value."""


@builtin
def fma(x: Number, y: Number, z: Number) -> Tile:
    """`x * y + z` with one rounding."""


@builtin
def div(x: Number, y: Number, approx: bool = False) -> Tile:
    """`x / y` correctly rounded, where the operator `/` is within 2 ulp for f32.

    `approx=True` multiplies by an approximate reciprocal.
    """


@builtin
def pow(x: Number, y: Number, approx: bool = False) -> Tile:
    """`x` to the power `y` in floating point; `x ** y` with a small constant int multiplies."""


@builtin
def exp(x: Number, approx: bool = False) -> Tile:
    """e to the x."""


@builtin
def exp2(x: Number, approx: bool = False) -> Tile:
    """2 to the x."""


@builtin
def expm1(x: Number, approx: bool = False) -> Tile:
    """e to the x, minus 1, accurate near 0."""


@builtin
def log(x: Number, approx: bool = False) -> Tile:
    """Natural logarithm."""


@builtin
def log2(x: Number, approx: bool = False) -> Tile:
    """Logarithm to base 2."""


@builtin
def log10(x: Number, approx: bool = False) -> Tile:
    """Logarithm to base 10."""


@builtin
def log1p(x: Number, approx: bool = False) -> Tile:
    """Natural logarithm of 1 + x, accurate near 0."""


@builtin
def sqrt(x: Number, approx: bool = False) -> Tile:
    """Square root, correctly rounded unless `approx`."""


@builtin
def rsqrt(x: Number, approx: bool = False) -> Tile:
    """1 / sqrt(x)."""


@builtin
def cbrt(x: Number, approx: bool = False) -> Tile:
    """Cube root."""


@builtin
def sin(x: Number, approx: bool = False) -> Tile:
    """Sine of radians."""


@builtin
def cos(x: Number, approx: bool = False) -> Tile:
    """Cosine of radians."""


@builtin
def tan(x: Number, approx: bool = False) -> Tile:
    """Tangent of radians."""


@builtin
def asin(x: Number, approx: bool = False) -> Tile:
    """Inverse sine."""


@builtin
def acos(x: Number, approx: bool = False) -> Tile:
    """Inverse cosine."""


@builtin
def atan(x: Number, approx: bool = False) -> Tile:
    """Inverse tangent."""


@builtin
def atan2(y: Number, x: Number, approx: bool = False) -> Tile:
    """Angle of the point (x, y)."""


@builtin
def sinh(x: Number, approx: bool = False) -> Tile:
    """Hyperbolic sine."""


@builtin
def cosh(x: Number, approx: bool = False) -> Tile:
    """Hyperbolic cosine."""


@builtin
def tanh(x: Number, approx: bool = False) -> Tile:
    """Hyperbolic tangent."""


@builtin
def asinh(x: Number, approx: bool = False) -> Tile:
    """Inverse hyperbolic sine."""


@builtin
def acosh(x: Number, approx: bool = False) -> Tile:
    """Inverse hyperbolic cosine."""


@builtin
def atanh(x: Number, approx: bool = False) -> Tile:
    """Inverse hyperbolic tangent."""


@builtin
def erf(x: Number, approx: bool = False) -> Tile:
    """Error function."""


@builtin
def erfc(x: Number, approx: bool = False) -> Tile:
    """1 - erf(x), accurate for large x."""


@builtin
def floor(x: Number) -> Tile:
    """Greatest whole number not above x."""


@builtin
def ceil(x: Number) -> Tile:
    """Smallest whole number not below x."""


@builtin
def round(x: Number) -> Tile:
    """Nearest whole number, ties to even."""


@builtin
def trunc(x: Number) -> Tile:
    """x without its fraction."""


@builtin
def isnan(x: Number) -> Tile:
    """Whether x is NaN (i1)."""
