"""Sum of each row of a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilec
import tilec.language as tl
from tilec.examples.running import compare, launch, poisoned


@tilec.kernel(grid=lambda x, R: tl.cdiv(x.shape[0], R))
def row_sum(x: tl.array, y: tl.array, R: tl.const = 1, N: tl.const = 2048):
    """y[i] = sum of row i: R rows per program, N elements of each at a time."""
    row = tl.program_id(0) * R
    acc = tl.zeros((R, N), tl.f32)
    for start in tl.range(0, x.shape[1], N):
        acc += tl.load(x, (row, start), (R, N)).to(tl.f32)
    tl.store(y, row, tl.sum(acc, 1).to(y.dtype))


def row_sum_rows(x: Any, y: Any) -> None:
    """Sums each row of `x` into `y`: several short rows per program, long tiles where they divide
    it."""
    columns = x.shape[1]
    if columns <= 1024:
        row_sum(x, y, R=4, N=512)
    elif columns > 2048 and columns % 2048 == 0:
        row_sum(x, y, N=2048)
    else:
        row_sum(x, y, N=1024)


def reference(x: np.ndarray) -> np.ndarray:
    """The sums in float64."""
    return x.astype(np.float64).sum(axis=1)


def main() -> None:
    """Rows shorter and longer than a tile."""
    rng = np.random.default_rng(0)
    for rows, columns in ((1, 1), (7, 1000), (3, 5000)):
        x = rng.standard_normal((rows, columns), dtype=np.float32)
        y = poisoned((rows,), np.float32)
        launch(row_sum_rows, x, y)
        compare(f"row_sum {rows}x{columns}", y, reference(x), 1e-5)


if __name__ == "__main__":
    main()
