"""The README's product with its loop's demands as constants, and the same for a batch."""

from __future__ import annotations

import tilec
import tilec.language as tl
from tilec.examples.matmul import accumulator_of


@tilec.kernel(grid=lambda c, BM, BN: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)))
def swept_matmul(
    a: tl.array,
    b: tl.array,
    c: tl.array,
    BM: tl.const = tl.auto,
    BN: tl.const = tl.auto,
    BK: tl.const = tl.auto,
    PRECISION: tl.const = "ieee",
    STAGES: tl.const = None,
    WARP_SPECIALIZE: tl.const = None,
    ANY_ORDER: tl.const = False,
):
    """`tilec.examples.matmul.matmul`; STAGES, WARP_SPECIALIZE and ANY_ORDER demand of the loop."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), accumulator_of(a.dtype))
    for k in tl.range(
        0, a.shape[1], BK, stages=STAGES, warp_specialize=WARP_SPECIALIZE, any_order=ANY_ORDER
    ):
        acc = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(b, (k, n), (BK, BN)), acc, PRECISION)
    tl.store(c, (m, n), acc.to(c.dtype))


@tilec.kernel(grid=lambda c, BM, BN: (tl.cdiv(c.shape[1], BM), tl.cdiv(c.shape[2], BN), c.shape[0]))
def batched_matmul(
    a: tl.array,
    b: tl.array,
    c: tl.array,
    BM: tl.const = tl.auto,
    BN: tl.const = tl.auto,
    BK: tl.const = tl.auto,
    PRECISION: tl.const = "ieee",
    STAGES: tl.const = None,
    WARP_SPECIALIZE: tl.const = None,
    ANY_ORDER: tl.const = False,
):
    """A product for every index of the first dimension."""
    m, n, matrix = tl.program_id(0) * BM, tl.program_id(1) * BN, tl.program_id(2)
    acc = tl.zeros((BM, BN), accumulator_of(a.dtype))
    for k in tl.range(
        0, a.shape[2], BK, stages=STAGES, warp_specialize=WARP_SPECIALIZE, any_order=ANY_ORDER
    ):
        x = tl.load(a, (matrix, m, k), (BM, BK))
        acc = tl.dot(x, tl.load(b, (matrix, k, n), (BK, BN)), acc, PRECISION)
    tl.store(c, (matrix, m, n), acc.to(c.dtype))
