"""float64 results that NumPy does not give: fma, and rounding towards zero, down or up.

Rounding to nearest by error-free transformations (Boldo and Melquiond, "Emulation of FMA", 2008);
where they could overflow or underflow, and for the other roundings, by rational arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

# Sign of (rounded result - exact result), the operands being finite.
ERRORS: dict[str, Callable[..., Fraction]] = {
    "add": lambda near, x, y: near - (x + y),
    "subtract": lambda near, x, y: near - (x - y),
    "multiply": lambda near, x, y: near - x * y,
    "fma": lambda near, x, y, z: near - (x * y + z),
    "divide": lambda near, x, y: near - x / y,
    "reciprocal": lambda near, x: near - 1 / x,
    "square_root": lambda near, x: near * near - x,
}


def directed64(near: np.ndarray, mode: str, operation: str, *operands: np.ndarray) -> np.ndarray:
    """`near`, the result rounded to nearest, moved to that of rz, rm or rp; a key of ERRORS."""
    near = np.asarray(near)
    lanes = np.broadcast_arrays(near, *operands)
    usable = ~np.isnan(near)
    for operand in operands:
        usable = usable & np.isfinite(operand)
    if operation in ("divide", "reciprocal"):
        usable = usable & (np.asarray(operands[-1]) != 0)
    result = near.copy().reshape(-1)
    flat = [lane.reshape(-1) for lane in lanes]
    for i in np.flatnonzero(np.broadcast_to(usable, near.shape)):
        value, *values = (float(lane[i]) for lane in flat)
        result[i] = _moved(value, mode, operation, values)
    return result.reshape(near.shape)


def _moved(near: float, mode: str, operation: str, values: list[float]) -> float:
    if math.isinf(near):
        error = Fraction(1 if near > 0 else -1)
    else:
        error = ERRORS[operation](Fraction(near), *(Fraction(x) for x in values))
    if error > 0 and (mode == "rm" or (mode == "rz" and near > 0)):
        return math.nextafter(near, -math.inf)
    if error < 0 and (mode == "rp" or (mode == "rz" and near < 0)):
        return math.nextafter(near, math.inf)
    if near == 0 and error == 0 and mode == "rm" and operation in ("add", "subtract", "fma"):
        return _zero_rounded_down(operation, values)
    return near


def _zero_rounded_down(operation: str, values: list[float]) -> float:
    """An exact sum of 0 is -0 unless both addends are +0 (IEEE 754-2019, 6.3)."""
    *factors, last = (math.copysign(1, x) for x in values)
    first = math.prod(factors)
    last = -last if operation == "subtract" else last
    return -0.0 if first < 0 or last < 0 else 0.0


def fma64(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a*b+c rounded once to nearest."""
    a, b, c = np.broadcast_arrays(a, b, c)
    product = a * b
    low = _product_error(a, b, product)
    middle, tail = _two_sum(c, low)
    high, rest = _two_sum(product, middle)
    result = high + _odd_sum(tail, rest)
    zero = (a == 0) | (b == 0)
    factors = np.isfinite(a) & np.isfinite(b)
    finite = factors & np.isfinite(c)
    result = np.where(zero | ~finite, product + c, result)
    result = np.where(factors & np.isinf(c), c, result)  # though a*b may overflow the other way
    safe = _moderate(product) & _moderate(a) & _moderate(b) & (_moderate(c) | (c == 0))
    result = np.ascontiguousarray(result)
    for i in np.flatnonzero((~safe & finite & ~zero).reshape(-1)):
        values = (float(x.reshape(-1)[i]) for x in (a, b, c))
        result.reshape(-1)[i] = _exact_fma(*values)
    return result


def _exact_fma(a: float, b: float, c: float) -> float:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return 0.0  # a*b is not zero, so that c = -a*b
    try:
        # True division of integers is correctly rounded, subnormal results too.
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _moderate(value: np.ndarray) -> np.ndarray:
    """Far enough from overflow and underflow for the error-free transformations."""
    size = np.abs(value)
    return (size > 2.0**-450) & (size < 2.0**450)


def _two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    total = a + b
    away = total - a
    return total, (a - (total - away)) + (b - away)


def _odd_sum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a+b rounded to odd: if inexact, the last bit is made 1 towards the error."""
    total, error = _two_sum(a, b)
    bits = np.ascontiguousarray(total).view(np.int64)
    toward = np.where((error > 0) == (total > 0), 1, -1)
    change = np.where(((bits & 1) == 0) & (error != 0) & np.isfinite(error), toward, 0)
    return (bits + change).view(np.float64).reshape(total.shape)


def _product_error(a: np.ndarray, b: np.ndarray, product: np.ndarray) -> np.ndarray:
    """a*b - product, exact (Dekker)."""
    split = 134217729.0
    a_high = a * split - (a * split - a)
    b_high = b * split - (b * split - b)
    a_low, b_low = a - a_high, b - b_high
    return a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)
