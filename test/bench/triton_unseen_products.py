"""Triton's counterparts of `unseen_products`, as a competent user writes them."""

import triton
import triton.language as tl


@triton.jit
def tile_of(m, n, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr = 8):
    """The first row and column of a program's tile: groups of GROUP rows of tiles."""
    program, rows, columns = tl.program_id(0), tl.cdiv(m, BM), tl.cdiv(n, BN)
    first = program // (GROUP * columns) * GROUP
    height = min(rows - first, GROUP)
    return (first + program % (GROUP * columns) % height) * BM, (
        program % (GROUP * columns) // height
    ) * BN


@triton.jit
def product_of(a, b, m, n, k, sam, sak, sbk, sbn, rows, columns, acc, BK: tl.constexpr):
    """acc + a b: elements at `rows` and `columns` that are none count as others."""
    inner = tl.arange(0, BK)
    at_a = a + (rows % m)[:, None].to(tl.int64) * sam + inner[None, :] * sak
    at_b = b + inner[:, None] * sbk + (columns % n)[None, :].to(tl.int64) * sbn
    for i in range(0, tl.cdiv(k, BK)):
        left = k - i * BK
        x = tl.load(at_a, mask=inner[None, :] < left, other=0.0)
        y = tl.load(at_b, mask=inner[:, None] < left, other=0.0)
        acc = tl.dot(x, y, acc)
        at_a += BK * sak
        at_b += BK * sbk
    return acc


@triton.jit
def best_class(x, w, best, which, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    high, column = tl.full((BM,), float("-inf"), tl.float32), tl.zeros((BM,), tl.int32)
    for start in range(0, n, BN):
        columns = start + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        acc = product_of(x, w, m, n, k, k, 1, 1, k, rows, columns, acc, BK)
        acc = tl.where(columns[None, :] < n, acc, float("-inf"))
        found, at = tl.max(acc, 1, return_indices=True)
        column = tl.where(found > high, at + start, column)
        high = tl.maximum(high, found)
    tl.store(best + rows, high, mask=rows < m)
    tl.store(which + rows, column, mask=rows < m)


@triton.jit
def normed_product(
    x, w, gain, y, m, n, k, eps, BM: tl.constexpr, N: tl.constexpr, BK: tl.constexpr
):
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, N)
    acc = product_of(x, w, m, n, k, k, 1, n, 1, rows, columns, tl.zeros((BM, N), tl.float32), BK)
    acc = tl.where(columns[None, :] < n, acc, 0.0)
    acc *= tl.rsqrt(tl.sum(acc * acc, 1) / n + eps)[:, None]
    acc *= tl.load(gain + columns, mask=columns < n, other=0.0).to(tl.float32)[None, :]
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(y + rows[:, None] * n + columns[None, :], acc.to(y.dtype.element_ty), mask=mask)


@triton.jit
def gated_halves_product(x, w, y, m, h, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    first, start = tile_of(m, h, BM, BN)
    rows, columns, inner = first + tl.arange(0, BM), start + tl.arange(0, BN), tl.arange(0, BK)
    at_x = x + (rows % m)[:, None] * k + inner[None, :]
    at_gate = w + inner[:, None] + (columns % h)[None, :] * k
    at_up = at_gate + h * k
    gate, up = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BN), tl.float32)
    for i in range(0, tl.cdiv(k, BK)):
        left = k - i * BK
        a = tl.load(at_x, mask=inner[None, :] < left, other=0.0)
        gate = tl.dot(a, tl.load(at_gate, mask=inner[:, None] < left, other=0.0), gate)
        up = tl.dot(a, tl.load(at_up, mask=inner[:, None] < left, other=0.0), up)
        at_x += BK
        at_gate += BK
        at_up += BK
    out = 0.5 * gate * (1.0 + tl.erf(gate * 0.7071067811865476)) * up
    mask = (rows[:, None] < m) & (columns[None, :] < h)
    tl.store(y + rows[:, None] * h + columns[None, :], out.to(y.dtype.element_ty), mask=mask)


