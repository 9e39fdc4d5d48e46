"""f32 rounded to tf32, the operand type of the tensor cores' 19-bit mode."""

from __future__ import annotations

from tilec.passes.math.kinds import INTEGERS
from tilec.passes.math.scalar_builder import Scalar, ScalarBuilder


def round_to_tf32(b: ScalarBuilder, x: Scalar) -> Scalar:
    """The i32 an mma takes for the f32 `x`: nearest, ties away from zero (cvt.rna.tf32.f32)."""
    return b.intrinsic("llvm.nvvm.f2tf32.rna", (x,), INTEGERS[32])
