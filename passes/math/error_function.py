"""erf and erfc.

erfc is exp(-x**2) times a polynomial in (x - k) / (x + k), the mapping of Shepherd & Laframboise,
"Chebyshev approximation of (1 + 2x) exp(x**2) erfc x in 0 <= x < inf", Math. Comp. 36, 1981.
"""

from __future__ import annotations

from tilec.passes.math.coefficients import COEFFICIENTS
from tilec.passes.math.exponential import exp, exp2_flushing
from tilec.passes.math.kinds import F32
from tilec.passes.math.scalar_builder import Scalar, ScalarBuilder

_CENTRE = {"f32": 2.0, "f64": 4.0}
_ERFC_IS_ZERO = {"f32": 10.25, "f64": 27.5}
"""From here on erfc rounds to zero; the polynomials are fitted up to a little more."""


def _erfc_positive(b: ScalarBuilder, x: Scalar) -> Scalar:
    name = x.kind.name
    a = b.where(x > _ERFC_IS_ZERO[name], _ERFC_IS_ZERO[name], x)
    t = (a - _CENTRE[name]) / (a + _CENTRE[name])
    scaled = b.horner(t, COEFFICIENTS["erfc", name]) / b.fma(a, 2.0, 1.0)
    square = a * a
    lost = b.fma(a, a, -square)
    decay = exp(b, -square)
    return b.fma(-lost, decay, decay) * scaled


def erfc(b: ScalarBuilder, x: Scalar) -> Scalar:
    """1 - erf(x), with small relative error for large x too."""
    magnitude = b.absolute(x)
    positive = _erfc_positive(b, magnitude)
    far = b.where(x < 0.0, 2.0 - positive, positive)
    return b.where(magnitude < 0.5, 1.0 - _erf_near(b, x), far)


def _erf_near(b: ScalarBuilder, x: Scalar) -> Scalar:
    """erf on [-1, 1]."""
    return b.fma(b.horner(x * x, COEFFICIENTS["erf", x.kind.name]), x, x)


def erf(b: ScalarBuilder, x: Scalar) -> Scalar:
    """The error function."""
    magnitude = b.absolute(x)
    if x.kind == F32:
        # erf(4) rounds to 1.
        bounded = b.where(magnitude > 4.0, 4.0, magnitude)
        tail = exp2_flushing(b, b.horner(bounded, COEFFICIENTS["erf_tail", "f32"]))
    else:
        tail = _erfc_positive(b, magnitude)
    return b.where(magnitude < 1.0, _erf_near(b, x), b.copysign(1.0 - tail, x))
