"""exp, exp2 and expm1.

f32 exp splits x*log2(e) into an integer n and a rest r and lets the hardware do 2**r, as in CUDA's
expf: eight instructions, one of them ex2.approx. Sources: Cody & Waite, "Software Manual for the
Elementary Functions", ch. 6 (the split); PTX ISA, "ex2" (2 ulp over the full range).
"""

from __future__ import annotations

import math

from tilec.passes.math.coefficients import COEFFICIENTS
from tilec.passes.math.kinds import F32, Kind
from tilec.passes.math.scalar_builder import Scalar, ScalarBuilder
from tilec.records import dataclass

LOG2_E = 1.4426950408889634
"""log2(e), the nearest f64 to it."""
LOG2_E_F32 = (1.4426950216293335, 1.925963033500011e-08)
"""log2(e) as two f32 numbers."""


@dataclass(frozen=True)
class ExponentialConstants:
    """`ln2_high` has so many trailing zeros that n * ln2_high is exact. Beyond `lowest` and
    `highest` expm1 is -1 and infinite. Adding `round_magic` rounds to an integer.
    """

    ln2_high: float
    ln2_low: float
    lowest: float
    highest: float
    round_magic: float


CONSTANTS = {
    "f32": ExponentialConstants(0.693145751953125, 1.4286068203094172e-06, -40, 89, 1.5 * 2**23),
    "f64": ExponentialConstants(
        float.fromhex("0x1.62e42fefa0000p-1"),
        float.fromhex("0x1.cf79abc9e3b3ap-40"),
        -60,
        710,
        1.5 * 2**52,
    ),
}


def power_of_two(b: ScalarBuilder, exponent: Scalar, kind: Kind) -> Scalar:
    """2**exponent, for an integer exponent in the range of normal numbers."""
    return b.from_bits((exponent + kind.exponent_bias) << kind.mantissa_bits, kind)


def scale(b: ScalarBuilder, x: Scalar, exponent: Scalar) -> Scalar:
    """x * 2**exponent, rounded once, for x near 1 and an exponent up to twice the normal range."""
    half = exponent.shift_right_signed(1)
    return x * power_of_two(b, half, x.kind) * power_of_two(b, exponent - half, x.kind)


def clamp_magnitude(b: ScalarBuilder, x: Scalar, limit: float) -> Scalar:
    """x, but at most `limit` in magnitude; a NaN stays."""
    return b.where(b.absolute(x) > limit, b.copysign(limit, x), x)


def round_to_integer(b: ScalarBuilder, x: Scalar, factor: float) -> tuple[Scalar, Scalar]:
    """x * factor rounded to the nearest integer: as a float and in the low bits of an integer.

    Needs |x * factor| < 2**(mantissa_bits - 2). The integer's upper bits are not part of it; shift
    them out or truncate.
    """
    magic = CONSTANTS[x.kind.name].round_magic
    shifted = b.fma(x, factor, magic)
    return shifted - magic, b.bits(shifted)


def _reduce(b: ScalarBuilder, x: Scalar) -> tuple[Scalar, Scalar]:
    """r and n with x = n ln(2) + r and |r| <= ln(2) / 2; n as an integer."""
    constants = CONSTANTS[x.kind.name]
    n, bits = round_to_integer(b, x, LOG2_E)
    r = b.fma(n, -constants.ln2_high, x)
    r = b.fma(n, -constants.ln2_low, r)
    # The magic number's bits are zero in the low half, so a subtraction leaves n.
    magic_bits = b.bits(b.constant(x.kind, constants.round_magic))
    return r, bits - magic_bits


def _expm1_reduced(b: ScalarBuilder, r: Scalar) -> Scalar:
    """expm1 on [-ln(2)/2, ln(2)/2]."""
    return b.fma(b.horner(r, COEFFICIENTS["expm1", r.kind.name]) * r, r, r)


def exp_sum(b: ScalarBuilder, x: Scalar, low: Scalar) -> Scalar:
    """exp(x + low) of f64, where |low| is below an ulp of x. `low` must be finite for finite x."""
    r, n = _reduce(b, clamp_magnitude(b, x, 800.0))
    return scale(b, _expm1_reduced(b, r + low) + 1.0, n)


