"""Scalar arguments: range checks and the bytes the hardware gets, per dtype.

f64, f32, f16 and integers are packed by `struct`; bf16 and fp8 are rounded here, to nearest even,
since no Python type has them.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tilec.runtime.errors import ArgumentError

FORMATS: Mapping[str, str] = {
    "f64": "d",
    "f32": "f",
    "f16": "e",
    "bf16": "H",
    "f8E4M3FN": "B",
    "f8E5M2": "B",
    "i1": "B",
    "i8": "b",
    "i16": "h",
    "i32": "i",
    "i64": "q",
}
"""Character of the `struct` module per dtype; the dtypes of `ENCODERS` go through theirs first."""

_INTEGER_BITS: Mapping[str, int] = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}


@dataclass(frozen=True)
class _Format:
    """A binary floating-point format of `1 + exponent_bits + mantissa_bits` bits."""

    exponent_bits: int
    mantissa_bits: int
    infinity: int | None
    nan: int
    largest: float

    def encode(self, value: float) -> int:
        """The bits of `value` rounded to nearest, ties to even. OverflowError past the largest."""
        value = float(value)
        sign = int(math.copysign(1, value) < 0) << (self.exponent_bits + self.mantissa_bits)
        if math.isnan(value):
            return sign | self.nan
        if math.isinf(value):
            if self.infinity is None:
                raise OverflowError("the type has no infinity")
            return sign | self.infinity
        magnitude = abs(value)
        bias = (1 << (self.exponent_bits - 1)) - 1
        exponent = max(math.frexp(magnitude)[1] - 1, 1 - bias) if magnitude else 1 - bias
        # In units of the last place; `round` rounds halves to even, and the division is exact.
        units = round(math.ldexp(magnitude, self.mantissa_bits - exponent))
        if math.ldexp(units, exponent - self.mantissa_bits) > self.largest:
            raise OverflowError(f"the largest value is {self.largest:g}")
        # A carry out of the mantissa moves into the exponent by itself, as it does for subnormals.
        return sign | ((exponent + bias - 1) << self.mantissa_bits) + units


def _encode_bit(value: Any) -> int:
    if value not in (0, 1):
        raise OverflowError("the values are 0 and 1")
    return int(value)


ENCODERS: Mapping[str, Callable[[Any], int]] = {
    "bf16": _Format(8, 7, 0x7F80, 0x7FC0, math.ldexp(255 / 128, 127)).encode,
    "f8E4M3FN": _Format(4, 3, None, 0x7F, 448.0).encode,
    "f8E5M2": _Format(5, 2, 0x7C, 0x7E, 57344.0).encode,
    "i1": _encode_bit,
}
"""Number -> bits, for the dtypes `struct` does not know (its "?" takes any object for a truth)."""


def check_scalar(name: str, dtype: str, value: Any) -> int | float | bool:
    """`value` as the Python number to pack as `dtype`; ArgumentError, naming the argument, if none.

    Numbers of NumPy and zero-dimensional arrays count as numbers. A float is no integer, an integer
    is a float; nothing is cut off or wrapped around.
    """
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError("text is no number")
        number = operator.index(value) if dtype in _INTEGER_BITS else float(value)
    except OverflowError:
        raise ArgumentError(f"argument {name!r}: {value!r} is too large for {dtype}") from None
    except (TypeError, ValueError, RuntimeError) as error:
        expected = "an integer" if dtype in _INTEGER_BITS else "a number"
        raise ArgumentError(
            f"argument {name!r}: expected {expected} ({dtype}), found {type(value).__name__}"
        ) from error
    if isinstance(number, int):
        return _checked_integer(name, dtype, number)
    return _checked_float(name, dtype, number)


def encode(dtype: str, value: int | float | bool) -> bytes:
    """The bytes the kernel reads for a checked scalar, little-endian."""
    if dtype in ENCODERS:
        value = ENCODERS[dtype](value)
    return struct.pack("<" + FORMATS[dtype], value)


def _checked_integer(name: str, dtype: str, number: int) -> int | bool:
    bits = _INTEGER_BITS[dtype]
    low, high = (0, 1) if bits == 1 else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    if not low <= number <= high:
        raise ArgumentError(
            f"argument {name!r}: {number} is not in the range of {dtype}, {low}..{high}"
        )
    return bool(number) if bits == 1 else number


def _checked_float(name: str, dtype: str, number: float) -> float:
    try:
        encode(dtype, number)
    except OverflowError:
        raise ArgumentError(f"argument {name!r}: {number!r} is too large for {dtype}") from None
    return number
