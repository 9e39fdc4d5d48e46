"""sqrt, rsqrt and cbrt."""

from __future__ import annotations

import math

from tilec.passes.math.exponential import exp2_flushing, power_of_two
from tilec.passes.math.kinds import F32
from tilec.passes.math.logarithm import log2_approximate
from tilec.passes.math.scalar_builder import Scalar, ScalarBuilder


def sqrt(b: ScalarBuilder, x: Scalar) -> Scalar:
    """The square root, correctly rounded (sqrt.rn)."""
    return b.square_root(x)


def sqrt_approximate(b: ScalarBuilder, x: Scalar) -> Scalar:
    """sqrt.approx.ftz: relative error 2**-23."""
    return b.intrinsic("llvm.nvvm.sqrt.approx.ftz.f", (x,), F32)


def sqrt_narrow(b: ScalarBuilder, x: Scalar) -> Scalar:
    """sqrt.approx with denormals: relative error 2**-23, for a result rounded to 16 bits."""
    return b.intrinsic("llvm.nvvm.sqrt.approx.f", (x,), F32)


def rsqrt(b: ScalarBuilder, x: Scalar) -> Scalar:
    """1 / sqrt(x). f32: rsqrt.approx, relative error 2**-22.9, denormals included."""
    if x.kind == F32:
        return b.intrinsic("llvm.nvvm.rsqrt.approx.f", (x,), F32)
    return 1.0 / b.square_root(x)


def rsqrt_approximate(b: ScalarBuilder, x: Scalar) -> Scalar:
    """rsqrt.approx.ftz: relative error 2**-22.9, denormals count as zero."""
    return b.intrinsic("llvm.nvvm.rsqrt.approx.ftz.f", (x,), F32)


def cbrt(b: ScalarBuilder, x: Scalar) -> Scalar:
    """The cube root: a hardware estimate of the mantissa's root, then Newton with fma residuals."""
    kind = x.kind
    magnitude = b.absolute(x)
    lift = 3 * ((kind.mantissa_bits + 3) // 3)
    is_denormal = magnitude < 2.0 ** (1 - kind.exponent_bias)
    lifted = b.where(is_denormal, magnitude * 2.0**lift, magnitude)
    mantissa, third = _split_cube(b, lifted)
    estimate = _estimate(b, mantissa)
    for _ in range(1 if kind == F32 else 2):
        estimate = _newton(b, mantissa, estimate)
    root = estimate * power_of_two(b, third, kind)
    root = b.where(is_denormal, root * 2.0 ** (-lift // 3), root)
    is_ordinary = (magnitude > 0.0) & (magnitude < math.inf)
    return b.copysign(b.where(is_ordinary, root, magnitude), x)


def _split_cube(b: ScalarBuilder, x: Scalar) -> tuple[Scalar, Scalar]:
    """m in [1, 8) and k with x = m * 2**(3 k)."""
    kind = x.kind
    bits = b.bits(x)
    exponent = bits >> kind.mantissa_bits
    # (e * 0xAAAB) >> 17 is e // 3 below 2**15; the bias is made a multiple of 3 first.
    shift = (-kind.exponent_bias) % 3
    third = ((exponent + shift) * 0xAAAB) >> 17
    k = third - (kind.exponent_bias + shift) // 3
    return b.from_bits(bits - ((k * 3) << kind.mantissa_bits), kind), k


def _estimate(b: ScalarBuilder, mantissa: Scalar) -> Scalar:
    """2**(log2(m) / 3) by lg2.approx and ex2.approx: about 21 bits for m in [1, 8)."""
    single = b.convert(mantissa, F32)
    root = exp2_flushing(b, log2_approximate(b, single) * (1 / 3))
    return b.convert(root, mantissa.kind)


def _newton(b: ScalarBuilder, mantissa: Scalar, y: Scalar) -> Scalar:
    """y - (y**3 - m) / (3 y**2), the residual with an error far below an ulp."""
    square = y * y
    square_low = b.fma(y, y, -square)
    residual = b.fma(-square_low, y, b.fma(-square, y, mantissa))
    slope = b.convert(square * 3.0, F32)
    inverse = b.convert(b.intrinsic("llvm.nvvm.rcp.approx.ftz.f", (slope,), F32), y.kind)
    return b.fma(residual, inverse, y)
