"""The kernels of `drawn_kernels` in Triton, as its tutorials write such kernels."""

from __future__ import annotations

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)
LARGEST = tl.constexpr(448.0)


@triton.jit
def _gelu(x):
    return x * tl.sigmoid(2 * 0.7978845608028654 * (x + 0.044715 * x * x * x))


@triton.jit
def scale_array(x, factor, n, B: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    v = tl.load(x + i, i < n).to(tl.float32) * factor
    tl.store(x + i, v.to(x.dtype.element_ty), i < n)


@triton.jit
def activate(x, y, n, B: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    v = _gelu(tl.load(x + i, i < n).to(tl.float32))
    tl.store(y + i, v.to(y.dtype.element_ty), i < n)


@triton.jit
def gate(x, g, y, n, B: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    a, b = tl.load(x + i, i < n).to(tl.float32), tl.load(g + i, i < n).to(tl.float32)
    tl.store(y + i, (b * tl.sigmoid(b) * a).to(y.dtype.element_ty), i < n)


@triton.jit
def blend(x, z, w, y, n, B: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    a, b = tl.load(x + i, i < n).to(tl.float32), tl.load(z + i, i < n).to(tl.float32)
    c = tl.load(w + i, i < n).to(tl.float32)
    tl.store(y + i, (a + c * (b - a)).to(y.dtype.element_ty), i < n)


@triton.jit
def mix_products(x, z, w, u, y, n, B: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    a, b = tl.load(x + i, i < n).to(tl.float32), tl.load(z + i, i < n).to(tl.float32)
    c, d = tl.load(w + i, i < n).to(tl.float32), tl.load(u + i, i < n).to(tl.float32)
    tl.store(y + i, (a * b + c * d).to(y.dtype.element_ty), i < n)


@triton.jit
def mix_gated(x, z, w, u, g, y, n, B: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    a, b = tl.load(x + i, i < n).to(tl.float32), tl.load(z + i, i < n).to(tl.float32)
    c, d = tl.load(w + i, i < n).to(tl.float32), tl.load(u + i, i < n).to(tl.float32)
    e = tl.sigmoid(tl.load(g + i, i < n).to(tl.float32))
    tl.store(y + i, (e * a * b + c * d).to(y.dtype.element_ty), i < n)


@triton.jit
def adam(x, grad, mean, square, rate, n, B: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    there = i < n
    g = tl.load(grad + i, there)
    m = 0.9 * tl.load(mean + i, there) + 0.1 * g
    v = 0.99 * tl.load(square + i, there) + 0.01 * (g * g)
    tl.store(mean + i, m, there)
    tl.store(square + i, v, there)
    tl.store(x + i, tl.load(x + i, there) - rate * m / (tl.sqrt(v) + 1e-3), there)


@triton.jit
def online_softmax(x, y, columns, B: tl.constexpr):
    """Rows longer than a tile."""
    row = tl.program_id(0).to(tl.int64) * columns
    highest = tl.full([B], -float("inf"), tl.float32)
    total = tl.zeros([B], tl.float32)
    for start in range(0, columns, B):
        c = start + tl.arange(0, B)
        v = tl.load(x + row + c, c < columns, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(highest, v)
        # A column that only masked elements had so far: no infinities are subtracted.
        base = tl.where(higher == -float("inf"), 0.0, higher)
        total = total * tl.exp(highest - base) + tl.exp(v - base)
        highest = higher
    top = tl.max(highest, 0)
    scale = 1 / tl.sum(total * tl.exp(highest - top), 0)
    for start in range(0, columns, B):
        c = start + tl.arange(0, B)
        v = tl.load(x + row + c, c < columns, other=-float("inf")).to(tl.float32)
        tl.store(y + row + c, (tl.exp(v - top) * scale).to(y.dtype.element_ty), c < columns)


@triton.jit
def long_rms_norm(x, weight, y, eps, columns, B: tl.constexpr):
    """Rows of any length, read twice."""
    row = tl.program_id(0).to(tl.int64) * columns
    squares = tl.zeros([B], tl.float32)
    for start in range(0, columns, B):
        c = start + tl.arange(0, B)
        v = tl.load(x + row + c, c < columns, other=0.0).to(tl.float32)
        squares += v * v
    scale = tl.math.rsqrt(tl.sum(squares, 0) / columns + eps)
    for start in range(0, columns, B):
        c = start + tl.arange(0, B)
        v = tl.load(x + row + c, c < columns, other=0.0).to(tl.float32)
        w = tl.load(weight + c, c < columns, other=0.0).to(tl.float32)
        tl.store(y + row + c, (v * scale * w).to(y.dtype.element_ty), c < columns)


@triton.jit
def quantise_rows(x, y, scales, columns, B: tl.constexpr):
    """A row in one tile."""
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, B)
    v = tl.load(x + row * columns + c, c < columns, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(v), 0), 1e-12) / LARGEST
    tl.store(scales + row, scale)
    tl.store(y + row * columns + c, (v * (1 / scale)).to(y.dtype.element_ty), c < columns)


@triton.jit
def quantise_long_rows(x, y, scales, columns, B: tl.constexpr):
    """Rows longer than a tile."""
    row = tl.program_id(0).to(tl.int64)
    most = tl.zeros([B], tl.float32)
    for start in range(0, columns, B):
        c = start + tl.arange(0, B)
        v = tl.load(x + row * columns + c, c < columns, other=0.0).to(tl.float32)
        most = tl.maximum(most, tl.abs(v))
    scale = tl.maximum(tl.max(most, 0), 1e-12) / LARGEST
    tl.store(scales + row, scale)
    for start in range(0, columns, B):
        c = start + tl.arange(0, B)
        v = tl.load(x + row * columns + c, c < columns, other=0.0).to(tl.float32)
        tl.store(y + row * columns + c, (v * (1 / scale)).to(y.dtype.element_ty), c < columns)


@triton.jit
def biased_product(a, b, bias, residual, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr,
                   BK: tl.constexpr, GROUP: tl.constexpr, DESCRIBED: tl.constexpr):  # fmt: skip
    """gelu(a b + bias) + residual; a and b are descriptors where DESCRIBED, else pointers."""
    number, tiles_m, tiles_n = tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = number // (GROUP * tiles_n) * GROUP
    height = min(tiles_m - first, GROUP)
    m = (first + number % (GROUP * tiles_n) % height) * BM
    n = number % (GROUP * tiles_n) // height * BN
    rows, columns, ks = m + tl.arange(0, BM), n + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros([BM, BN], tl.float32)
    for k in range(0, K, BK):
        if DESCRIBED:
            acc = tl.dot(a.load([m, k]), b.load([k, n]), acc)
        else:
            inner = k + ks
            x = tl.load(a + (rows % M)[:, None] * K + inner[None, :], inner[None, :] < K, other=0.0)
            y = tl.load(
                b + inner[:, None] * N + (columns % N)[None, :], inner[:, None] < K, other=0.0
            )
            acc = tl.dot(x, y, acc)
    there = (rows[:, None] < M) & (columns[None, :] < N)
    at = rows[:, None].to(tl.int64) * N + columns[None, :]
    out = _gelu(acc + tl.load(bias + columns, columns < N, other=0.0).to(tl.float32)[None, :])
    out += tl.load(residual + at, there, other=0.0).to(tl.float32)
    tl.store(c + at, out.to(c.dtype.element_ty), there)


@triton.jit
def _attend(state, query, key, value, factor, visible, MASKED: tl.constexpr):
    highest, total, acc = state
    score = tl.dot(query, tl.trans(key))
    if MASKED:
        score = tl.where(visible, score, -float("inf"))
    higher = tl.maximum(highest, tl.max(score, 1) * factor)
    weight = tl.math.exp2(score * factor - higher[:, None])
    shrink = tl.math.exp2(highest - higher)
    total = total * shrink + tl.sum(weight, 1)
    acc = tl.dot(weight.to(value.dtype), value, acc * shrink[:, None])
    return higher, total, acc


@triton.jit
def attention(q, k, v, o, scale, heads, SHARED: tl.constexpr, QUERIES: tl.constexpr,
              KEYS: tl.constexpr, D: tl.constexpr, DV: tl.constexpr, CAUSAL: tl.constexpr,
              WINDOW: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):  # fmt: skip
    """q, k, v, o: descriptors of heads x length x elements; SHARED heads of queries use one of
    keys; WINDOW 0 for none."""
    m, head = tl.program_id(0) * BM, tl.program_id(1)
    if CAUSAL:
        m = (tl.num_programs(0) - 1 - tl.program_id(0)) * BM
    of, factor = head // SHARED, scale * LOG2_E
    query = q.load([head, m, 0]).reshape(BM, D)
    rows = m + tl.arange(0, BM)[:, None]
    highest, total = tl.full([BM], -1e30, tl.float32), tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, DV], tl.float32)
    first, end, whole = 0, KEYS, KEYS // BN * BN
    if CAUSAL:
        end = min(KEYS, m + BM)
        whole = min(KEYS, m + 1) // BN * BN
    if WINDOW > 0:
        first = max(0, m - WINDOW + 1) // BN * BN
        whole = first
    for n in tl.range(first, whole, BN):
        key = k.load([of, n, 0]).reshape(BN, D)
        value = v.load([of, n, 0]).reshape(BN, DV)
        highest, total, acc = _attend((highest, total, acc), query, key, value, factor, rows, False)
    for n in tl.range(whole, end, BN):
        key = k.load([of, n, 0]).reshape(BN, D)
        value = v.load([of, n, 0]).reshape(BN, DV)
        columns = n + tl.arange(0, BN)[None, :]
        visible = columns < KEYS
        if CAUSAL:
            visible = visible & (columns <= rows)
        if WINDOW > 0:
            visible = visible & (columns > rows - WINDOW)
        highest, total, acc = _attend(
            (highest, total, acc), query, key, value, factor, visible, True
        )
    out = (acc / total[:, None]).to(query.dtype)
    o.store([head, m, 0], out.reshape(1, BM, DV))


@triton.jit
def chunked_recurrence(q, k, v, decay, o, LENGTH, WIDTH, D: tl.constexpr, BV: tl.constexpr,
                       C: tl.constexpr):  # fmt: skip
    """C steps at a time; heads of all sequences lie behind each other."""
    n, head = tl.program_id(0) * BV, tl.program_id(1).to(tl.int64)
    i, d, columns = tl.arange(0, C), tl.arange(0, D), n + tl.arange(0, BV)
    state = tl.zeros([D, BV], tl.float32)
    for t in range(0, LENGTH, C):
        steps = t + i
        there, inside = steps < LENGTH, columns < WIDTH
        at = (head * LENGTH + steps)[:, None]
        query = tl.load(q + at * D + d[None, :], there[:, None], other=0.0)
        key = tl.load(k + at * D + d[None, :], there[:, None], other=0.0)
        mask = there[:, None] & inside[None, :]
        value = tl.load(v + at * WIDTH + columns[None, :], mask, other=0.0)
        rate = tl.load(decay + head * LENGTH + steps, there, other=0.0)
        passed, total = tl.cumsum(rate, 0), tl.sum(rate, 0)
        seen = i[:, None] >= i[None, :]
        weight = tl.where(seen, tl.exp(passed[:, None] - passed[None, :]), 0.0)
        near = (tl.dot(query, tl.trans(key)) * weight).to(value.dtype)
        before = tl.dot(query, state.to(query.dtype)) * tl.exp(passed)[:, None]
        out = tl.dot(near, value, before)
        tl.store(o + at * WIDTH + columns[None, :], out.to(o.dtype.element_ty), mask)
        left = (value.to(tl.float32) * tl.exp(total - passed)[:, None]).to(value.dtype)
        state = tl.dot(tl.trans(key), left, state * tl.exp(total))


@triton.jit
def selective_scan(x, steps, decay, entry, readout, skip, y, LENGTH, CHANNELS,
                   N: tl.constexpr, BD: tl.constexpr):  # fmt: skip
    """A program keeps the states of BD channels and walks along the sequence."""
    d, n = tl.program_id(0) * BD + tl.arange(0, BD), tl.arange(0, N)
    batch, there = tl.program_id(1).to(tl.int64), d < CHANNELS
    rate = tl.load(decay + d[:, None] * N + n[None, :], there[:, None], other=0.0) * LOG2_E
    through = tl.load(skip + d, there, other=0.0)
    state = tl.zeros([BD, N], tl.float32)
    for t in range(LENGTH):
        at = batch * LENGTH + t
        now = tl.load(x + at * CHANNELS + d, there, other=0.0)
        step = tl.load(steps + at * CHANNELS + d, there, other=0.0)
        enter, read = tl.load(entry + at * N + n), tl.load(readout + at * N + n)
        kept = tl.math.exp2(step[:, None] * rate)
        state = kept * state + (step * now)[:, None] * enter[None, :]
        out = tl.sum(state * read[None, :], 1) + through * now
        tl.store(y + at * CHANNELS + d, out, there)
