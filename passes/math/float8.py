"""Conversions to and from the 8-bit floats, whose values are i8 here.

To f8: round to nearest even, saturating to the largest finite number (infinities too), NaN becomes
the code 0x7f: what PTX's cvt.rn.satfinite does (PTX ISA 9.0, "cvt"), with which the integer forms
for targets without that instruction agree bit for bit. From f8: exact. Formats: Micikevicius et
al., "FP8 formats for deep learning", 2022; E4M3FN has no infinities, E5M2 is the upper half of f16.
"""

from __future__ import annotations

import math
import struct
from functools import cache

from tilec.passes.math.kinds import F16, F32, F64, INTEGERS, Kind
from tilec.passes.math.scalar_builder import Scalar, ScalarBuilder
from tilec.records import dataclass
from tilec.terms.dtypes import DTYPES, DType

I8, I16, I32, I64 = (INTEGERS[bits] for bits in (8, 16, 32, 64))
CANONICAL_NAN = 0x7F
"""What conversions give for NaN in both formats (PTX ISA 9.0, "cvt": 0x7f)."""


@dataclass(frozen=True)
class Float8:
    """An 8-bit format. `ptx` is its name in instructions; `largest` the code of its largest number;
    `has_infinity` tells whether code largest + 1 is infinite and all above are NaN.
    """

    name: str
    ptx: str
    mantissa_bits: int
    bias: int
    largest: int
    has_infinity: bool

    def value(self, code: int) -> float:
        """The number a code stands for."""
        sign = -1.0 if code & 0x80 else 1.0
        magnitude = code & 0x7F
        if magnitude > self.largest:
            return (
                sign * math.inf if self.has_infinity and magnitude == self.largest + 1 else math.nan
            )
        exponent, mantissa = magnitude >> self.mantissa_bits, magnitude % (1 << self.mantissa_bits)
        if exponent == 0:
            return sign * math.ldexp(mantissa, 1 - self.bias - self.mantissa_bits)
        fraction = mantissa + (1 << self.mantissa_bits)
        return sign * math.ldexp(fraction, exponent - self.bias - self.mantissa_bits)


def _form(dtype: DType) -> Float8:
    found = dtype.encoding
    assert found is not None
    exponent, mantissa = found.exponent_bits, found.mantissa_bits
    largest = (found.nan if found.infinity is None else found.infinity) - 1
    has_infinity = found.infinity is not None
    bias = (1 << (exponent - 1)) - 1
    return Float8(dtype.mlir, f"e{exponent}m{mantissa}", mantissa, bias, largest, has_infinity)


FLOAT8 = {dtype.mlir: _form(dtype) for dtype in DTYPES if dtype.is_fp8}
"""By MLIR's names."""


@cache
def _codes(form: Float8) -> dict[bytes, int]:
    return {struct.pack("d", form.value(code)): code for code in range(255, -1, -1)}


def code_of(form: Float8, number: float) -> int:
    """The code of a number the format has."""
    return CANONICAL_NAN if math.isnan(number) else _codes(form)[struct.pack("d", number)]


def round_to_odd(b: ScalarBuilder, x: Scalar) -> Scalar:
    """f64 as f32, cut off, the last bit set if anything was lost: rounding it again to a narrower
    type gives what rounding x once would (Boldo & Melquiond, "Emulation of FMA", 2008).
    """
    cut = b.intrinsic("llvm.nvvm.d2f.rz", (x,), F32)
    return _with_sticky_bit(b, cut, b.convert(cut, F64).differs(x))


def round_integer_to_odd(b: ScalarBuilder, x: Scalar, *, unsigned: bool) -> Scalar:
    """An i32 or i64 as f32, cut off, the last bit set if anything was lost."""
    prefix = ("u" if unsigned else "") + ("i" if x.kind == I32 else "ll")
    cut = b.intrinsic(f"llvm.nvvm.{prefix}2f.rz", (x,), F32)
    back = b.convert(cut, x.kind, unsigned=unsigned)
    return _with_sticky_bit(b, cut, back.differs(x))


