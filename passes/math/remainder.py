"""The remainder of a truncating division (C's fmod), exact for all arguments."""

from __future__ import annotations

import math

from tilec.passes.math.exponential import power_of_two
from tilec.passes.math.scalar_builder import Scalar, ScalarBuilder


def remainder(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    """x - y * trunc(x / y) without rounding error; has the sign of x. NaN for y = 0 or x infinite.

    While the quotient has more digits than the type, a multiple of y * 2**k is taken off, `digits`
    binary digits at a time; most calls take no turn of that loop.
    """
    kind = x.kind
    digits = kind.mantissa_bits - 1
    divisor = b.absolute(y)
    divisor_exponent = _exponent(b, divisor)

    def excess(value: Scalar) -> Scalar:
        return _exponent(b, value) - divisor_exponent - digits

    def is_far(value: Scalar) -> Scalar:
        is_ordinary = (value < math.inf) & (divisor > 0.0)
        return (excess(value) > 0) & is_ordinary

    def take_off(value: Scalar) -> list[Scalar]:
        return [_reduce(b, value, _scaled(b, divisor, excess(value)))]

    (value,) = b.loop_while([b.absolute(x)], is_far, take_off)
    result = b.where(divisor.equals(math.inf), value, _reduce(b, value, divisor))
    # An infinite x and a zero y give NaN in the division already; the sign of a zero is that of x.
    result = b.where(b.absolute(x).equals(math.inf), math.nan, result)
    return b.copysign(result, x)


def _reduce(b: ScalarBuilder, value: Scalar, divisor: Scalar) -> Scalar:
    """value mod divisor for a quotient the type can hold: exact, since the remainder is."""
    quotient = b.truncate(value / divisor)
    rest = b.fma(-quotient, divisor, value)
    # The rounded quotient may be one too large.
    return b.where(rest < 0.0, rest + divisor, rest)


def _exponent(b: ScalarBuilder, x: Scalar) -> Scalar:
    """floor(log2(x)) of a positive number, denormal ones too, plus the bias."""
    kind = x.kind
    lift = kind.mantissa_bits + 1
    is_denormal = x < 2.0 ** (1 - kind.exponent_bias)
    field = b.bits(b.where(is_denormal, x * 2.0**lift, x)) >> kind.mantissa_bits
    return b.where(is_denormal, field - lift, field)


def _scaled(b: ScalarBuilder, divisor: Scalar, exponent: Scalar) -> Scalar:
    """divisor * 2**exponent, exact; the exponent may exceed the range of one power of two."""
    half = exponent >> 1
    kind = divisor.kind
    return divisor * power_of_two(b, half, kind) * power_of_two(b, exponent - half, kind)


def remainder_approximate(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    """x - y * trunc(x / y), each step rounded: wrong once x / y exceeds the mantissa."""
    return b.fma(-b.truncate(x / y), y, x)
