"""Matrix products of tiles."""

from __future__ import annotations

from typing import Any

from tilec.language.builtin import builtin

__all__ = ["dot"]


@builtin
def dot(a: Any, b: Any, acc: Any = None, precision: str = "ieee", dtype: Any = None) -> Any:
    """`a @ b + acc`: (..., M, K) times (..., K, N); leading dimensions are a batch.

    Both inputs have one dtype (two fp8 formats may mix). `acc` (zeros without it) fixes the
    result's dtype, else `dtype`, else f32 for f16, bf16, fp8 and f32, f64 for f64, i32 for i8; f16
    and fp8 may also accumulate in f16. `precision` is about f32 inputs: "ieee" multiplies all 24
    significant bits, "tf32" the upper 11, what tensor cores read. `a @ b` is `dot(a, b)`.
    """
