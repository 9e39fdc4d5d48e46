"""Division by a hardware quotient instead of the correctly rounded one."""

from __future__ import annotations

from tilec.dialects.def_use import constant_attribute
from tilec.passes.math.kinds import F32
from tilec.passes.math.scalar_builder import Scalar, ScalarBuilder


def divide_full(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    """div.full.f32: 2 ulp over the full range, denormals included; for fastmath<arcp>."""
    return b.intrinsic("llvm.nvvm.div.full", (x, y), F32)


def divide_approximate(b: ScalarBuilder, x: Scalar, y: Scalar) -> Scalar:
    """div.approx.ftz.f32, two instructions; of 1 rcp.approx.ftz.f32, one: for fastmath<afn>.

    With denormals ptxas makes five of each: gated halves of 101606 rows of 80 bf16, each element of
    which has a sigmoid, were 424 instructions of a warp for 360."""
    one = constant_attribute(x.value)
    if one is not None and one.value == 1:
        return b.intrinsic("llvm.nvvm.rcp.approx.ftz.f", (y,), F32)
    return b.intrinsic("llvm.nvvm.div.approx.ftz.f", (x, y), F32)
