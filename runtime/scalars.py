"""Scalar arguments: range checks and the bytes the hardware gets, per dtype.

f64, f32, f16 and integers are packed by `struct`; bf16 and fp8 are rounded here, to nearest even,
since no Python type has them.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tilec.runtime.errors import ArgumentError
from tilec.terms.dtypes import BY_MLIR, DTYPES, Encoding, i1


def _encode_float(encoding: Encoding, value: float) -> int:
    """The bits of `value` rounded to nearest, ties to even. OverflowError past the largest."""
    value = float(value)
    exponent_bits, mantissa_bits = encoding.exponent_bits, encoding.mantissa_bits
    sign = int(math.copysign(1, value) < 0) << (exponent_bits + mantissa_bits)
    if math.isnan(value):
        return sign | encoding.nan
    if math.isinf(value):
        if encoding.infinity is None:
            raise OverflowError("the type has no infinity")
        return sign | encoding.infinity
    magnitude = abs(value)
    bias = (1 << (exponent_bits - 1)) - 1
    exponent = max(math.frexp(magnitude)[1] - 1, 1 - bias) if magnitude else 1 - bias
    # In units of the last place; `round` rounds halves to even, and the division is exact.
    units = round(math.ldexp(magnitude, mantissa_bits - exponent))
    if math.ldexp(units, exponent - mantissa_bits) > encoding.largest:
        raise OverflowError(f"the largest value is {encoding.largest:g}")
    # A carry out of the mantissa moves into the exponent by itself, as it does for subnormals.
    return sign | ((exponent + bias - 1) << mantissa_bits) + units


def _encode_bit(value: Any) -> int:
    if value not in (0, 1):
        raise OverflowError("the values are 0 and 1")
    return int(value)


ENCODERS: Mapping[str, Callable[[Any], int]] = {
    **{d.mlir: partial(_encode_float, d.encoding) for d in DTYPES if d.encoding is not None},
    i1.mlir: _encode_bit,
}
"""Number -> bits, for the dtypes `struct` does not know (its "?" takes any object for a truth)."""


_LIMITS: Mapping[str, tuple[int, int]] = {
    d.mlir: d.limits for d in DTYPES if d.is_integer or d.is_bool
}
"""The least and the largest integer of a dtype: looked up at every launch."""


def check_scalar(name: str, dtype: str, value: Any) -> int | float | bool:
    """`value` as the Python number to pack as `dtype`; ArgumentError, naming the argument, if none.

    Numbers of NumPy and zero-dimensional arrays count as numbers. A float is no integer, an integer
    is a float; nothing is cut off or wrapped around.
    """
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError("text is no number")
        if dtype == i1.mlir and hasattr(value, "item"):
            value = value.item()  # NumPy's truth values are no integers
        number = operator.index(value) if dtype in _LIMITS else float(value)
    except OverflowError:
        raise ArgumentError(f"argument {name!r}: {value!r} is too large for {dtype}") from None
    except (TypeError, ValueError, RuntimeError) as error:
        expected = "an integer" if dtype in _LIMITS else "a number"
        raise ArgumentError(
            f"argument {name!r}: expected {expected} ({dtype}), found {type(value).__name__}"
        ) from error
    if isinstance(number, int):
        return _checked_integer(name, dtype, number)
    return _checked_float(name, dtype, number)


def index_argument(dtype: str, value: int) -> int:
    """A size or stride as an argument of `dtype`. What does not fit leads nowhere, as the checks of
    a launch have found, and is 0: the stride of an axis of size 1 may be anything."""
    low, high = _LIMITS[dtype]
    return value if low <= value <= high else 0


def encode(dtype: str, value: int | float | bool) -> bytes:
    """The bytes the kernel reads for a checked scalar, little-endian."""
    if dtype in ENCODERS:
        value = ENCODERS[dtype](value)
    return struct.pack("<" + BY_MLIR[dtype].packed, value)


def _checked_integer(name: str, dtype: str, number: int) -> int | bool:
    low, high = _LIMITS[dtype]
    if not low <= number <= high:
        raise ArgumentError(
            f"argument {name!r}: {number} is not in the range of {dtype}, {low}..{high}"
        )
    return bool(number) if high == 1 else number


def _checked_float(name: str, dtype: str, number: float) -> float:
    try:
        encode(dtype, number)
    except OverflowError:
        raise ArgumentError(f"argument {name!r}: {number!r} is too large for {dtype}") from None
    return number
