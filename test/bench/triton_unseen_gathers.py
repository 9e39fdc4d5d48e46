"""Triton's counterparts of `unseen_gathers`, as a competent user writes them."""

import triton
import triton.language as tl
from triton_unseen_products import product_of, tile_of


@triton.jit
def int8_product(
    x, w, of_row, of_column, y, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    first, start = tile_of(m, n, BM, BN)
    rows, columns, inner = first + tl.arange(0, BM), start + tl.arange(0, BN), tl.arange(0, BK)
    at_x, at_w = (
        x + (rows % m)[:, None] * k + inner,
        w + inner[:, None] + (columns % n)[None, :] * k,
    )
    acc = tl.zeros((BM, BN), tl.int32)
    for i in range(0, tl.cdiv(k, BK)):
        a = tl.load(at_x, mask=inner[None, :] < k - i * BK, other=0)
        acc = tl.dot(
            a, tl.load(at_w, mask=inner[:, None] < k - i * BK, other=0), acc, out_dtype=tl.int32
        )
        at_x += BK
        at_w += BK
    a_scale = tl.load(of_row + rows, mask=rows < m, other=0.0)
    b_scale = tl.load(of_column + columns, mask=columns < n, other=0.0)
    out = acc.to(tl.float32) * a_scale[:, None] * b_scale[None, :]
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(y + rows[:, None] * n + columns[None, :], out.to(y.dtype.element_ty), mask=mask)


@triton.jit
def fp8_rows(
    x, w, of_row, of_column, y, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    first, start = tile_of(m, n, BM, BN)
    rows, columns = first + tl.arange(0, BM), start + tl.arange(0, BN)
    acc = product_of(x, w, m, n, k, k, 1, 1, k, rows, columns, tl.zeros((BM, BN), tl.float32), BK)
    a_scale = tl.load(of_row + rows, mask=rows < m, other=0.0)
    b_scale = tl.load(of_column + columns, mask=columns < n, other=0.0)
    out = acc * a_scale[:, None] * b_scale[None, :]
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(y + rows[:, None] * n + columns[None, :], out.to(y.dtype.element_ty), mask=mask)


@triton.jit
def byte_weights(
    x, w, scales, y, m, n, k,
    GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    first, start = tile_of(m, n, BM, BN)
    rows, columns, inner = first + tl.arange(0, BM), start + tl.arange(0, BN), tl.arange(0, BK)
    at_x = x + (rows % m)[:, None] * k + inner[None, :]
    at_w = w + inner[:, None] * n + (columns % n)[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range(0, k // BK):
        scale = tl.load(scales + (i * BK // GROUP) * n + columns % n)
        b = tl.load(at_w).to(x.dtype.element_ty) * scale[None, :]
        acc = tl.dot(tl.load(at_x), b, acc)
        at_x += BK
        at_w += BK * n
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(y + rows[:, None] * n + columns[None, :], acc.to(y.dtype.element_ty), mask=mask)


@triton.jit
def nibble_weights(
    x, w, scales, y, m, n, k,
    GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    first, start = tile_of(m, n, BM, BN)
    rows, columns, inner = first + tl.arange(0, BM), start + tl.arange(0, BN), tl.arange(0, BK)
    at_x = x + (rows % m)[:, None] * k + inner[None, :]
    at_w = w + (inner // 2)[:, None] + (columns % n)[None, :] * (k // 2)
    shift = ((inner % 2) * 4).to(tl.uint8)
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range(0, k // BK):
        scale = tl.load(scales + (columns % n) * (k // GROUP) + i * BK // GROUP)
        codes = (tl.load(at_w) >> shift[:, None]) & 15
        b = (codes.to(x.dtype.element_ty) - 8.0) * scale[None, :]
        acc = tl.dot(tl.load(at_x), b, acc)
        at_x += BK
        at_w += BK // 2
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(y + rows[:, None] * n + columns[None, :], acc.to(y.dtype.element_ty), mask=mask)


@triton.jit
def added_experts(
    x, w, tokens, weights, experts, y, n, k,
    ROWS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    slot = tl.program_id(0) * BM + tl.arange(0, BM)
    expert = tl.load(experts + tl.program_id(0) * BM // ROWS).to(tl.int64)
    token, inner = tl.load(tokens + slot), tl.arange(0, BK)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    at_x = x + token[:, None] * k + inner[None, :]
    at_w = w + expert * n * k + inner[:, None] + (columns % n)[None, :] * k
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range(0, tl.cdiv(k, BK)):
        left = k - i * BK
        a = tl.load(at_x, mask=(token[:, None] >= 0) & (inner[None, :] < left), other=0.0)
        acc = tl.dot(a, tl.load(at_w, mask=inner[:, None] < left, other=0.0), acc)
        at_x += BK
        at_w += BK
    acc *= tl.load(weights + slot)[:, None]
    mask = (token[:, None] >= 0) & (columns[None, :] < n)
    tl.atomic_add(y + token[:, None] * n + columns[None, :], acc, mask=mask, sem="relaxed")


@triton.jit
def shifted_products(
    x, w, y, length, taps, k, n, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    rows, inner = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BK)
    columns, batch = tl.program_id(1) * BN + tl.arange(0, BN), tl.program_id(2).to(tl.int64)
    steps = tl.cdiv(k, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range(0, taps * steps):
        t, part = i // steps, i % steps * BK + inner
        row = rows - t
        mask = (row[:, None] >= 0) & (row[:, None] < length) & (part[None, :] < k)
        a = tl.load(x + (batch * length + row[:, None]) * k + part[None, :], mask=mask, other=0.0)
        mask = (part[:, None] < k) & (columns[None, :] < n)
        b = tl.load(w + (t * k + part[:, None]) * n + columns[None, :], mask=mask, other=0.0)
        acc = tl.dot(a, b, acc)
    mask = (rows[:, None] < length) & (columns[None, :] < n)
    at = y + (batch * length + rows[:, None]) * n + columns[None, :]
    tl.store(at, acc.to(y.dtype.element_ty), mask=mask)


@triton.jit
def smoothed_values(
    x, z, v, y, gamma, m, n, d, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    rows, inner = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    mask = (rows[:, None] < m) & (inner[None, :] < d)
    point = tl.load(x + rows[:, None] * d + inner[None, :], mask=mask, other=0.0)
    own, total = tl.sum(point * point, 1), tl.zeros((BM,), tl.float32)
    for start in range(0, n, BN):
        columns = start + tl.arange(0, BN)
        inside = (columns[:, None] < n) & (inner[None, :] < d)
        other = tl.load(z + columns[:, None] * d + inner[None, :], mask=inside, other=0.0)
        far = own[:, None] + tl.sum(other * other, 1)[None, :]
        far -= 2.0 * tl.dot(point, other.T, input_precision="tf32")
        value = tl.load(v + columns, mask=columns < n, other=0.0)
        total += tl.sum(tl.exp(-gamma * tl.maximum(far, 0.0)) * value[None, :], 1)
    tl.store(y + rows, total, mask=rows < m)


@triton.jit
def contrastive_loss(x, loss, factor, m, d, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    rows, inner = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    mask = (rows[:, None] < m) & (inner[None, :] < d)
    own = tl.load(x + rows[:, None] * d + inner[None, :], mask=mask, other=0.0)
    high, total = tl.full((BM,), -1e30, tl.float32), tl.zeros((BM,), tl.float32)
    pair = tl.zeros((BM,), tl.float32)
    for start in range(0, m, BN):
        columns = start + tl.arange(0, BN)
        inside = (columns[:, None] < m) & (inner[None, :] < d)
        other = tl.load(x + columns[:, None] * d + inner[None, :], mask=inside, other=0.0)
        s = tl.dot(own, other.T) * factor
        pair += tl.sum(tl.where(columns[None, :] == (rows ^ 1)[:, None], s, 0.0), 1)
        s = tl.where((columns[None, :] != rows[:, None]) & (columns[None, :] < m), s, float("-inf"))
        higher = tl.maximum(high, tl.max(s, 1))
        total = total * tl.exp(high - higher) + tl.sum(tl.exp(s - higher[:, None]), 1)
        high = higher
    tl.store(loss + rows, high + tl.log(total) - pair, mask=rows < m)


@triton.jit
def listed_blocks(blocks, columns, starts, b, y, n, S: tl.constexpr, BN: tl.constexpr):
    row, at = tl.program_id(0), tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, S)
    acc = tl.zeros((S, BN), tl.float32)
    for i in range(tl.load(starts + row), tl.load(starts + row + 1)):
        k = tl.load(columns + i) * S
        block = tl.load(blocks + i * S * S + inner[:, None] * S + inner[None, :])
        right = tl.load(b + (k + inner)[:, None] * n + at[None, :], mask=at[None, :] < n, other=0.0)
        acc = tl.dot(block, right, acc)
    place = y + (row * S + inner)[:, None] * n + at[None, :]
    tl.store(place, acc.to(y.dtype.element_ty), mask=at[None, :] < n)
