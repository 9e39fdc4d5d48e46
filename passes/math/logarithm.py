"""log, log2, log10 and log1p.

x = m * 2**e with m near 1, log(x) = e ln(2) + log1p(m - 1). Sources: the f64 form of log1p is that
of FreeBSD's msun e_log.c (s = f / (2 + f)); f32 takes a polynomial in f, which needs no division.
Sums with e ln(2) use Dekker's Fast2Sum, "A floating-point technique for extending the available
precision", 1971.
"""

from __future__ import annotations

import math

from tilec.passes.math.coefficients import COEFFICIENTS
from tilec.passes.math.exponential import power_of_two
from tilec.passes.math.kinds import F32
from tilec.passes.math.scalar_builder import Scalar, ScalarBuilder
from tilec.records import dataclass


@dataclass(frozen=True)
class Base:
    """A logarithm's constants: log(2) and 1/ln(base), each as a sum of two numbers.

    `two_high` has enough trailing zeros that its product with an exponent is exact, unless
    `two_low` is 0. `scale_high` of 1 stands for the natural logarithm.
    """

    two_high: float
    two_low: float
    scale_high: float = 1.0
    scale_low: float = 0.0


NATURAL = {
    "f32": Base(0.6931471824645996, 0.0),
    "f64": Base(float.fromhex("0x1.62e42fefa0000p-1"), float.fromhex("0x1.cf79abc9e3b3ap-40")),
}
"""That of f32 is the nearest to ln(2), 2**-28.4 off: 0.03 ulp of e ln(2), whatever e is."""
BINARY = {
    "f32": Base(1.0, 0.0, 1.4426950216293335, 1.925963033500011e-08),
    "f64": Base(1.0, 0.0, 1.4426950408889634, 2.0355273740931033e-17),
}
DECIMAL = {
    "f32": Base(0.301025390625, 4.605039066518657e-06, 0.4342944920063019, -1.0103049952192578e-08),
    "f64": Base(
        float.fromhex("0x1.34413509f7800p-2"),
        float.fromhex("0x1.fef311f12b358p-46"),
        0.4342944819032518,
        1.098319650216765e-17,
    ),
}

_LOWEST_MANTISSA = {"f32": 2 / 3, "f64": math.sqrt(0.5)}
"""Mantissas are taken from [this, twice this)."""


def split_exponent(b: ScalarBuilder, x: Scalar) -> tuple[Scalar, Scalar]:
    """m and e with x = m * 2**e and m in [lowest, 2 lowest), for a positive normal x.

    Other x give some m and e; e is an integer.
    """
    kind = x.kind
    offset = _lowest_mantissa_bits(b, x)
    above = b.bits(x) - offset
    e = above.shift_right_signed(kind.mantissa_bits)
    return b.from_bits(b.bits(x) - (e << kind.mantissa_bits), kind), e


def _lowest_mantissa_bits(b: ScalarBuilder, x: Scalar) -> Scalar:
    return b.bits(b.constant(x.kind, _LOWEST_MANTISSA[x.kind.name]))


def log1p_reduced(b: ScalarBuilder, f: Scalar) -> Scalar:
    """log1p(f) for f + 1 in the range of mantissas."""
    coefficients = COEFFICIENTS["log1p", f.kind.name]
    if f.kind == F32:
        inner = b.fma(b.horner(f, coefficients), f, -0.5)
        return b.fma(inner * f, f, f)
    s = f / (f + 2.0)
    z = s * s
    # 2 s = f - s f, so the rounding error of s counts only a sixth.
    return b.fma(-s, b.fma(-z, b.horner(z, coefficients), f), f)