@triton.jit
def quantised_product(
    x, w, y, scales, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    first, start = tile_of(m, n, BM, BN)
    rows, columns = first + tl.arange(0, BM), start + tl.arange(0, BN)
    acc = product_of(x, w, m, n, k, k, 1, n, 1, rows, columns, tl.zeros((BM, BN), tl.float32), BK)
    acc = tl.where(columns[None, :] < n, acc, 0.0)
    scale = tl.maximum(tl.max(tl.abs(acc), 1) / 448.0, 1e-10)
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(
        y + rows[:, None] * n + columns[None, :], (acc / scale[:, None]).to(tl.float8e4nv), mask
    )
    tl.store(scales + rows * tl.cdiv(n, BN) + start // BN, scale, mask=rows < m)


@triton.jit
def residual_product(
    x, w, bias, kept, gain, old, y, m, n, k, factor,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    first, start = tile_of(m, n, BM, BN)
    rows, columns = first + tl.arange(0, BM), start + tl.arange(0, BN)
    acc = product_of(x, w, m, n, k, k, 1, 1, k, rows, columns, tl.zeros((BM, BN), tl.float32), BK)
    acc += tl.load(bias + columns, mask=columns < n, other=0.0).to(tl.float32)[None, :]
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    at = rows[:, None] * n + columns[None, :]
    acc = tl.where(tl.load(kept + at, mask=mask, other=0) != 0, acc * factor, 0.0)
    acc *= tl.load(gain + columns, mask=columns < n, other=0.0).to(tl.float32)[None, :]
    acc += tl.load(old + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(y + at, acc.to(y.dtype.element_ty), mask=mask)


@triton.jit
def scattered_product(
    x, w, places, y, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    first, start = tile_of(m, n, BM, BN)
    rows, columns = first + tl.arange(0, BM), start + tl.arange(0, BN)
    acc = product_of(x, w, m, n, k, k, 1, n, 1, rows, columns, tl.zeros((BM, BN), tl.float32), BK)
    place = tl.load(places + rows, mask=rows < m, other=0)
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(y + place[:, None] * n + columns[None, :], acc.to(y.dtype.element_ty), mask=mask)


@triton.jit
def two_layers(x, up, down, y, m, hidden, D: tl.constexpr, BM: tl.constexpr, BH: tl.constexpr):
    rows, inner, h = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D), tl.arange(0, BH)
    a = tl.load(x + rows[:, None] * D + inner[None, :], mask=rows[:, None] < m, other=0.0)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, hidden, BH):
        at, mask = (start + h)[:, None] * D + inner[None, :], (start + h)[:, None] < hidden
        s = tl.dot(a, tl.load(up + at, mask=mask, other=0.0).T)
        s = tl.maximum(s, 0.0)
        acc = tl.dot((s * s).to(a.dtype), tl.load(down + at, mask=mask, other=0.0), acc)
    at = rows[:, None] * D + inner[None, :]
    tl.store(y + at, acc.to(y.dtype.element_ty), mask=rows[:, None] < m)


@triton.jit
def low_rank(
    x, a, b, y, m, n, k, R: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    first, start = tile_of(m, n, BM, BN)
    rows, columns, ranks = first + tl.arange(0, BM), start + tl.arange(0, BN), tl.arange(0, R)
    low = product_of(x, a, m, R, k, k, 1, 1, k, rows, ranks, tl.zeros((BM, R), tl.float32), BK)
    right = tl.load(b + ranks[:, None] + (columns % n)[None, :] * R)
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    out = tl.dot(low.to(right.dtype), right).to(y.dtype.element_ty)
    tl.store(y + rows[:, None] * n + columns[None, :], out, mask=mask)


@triton.jit
def weight_gradient(
    dy, x, dw, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PARTS: tl.constexpr
):
    first, start = tile_of(m, n, BM, BN)
    rows, columns, inner = first + tl.arange(0, BM), start + tl.arange(0, BN), tl.arange(0, BK)
    at_a, at_b = dy + (rows % m)[:, None], x + (columns % n)[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    share = tl.cdiv(tl.cdiv(k, BK), PARTS) * BK
    begin = tl.program_id(1) * share
    for i in range(begin, min(begin + share, k), BK):
        step = i + inner
        a = tl.load(at_a + step[None, :] * m, mask=step[None, :] < k, other=0.0)
        b = tl.load(at_b + step[:, None] * n, mask=step[:, None] < k, other=0.0)
        acc = tl.dot(a, b, acc)
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    at = dw + rows[:, None] * n + columns[None, :]
    if PARTS == 1:
        tl.store(at, acc.to(dw.dtype.element_ty), mask=mask)
    else:
        tl.atomic_add(at, acc, mask=mask, sem="relaxed")


@triton.jit
def few_rows(x, w, bias, y, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, columns = tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN)
    acc = product_of(x, w, m, n, k, k, 1, 1, k, rows, columns, tl.zeros((BM, BN), tl.float32), BK)
    acc += tl.load(bias + columns, mask=columns < n, other=0.0).to(tl.float32)[None, :]
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    out = (acc * tl.sigmoid(acc)).to(y.dtype.element_ty)
    tl.store(y + rows[:, None] * n + columns[None, :], out, mask=mask)


@triton.jit
def head_scores(
    q, k, s, scale, length, keys, heads, d, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    rows, columns = (
        tl.program_id(0) * BM + tl.arange(0, BM),
        tl.program_id(1) * BN + tl.arange(0, BN),
    )
    batch, head = tl.program_id(2) // heads, tl.program_id(2) % heads
    a, b = q + (batch * length * heads + head) * d, k + (batch * keys * heads + head) * d
    acc = tl.zeros((BM, BN), tl.float32)
    acc = product_of(a, b, length, keys, d, heads * d, 1, 1, heads * d, rows, columns, acc, BK)
    mask = (rows[:, None] < length) & (columns[None, :] < keys)
    at = s + tl.program_id(2).to(tl.int64) * length * keys
    at += rows[:, None] * keys + columns[None, :]
    tl.store(at, (acc * scale).to(s.dtype.element_ty), mask=mask)


@triton.jit
def interactions(x, z, f, d, F: tl.constexpr, D: tl.constexpr):
    i = tl.program_id(0).to(tl.int64)
    rows, inner = tl.arange(0, F), tl.arange(0, D)
    mask = (rows[:, None] < f) & (inner[None, :] < d)
    a = tl.load(x + i * f * d + rows[:, None] * d + inner[None, :], mask=mask, other=0.0)
    out = tl.dot(a, a.T).to(z.dtype.element_ty)
    mask = (rows[:, None] < f) & (rows[None, :] < f)
    tl.store(z + i * f * f + rows[:, None] * f + rows[None, :], out, mask=mask)


@triton.jit
def triangular_product(a, b, y, m, n, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    first, start = tile_of(m, n, BM, BN)
    rows, columns, inner = first + tl.arange(0, BM), start + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range(0, min(first + BM, m), BK):
        step = i + inner
        mask = (rows[:, None] >= step[None, :]) & (rows[:, None] < m)
        left = tl.load(a + rows[:, None] * m + step[None, :], mask=mask, other=0.0)
        mask = (step[:, None] < m) & (columns[None, :] < n)
        right = tl.load(b + step[:, None] * n + columns[None, :], mask=mask, other=0.0)
        acc = tl.dot(left, right, acc)
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(y + rows[:, None] * n + columns[None, :], acc.to(y.dtype.element_ty), mask=mask)
