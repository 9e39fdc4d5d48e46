"""The same kernels in Triton, in the form of its tutorials."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def vector_add(x, y, z, n, B: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    mask = i < n
    tl.store(z + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


@triton.jit
def softmax(x, y, stride, columns, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, B)
    v = tl.load(x + row * stride + c, mask=c < columns, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    out = e / tl.sum(e, 0)
    tl.store(y + row * stride + c, out.to(y.dtype.element_ty), mask=c < columns)


@triton.jit
def softmax_persistent(x, y, stride, rows, columns, B: tl.constexpr, STAGES: tl.constexpr):
    c = tl.arange(0, B)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        at = row.to(tl.int64) * stride + c
        v = tl.load(x + at, mask=c < columns, other=-float("inf")).to(tl.float32)
        e = tl.exp(v - tl.max(v, 0))
        out = e / tl.sum(e, 0)
        tl.store(y + at, out.to(y.dtype.element_ty), mask=c < columns)


@triton.jit
def layer_norm(x, weight, bias, y, stride, columns, eps, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, B)
    mask = c < columns
    v = tl.load(x + row * stride + c, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(v, 0) / columns
    centred = tl.where(mask, v - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 0) / columns + eps)
    w = tl.load(weight + c, mask=mask).to(tl.float32)
    b = tl.load(bias + c, mask=mask).to(tl.float32)
    out = centred * scale * w + b
    tl.store(y + row * stride + c, out.to(y.dtype.element_ty), mask=mask)


@triton.jit
def row_sum(x, y, stride, rows, columns, R: tl.constexpr, B: tl.constexpr):
    row = tl.program_id(0) * R + tl.arange(0, R)
    c = tl.arange(0, B)
    acc = tl.zeros((R, B), dtype=tl.float32)
    at = x + row[:, None].to(tl.int64) * stride + c[None, :]
    for start in range(0, columns, B):
        mask = (row[:, None] < rows) & (c[None, :] + start < columns)
        acc += tl.load(at + start, mask=mask, other=0.0).to(tl.float32)
    tl.store(y + row, tl.sum(acc, 1).to(y.dtype.element_ty), mask=row < rows)


@triton.jit
def matmul(
    a,
    b,
    c,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP: tl.constexpr,
    ACC: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """The tutorial's pointer kernel; K must be a multiple of BK."""
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BM)
    tiles_n = tl.cdiv(N, BN)
    in_group = GROUP * tiles_n
    first = pid // in_group * GROUP
    group = min(tiles_m - first, GROUP)
    pm = first + (pid % in_group) % group
    pn = (pid % in_group) // group
    m = (pm * BM + tl.arange(0, BM)) % M
    n = (pn * BN + tl.arange(0, BN)) % N
    k = tl.arange(0, BK)
    at_a = a + m[:, None] * stride_am + k[None, :] * stride_ak
    at_b = b + k[:, None] * stride_bk + n[None, :] * stride_bn
    acc = tl.zeros((BM, BN), dtype=ACC)
    for _ in range(0, K, BK):
        acc = tl.dot(tl.load(at_a), tl.load(at_b), acc, input_precision=PRECISION, out_dtype=ACC)
        at_a += BK * stride_ak
        at_b += BK * stride_bk
    m = pm * BM + tl.arange(0, BM)
    n = pn * BN + tl.arange(0, BN)
    at_c = c + m[:, None] * stride_cm + n[None, :] * stride_cn
    tl.store(at_c, acc.to(c.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))
