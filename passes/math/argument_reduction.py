"""x modulo pi/2, for every finite x: the first step of sin, cos and tan.

Up to a bound, n = round(x * 2/pi) and r = x - n * pi/2 with pi/2 as a sum of three numbers (Cody &
Waite, "Software Manual for the Elementary Functions", ch. 8); fma makes the first product exact.
Above it, the bits of 2/pi that matter are multiplied with the integer mantissa of x (Payne & Hanek,
"Radian reduction for trigonometric functions", SIGNUM 18(1), 1983). That branch is an scf.if: warps
with small arguments skip it. The bits of 2/pi are chosen by selects, so no memory is read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilec.hardware.powers import power_below
from tilec.passes.math.exponential import power_of_two, round_to_integer
from tilec.passes.math.kinds import F32, F64, I32, I64, I128
from tilec.passes.math.scalar_builder import Scalar, ScalarBuilder
from tilec.records import dataclass

TWO_OVER_PI_BITS = int(
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e006492eea"
    "09d1921cfe1deb1cb129a73ee88235f52ebb4484e99c7026b45f7e413991d639835339f49c845f8bbdf9283b"
    "1ff897ffde05980fef2f118b5a0a6d1f6d367ecf27cb09b74f463f669e5fea2d7527bac7ebe5f17b3d0739f7"
    "8a5292ea6bfb5fb11f8d5d0856033046fc7b6bab",
    16,
)
"""floor(2/pi * 2**1216)."""


@dataclass(frozen=True)
class Reduction:
    """`half_pi` adds up to pi/2, all positive so that -0 stays -0. `largest` is the last |x| of the
    quick way. `words` words of the type's width hold a zero word and the bits of 2/pi that the
    largest x needs.
    """

    half_pi: tuple[float, float, float]
    largest: float
    words: int


REDUCTIONS = {
    "f32": Reduction(
        (1.570796251296997, 7.549789415861596e-08, 5.390302529957765e-15), 105615.0, 8
    ),
    "f64": Reduction(
        (1.5707963267948966, 6.123233995736765e-17, 1.0828566739219139e-32), 2.0**20, 20
    ),
}


def reduce_to_quadrant(b: ScalarBuilder, x: Scalar) -> tuple[Scalar, Scalar]:
    """r and q with x = q * pi/2 + r, |r| <= pi/4; q is an i32 of which the last two bits count.

    NaN for infinities and NaN.
    """
    reduction = REDUCTIONS[x.kind.name]
    n, bits = round_to_integer(b, x, 2 / math.pi)
    r = x
    for part in reduction.half_pi:
        r = b.fma(n, -part, r)
    quadrant = b.convert(bits, I32)
    is_large = b.absolute(x) > reduction.largest
    slow = _reduce_large_f32 if x.kind == F32 else _reduce_large_f64
    r, quadrant = b.if_else(is_large, lambda: slow(b, x), (r, quadrant))
    return r, quadrant


def _window(b: ScalarBuilder, x: Scalar, first_bit: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """Three words of (zero word : 2/pi) from bit `first_bit` on, most significant first."""
    integer = x.kind.as_integer
    count = REDUCTIONS[x.kind.name].words
    fraction = TWO_OVER_PI_BITS >> (1216 - integer.bits * (count - 1))
    mask = (1 << integer.bits) - 1
    words: list[Scalar] = [
        b.constant(integer, fraction >> (integer.bits * (count - 1 - index)) & mask)
        for index in range(count)
    ]
    index = first_bit >> int(math.log2(integer.bits))
    step = power_below(count - 4)
    while step:
        words = _drop_words(b, words, (index & step).differs(0), step)
        step //= 2
    shift = first_bit & (integer.bits - 1)
    high, middle, low = (b.funnel_shift_left(words[i], words[i + 1], shift) for i in range(3))
    return high, middle, low


def _drop_words(
    b: ScalarBuilder, words: Sequence[Scalar], condition: Scalar, step: int
) -> list[Scalar]:
    """`words` without the first `step` if `condition`; keeps what four words from here can need."""
    kept = min(len(words), step + 3)
    return [
        b.where(condition, words[i + step], words[i]) if i + step < len(words) else words[i]
        for i in range(kept)
    ]


def _integer_mantissa(b: ScalarBuilder, x: Scalar) -> tuple[Scalar, Scalar]:
    """The mantissa of |x| as an integer with its hidden bit, and the exponent field."""
    stored = x.kind.mantissa_bits
    magnitude = b.bits(b.absolute(x))
    hidden = 1 << stored
    return (magnitude & (hidden - 1)) | hidden, magnitude >> stored


def _signed(b: ScalarBuilder, x: Scalar, r: Scalar, quadrant: Scalar) -> tuple[Scalar, Scalar]:
    """r and q of |x| turned into those of x; an infinite x gives NaN."""
    is_negative = x < 0.0
    r = b.where(is_negative, -r, r)
    r = b.where(b.absolute(x).equals(math.inf), math.nan, r)
    return r, b.where(is_negative, -quadrant, quadrant)


def _reduce_large_f32(b: ScalarBuilder, x: Scalar) -> tuple[Scalar, Scalar]:
    mantissa, exponent = _integer_mantissa(b, x)
    # Bits of 2/pi above weight 4 / 2**e only add whole turns; the 32 zero bits come first.
    high, middle, low = (
        b.convert(word, I64, unsigned=True) for word in _window(b, x, exponent - 120)
    )
    mantissa = b.convert(mantissa, I64, unsigned=True)
    # x * 2/pi modulo 4, with 62 bits after the point.
    turns = ((mantissa * high) << 32) + mantissa * middle + ((mantissa * low) >> 32)
    quadrant = b.convert((turns + (1 << 61)) >> 62, I32)
    fraction = b.convert(turns << 2, F64)
    r = b.convert(fraction * (math.pi / 2 * 2.0**-64), F32)
    return _signed(b, x, r, quadrant)


def _reduce_large_f64(b: ScalarBuilder, x: Scalar) -> tuple[Scalar, Scalar]:
    mantissa, exponent = _integer_mantissa(b, x)
    high, middle, low = (
        b.convert(word, I128, unsigned=True) for word in _window(b, x, exponent - 1013)
    )
    mantissa = b.convert(mantissa, I128, unsigned=True)
    # x * 2/pi modulo 4, with 126 bits after the point.
    turns = ((mantissa * high) << 64) + mantissa * middle + ((mantissa * low) >> 64)
    quadrant = b.convert((turns + (1 << 125)) >> 126, I32)
    fraction = turns << 2
    is_negative = fraction < 0
    magnitude = b.where(is_negative, -fraction, fraction)
    # No double comes nearer than 2**-62 to a multiple of pi/2, so the upper half is never zero.
    zeros = b.count_leading_zeros(b.convert(magnitude >> 64, I64))
    shifted = magnitude << b.convert(zeros, I128, unsigned=True)
    leading = b.convert(b.convert(shifted >> 64, I64), F64, unsigned=True)
    half_pi, half_pi_low, _ = REDUCTIONS["f64"].half_pi
    r = b.fma(leading, half_pi, leading * half_pi_low) * power_of_two(b, -64 - zeros, F64)
    return _signed(b, x, b.where(is_negative, -r, r), quadrant)
