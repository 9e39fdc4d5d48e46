"""Triton's counterparts of `exam_products`, as a competent user writes them."""

import triton
import triton.language as tl
from triton_unseen_products import product_of, tile_of


@triton.jit
def _put(y, acc, rows, columns, m, n):
    at = rows[:, None].to(tl.int64) * n + columns[None, :]
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(y + at, acc.to(y.dtype.element_ty), mask=inside)


@triton.jit
def gelu_product(
    x, w, bias, residual, y, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    first, start = tile_of(m, n, BM, BN)
    rows, columns = first + tl.arange(0, BM), start + tl.arange(0, BN)
    v = product_of(x, w, m, n, k, k, 1, 1, k, rows, columns, tl.zeros((BM, BN), tl.float32), BK)
    v += tl.load(bias + columns, mask=columns < n, other=0.0).to(tl.float32)[None, :]
    inner = 2.0 * 0.7978845608 * (v + 0.044715 * v * v * v)
    v = v * tl.sigmoid(inner)
    at = rows[:, None].to(tl.int64) * n + columns[None, :]
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    v += tl.load(residual + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + at, v.to(y.dtype.element_ty), mask=inside)


@triton.jit
def vocabulary_losses(
    x, w, labels, y, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    label = tl.load(labels + rows, mask=rows < m, other=0)
    high, total = tl.full((BM,), -1e30, tl.float32), tl.zeros((BM,), tl.float32)
    own = tl.zeros((BM,), tl.float32)
    for start in range(0, n, BN):
        columns = start + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        acc = product_of(x, w, m, n, k, k, 1, 1, k, rows, columns, acc, BK)
        acc = tl.where(columns[None, :] < n, acc, -1e30)
        own += tl.sum(tl.where(columns[None, :] == label[:, None], acc, 0.0), 1)
        top = tl.maximum(high, tl.max(acc, 1))
        total = total * tl.exp(high - top) + tl.sum(tl.exp(acc - top[:, None]), 1)
        high = top
    tl.store(y + rows, high + tl.log(total) - own, mask=rows < m)


@triton.jit
def norm_product(x, gain, w, y, m, n, k, eps, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    first, start = tile_of(m, n, BM, BN)
    rows, columns, inner = first + tl.arange(0, BM), start + tl.arange(0, BN), tl.arange(0, BK)
    acc, squares = tl.zeros((BM, BN), tl.float32), tl.zeros((BM,), tl.float32)
    at_x = x + (rows % m)[:, None].to(tl.int64) * k + inner[None, :]
    at_w = w + inner[:, None] + (columns % n)[None, :].to(tl.int64) * k
    for i in range(0, k, BK):
        left = k - i
        v = tl.load(at_x, mask=inner[None, :] < left, other=0.0).to(tl.float32)
        squares += tl.sum(v * v, 1)
        g = tl.load(gain + i + inner, mask=inner < left, other=0.0).to(tl.float32)
        b = tl.load(at_w, mask=inner[:, None] < left, other=0.0)
        acc = tl.dot((v * g[None, :]).to(b.dtype), b, acc)
        at_x += BK
        at_w += BK
    _put(y, acc * tl.rsqrt(squares / k + eps)[:, None], rows, columns, m, n)


@triton.jit
def gathered_product(x, index, w, y, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    first, start = tile_of(m, n, BM, BN)
    rows, columns, inner = first + tl.arange(0, BM), start + tl.arange(0, BN), tl.arange(0, BK)
    row = tl.load(index + rows, mask=rows < m, other=0).to(tl.int64)
    acc = tl.zeros((BM, BN), tl.float32)
    at_x = x + row[:, None] * k + inner[None, :]
    at_w = w + inner[:, None] * n + (columns % n)[None, :]
    for i in range(0, k, BK):
        a = tl.load(at_x, mask=inner[None, :] < k - i, other=0.0)
        acc = tl.dot(a, tl.load(at_w, mask=inner[:, None] < k - i, other=0.0), acc)
        at_x += BK
        at_w += BK * n
    _put(y, acc, rows, columns, m, n)


@triton.jit
def fp8_weights(x, w, scales, y, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    first, start = tile_of(m, n, BM, BN)
    rows, columns, inner = first + tl.arange(0, BM), start + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    at_x = x + (rows % m)[:, None].to(tl.int64) * k + inner[None, :]
    at_w = w + inner[:, None] + (columns % n)[None, :].to(tl.int64) * k
    for i in range(0, k, BK):
        scale = tl.load(scales + start // 128 * (k // 128) + i // 128)
        a = tl.load(at_x)
        acc += tl.dot(a, tl.load(at_w).to(a.dtype)) * scale
        at_x += BK
        at_w += BK
    _put(y, acc, rows, columns, m, n)


@triton.jit
def fp8_blocks(x, of_x, w, of_w, y, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    first, start = tile_of(m, n, BM, BN)
    rows, columns, inner = first + tl.arange(0, BM), start + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    at_x = x + (rows % m)[:, None].to(tl.int64) * k + inner[None, :]
    at_w = w + inner[:, None] + (columns % n)[None, :].to(tl.int64) * k
    for i in range(0, k, BK):
        scale = tl.load(of_w + start // 128 * (k // 128) + i // 128)
        own = tl.load(of_x + (rows % m) * (k // 128) + i // 128)
        acc += tl.dot(tl.load(at_x), tl.load(at_w)) * (own * scale)[:, None]
        at_x += BK
        at_w += BK
    _put(y, acc, rows, columns, m, n)


@triton.jit
def many_small(
    x, w, y, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
    MP: tl.constexpr, NP: tl.constexpr, KP: tl.constexpr,
):  # fmt: skip
    b = tl.program_id(0).to(tl.int64)
    i, j, k = tl.arange(0, MP), tl.arange(0, NP), tl.arange(0, KP)
    inside = (i[:, None] < M) & (k[None, :] < K)
    v = tl.load(x + b * M * K + i[:, None] * K + k[None, :], mask=inside, other=0.0)
    inside = (k[:, None] < K) & (j[None, :] < N)
    u = tl.load(w + b * K * N + k[:, None] * N + j[None, :], mask=inside, other=0.0)
    _put(y + b * M * N, tl.dot(v, u), i, j, M, N)


@triton.jit
def strided_convolution(
    x, w, y, m, n, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    first, start = tile_of(m, n, BM, BN)
    at, columns = first + tl.arange(0, BM), start + tl.arange(0, BN)
    image, place = at // (H // 2 * (W // 2)), at % (H // 2 * (W // 2))
    top, left, c = place // (W // 2) * 2 - 1, place % (W // 2) * 2 - 1, tl.arange(0, C)
    acc = tl.zeros((BM, BN), tl.float32)
    for tap in range(9):
        j, i = top + tap // 3, left + tap % 3
        inside = (j >= 0) & (j < H) & (i >= 0) & (i < W) & (at < m)
        row = (image * H + j) * W + i
        a = tl.load(x + row[:, None] * C + c[None, :], mask=inside[:, None], other=0.0)
        at_w = w + (tap * C + c[:, None]) * n + columns[None, :]
        acc = tl.dot(a, tl.load(at_w, mask=columns[None, :] < n, other=0.0), acc)
    _put(y, acc, at, columns, m, n)


@triton.jit
def doubled_convolution(x, w, y, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, half = tl.program_id(2).to(tl.int64) // 2, tl.program_id(2) % 2
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    acc, x, w = tl.zeros((BM, BN), tl.float32), x + row * m * k, w + half * k * n
    acc = product_of(x, w, m, n, k, k, 1, n, 1, rows, columns, acc, BK)
    _put(y + (2 * row + half) * m * n, acc, rows, columns, m, n)


@triton.jit
def newton_schulz(a, y, n, one, two, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    first, start = tile_of(n, n, BM, BN)
    rows, columns = first + tl.arange(0, BM), start + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    acc = product_of(a, a, n, n, n, n, 1, n, 1, rows, columns, acc, BK)
    inside = (rows[:, None] < n) & (columns[None, :] < n)
    own = tl.load(a + rows[:, None] * n + columns[None, :], mask=inside, other=0.0)
    _put(y, two * acc + one * own.to(tl.float32), rows, columns, n, n)


@triton.jit
def gated_experts(
    x, up, gate, experts, y, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    expert = tl.load(experts + tl.program_id(0)).to(tl.int64)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns, inner = tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    u, g = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BN), tl.float32)
    at_x = x + rows[:, None] * k + inner[None, :]
    at_w = expert * n * k + inner[:, None] + (columns % n)[None, :] * k
    for i in range(0, k, BK):
        a = tl.load(at_x, mask=inner[None, :] < k - i, other=0.0)
        u = tl.dot(a, tl.load(up + at_w, mask=inner[:, None] < k - i, other=0.0), u)
        g = tl.dot(a, tl.load(gate + at_w, mask=inner[:, None] < k - i, other=0.0), g)
        at_x += BK
        at_w += BK
    _put(y, g * tl.sigmoid(g) * u, rows, columns, m, n)


@triton.jit
def gaussians(x, z, y, m, n, k, gamma, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    first, start = tile_of(m, n, BM, BN)
    rows, columns, inner = first + tl.arange(0, BM), start + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    xx, zz = tl.zeros((BM,), tl.float32), tl.zeros((BN,), tl.float32)
    at_x = x + (rows % m)[:, None] * k + inner[None, :]
    at_z = z + inner[:, None] + (columns % n)[None, :] * k
    for i in range(0, k, BK):
        a = tl.load(at_x, mask=inner[None, :] < k - i, other=0.0)
        b = tl.load(at_z, mask=inner[:, None] < k - i, other=0.0)
        acc = tl.dot(a, b, acc)
        xx += tl.sum(a.to(tl.float32) * a.to(tl.float32), 1)
        zz += tl.sum(b.to(tl.float32) * b.to(tl.float32), 0)
        at_x += BK
        at_z += BK
    far = tl.maximum(xx[:, None] + zz[None, :] - 2.0 * acc, 0.0)
    _put(y, tl.exp(-gamma * far), rows, columns, m, n)


@triton.jit
def complex_product(a, b, y, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    first, start = tile_of(m, n, BM, BN)
    rows, columns, inner = first + tl.arange(0, BM), start + tl.arange(0, BN), tl.arange(0, BK)
    rr, ri = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BN), tl.float32)
    ii = tl.zeros((BM, BN), tl.float32)
    at_a = a + (rows % m)[:, None] * k + inner[None, :]
    at_b = b + inner[:, None] * n + (columns % n)[None, :]
    for i in range(0, k, BK):
        one, other = inner[None, :] < k - i, inner[:, None] < k - i
        ar, ai = tl.load(at_a, mask=one, other=0.0), tl.load(at_a + m * k, mask=one, other=0.0)
        br, bi = tl.load(at_b, mask=other, other=0.0), tl.load(at_b + k * n, mask=other, other=0.0)
        rr = tl.dot(ar, br, rr)
        ii = tl.dot(ai, bi, ii)
        ri = tl.dot(ar, bi, tl.dot(ai, br, ri))
        at_a += BK
        at_b += BK * n
    _put(y, rr - ii, rows, columns, m, n)
    _put(y + m * n, ri, rows, columns, m, n)


@triton.jit
def rotated_product(
    x, w, cos, sin, y, m, n, k, D: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr
):
    rows, half = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D // 2)
    columns = tl.program_id(1) * D + half
    a, b = tl.zeros((BM, D // 2), tl.float32), tl.zeros((BM, D // 2), tl.float32)
    inner = tl.arange(0, BK)
    at_x = x + (rows % m)[:, None] * k + inner[None, :]
    at_w = w + inner[:, None] + columns[None, :] * k
    for i in range(0, k, BK):
        v = tl.load(at_x, mask=inner[None, :] < k - i, other=0.0)
        a = tl.dot(v, tl.load(at_w, mask=inner[:, None] < k - i, other=0.0), a)
        u = tl.load(at_w + (D // 2) * k, mask=inner[:, None] < k - i, other=0.0)
        b = tl.dot(v, u, b)
        at_x += BK
        at_w += BK
    at = rows[:, None] * (D // 2) + half[None, :]
    c = tl.load(cos + at, mask=rows[:, None] < m, other=0.0)
    s = tl.load(sin + at, mask=rows[:, None] < m, other=0.0)
    _put(y, a * c - b * s, rows, columns, m, n)
    _put(y, a * s + b * c, rows, columns + D // 2, m, n)
