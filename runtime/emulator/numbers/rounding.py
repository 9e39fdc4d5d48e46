"""Exactly rounded float operations on NumPy arrays, flush-to-zero, minimum and maximum.

Operations on narrow types are computed in a wider one and rounded once; where the wider sum itself
rounds, the rare halfway cases are corrected (Boldo and Melquiond, "Emulation of FMA", 2008:
rounding to odd in the wider format makes the second rounding exact).
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tilec.runtime.emulator.numbers.float64 import fma64

_F32_EXPONENT = np.uint32(0x7F800000)
BF16 = np.dtype(ml_dtypes.bfloat16)


def flush(value: np.ndarray) -> np.ndarray:
    """Subnormal float32 values become zero of the same sign (.ftz)."""
    value = np.asarray(value)
    if value.dtype == np.float32:
        return value * ((value.view(np.uint32) & _F32_EXPONENT) != 0)
    tiny = np.finfo(np.float16).tiny if value.dtype == np.float16 else np.float32(2.0**-126)
    return np.where(np.abs(value) < tiny, np.copysign(value.dtype.type(0), value), value)


def flush_rounded(
    value: np.ndarray, operation: str, mode: str, *operands: np.ndarray
) -> np.ndarray:
    """.ftz of `value`, the "multiply", "fma" or "divide" of operands rounded in a mode.

    Tiny is what is below the smallest normal number after rounding to a normal significand, as on
    an H200; some of it has become that number in `value`, where subnormals are twice as far apart.
    """
    value = flush(value)
    if not _at_edge(value).any():
        return value
    wide = [np.asarray(x).astype(np.float64) for x in operands]
    exact = wide[0] / wide[1] if operation == "divide" else wide[0] * wide[1]
    return flush_narrowed(value, mode, exact + wide[2] if operation == "fma" else exact)


def _at_edge(value: np.ndarray) -> np.ndarray:
    return np.abs(value) == float(ml_dtypes.finfo(value.dtype).smallest_normal)


def flush_narrowed(value: np.ndarray, mode: str, exact: np.ndarray) -> np.ndarray:
    """`flush_rounded`, given the exact result in float64."""
    value = flush(value)
    smallest = float(ml_dtypes.finfo(value.dtype).smallest_normal)
    step = smallest * float(ml_dtypes.finfo(value.dtype).eps) / 2
    size = np.abs(exact)
    tiny = size < smallest - step / 2 if mode == "rn" else size <= smallest - step
    return np.where(_at_edge(value) & tiny, np.copysign(value.dtype.type(0), value), value)


def fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a*b+c rounded once, for float32, float16, bfloat16 and float64 arrays."""
    dtype = np.asarray(a).dtype
    if dtype == np.float64:
        return fma64(a, b, c)
    x, y, z = (np.asarray(v).astype(np.float64) for v in (a, b, c))
    product = x * y  # exact: 24+24 bits fit in 53
    total = product + z
    bits = total.view(np.int64)
    # A float64 sum is misrounded by the second rounding only when it looks like a tie.
    tie = (bits & 0x1FFFFFFF) == 0x10000000 if dtype == np.float32 else _tie16(bits, dtype)
    if np.any(tie):
        total = _to_odd(product, z, total)
    # ml_dtypes goes from float64 to bfloat16 by way of a rounded float32.
    return (odd_float32(total) if dtype == BF16 else total).astype(dtype)


def odd_float32(value: np.ndarray) -> np.ndarray:
    """float64 to float32, rounded to odd: a later rounding to bfloat16 is exact."""
    value = np.asarray(value)
    near = value.astype(np.float32)
    bits = np.atleast_1d(near).view(np.int32)
    wrong = (near.astype(np.float64) != value) & ((bits & 1) == 0).reshape(near.shape)
    step = np.where(np.abs(near.astype(np.float64)) < np.abs(value), 1, -1)
    step = np.where(wrong & ~np.isnan(value), step, 0).reshape(bits.shape)
    return (bits + step.astype(np.int32)).view(np.float32).reshape(near.shape)