def exp(b: ScalarBuilder, x: Scalar) -> Scalar:
    """e**x over the whole range: denormal results are right, NaN and infinities as in C99."""
    return exp_halved(b, x, 0)


def exp_halved(b: ScalarBuilder, x: Scalar, halvings: int) -> Scalar:
    """e**x * 2**-halvings without overflow before the product does; x >= 0 if halvings > 0."""
    if x.kind != F32:
        r, n = _reduce(b, clamp_magnitude(b, x, 800.0))
        return scale(b, _expm1_reduced(b, r) + 1.0, n - halvings if halvings else n)
    # n is clamped to [-126, 126] by saturating n / 252 + 1/2 to [0, 1]; what n lacks stays in r and
    # overflows or underflows in 2**r or in the product. NaN saturates to 0 and comes back in r.
    operands = (x, b.constant(F32, LOG2_E / 252), b.constant(F32, 0.5))
    fraction = b.intrinsic("llvm.nvvm.fma.rn.sat.f", operands, F32)
    # 1.5 * 2**23 + 1, so that the low bits hold n + 127, the exponent field of 2**n. Rounding down
    # leaves r in [0, 1) and 2**r in [1, 2): its ulps, and its error in ulps, are the result's.
    operands = (fraction, b.constant(F32, 252.0), b.constant(F32, 12582913.0))
    shifted = b.intrinsic("llvm.nvvm.fma.rm.f", operands, F32)
    n = shifted - 12583039.0
    r = b.fma(x, LOG2_E_F32[0], -n)
    r = b.fma(x, LOG2_E_F32[1], r)
    exponent = b.bits(shifted)
    if halvings:
        exponent = exponent - halvings
    return exp2_flushing(b, r) * b.from_bits(exponent << F32.mantissa_bits, F32)


def exp_approximate(b: ScalarBuilder, x: Scalar) -> Scalar:
    """ex2.approx.ftz(x * log2 e): relative error 2**-21.6 + |x| * 2**-23; flushes denormals."""
    return exp2_flushing(b, x * LOG2_E_F32[0])


def exp_widened_bf16(b: ScalarBuilder, x: Scalar) -> Scalar:
    """As `exp_approximate`, but keeps the denormal results bf16 shares with f32."""
    return exp2_hardware(b, x * LOG2_E_F32[0])


def exp2_flushing(b: ScalarBuilder, x: Scalar) -> Scalar:
    """ex2.approx.ftz.f32: one instruction, denormals become zero."""
    return b.intrinsic("llvm.nvvm.ex2.approx.ftz.f32", (x,), F32)


def exp2_hardware(b: ScalarBuilder, x: Scalar) -> Scalar:
    """ex2.approx.f32: with denormals, which ptxas pays for with three more instructions."""
    return b.intrinsic("llvm.nvvm.ex2.approx.f32", (x,), F32)


def exp2(b: ScalarBuilder, x: Scalar) -> Scalar:
    """2**x."""
    if x.kind == F32:
        return exp2_hardware(b, x)
    clamped = clamp_magnitude(b, x, 1200.0)
    n, bits = round_to_integer(b, clamped, 1.0)
    magic_bits = b.bits(b.constant(x.kind, CONSTANTS[x.kind.name].round_magic))
    reduced = _expm1_reduced(b, (clamped - n) * math.log(2))
    return scale(b, reduced + 1.0, bits - magic_bits)


def expm1(b: ScalarBuilder, x: Scalar) -> Scalar:
    """e**x - 1, right near zero."""
    constants = CONSTANTS[x.kind.name]
    clamped = b.where(x > constants.highest, constants.highest, x)
    clamped = b.where(clamped < constants.lowest, constants.lowest, clamped)
    r, n = _reduce(b, clamped)
    reduced = _expm1_reduced(b, r)
    # Half of 2**n is representable for every n; n = 0 is apart so that a denormal is not halved.
    half = power_of_two(b, n - 1, x.kind)
    scaled = b.fma(half, reduced, half - 0.5) * 2.0
    return b.copysign(b.where(n.equals(0), reduced, scaled), x)
