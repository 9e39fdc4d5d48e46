"""RMS normalisation, y = x / sqrt(mean(x^2) + eps) * weight, and its gradients.

The gradient of the weight is a sum over all rows. A program walks over rows, R at a time, and keeps
the sum of those in registers; a second kernel adds the programs' sums up. So it is the same bits
every time, and each row is read once.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

import tilec
import tilec.language as tl
from tilec.examples.running import compare, launch, poisoned


@tilec.kernel(grid=lambda x: x.shape[0])
def rms_norm(
    x: tl.array, weight: tl.array, y: tl.array, scales: tl.array, eps: tl.f32, N: tl.const
):
    """y, and per row scales = 1 / sqrt(mean(x^2) + eps); rows of at most N elements."""
    row = tl.program_id(0)
    v = tl.load(x, (row, 0), N).to(tl.f32)
    scale = tl.rsqrt(tl.sum(v * v) / x.shape[1] + eps)
    tl.store(scales, row, scale)
    tl.store(y, (row, 0), (v * scale * tl.load(weight, 0, N).to(tl.f32)).to(y.dtype))


@tilec.kernel(grid=lambda partial: partial.shape[0])
def rms_norm_gradients(
    dy: tl.array,
    x: tl.array,
    weight: tl.array,
    scales: tl.array,
    dx: tl.array,
    partial: tl.array,
    N: tl.const,
    R: tl.const = tl.auto,
):
    """dx, and in row p of `partial` what the rows of program p add to the weight's gradient."""
    program = tl.program_id(0)
    w = tl.load(weight, 0, N).to(tl.f32)
    dweight = tl.zeros((R, N), tl.f32)
    for row in tl.range(program * R, x.shape[0], tl.num_programs(0) * R):
        scale = tl.load(scales, row, R)[:, None]
        normal = tl.load(x, (row, 0), (R, N)).to(tl.f32) * scale
        grad = tl.load(dy, (row, 0), (R, N)).to(tl.f32)
        dweight += grad * normal
        dnormal = grad * w[None, :]
        along = tl.sum(dnormal * normal, 1, keepdims=True) / x.shape[1]
        tl.store(dx, (row, 0), ((dnormal - normal * along) * scale).to(dx.dtype))
    tl.store(partial, (program, 0), tl.sum(dweight, 0))


@tilec.kernel(grid=lambda total, BN: tl.cdiv(total.shape[0], BN))
def sum_columns(partial: tl.array, total: tl.array, BM: tl.const = tl.auto, BN: tl.const = tl.auto):
    """total = the sum of the rows of `partial`."""
    n = tl.program_id(0) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for m in tl.range(0, partial.shape[0], BM):
        acc += tl.load(partial, (m, n), (BM, BN))
    tl.store(total, n, tl.sum(acc, 0).to(total.dtype))


def main() -> None:
    """More rows than programs, rows that fill no tile."""
    rng = np.random.default_rng(0)
    for dtype, rows, columns, tolerance in (
        (np.float32, 9, 37, 2e-6),
        (ml_dtypes.bfloat16, 13, 200, 8e-3),
    ):
        x, dy = rng.standard_normal((2, rows, columns)).astype(dtype)
        weight = rng.standard_normal(columns).astype(dtype)
        tile = {"N": tl.cdiv(columns, 64) * 64}
        y, dx, dweight = (poisoned(a.shape, dtype) for a in (x, x, weight))
        scales, partial = poisoned((rows,), np.float32), poisoned((4, columns), np.float32)
        launch(rms_norm, x, weight, y, scales, 1e-6, **tile)
        launch(rms_norm_gradients, dy, x, weight, scales, dx, partial, **tile)
        launch(sum_columns, partial, dweight)

        wide, grad = x.astype(np.float64), dy.astype(np.float64)
        scale = 1 / np.sqrt((wide**2).mean(1, keepdims=True) + 1e-6)
        normal, dnormal = wide * scale, grad * weight.astype(np.float64)
        along = (dnormal * normal).mean(1, keepdims=True)
        compare("rms_norm", y, normal * weight.astype(np.float64), tolerance)
        compare("dx", dx, (dnormal - normal * along) * scale, tolerance)
        compare("dweight", dweight, (grad * normal).sum(0), tolerance)


if __name__ == "__main__":
    main()