def _tie16(bits: np.ndarray, dtype: np.dtype) -> np.ndarray:
    width = 42 if dtype == np.float16 else 45
    return (bits & ((1 << width) - 1)) == 1 << (width - 1)


def _to_odd(a: np.ndarray, b: np.ndarray, total: np.ndarray) -> np.ndarray:
    """a+b rounded to odd in float64: if inexact, the last bit is made 1 towards the error."""
    away = total - a
    error = (a - (total - away)) + (b - away)
    bits = np.atleast_1d(total).view(np.int64)
    error = np.broadcast_to(error, bits.shape)
    even = (bits & 1) == 0
    toward = np.where((error > 0) == (np.atleast_1d(total) > 0), 1, -1)
    change = np.where(even & (error != 0) & np.isfinite(error), toward, 0)
    return (bits + change).view(np.float64).reshape(np.shape(total))


def minimum(a: np.ndarray, b: np.ndarray, propagate: bool) -> np.ndarray:
    """PTX min: a NaN loses against a number (unless `propagate`), -0 is less than +0."""
    result = (np.minimum if propagate else np.fmin)(a, b)
    return _zero_sign(result, a, b, negative=True)


def maximum(a: np.ndarray, b: np.ndarray, propagate: bool) -> np.ndarray:
    """PTX max: a NaN loses against a number (unless `propagate`), +0 is greater than -0."""
    result = (np.maximum if propagate else np.fmax)(a, b)
    return _zero_sign(result, a, b, negative=False)


def _zero_sign(result: np.ndarray, a: np.ndarray, b: np.ndarray, negative: bool) -> np.ndarray:
    zero = result == 0
    if not np.any(zero):
        return result
    choose = np.logical_or if negative else np.logical_and
    sign = choose(np.signbit(a) & (np.asarray(a) == 0), np.signbit(b) & (np.asarray(b) == 0)) | (
        np.signbit(result) & (np.asarray(a) != np.asarray(b))
    )
    signed = np.where(sign, result.dtype.type(-0.0), result.dtype.type(0.0))
    return np.where(zero, signed, result).astype(result.dtype)


def saturate(value: np.ndarray) -> np.ndarray:
    """Clamp to [0, 1]; NaN becomes +0 (.sat)."""
    value = np.asarray(value)
    return np.where(value > 0, np.minimum(value, value.dtype.type(1)), value.dtype.type(0))


def relu(value: np.ndarray) -> np.ndarray:
    """Negative values and -0 become +0, NaN stays NaN (.relu)."""
    value = np.asarray(value)
    return np.where(value <= 0, value.dtype.type(0), value)


def directed(value: np.ndarray, exact: np.ndarray, mode: str) -> np.ndarray:
    """Nearest-rounded `value` moved so that it rounds `exact` (a wider float) per rz, rm or rp."""
    value = np.asarray(value)
    wide = value.astype(np.float64)
    exact = np.asarray(exact, np.float64)
    infinity = value.dtype.type(np.inf)
    down = np.nextafter(value, -infinity)
    up = np.nextafter(value, infinity)
    if mode == "rm":
        return np.where(wide > exact, down, value)
    if mode == "rp":
        return np.where(wide < exact, up, value)
    toward = np.where(exact > 0, down, up)
    return np.where(np.abs(wide) > np.abs(exact), toward, value)


def zero_down(value: np.ndarray, exact: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Rounded down, a sum x+y of exactly 0 is -0 unless both are +0 (IEEE 754-2019, 6.3)."""
    minus = (exact == 0) & (np.signbit(x) | np.signbit(y))
    return np.where(minus, value.dtype.type(-0.0), value)


def halves(value: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A uint32 array as its 16-bit halves: shape (..., 2) of `dtype`, low half first."""
    raw = np.ascontiguousarray(value)
    return raw.reshape(*raw.shape, 1).view(dtype)


def joined(value: np.ndarray) -> np.ndarray:
    """The inverse of `halves`: (..., 2) of a 16-bit type to uint32."""
    raw = np.ascontiguousarray(value)
    return raw.view(np.uint32).reshape(raw.shape[:-1])
