"""sinh, cosh, tanh and their inverses, by exp and log1p.

Sources: the identities are in Abramowitz & Stegun 4.5 and 4.6; near zero polynomials of our own.
"""

from __future__ import annotations

import math

from tilec.passes.math.coefficients import COEFFICIENTS
from tilec.passes.math.exponential import LOG2_E, exp2_flushing, exp_halved, expm1
from tilec.passes.math.kinds import F32
from tilec.passes.math.logarithm import log1p
from tilec.passes.math.scalar_builder import Scalar, ScalarBuilder


def _odd_polynomial(b: ScalarBuilder, name: str, x: Scalar) -> Scalar:
    square = x * x
    return b.fma(b.horner(square, COEFFICIENTS[name, x.kind.name]), square * x, x)


def _reciprocal(b: ScalarBuilder, x: Scalar) -> Scalar:
    """1 / x within an ulp; of use where the quotient is the small part of a sum."""
    if x.kind == F32:
        return b.intrinsic("llvm.nvvm.rcp.approx.ftz.f", (x,), F32)
    return 1.0 / x


def sinh(b: ScalarBuilder, x: Scalar) -> Scalar:
    """(exp(x) - exp(-x)) / 2, overflowing only where the result does."""
    magnitude = b.absolute(x)
    half = exp_halved(b, magnitude, 1)
    far = half - _reciprocal(b, half) * 0.25
    return b.copysign(b.where(magnitude < 2.0, _odd_polynomial(b, "sinh", magnitude), far), x)


def cosh(b: ScalarBuilder, x: Scalar) -> Scalar:
    """(exp(x) + exp(-x)) / 2, overflowing only where the result does."""
    half = exp_halved(b, b.absolute(x), 1)
    return half + _reciprocal(b, half) * 0.25


def tanh(b: ScalarBuilder, x: Scalar) -> Scalar:
    """1 - 2 / (exp(2 x) + 1); near zero a polynomial (f32) or expm1 (f64).

    Of exp(2 x), whose relative error counts 2 exp(2 x) / (exp(2 x) + 1)**2 / tanh(x) times, 0.66
    at 0.6 and less beyond, ex2 of one product is as good as `exp`, which has seven instructions.
    """
    magnitude = b.absolute(x)
    if x.kind == F32:
        grown = exp2_flushing(b, magnitude * (2 * LOG2_E))
        far = b.fma(_reciprocal(b, grown + 1.0), -2.0, 1.0)
        near = _odd_polynomial(b, "tanh", magnitude)
        return b.copysign(b.where(magnitude < 0.6, near, far), x)
    grown = expm1(b, b.where(magnitude > 22.0, 22.0, magnitude) * 2.0)
    return b.copysign(grown / (grown + 2.0), x)


def tanh_approximate(b: ScalarBuilder, x: Scalar) -> Scalar:
    """tanh.approx.f32: relative error 2**-11."""
    flags = {"fastmathFlags": b.vocabulary.attribute("#llvm.fastmath<afn>")}
    return b.create("llvm.intr.tanh", (x,), F32, flags)


def asinh(b: ScalarBuilder, x: Scalar) -> Scalar:
    """log(x + sqrt(x**2 + 1)); for |x| > 2**28 (f64) or 2**13.5 (f32) log(2 |x|)."""
    magnitude = b.absolute(x)
    is_large = magnitude > 2.0 ** (x.kind.mantissa_bits / 2 + 2)
    square = magnitude * magnitude
    small = magnitude + square / (b.square_root(square + 1.0) + 1.0)
    return b.copysign(_log1p_or_log_of_double(b, is_large, magnitude, small), x)


def acosh(b: ScalarBuilder, x: Scalar) -> Scalar:
    """log(x + sqrt(x**2 - 1)); NaN below 1."""
    above = x - 1.0
    is_large = x > 2.0 ** (x.kind.mantissa_bits / 2 + 2)
    small = above + b.square_root(above * (above + 2.0))
    result = _log1p_or_log_of_double(b, is_large, x, small)
    return b.where(x < 1.0, math.nan, result)


def _log1p_or_log_of_double(
    b: ScalarBuilder, is_large: Scalar, magnitude: Scalar, small: Scalar
) -> Scalar:
    """log(2 * magnitude) if `is_large` (without overflow), else log1p(small)."""
    argument = b.where(is_large, magnitude - 1.0, small)
    return log1p(b, argument) + b.where(is_large, b.constant(argument.kind, math.log(2)), 0.0)


def atanh(b: ScalarBuilder, x: Scalar) -> Scalar:
    """log((1 + x) / (1 - x)) / 2; NaN outside [-1, 1]."""
    magnitude = b.absolute(x)
    return b.copysign(log1p(b, magnitude * 2.0 / (1.0 - magnitude)) * 0.5, x)