def _with_sticky_bit(b: ScalarBuilder, cut: Scalar, is_inexact: Scalar) -> Scalar:
    return b.from_bits(b.bits(cut) | b.convert(is_inexact, I32, unsigned=True), F32)


def encode_pair(b: ScalarBuilder, form: Float8, low: Scalar, high: Scalar) -> tuple[Scalar, Scalar]:
    """Two f32 as codes, by one instruction (cvt.rn.satfinite.*x2.f32)."""
    # The instruction's first operand goes to the upper byte.
    packed = b.intrinsic(f"llvm.nvvm.ff.to.{form.ptx}x2.rn", (high, low), I16)
    return b.convert(packed, I8), b.convert(packed >> 8, I8)


def encode(b: ScalarBuilder, form: Float8, x: Scalar) -> Scalar:
    """An f32 as a code, by integer arithmetic."""
    bits = b.bits(x)
    magnitude = bits & 0x7FFFFFFF
    dropped = F32.mantissa_bits - form.mantissa_bits
    # Normal: add half of the last place kept, less one, plus that place's bit; the carry may go
    # into the exponent. Then the biases differ by a constant.
    odd = (magnitude >> dropped) & 1
    rounded = (magnitude + ((1 << (dropped - 1)) - 1) + odd) >> dropped
    normal = rounded - ((F32.exponent_bias - form.bias) << form.mantissa_bits)
    # Denormal: adding a power of two whose last place is the denormal step makes the adder round.
    step = 1 - form.bias - form.mantissa_bits
    magic = b.constant(F32, 2.0 ** (F32.mantissa_bits + step))
    denormal = b.bits(b.from_bits(magnitude, F32) + magic) - b.bits(magic)
    smallest_normal = (F32.exponent_bias + 1 - form.bias) << F32.mantissa_bits
    code = b.where(magnitude < smallest_normal, denormal, normal)
    code = b.where(code > form.largest, form.largest, code)
    signed = code | ((bits >> 24) & 0x80)
    return b.convert(b.where(x.is_nan(), CANONICAL_NAN, signed), I8)


def decode_pair(b: ScalarBuilder, form: Float8, low: Scalar, high: Scalar) -> tuple[Scalar, Scalar]:
    """Two codes as f16, by one instruction (cvt.rn.f16x2.*x2)."""
    packed = b.convert(low, I16, unsigned=True) | (b.convert(high, I16, unsigned=True) << 8)
    first, second = b.pair_intrinsic(f"llvm.nvvm.{form.ptx}x2.to.f16x2.rn", (packed,), F16)
    return first, second


def decode_pair_by_integers(
    b: ScalarBuilder, form: Float8, low: Scalar, high: Scalar
) -> tuple[Scalar, Scalar]:
    """Two codes as f16, by integer arithmetic on both halves of a word: half the instructions and
    registers of one at a time."""
    wide = b.convert(low, I32, unsigned=True) | (b.convert(high, I32, unsigned=True) << 16)
    if form.has_infinity:
        return b.pair(wide << 8, F16)
    magnitude = wide & _twice(0x7F)
    # The mantissa moves to its place; the exponent is too small by the difference of the biases,
    # which a multiplication repairs, for denormals as well.
    shifted = magnitude << (F16.mantissa_bits - form.mantissa_bits)
    repair = (2 * F16.exponent_bias - form.bias) << F16.mantissa_bits
    scaled = b.on_pairs("arith.mulf", (shifted, b.constant(I32, _twice(repair))), F16)
    # One more than the code of NaN is 0x80: the bit that its number, 480, lacks to be one of f16.
    is_nan = (magnitude + _twice(0x80 - CANONICAL_NAN)) & _twice(0x80)
    sign = (wide & _twice(0x80)) << 8
    return b.pair(scaled | (is_nan << 6) | sign, F16)


def _twice(bits: int) -> int:
    return bits << 16 | bits


def widen(b: ScalarBuilder, x: Scalar, kind: Kind) -> Scalar:
    """f16 as another float; exact for numbers that an 8-bit float has."""
    return b.convert(x if kind == F16 else b.convert(x, F32), kind)
