"""The kernels behind `tilec.ops.matmul`: a product with its epilogue, split-K's second half, and a
copy for operands that are not aligned.

All are ordinary tile language, written for every rank, dtype and layout at once: what a call does
not use is a compile-time constant, and leaves no code.
"""
# ruff: noqa: RUF005 - the tile language has no starred tuples

# Of a kernel's functions only what a checker cannot infer is annotated.
# pyright: basic

from __future__ import annotations

from typing import Any

import tilec
import tilec.language as tl


def accumulator_of(dtype: Any) -> Any:
    """The dtype in which products of `dtype` are summed (compile time)."""
    return tl.f64 if dtype == tl.f64 else tl.i32 if dtype == tl.i8 else tl.f32


def relu(x: Any) -> Any:
    """max(x, 0); NaN stays NaN."""
    return tl.maximum(x, 0.0)


def gelu(x: Any) -> Any:
    """x times the normal distribution function of x, exact (by erf)."""
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))


def gelu_tanh(x: Any) -> Any:
    """The tanh approximation of `gelu` (Hendrycks and Gimpel, arXiv:1606.08415)."""
    return 0.5 * x * (1.0 + tl.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


def silu(x: Any) -> Any:
    """x * sigmoid(x)."""
    return tl.silu(x)


def rank_offsets(number: Any, sizes: Any) -> Any:
    """Coordinates of element `number` of a row-major array of `sizes`, a tuple of any length."""
    offsets = ()
    for axis in tl.static_range(len(sizes)):
        size = sizes[len(sizes) - 1 - axis]
        offsets = (number % size,) + offsets
        number = number // size
    return offsets


def row_of(array: Any, lead: Any, start: Any, size: int) -> Any:
    """A part of a vector, or of the one of this batch where `array` has the leading dimensions."""
    return tl.load(array, (lead if array.ndim > 1 else ()) + (start,), (size,))


def as_output(x: Any, dtype: Any) -> Any:
    """`x` in the output's dtype; integers are rounded to nearest even and saturate."""
    if dtype.is_integer and x.dtype.is_float:
        # The largest f32 below 2^31 keeps the conversion in range.
        top = 2147483520.0 if dtype.bits == 32 else 127.0
        x = tl.clamp(tl.round(x), -2147483648.0 if dtype.bits == 32 else -128.0, top)
    elif dtype == tl.i8:
        x = tl.clamp(x, -128, 127)
    return x.to(dtype)


def finish(
    acc: Any, lead: Any, m: Any, n: Any, dtype: Any, optional: Any, PARTS: Any, ACTIVATION: Any
) -> Any:
    """What becomes of a tile of sums: scales, bias, activation, residual, output dtype."""
    bias, row_scale, column_scale, scale, factor, residual = optional
    x = acc
    if len(PARTS) or ACTIVATION is not None:
        x = x.to(tl.f64 if acc.dtype == tl.f64 else tl.f32)
    if "factor" in PARTS:
        x = x * factor.to(x.dtype)
    if "scale" in PARTS:
        x = x * tl.load(scale, (0,), ()).to(x.dtype)
    if "row_scale" in PARTS:
        x = x * row_of(row_scale, lead, m, x.shape[0]).to(x.dtype)[:, None]
    if "column_scale" in PARTS:
        x = x * row_of(column_scale, lead, n, x.shape[1]).to(x.dtype)[None, :]
    if "bias" in PARTS:
        x = x + row_of(bias, lead, n, x.shape[1]).to(x.dtype)[None, :]
    if "row_bias" in PARTS:
        x = x + row_of(bias, lead, m, x.shape[0]).to(x.dtype)[:, None]
    if ACTIVATION is not None:
        x = ACTIVATION(x)
    if "residual" in PARTS:
        x = x + tl.load(residual, lead + (m, n), x.shape).to(x.dtype)
    return as_output(x, dtype)


def product_grid(c: Any, BM: int, BN: int, SPLITS: int) -> Any:
    """Tiles of rows, tiles of columns, and each matrix of the batch `SPLITS` times."""
    batch = SPLITS
    for size in c.shape[:-2] if SPLITS == 1 else c.shape[1:-2]:
        batch = batch * size
    return tl.cdiv(c.shape[-2], BM), tl.cdiv(c.shape[-1], BN), batch


@tilec.kernel(grid=product_grid)
def product(
    a: tl.array,
    b: tl.array,
    c: tl.array,
    bias,
    row_scale,
    column_scale,
    scale,
    factor: tl.f64,
    residual,
    BM: tl.const = tl.auto,
    BN: tl.const = tl.auto,
    BK: tl.const = tl.auto,
    SPLITS: tl.const = 1,
    PARTS: tl.const = (),
    ACTIVATION: tl.const = None,
    ACC: tl.const = None,
    PRECISION: tl.const = "ieee",
    KEPT: tl.const = 0,
    STAGES: tl.const = None,
    WARP_SPECIALIZE: tl.const = None,
):
    """One BM x BN tile of c = epilogue(a @ b), or with SPLITS a part of its sum.

    a, b, c: leading dimensions (all equal, a broadcast one by stride 0), then the matrices. PARTS:
    which of the optional arguments are there; "row_bias" for the bias of a transposed product,
    which runs along m. KEPT: so many elements of k, a multiple of BK, are added up by tensor cores
    before their sum is added to the others in registers; 0 for all. With SPLITS > 1, c has SPLITS
    as its first dimension, and part s of k goes to c[s] as it is: `combine` does the rest.
    """
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    lead = ()
    low, high = 0, a.shape[a.ndim - 1]
    if SPLITS > 1:
        part = tl.cdiv(tl.cdiv(high, BK), SPLITS) * BK
        split = tl.program_id(2) % SPLITS
        low, high = split * part, tl.minimum(split * part + part, high)
        lead = rank_offsets(tl.program_id(2) // SPLITS, c.shape[1:-2])
    elif a.ndim > 2:
        lead = rank_offsets(tl.program_id(2), c.shape[:-2])
    acc = tl.zeros((BM, BN), accumulator_of(a.dtype) if ACC is None else ACC)
    if KEPT > 0:
        for first in tl.range(low, high, KEPT):
            part = tl.zeros((BM, BN), acc.dtype)
            for k in tl.range(first, tl.minimum(first + KEPT, high), BK, stages=STAGES):
                x = tl.load(a, lead + (m, k), (BM, BK))
                part = tl.dot(x, tl.load(b, lead + (k, n), (BK, BN)), part)
            acc = acc + part
    else:
        for k in tl.range(
            low, high, BK, stages=STAGES, warp_specialize=WARP_SPECIALIZE, any_order=True
        ):
            x = tl.load(a, lead + (m, k), (BM, BK))
            acc = tl.dot(x, tl.load(b, lead + (k, n), (BK, BN)), acc, PRECISION)
    if SPLITS > 1:
        tl.store(c, (split,) + lead + (m, n), acc.to(c.dtype))
    else:
        optional = (bias, row_scale, column_scale, scale, factor, residual)
        done = finish(acc, lead, m, n, c.dtype, optional, PARTS, ACTIVATION)
        tl.store(c, lead + (m, n), done)


@tilec.kernel(grid=lambda y, BM, BN: (tl.cdiv(y.shape[0], BM), tl.cdiv(y.shape[1], BN)))
def copy_rows(x: tl.array, y: tl.array, BM: tl.const = 16, BN: tl.const = 256):
    """y = x, matrices with other strides."""
    at = tl.program_id(0) * BM, tl.program_id(1) * BN
    tl.store(y, at, tl.load(x, at, (BM, BN)))


TOGETHER = 8
"""Partial sums that are loaded before they are added: one by one, each waited for the one before
(bf16 48 x 48 x 137546 on an H200, 0.165 us a part)."""


def combine_grid(c: Any, BM: int, BN: int) -> Any:
    """Tiles of rows and columns of every matrix of the batch."""
    batch = 1
    for size in c.shape[:-2]:
        batch = batch * size
    return tl.cdiv(c.shape[-2], BM), tl.cdiv(c.shape[-1], BN), batch


@tilec.kernel(grid=combine_grid)
def combine(
    sums: tl.array,
    c: tl.array,
    bias,
    row_scale,
    column_scale,
    scale,
    factor: tl.f64,
    residual,
    BM: tl.const = 4,
    BN: tl.const = 256,
    SPLITS: tl.const = 1,
    PARTS: tl.const = (),
    ACTIVATION: tl.const = None,
):
    """c = epilogue(sums[0] + sums[1] + ...), always added in this order."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    lead = rank_offsets(tl.program_id(2), c.shape[:-2])
    acc = tl.load(sums, (0,) + lead + (m, n), (BM, BN))
    for first in tl.static_range(1, SPLITS, TOGETHER):
        several = tl.static_range(first, min(first + TOGETHER, SPLITS))
        parts = tuple(tl.load(sums, (split,) + lead + (m, n), (BM, BN)) for split in several)
        for part in parts:
            acc = acc + part
    optional = (bias, row_scale, column_scale, scale, factor, residual)
    tl.store(c, lead + (m, n), finish(acc, lead, m, n, c.dtype, optional, PARTS, ACTIVATION))
