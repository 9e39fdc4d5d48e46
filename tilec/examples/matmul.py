"""Matrix product: c = a @ b for f64, f32 (exact or tf32), f16, bf16, fp8 and int8.

Bounds need no care: a load gives zeros outside the array, a store drops what lies outside, so M, N
and K may be anything.
"""

from __future__ import annotations

import tilec
import tilec.language as tl


def accumulator_of(dtype):
    """The dtype in which products of `dtype` are summed (compile time)."""
    return tl.f64 if dtype == tl.f64 else tl.i32 if dtype == tl.i8 else tl.f32


@tilec.kernel(grid=lambda c, BM, BN: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)))
def matmul(
    a: tl.array,
    b: tl.array,
    c: tl.array,
    BM: tl.const = tl.auto,
    BN: tl.const = tl.auto,
    BK: tl.const = tl.auto,
    PRECISION: tl.const = "ieee",
):
    """One BM x BN tile of c per program; PRECISION "tf32" puts f32 on tensor cores."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), accumulator_of(a.dtype))
    for k in tl.range(0, a.shape[1], BK):
        acc = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(b, (k, n), (BK, BN)), acc, PRECISION)
    tl.store(c, (m, n), acc.to(c.dtype))
