"""Sum of each row of a matrix."""

from __future__ import annotations

import tilec
import tilec.language as tl


@tilec.kernel(grid=lambda x: x.shape[0])
def row_sum(x: tl.array, y: tl.array, N: tl.const = 2048):
    """y[i] = sum of row i, N elements at a time, one row per program."""
    row = tl.program_id(0)
    acc = tl.zeros(N, tl.f32)
    for start in tl.range(0, x.shape[1], N):
        acc += tl.load(x, (row, start), N).to(tl.f32)
    tl.store(y, row, tl.sum(acc).to(y.dtype))
