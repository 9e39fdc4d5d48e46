"""Sum of each row of a matrix."""

from __future__ import annotations

import numpy as np

import tilec
import tilec.language as tl
from tilec.examples.running import compare, launch, poisoned


@tilec.kernel(grid=lambda x: x.shape[0])
def row_sum(x: tl.array, y: tl.array, N: tl.const = 2048):
    """y[i] = sum of row i, N elements at a time, one row per program."""
    row = tl.program_id(0)
    acc = tl.zeros(N, tl.f32)
    for start in tl.range(0, x.shape[1], N):
        acc += tl.load(x, (row, start), N).to(tl.f32)
    tl.store(y, row, tl.sum(acc).to(y.dtype))


def reference(x: np.ndarray) -> np.ndarray:
    """The sums in float64."""
    return x.astype(np.float64).sum(axis=1)


def main() -> None:
    """Rows shorter and longer than a tile."""
    rng = np.random.default_rng(0)
    for rows, columns in ((1, 1), (7, 1000), (3, 5000)):
        x = rng.standard_normal((rows, columns), dtype=np.float32)
        y = poisoned((rows,), np.float32)
        launch(row_sum, x, y)
        compare(f"row_sum {rows}x{columns}", y, reference(x), 1e-5)


if __name__ == "__main__":
    main()
