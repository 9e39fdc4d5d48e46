"""A product whose operands have scales in their natural order, for several tests."""

from __future__ import annotations

import tilec
import tilec.language as tl


@tilec.kernel(grid=lambda c, BM, BN: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)))
def scaled_matmul(
    a: tl.array,
    a_scale: tl.array,
    b: tl.array,
    b_scale: tl.array,
    c: tl.array,
    BM: tl.const = 128,
    BN: tl.const = 128,
    BYTES: tl.const = 128,
    BLOCKS: tl.const = 4,
):
    """c = (a * a_scale) @ (b * b_scale); a step has BYTES elements of k and BLOCKS scales."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(tl.cdiv(a.shape[1], BYTES)):
        left = tl.load(a, (m, k * BYTES), (BM, BYTES))
        right = tl.load(b, (k * BYTES, n), (BYTES, BN))
        left_scale = tl.load(a_scale, (m, k * BLOCKS), (BM, BLOCKS))
        right_scale = tl.load(b_scale, (k * BLOCKS, n), (BLOCKS, BN))
        acc = tl.dot_scaled(left, left_scale, right, right_scale, acc)
    tl.store(c, (m, n), acc)
