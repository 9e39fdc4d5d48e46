"""A program of a user's, which type checkers must find nothing in. `test_types.py` reads it."""

from __future__ import annotations

import numpy as np
from typing_extensions import assert_type

import tilec
import tilec.language as tl


@tilec.function
def relu(x: tl.Tile, low: float = 0.0) -> tl.Tile:
    """A function that kernels call keeps its signature."""
    return tl.maximum(x, low)


def scaled(acc, by):
    """What has no annotation is inferred."""
    return acc * by


@tilec.kernel(grid=lambda c, BM: tl.cdiv(c.shape[0], BM), num_warps=4, order="hilbert")
def product(
    a: tl.array,
    b: tl.array,
    c: tl.array,
    scale: tl.f32,
    rows: tl.i32,
    steps: int = 1,
    BM: tl.const = 64,
    PRECISION: tl.const = "ieee",
):
    """Loads, dots, reductions, masks: tiles have operators, scalars count, dtypes are values."""
    program = tl.program_id(0)
    assert_type(program, tl.Tile)
    m = program * BM
    acc = tl.zeros((BM, BM), tl.f32)
    for k in tl.range(0, a.shape[1], BM, stages=3):
        left = tl.load(a, (m, k), (BM, BM), cache="evict_first")
        acc = tl.dot(left, tl.load(b, (k, 0), (BM, BM)).T, acc, PRECISION)
        assert_type(left @ left, tl.Tile)
    for _ in range(rows):
        acc += 1
    for _ in tl.static_range(steps):
        acc = relu(acc)
    total = tl.sum(acc, 1)[:, None]
    assert_type(2 * total - rows, tl.Tile)
    assert_type((total < rows) & (total == 0), tl.Tile)
    acc = scaled(acc / total, scale)
    assert_type(acc, tl.Tile)
    wide = tl.f64 if a.dtype == tl.f64 else tl.f32
    assert_type(wide.bits, int)
    first, second = tl.split(acc.to(wide), 2)
    tl.atomic_add(c, (m, 0), tl.where(m < rows, first, second), mask=m < rows, order="release")
    tl.store(c, (m, 0), acc.to(c.dtype))


@tilec.kernel
def biased(x: tl.array, y: tl.array, bias: tl.array | None = None):
    """An array that may be left out."""
    row = tl.load(x, 0, 64)
    tl.store(y, 0, row if bias is None else row + tl.load(bias, 0, 64))


@tilec.kernel
def copy(x: tl.array, y: tl.array, B: tl.const = 64):
    """Made without the decorator's arguments."""
    tl.store(y, 0, tl.load(x, 0, B))


@tilec.autotune(search={"B": [64, 128]})
@tilec.kernel(grid=(1,))
def tuned(x: tl.array, B: tl.const):
    """What is searched for may be left out of a call."""
    tl.store(x, 0, tl.zeros((B,), tl.f32))


x = np.zeros((64, 64), np.float32)
product(x, x, x, 1.0, 3)
product(x, x, x, 2, rows=np.int32(3), BM=128)
product(x, x, c=x, scale=1.0, rows=3, grid=(1,), stream=0)
product.demanding(num_warps=8).on("emulator")(x, x, x, 1.0, 3)
copy[1](x, x)
copy[1, 2](x, x, B=32, stream=0)
tuned(x)
tuned(x, 64)
print(product.report(x, x, x, 1.0, 3), tilec.ops.matmul(x, x))
