"""sin, cos and tan: argument reduction, then polynomials on [-pi/4, pi/4].

The structure is that of FreeBSD's msun (k_sin.c, k_cos.c); the coefficients are our own.
"""

from __future__ import annotations

from tilec.passes.math.argument_reduction import reduce_to_quadrant
from tilec.passes.math.coefficients import COEFFICIENTS
from tilec.passes.math.kinds import F32
from tilec.passes.math.scalar_builder import Scalar, ScalarBuilder


def _sin_reduced(b: ScalarBuilder, r: Scalar) -> Scalar:
    square = r * r
    sine = b.fma(b.horner(square, COEFFICIENTS["sin", r.kind.name]), square * r, r)
    # The sum of -0 and +0 is +0.
    return b.copysign(sine, r)


def _cos_reduced(b: ScalarBuilder, r: Scalar) -> Scalar:
    square = r * r
    inner = b.fma(b.horner(square, COEFFICIENTS["cos", r.kind.name]), square, -0.5)
    return b.fma(inner, square, 1.0)


def _sin_of_quadrant(b: ScalarBuilder, r: Scalar, quadrant: Scalar) -> Scalar:
    swapped = (quadrant & 1).differs(0)
    magnitude = b.where(swapped, _cos_reduced(b, r), _sin_reduced(b, r))
    return b.where((quadrant & 2).differs(0), -magnitude, magnitude)


def sin(b: ScalarBuilder, x: Scalar) -> Scalar:
    """sin(x), reduced exactly however large x is."""
    return _sin_of_quadrant(b, *reduce_to_quadrant(b, x))


def cos(b: ScalarBuilder, x: Scalar) -> Scalar:
    """cos(x), reduced exactly however large x is."""
    r, quadrant = reduce_to_quadrant(b, x)
    return _sin_of_quadrant(b, r, quadrant + 1)


def tan(b: ScalarBuilder, x: Scalar) -> Scalar:
    """sin(x) / cos(x)."""
    r, quadrant = reduce_to_quadrant(b, x)
    sine, cosine = _sin_reduced(b, r), _cos_reduced(b, r)
    swapped = (quadrant & 1).differs(0)
    return b.where(swapped, -cosine, sine) / b.where(swapped, sine, cosine)


def sin_approximate(b: ScalarBuilder, x: Scalar) -> Scalar:
    """sin.approx.ftz: absolute error 2**-20.5 on [-pi, pi], worse outside."""
    return b.intrinsic("llvm.nvvm.sin.approx.ftz.f", (x,), F32)


def cos_approximate(b: ScalarBuilder, x: Scalar) -> Scalar:
    """cos.approx.ftz: absolute error 2**-20.5 on [-pi, pi], worse outside."""
    return b.intrinsic("llvm.nvvm.cos.approx.ftz.f", (x,), F32)


def tan_approximate(b: ScalarBuilder, x: Scalar) -> Scalar:
    """sin.approx / cos.approx by div.approx."""
    quotient = (sin_approximate(b, x), cos_approximate(b, x))
    return b.intrinsic("llvm.nvvm.div.approx.ftz.f", quotient, F32)
