"""pow with floating-point and integer exponents.

f32 works in f64, whose rate is half that of f32 on the data-centre chips tilec targets: y * log2(x)
needs 8 more bits than f32 has, f64 has them. f64 carries log(x) as an unevaluated sum of two
numbers (Dekker, "A floating-point technique for extending the available precision", 1971; the
sequence of steps is that of FreeBSD's msun e_pow.c).
"""

from __future__ import annotations

import math

from tilec.passes.math.coefficients import COEFFICIENTS
from tilec.passes.math.exponential import (
    clamp_magnitude,
    exp2_flushing,
    exp_sum,
    power_of_two,
    round_to_integer,
)
from tilec.passes.math.kinds import F32, F64, I32
from tilec.passes.math.logarithm import NATURAL, log2_approximate, split_exponent
from tilec.passes.math.scalar_builder import Scalar, ScalarBuilder

TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
"""2/3 as two f64 numbers."""


def power(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    """x**y, with C99's results (annex F.10.4.4) on zeros, infinities, NaN and negative x."""
    base = b.absolute(x)
    if x.kind == F32:
        magnitude = _narrow_power(b, base, b.convert(y, F64))
    else:
        magnitude = _power_f64(b, base, y)
    return _with_special_cases(b, x, y, b.where(base.equals(1.0), 1.0, magnitude))


def power_approximate(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    """ex2.approx(y * lg2.approx(x)), as CUDA's __powf: NaN for x < 0, relative error about
    2**-21 + |y log2(x)| * 2**-22, more for x near 1.
    """
    return exp2_flushing(b, y * log2_approximate(b, x))


def power_of_integer(b: ScalarBuilder, x: Scalar, n: Scalar) -> Scalar:
    """x**n for a signed integer n, up to 64 bits wide.

    An exponent beyond 2**53 is rounded, its parity kept.
    """
    exponent, is_odd = b.convert(n, F64), (n & 1).differs(0)
    base = b.absolute(x)
    compute = _narrow_power if x.kind == F32 else _power_f64
    magnitude = b.where(base.equals(1.0), 1.0, compute(b, base, exponent))
    signed = b.where(is_odd & (b.bits(x) < 0), -magnitude, magnitude)
    return b.where(n.equals(0), 1.0, signed)


def integer_power(b: ScalarBuilder, base: Scalar, exponent: Scalar) -> Scalar:
    """base**exponent of integers modulo 2**bits, by squaring.

    A negative exponent gives the quotient 1 / base**|exponent| rounded toward zero: 0 unless base
    is 1 or -1. (For base 0 the op leaves it open; here it is 0.)
    """
    is_negative = exponent < 0
    remaining = b.where(is_negative, 0, exponent)
    one = b.constant(base.kind, 1)

    def square(result: Scalar, square: Scalar, rest: Scalar) -> list[Scalar]:
        multiplied = b.where((rest & 1).differs(0), result * square, result)
        return [multiplied, square * square, rest >> 1]

    result, _, _ = b.loop_while(
        [one, base, remaining], lambda _result, _square, rest: rest.differs(0), square
    )
    sign = b.where((exponent & 1).differs(0), base, 1)
    is_unit = base.equals(1) | base.equals(-1)
    return b.where(is_negative, b.where(is_unit, sign, 0), result)


def _with_special_cases(b: ScalarBuilder, x: Scalar, y: Scalar, magnitude: Scalar) -> Scalar:
    half = y * 0.5
    is_integer = b.truncate(y).equals(y)
    is_odd = is_integer & b.truncate(half).differs(half)
    signed = b.where(is_odd & (b.bits(x) < 0), -magnitude, magnitude)
    is_undefined = (x < 0.0) & (x > -math.inf) & b.truncate(y).differs(y)
    result = b.where(is_undefined, math.nan, signed)
    return b.where(x.equals(1.0) | y.equals(0.0), 1.0, result)


def _log_of_edges(b: ScalarBuilder, base: Scalar, logarithm: Scalar) -> Scalar:
    """`logarithm`, but -inf, inf and NaN for zero, infinity and NaN."""
    edge = b.where(base.equals(0.0), -math.inf, base)
    is_ordinary = (base > 0.0) & (base < math.inf)
    return b.where(is_ordinary, logarithm, edge)


def _narrow_power(b: ScalarBuilder, base: Scalar, y: Scalar) -> Scalar:
    """base**y for base >= 0 of f32 and y of f64: exact to 30 bits before the rounding to f32."""
    wide = b.convert(base, F64)
    m, e = split_exponent(b, wide)
    f = m - 1.0
    logarithm = b.fma(b.horner(f, COEFFICIENTS["log2", "f64"]), f, b.convert(e, F64))
    # Beyond 2**200 and below 2**-200 f32 overflows and underflows all the same.
    product = clamp_magnitude(b, y * _log_of_edges(b, wide, logarithm), 200.0)
    n, bits = round_to_integer(b, product, 1.0)
    fraction = b.horner(product - n, COEFFICIENTS["exp2", "f64"])
    # The low 32 bits of `bits` are n in two's complement.
    exponent = b.convert(b.convert(bits, I32), F64.as_integer)
    return b.convert(fraction * power_of_two(b, exponent, F64), F32)


def _power_f64(b: ScalarBuilder, base: Scalar, y: Scalar) -> Scalar:
    high, low = _log_pair(b, base)
    high = _log_of_edges(b, base, high)
    product = y * high
    rest = b.fma(y, high, -product) + y * low
    clamped = clamp_magnitude(b, product, 800.0)
    return exp_sum(b, clamped, b.where(clamped.equals(product), rest, 0.0))


def _log_pair(b: ScalarBuilder, x: Scalar) -> tuple[Scalar, Scalar]:
    """log(x) of a positive f64 as high + low, with about 65 right bits."""
    is_denormal = x < 2.0**-1022
    m, e = split_exponent(b, b.where(is_denormal, x * 2.0**54, x))
    exponent = b.convert(b.where(is_denormal, e - 54, e), F64)
    high, low = _log1p_pair(b, m - 1.0)
    exponent_part = exponent * NATURAL["f64"].two_high
    total = exponent_part + high
    rest = (exponent_part - total) + high + b.fma(exponent, NATURAL["f64"].two_low, low)
    result = total + rest
    return result, (total - result) + rest


def _log1p_pair(b: ScalarBuilder, f: Scalar) -> tuple[Scalar, Scalar]:
    """log1p(f) = 2 q + 2/3 q**3 + q**5 p(q**2), q = f / (2 + f), the first two terms as pairs."""
    divisor = f + 2.0
    divisor_low = f - (divisor - 2.0)
    inverse = 1.0 / divisor
    q = f * inverse
    q_low = b.fma(-q, divisor_low, b.fma(-q, divisor, f)) * inverse
    square = q * q
    square_low = b.fma(q, q, -square) + q * q_low * 2.0
    cube = square * q
    cube_low = b.fma(square, q, -cube) + b.fma(square, q_low, square_low * q)
    term = cube * TWO_THIRDS[0]
    term_low = b.fma(cube, TWO_THIRDS[0], -term)
    term_low = b.fma(cube_low, TWO_THIRDS[0], b.fma(cube, TWO_THIRDS[1], term_low))
    tail = b.horner(square, COEFFICIENTS["log_tail", "f64"]) * (cube * square)
    doubled = q * 2.0
    total = doubled + term
    low = (doubled - total) + term + (b.fma(q_low, 2.0, term_low) + tail)
    return total, low
