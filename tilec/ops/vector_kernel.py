"""The kernel of a matrix times a vector whose operands no copy engine brings.

Tensor cores would multiply fifteen columns of zeros, behind a tile that passes through registers
and shared memory in each step of k. Here each thread multiplies what it loads, keeps one sum, and
threads meet once, behind the last step.
"""
# ruff: noqa: RUF005 - the tile language has no starred tuples

# Of a kernel's functions only what a checker cannot infer is annotated.
# pyright: basic

from __future__ import annotations

from typing import Any

import tilec
import tilec.language as tl
from tilec.ops.matmul_kernel import accumulator_of, finish, rank_offsets


def vector_grid(c: Any, BM: int) -> Any:
    """Tiles of rows, of each matrix of the batch."""
    batch = 1
    for size in c.shape[:-2]:
        batch = batch * size
    return tl.cdiv(c.shape[-2], BM), batch


@tilec.kernel(grid=vector_grid)
def vector_product(
    a: tl.array,
    b: tl.array,
    c: tl.array,
    bias,
    row_scale,
    column_scale,
    scale,
    factor: tl.f64,
    residual,
    BM: tl.const = 1,
    BK: tl.const = 1024,
    PARTS: tl.const = (),
    ACTIVATION: tl.const = None,
    ACC: tl.const = None,
):
    """BM rows of c = epilogue(a @ b), where b and c have one column; arguments as of `product`."""
    m = tl.program_id(0) * BM
    lead = rank_offsets(tl.program_id(1), c.shape[:-2]) if a.ndim > 2 else ()
    acc = tl.zeros((BM, BK), accumulator_of(a.dtype) if ACC is None else ACC)
    for k in tl.range(0, a.shape[a.ndim - 1], BK):
        x = tl.load(a, lead + (m, k), (BM, BK)).to(acc.dtype)
        y = tl.load(b, lead + (k, 0), (BK, 1)).to(acc.dtype)
        acc = acc + x * y.reshape((1, BK))
    optional = (bias, row_scale, column_scale, scale, factor, residual)
    sums = tl.sum(acc, 1)[:, None]
    tl.store(c, lead + (m, 0), finish(sums, lead, m, 0, c.dtype, optional, PARTS, ACTIVATION))
