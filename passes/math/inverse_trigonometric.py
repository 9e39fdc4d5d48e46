"""asin, acos, atan and atan2.

Sources: the reductions asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)) and atan(x) = pi/2 - atan(1/x),
Cody & Waite, "Software Manual for the Elementary Functions", ch. 10 and 11; fits are our own.
"""

from __future__ import annotations

import math

from tilec.passes.math.coefficients import COEFFICIENTS
from tilec.passes.math.scalar_builder import Scalar, ScalarBuilder
from tilec.records import dataclass


@dataclass(frozen=True)
class HalfPi:
    """pi/2 as a sum of two numbers of a type."""

    high: float
    low: float


HALF_PI = {
    "f32": HalfPi(1.5707963705062866, -4.371138828673793e-08),
    "f64": HalfPi(1.5707963267948966, 6.123233995736766e-17),
}


def _cubic(b: ScalarBuilder, name: str, t: Scalar, square: Scalar) -> Scalar:
    """f(t) - t of an odd function fitted as t + t**3 p(t**2)."""
    return b.horner(square, COEFFICIENTS[name, t.kind.name]) * (square * t)


def asin(b: ScalarBuilder, x: Scalar) -> Scalar:
    """arc sine; NaN outside [-1, 1]."""
    half_pi = HALF_PI[x.kind.name]
    magnitude = b.absolute(x)
    is_large = magnitude > 0.5
    square = b.where(is_large, b.fma(magnitude, -0.5, 0.5), x * x)
    t = b.where(is_large, b.square_root(square), magnitude)
    tail = _cubic(b, "asin", t, square)
    far = (half_pi.high - t * 2.0) - (tail * 2.0 - half_pi.low)
    return b.copysign(b.where(is_large, far, t + tail), x)


def acos(b: ScalarBuilder, x: Scalar) -> Scalar:
    """arc cosine; NaN outside [-1, 1]."""
    half_pi = HALF_PI[x.kind.name]
    magnitude = b.absolute(x)
    is_large = magnitude > 0.5
    square = b.where(is_large, b.fma(magnitude, -0.5, 0.5), x * x)
    t = b.where(is_large, b.square_root(square), x)
    tail = _cubic(b, "asin", t, square)
    near = half_pi.high - (t - (half_pi.low - tail))
    doubled = (t + tail) * 2.0
    far = b.where(x < 0.0, 2 * half_pi.high - (doubled - 2 * half_pi.low), doubled)
    return b.where(is_large, far, near)


def atan(b: ScalarBuilder, x: Scalar) -> Scalar:
    """arc tangent."""
    half_pi = HALF_PI[x.kind.name]
    magnitude = b.absolute(x)
    is_large = magnitude > 1.0
    t = b.where(is_large, 1.0 / magnitude, magnitude)
    tail = _cubic(b, "atan", t, t * t)
    far = half_pi.high - (t - (half_pi.low - tail))
    return b.copysign(b.where(is_large, far, t + tail), x)


def atan2(b: ScalarBuilder, y: Scalar, x: Scalar) -> Scalar:
    """The angle of (x, y), with C99's results on zeros and infinities."""
    half_pi = HALF_PI[x.kind.name]
    width, height = b.absolute(x), b.absolute(y)
    is_steep = height > width
    longer, shorter = b.where(is_steep, height, width), b.where(is_steep, width, height)
    t = shorter / longer
    t = b.where(longer.equals(0.0) & shorter.equals(0.0), 0.0, t)
    t = b.where(longer.equals(math.inf) & shorter.equals(math.inf), 1.0, t)
    tail = _cubic(b, "atan", t, t * t)
    steep = half_pi.high - (t - (half_pi.low - tail))
    # The sign bit of x, not x < 0: atan2(0, -0) is pi.
    is_left = b.bits(x) < 0
    left = b.where(
        is_steep,
        half_pi.high + (t + (half_pi.low + tail)),
        2 * half_pi.high - (t - (2 * half_pi.low - tail)),
    )
    right = b.where(is_steep, steep, t + tail)
    return b.copysign(b.where(is_left, left, right), y)
