"""isnan, isinf, isfinite, isnormal and clamp, on every floating-point kind."""

from __future__ import annotations

import math

from tilec.passes.math.scalar_builder import Scalar, ScalarBuilder


def is_nan(_b: ScalarBuilder, x: Scalar) -> Scalar:
    """i1: x is a NaN."""
    return x.is_nan()


def is_infinite(b: ScalarBuilder, x: Scalar) -> Scalar:
    """i1: x is inf or -inf."""
    return b.absolute(x).equals(math.inf)


def is_finite(b: ScalarBuilder, x: Scalar) -> Scalar:
    """i1: x is neither infinite nor a NaN."""
    return b.absolute(x) < math.inf


def is_normal(b: ScalarBuilder, x: Scalar) -> Scalar:
    """i1: x is finite, not zero and not denormal."""
    magnitude = b.absolute(x)
    return (magnitude < math.inf) & (magnitude >= 2.0 ** (1 - x.kind.exponent_bias))


def clamp(b: ScalarBuilder, x: Scalar, lowest: Scalar, highest: Scalar) -> Scalar:
    """min(max(x, lowest), highest); a NaN among the three gives a NaN."""
    raised = b.create("arith.maximumf", (x, lowest), x.kind)
    return b.create("arith.minimumf", (raised, highest), x.kind)
