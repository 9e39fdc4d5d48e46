"""Elementwise arithmetic and math, on tiles and scalars alike.

f16 and bf16 compute in their own precision where the hardware does, fp8 must be cast first,
integers given to a floating-point function become f32. Accuracies are listed in
passes/math/README.md; `approx=True` allows the hardware's approximation (`fastmath<afn>`) instead.
"""

from __future__ import annotations

from typing import Any

from tilec.language.builtin import builtin

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
def maximum(x: Any, y: Any) -> Any:
    """The greater of each pair; NaN if either is."""


@builtin
def minimum(x: Any, y: Any) -> Any:
    """The smaller of each pair; NaN if either is."""


@builtin
def clamp(x: Any, low: Any, high: Any) -> Any:
    """`x` limited to [low, high]; NaN stays NaN."""


@builtin
def abs(x: Any) -> Any:
    """Absolute value."""


@builtin
def fma(x: Any, y: Any, z: Any) -> Any:
    """`x * y + z` with one rounding."""


@builtin
def div(x: Any, y: Any, approx: bool = False) -> Any:
    """`x / y` correctly rounded, where the operator `/` is within 2 ulp for f32.

    `approx=True` multiplies by an approximate reciprocal.
    """


@builtin
def pow(x: Any, y: Any, approx: bool = False) -> Any:
    """`x` to the power `y` in floating point; `x ** y` with a small constant int multiplies."""


@builtin
def exp(x: Any, approx: bool = False) -> Any:
    """e to the x."""


@builtin
def exp2(x: Any, approx: bool = False) -> Any:
    """2 to the x."""


@builtin
def expm1(x: Any, approx: bool = False) -> Any:
    """e to the x, minus 1, accurate near 0."""


@builtin
def log(x: Any, approx: bool = False) -> Any:
    """Natural logarithm."""


@builtin
def log2(x: Any, approx: bool = False) -> Any:
    """Logarithm to base 2."""


@builtin
def log10(x: Any, approx: bool = False) -> Any:
    """Logarithm to base 10."""


@builtin
def log1p(x: Any, approx: bool = False) -> Any:
    """Natural logarithm of 1 + x, accurate near 0."""


@builtin
def sqrt(x: Any, approx: bool = False) -> Any:
    """Square root, correctly rounded unless `approx`."""


@builtin
def rsqrt(x: Any, approx: bool = False) -> Any:
    """1 / sqrt(x)."""


@builtin
def cbrt(x: Any, approx: bool = False) -> Any:
    """Cube root."""


@builtin
def sin(x: Any, approx: bool = False) -> Any:
    """Sine of radians."""


@builtin
def cos(x: Any, approx: bool = False) -> Any:
    """Cosine of radians."""


@builtin
def tan(x: Any, approx: bool = False) -> Any:
    """Tangent of radians."""


@builtin
def asin(x: Any, approx: bool = False) -> Any:
    """Inverse sine."""


@builtin
def acos(x: Any, approx: bool = False) -> Any:
    """Inverse cosine."""


@builtin
def atan(x: Any, approx: bool = False) -> Any:
    """Inverse tangent."""


@builtin
def atan2(y: Any, x: Any, approx: bool = False) -> Any:
    """Angle of the point (x, y)."""


@builtin
def sinh(x: Any, approx: bool = False) -> Any:
    """Hyperbolic sine."""


@builtin
def cosh(x: Any, approx: bool = False) -> Any:
    """Hyperbolic cosine."""


@builtin
def tanh(x: Any, approx: bool = False) -> Any:
    """Hyperbolic tangent."""


@builtin
def asinh(x: Any, approx: bool = False) -> Any:
    """Inverse hyperbolic sine."""


@builtin
def acosh(x: Any, approx: bool = False) -> Any:
    """Inverse hyperbolic cosine."""


@builtin
def atanh(x: Any, approx: bool = False) -> Any:
    """Inverse hyperbolic tangent."""


@builtin
def erf(x: Any, approx: bool = False) -> Any:
    """Error function."""


@builtin
def erfc(x: Any, approx: bool = False) -> Any:
    """1 - erf(x), accurate for large x."""


@builtin
def floor(x: Any) -> Any:
    """Greatest whole number not above x."""


@builtin
def ceil(x: Any) -> Any:
    """Smallest whole number not below x."""


@builtin
def round(x: Any) -> Any:
    """Nearest whole number, ties to even."""


@builtin
def trunc(x: Any) -> Any:
    """x without its fraction."""


@builtin
def isnan(x: Any) -> Any:
    """Whether x is NaN (i1)."""
