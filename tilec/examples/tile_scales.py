"""Products of fp8 with scales in f32: of 128 elements of a row of a, of 128 x 128 of b.

The form of DeepSeek-V3 (arXiv:2412.19437, section 3.3.2). Scales differ along k, so each block of
k is a product of its own, in f32, and added up scaled: the tensor cores' sums, which have fewer
bits, never run over more than a block.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

import tilec
import tilec.language as tl
from tilec.examples.running import compare, launch, poisoned

BLOCK = 128
"""Elements along k, and columns of b, that share a scale."""


@tilec.kernel(grid=lambda x: (x.shape[0], tl.cdiv(x.shape[1], BLOCK * 4)))
def quantize(x: tl.array, q: tl.array, scales: tl.array, MOST: tl.const = 448.0):
    """q * scales = x, as near as the numbers of q, at most MOST, allow; scales (rows, blocks)."""
    row, block = tl.program_id(0), tl.program_id(1) * 4
    v = tl.reshape(tl.load(x, (row, block * BLOCK), BLOCK * 4).to(tl.f32), (4, BLOCK))
    scale = tl.maximum(tl.max(tl.abs(v), 1), 1e-10) / MOST
    tl.store(scales, (row, block), scale)
    tl.store(q, (row, block * BLOCK), tl.reshape((v / scale[:, None]).to(q.dtype), (BLOCK * 4,)))


@tilec.kernel(grid=lambda c, BM, BN: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)))
def tile_scaled_matmul(
    a: tl.array,
    a_scales: tl.array,
    b: tl.array,
    b_scales: tl.array,
    c: tl.array,
    BM: tl.const = tl.auto,
    BN: tl.const = tl.auto,
):
    """c = (a * a_scales) @ (b * b_scales)^T; a (M, K), b (N, K), BLOCK a multiple of BN."""
    tl.static_assert(BLOCK % BN == 0, "the columns of a tile share a scale")
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for block in tl.range(0, tl.cdiv(a.shape[1], BLOCK)):
        k = block * BLOCK
        product = tl.dot(tl.load(a, (m, k), (BM, BLOCK)), tl.load(b, (n, k), (BN, BLOCK)).T)
        by_row = tl.load(a_scales, (m, block), (BM, 1))
        acc += product * (by_row * tl.load(b_scales, (n // BLOCK, block), ()))
    tl.store(c, (m, n), acc.to(c.dtype))


def main() -> None:
    """Activations quantised on the way, weights beforehand; sizes that fill no tile."""
    rng = np.random.default_rng(0)
    f8, dtype = ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16
    m, n, k = 37, 200, 272
    blocks = -(-k // BLOCK)
    x = (rng.standard_normal((m, k)) * rng.lognormal(size=(m, 1))).astype(dtype)
    a, a_scales = np.zeros((m, k), f8), poisoned((m, blocks), np.float32)
    launch(quantize, x, a, a_scales)
    wide = np.repeat(a_scales, BLOCK, 1)[:, :k] * a.astype(np.float64)
    compare("quantize", wide, x.astype(np.float64), 2.0**-4)

    b = rng.standard_normal((n, k)).astype(f8)
    b_scales = rng.random((-(-n // BLOCK), blocks), np.float32)
    c = poisoned((m, n), dtype)
    launch(tile_scaled_matmul, a, a_scales, b, b_scales, c, BM=64)
    scales = np.repeat(np.repeat(b_scales, BLOCK, 0)[:n], BLOCK, 1)[:, :k]
    compare("tile_scaled_matmul", c, wide @ (b.astype(np.float64) * scales).T, 8e-3)


if __name__ == "__main__":
    main()
