"""Layer normalisation of each row, scaled and shifted per column."""

from __future__ import annotations

import tilec
import tilec.language as tl


@tilec.kernel(grid=lambda x: x.shape[0])
def layer_norm(
    x: tl.array, weight: tl.array, bias: tl.array, y: tl.array, eps: tl.f32, N: tl.const = 1024
):
    """y = (x - mean) / sqrt(variance + eps) * weight + bias, rows of at most N elements."""
    row = tl.program_id(0)
    columns = x.shape[1]
    v = tl.load(x, (row, 0), N).to(tl.f32)
    mean = tl.sum(v) / columns
    centred = tl.where(tl.arange(N) < columns, v - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred) / columns + eps)
    w, b = tl.load(weight, 0, N).to(tl.f32), tl.load(bias, 0, N).to(tl.f32)
    tl.store(y, (row, 0), (centred * scale * w + b).to(y.dtype))
