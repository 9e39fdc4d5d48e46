"""The kernels of products whose operands have scales: the product, and scales rearranged."""

# Of a kernel's functions only what a checker cannot infer is annotated.
# pyright: basic

from __future__ import annotations

from typing import Any

import tilec
import tilec.language as tl
from tilec.ops.matmul_kernel import finish, product_grid


def elements(dtype: Any, numbers: Any) -> Any:
    """Elements of `dtype` that hold so many numbers (compile time)."""
    return numbers // 2 if dtype == tl.f4e2m1x2 else numbers


@tilec.kernel(grid=lambda c, BM, BN: product_grid(c, BM, BN, 1))
def scaled_product(
    a: tl.array,
    a_scale,
    b: tl.array,
    b_scale,
    c: tl.array,
    bias,
    row_scale,
    column_scale,
    scale,
    factor: tl.f64,
    residual,
    BM: tl.const = 128,
    BN: tl.const = 128,
    BK: tl.const = 128,
    BLOCK: tl.const = 32,
    SIDES: tl.const = ("a", "b"),
    ARRANGED: tl.const = False,
    PARTS: tl.const = (),
    ACTIVATION: tl.const = None,
):
    """A BM x BN tile of c = epilogue((a * a_scale) @ (b * b_scale)), a scale per BLOCK of k.

    SIDES: which have scales. ARRANGED: those are (rows / 128, blocks / 4, 2, 256), see
    `tl.block_scales`; else (M, K / BLOCK) and (K / BLOCK, N).
    """
    m, n = tl.program_id(0), tl.program_id(1)
    acc = tl.zeros((BM, BN), tl.f32)
    deep, wide, blocks = elements(a.dtype, BK), elements(b.dtype, BK), BK // BLOCK
    for step in tl.range(tl.cdiv(a.shape[1], deep)):
        x = tl.load(a, (m * BM, step * deep), (BM, deep))
        y = tl.load(b, (step * wide, n * BN), (wide, BN))
        x_scale, y_scale = None, None
        if ARRANGED and "a" in SIDES:
            x_scale = arranged_tile(a_scale, m, step, BM, blocks)
        elif "a" in SIDES:
            x_scale = tl.load(a_scale, (m * BM, step * blocks), (BM, blocks))
        if ARRANGED and "b" in SIDES:
            y_scale = arranged_tile(b_scale, n, step, BN, blocks).T
        elif "b" in SIDES:
            y_scale = tl.load(b_scale, (step * blocks, n * BN), (blocks, BN))
        acc = tl.dot_scaled(x, x_scale, y, y_scale, acc)
    optional = (bias, row_scale, column_scale, scale, factor, residual)
    done = finish(acc, (), m * BM, n * BN, c.dtype, optional, PARTS, ACTIVATION)
    tl.store(c, (m * BM, n * BN), done)


def arranged_tile(scale: Any, number: Any, step: Any, rows: int, blocks: int) -> Any:
    """Tile `number` of `rows`, and `step` of `blocks`, of arranged scales."""
    pieces, groups = rows // 128, blocks // 4
    at = (number * pieces, step * groups, 0, 0)
    return tl.block_scales(tl.load(scale, at, (pieces, groups, 2, 256)))


@tilec.kernel(grid=lambda y: (y.shape[0], y.shape[1]))
def arrange(x: tl.array, y: tl.array, TRANSPOSED: tl.const = False):
    """y, (rows / 128, blocks / 4, 2, 256): the scales x, (rows, blocks) or, TRANSPOSED, (blocks,
    rows), as `tl.block_scales` has them; 0 past their end."""
    piece, group = tl.program_id(0), tl.program_id(1)
    if TRANSPOSED:
        tile = tl.load(x, (group * 4, piece * 128), (4, 128)).T
    else:
        tile = tl.load(x, (piece * 128, group * 4), (128, 4))
    lanes = tile.reshape((4, 32, 4)).permute((1, 0, 2))
    tl.store(y, (piece, group, 0, 0), lanes.reshape((1, 1, 2, 256)))