def _assemble(b: ScalarBuilder, f: Scalar, e: Scalar, base: Base) -> Scalar:
    """The logarithm of (1 + f) * 2**e."""
    high = log1p_reduced(b, f)
    if base.scale_high == 1.0 and not base.two_low:
        return b.fma(e, base.two_high, high)
    low = e * base.two_low if base.two_low else None
    if base.scale_high != 1.0:
        natural = high
        high = natural * base.scale_high
        tail = b.fma(natural, base.scale_low, b.fma(natural, base.scale_high, -high))
        low = tail if low is None else low + tail
    exponent_part = e * base.two_high
    total = exponent_part + high
    rest = (exponent_part - total) + high
    return total + (rest if low is None else rest + low)


def _log(b: ScalarBuilder, x: Scalar, base: Base) -> Scalar:
    kind = x.kind
    lift = kind.mantissa_bits + 2
    is_denormal = x < 2.0 ** (1 - kind.exponent_bias)
    bits = b.bits(b.where(is_denormal, x * 2.0**lift, x))
    # The exponent stays in its place, and as a number is so many times too large.
    above = (bits - _lowest_mantissa_bits(b, x)) & -(1 << kind.mantissa_bits)
    lifted = b.where(is_denormal, b.constant(kind, -float(lift)), 0.0)
    e = b.fma(b.convert(above, kind), 2.0**-kind.mantissa_bits, lifted)
    return special_logarithms(b, x, _assemble(b, b.from_bits(bits - above, kind) - 1.0, e, base))


def special_logarithms(b: ScalarBuilder, x: Scalar, result: Scalar) -> Scalar:
    """`result`, but -inf, NaN, inf, NaN for an x that is zero, negative, infinite or NaN.

    Bits beyond those of finite numbers are of such, or have a sign. (x * inf + inf would do for all
    but zeros, but with it ptxas moves all loads to the front: 83 registers for 34 in the sum of
    32 logarithms a thread.)
    """
    infinite = b.constant(x.kind, math.inf)
    is_ordinary = b.compare("ult", b.bits(x), b.bits(infinite))
    others = b.where(is_ordinary, result, b.where(x < 0.0, math.nan, x))
    return b.where(x.equals(0.0), b.constant(x.kind, -math.inf), others)


def log(b: ScalarBuilder, x: Scalar) -> Scalar:
    """The natural logarithm."""
    return _log(b, x, NATURAL[x.kind.name])


def log2(b: ScalarBuilder, x: Scalar) -> Scalar:
    """The binary logarithm; exact on powers of two."""
    return _log(b, x, BINARY[x.kind.name])


def log10(b: ScalarBuilder, x: Scalar) -> Scalar:
    """The decimal logarithm."""
    return _log(b, x, DECIMAL[x.kind.name])


def log2_approximate(b: ScalarBuilder, x: Scalar) -> Scalar:
    """lg2.approx.ftz: absolute error 2**-22 on (0.5, 2), relative error 2**-22 elsewhere."""
    return b.intrinsic("llvm.nvvm.lg2.approx.ftz.f", (x,), F32)


def log_approximate(b: ScalarBuilder, x: Scalar) -> Scalar:
    """lg2.approx.ftz(x) * ln(2)."""
    return log2_approximate(b, x) * math.log(2)


def log10_approximate(b: ScalarBuilder, x: Scalar) -> Scalar:
    """lg2.approx.ftz(x) * log10(2)."""
    return log2_approximate(b, x) * math.log10(2)


def log1p(b: ScalarBuilder, x: Scalar) -> Scalar:
    """log(1 + x), right near zero."""
    kind = x.kind
    total = x + 1.0
    _, e = split_exponent(b, total)
    # f = (1 + x) / 2**e - 1 with one rounding; 4 * 2**-e, since 2**-128 is not a normal f32.
    fourfold = power_of_two(b, 2 - e, kind)
    f = b.fma(x * 0.25, fourfold, b.fma(fourfold, 0.25, -1.0))
    f = b.where(e.equals(0), x, f)
    result = _assemble(b, f, b.convert(e, kind), NATURAL[kind.name])
    result = b.copysign(result, x)
    return special_logarithms(b, total, result)
