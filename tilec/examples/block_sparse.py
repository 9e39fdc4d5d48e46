"""A block-sparse matrix times a dense one: of the left operand only blocks that are there exist.

Blocks lie row by row, as in the BSR format: `starts` says where a row's blocks begin, `columns` in
which column of blocks each lies.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

import tilec
import tilec.language as tl
from tilec.examples.running import compare, launch, poisoned


@tilec.kernel(grid=lambda c, B, BN: (tl.cdiv(c.shape[0], B), tl.cdiv(c.shape[1], BN)))
def block_sparse_matmul(
    blocks: tl.array,
    columns: tl.array,
    starts: tl.array,
    b: tl.array,
    c: tl.array,
    B: tl.const = 64,
    BN: tl.const = 128,
):
    """c = a @ b; blocks (how many, B, B) of a, starts (rows of blocks + 1)."""
    row, n = tl.program_id(0), tl.program_id(1) * BN
    acc = tl.zeros((B, BN), tl.f32)
    for i in tl.range(tl.load(starts, row, ()), tl.load(starts, row + 1, ())):
        k = tl.load(columns, i, ()) * B
        acc = tl.dot(tl.load(blocks, (i, 0, 0), (B, B)), tl.load(b, (k, n), (B, BN)), acc)
    tl.store(c, (row * B, n), acc.to(c.dtype))


def main() -> None:
    """A row without blocks; columns that fill no tile."""
    rng = np.random.default_rng(0)
    size, n, dtype = 64, 88, ml_dtypes.bfloat16
    there = rng.random((4, 5)) < 0.5
    there[1] = False
    starts = np.concatenate([[0], there.sum(1).cumsum()]).astype(np.int32)
    rows, columns = np.nonzero(there)
    blocks = rng.standard_normal((len(rows), size, size)).astype(dtype)
    b = rng.standard_normal((5 * size, n)).astype(dtype)
    c = poisoned((4 * size, n), np.float32)
    launch(block_sparse_matmul, blocks, columns.astype(np.int32), starts, b, c, BN=64)
    a = np.zeros((4, size, 5, size))
    a[rows, :, columns] = blocks.astype(np.float64)
    compare("block_sparse", c, a.reshape(4 * size, -1) @ b.astype(np.float64), 1e-5)


if __name__ == "__main__":
    main()
