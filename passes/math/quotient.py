"""Division by a hardware quotient instead of the correctly rounded one."""

from __future__ import annotations

from tilec.passes.math.kinds import F32
from tilec.passes.math.scalar_builder import Scalar, ScalarBuilder


def divide_full(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    """div.full.f32: 2 ulp over the full range, denormals included; for fastmath<arcp>."""
    return b.intrinsic("llvm.nvvm.div.full", (x, y), F32)
