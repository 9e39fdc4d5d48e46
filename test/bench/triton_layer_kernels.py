"""Layers in Triton, walking as tilec's do; sizes are multiples of the tiles but where masked.

The gradients of attention follow the form of Triton's tutorial 06, fused attention.
"""

from __future__ import annotations

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def weigh_gradients(o, do, delta, D: tl.constexpr, BM: tl.constexpr):
    """Rows of all heads below each other."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    at = rows[:, None] * D + columns[None, :]
    product = tl.load(o + at).to(tl.float32) * tl.load(do + at).to(tl.float32)
    tl.store(delta + rows, tl.sum(product, 1))


@triton.jit
def _add_keys(dkey, dvalue, key, value, q, do, logs, delta, low, high, n, scale, D: tl.constexpr,
              BM: tl.constexpr, BN: tl.constexpr, MASKED: tl.constexpr):  # fmt: skip
    """What queries `low` to `high` add; scores lie transposed."""
    columns = tl.arange(0, D)
    for m in range(low, high, BM):
        rows = m + tl.arange(0, BM)
        transposed = tl.load(q + rows[None, :] * D + columns[:, None])
        weight = tl.math.exp2(tl.dot(key, transposed) * scale - tl.load(logs + rows)[None, :])
        if MASKED:
            seen = n + tl.arange(0, BN)[:, None] <= rows[None, :]
            weight = tl.where(seen, weight, 0.0)
        grad = tl.load(do + rows[:, None] * D + columns[None, :])
        dvalue = tl.dot(weight.to(grad.dtype), grad, dvalue)
        slope = tl.dot(value, tl.trans(grad)) - tl.load(delta + rows)[None, :]
        dkey = tl.dot((weight * slope).to(grad.dtype), tl.trans(transposed), dkey)
    return dkey, dvalue


@triton.jit
def key_gradients(q, k, v, do, logs, delta, dk, dv, scale, LENGTH: tl.constexpr,
                  D: tl.constexpr, SHARED: tl.constexpr, CAUSAL: tl.constexpr,
                  BM: tl.constexpr, BN: tl.constexpr):  # fmt: skip
    """SHARED heads of queries, one of keys behind the other, use the keys."""
    n, head = tl.program_id(0) * BN, tl.program_id(1)
    rows, columns = n + tl.arange(0, BN), tl.arange(0, D)
    at = (head.to(tl.int64) * LENGTH + rows[:, None]) * D + columns[None, :]
    key, value = tl.load(k + at), tl.load(v + at)
    dkey = tl.zeros([BN, D], tl.float32)
    dvalue = tl.zeros([BN, D], tl.float32)
    factor = scale * LOG2_E
    for one in range(SHARED):
        base = (head * SHARED + one).to(tl.int64) * LENGTH
        low = 0
        if CAUSAL:
            low = n + BN
            dkey, dvalue = _add_keys(
                dkey, dvalue, key, value, q + base * D, do + base * D, logs + base, delta + base,
                n, low, n, factor, D, BM, BN, True,
            )  # fmt: skip
        dkey, dvalue = _add_keys(
            dkey, dvalue, key, value, q + base * D, do + base * D, logs + base, delta + base,
            low, LENGTH, n, factor, D, BM, BN, False,
        )  # fmt: skip
    tl.store(dk + at, (dkey * scale).to(dk.dtype.element_ty))
    tl.store(dv + at, dvalue.to(dv.dtype.element_ty))


@triton.jit
def _add_queries(dquery, query, grad, log, off, k, v, low, high, m, scale, D: tl.constexpr,
                 BM: tl.constexpr, BN: tl.constexpr, MASKED: tl.constexpr):  # fmt: skip
    """What keys `low` to `high` add."""
    columns = tl.arange(0, D)
    for n in range(low, high, BN):
        at = (n + tl.arange(0, BN))[None, :] * D + columns[:, None]
        transposed, value = tl.load(k + at), tl.load(v + at)
        weight = tl.math.exp2(tl.dot(query, transposed) * scale - log)
        if MASKED:
            seen = n + tl.arange(0, BN)[None, :] <= m + tl.arange(0, BM)[:, None]
            weight = tl.where(seen, weight, 0.0)
        slope = weight * (tl.dot(grad, value) - off)
        dquery = tl.dot(slope.to(transposed.dtype), tl.trans(transposed), dquery)
    return dquery


@triton.jit
def query_gradients(q, k, v, do, logs, delta, dq, scale, LENGTH: tl.constexpr, D: tl.constexpr,
                    SHARED: tl.constexpr, CAUSAL: tl.constexpr, BM: tl.constexpr,
                    BN: tl.constexpr):  # fmt: skip
    """BM queries, all keys they see."""
    m, head = tl.program_id(0) * BM, tl.program_id(1)
    rows, columns = m + tl.arange(0, BM), tl.arange(0, D)
    base = head.to(tl.int64) * LENGTH
    of = (head // SHARED).to(tl.int64) * LENGTH * D
    at = (base + rows[:, None]) * D + columns[None, :]
    query, grad = tl.load(q + at), tl.load(do + at)
    log, off = tl.load(logs + base + rows)[:, None], tl.load(delta + base + rows)[:, None]
    dquery = tl.zeros([BM, D], tl.float32)
    whole = m if CAUSAL else LENGTH
    factor = scale * LOG2_E
    dquery = _add_queries(
        dquery, query, grad, log, off, k + of, v + of, 0, whole, m, factor, D, BM, BN, False
    )
    if CAUSAL:
        dquery = _add_queries(
            dquery, query, grad, log, off, k + of, v + of, m, m + BM, m, factor, D, BM, BN, True
        )
    tl.store(dq + at, (dquery * scale).to(dq.dtype.element_ty))


@triton.jit
def both_gradients(q, k, v, do, logs, delta, dq, dk, dv, scale, LENGTH: tl.constexpr,
                   D: tl.constexpr, CAUSAL: tl.constexpr, FEW: tl.constexpr,
                   MANY: tl.constexpr):  # fmt: skip
    """The tutorial's: a program does MANY keys, then MANY queries, FEW of the others at a time."""
    key_gradients(q, k, v, do, logs, delta, dk, dv, scale, LENGTH, D, 1, CAUSAL, FEW, MANY)
    query_gradients(q, k, v, do, logs, delta, dq, scale, LENGTH, D, 1, CAUSAL, MANY, FEW)


@triton.jit
def experts(tokens, matrices, slots, experts_, weights, products, COUNT, TOP: tl.constexpr,
            N: tl.constexpr, K: tl.constexpr, ROWS: tl.constexpr, BM: tl.constexpr,
            BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):  # fmt: skip
    """GROUP tiles of rows walk along the columns together; ROWS slots have one expert."""
    number = tl.program_id(0)
    along = GROUP * (N // BN)
    first = number // along * GROUP
    height = min(tl.num_programs(0) // (N // BN) - first, GROUP)
    tile, n = first + number % along % height, number % along // height * BN
    expert = tl.load(experts_ + tile * BM // ROWS).to(tl.int64)
    slot = tl.load(slots + tile * BM + tl.arange(0, BM))
    there = slot >= 0
    columns, ks = n + tl.arange(0, BN), tl.arange(0, BK)
    a = tokens + (slot // TOP)[:, None] * K + ks[None, :]
    b = matrices + expert * K * N + ks[:, None] * N + columns[None, :]
    acc = tl.zeros([BM, BN], tl.float32)
    for _ in range(0, K, BK):
        acc = tl.dot(tl.load(a, there[:, None], other=0.0), tl.load(b), acc)
        a += BK
        b += BK * N
    acc *= tl.load(weights + slot, there, other=0.0)[:, None]
    c = products + slot[:, None].to(tl.int64) * N + columns[None, :]
    tl.store(c, acc.to(products.dtype.element_ty), there[:, None])


@triton.jit
def quantized(a, packed, scales, zeros, c, M, N: tl.constexpr, K: tl.constexpr,
              GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
              TOGETHER: tl.constexpr):  # fmt: skip
    """A byte holds rows i and i + GROUP / 2 of its group."""
    number = tl.program_id(0)
    along = TOGETHER * (N // BN)
    first = number // along * TOGETHER
    height = min(tl.cdiv(M, BM) - first, TOGETHER)
    m, n = (first + number % along % height) * BM, number % along // height * BN
    HALF: tl.constexpr = GROUP // 2
    rows, columns, ks = m + tl.arange(0, BM), n + tl.arange(0, BN), tl.arange(0, HALF)
    left = a + rows[:, None] * K + ks[None, :]
    right = packed + ks[:, None] * N + columns[None, :]
    acc = tl.zeros([BM, BN], tl.float32)
    for group in range(K // GROUP):
        pairs = tl.load(right)
        scale, zero = tl.load(scales + group * N + columns), tl.load(zeros + group * N + columns)
        low = ((pairs & 15).to(tl.float16) - zero[None, :]) * scale[None, :]
        acc = tl.dot(tl.load(left, rows[:, None] < M, other=0.0), low, acc)
        high = (((pairs >> 4) & 15).to(tl.float16) - zero[None, :]) * scale[None, :]
        acc = tl.dot(tl.load(left + HALF, rows[:, None] < M, other=0.0), high, acc)
        left += GROUP
        right += HALF * N
    out = c + rows[:, None] * N + columns[None, :]
    tl.store(out, acc.to(c.dtype.element_ty), rows[:, None] < M)


@triton.jit
def tile_scaled(a, a_scales, b, b_scales, c, M, N: tl.constexpr, K: tl.constexpr,
                BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):  # fmt: skip
    """a (M, K), b (N, K), scales of 128 and 128 x 128."""
    number = tl.program_id(0)
    along = GROUP * (N // BN)
    first = number // along * GROUP
    height = min(tl.cdiv(M, BM) - first, GROUP)
    m, n = (first + number % along % height) * BM, number % along // height * BN
    rows, columns, ks = m + tl.arange(0, BM), n + tl.arange(0, BN), tl.arange(0, 128)
    left = a + rows[:, None] * K + ks[None, :]
    right = b + columns[None, :] * K + ks[:, None]
    acc = tl.zeros([BM, BN], tl.float32)
    for block in range(K // 128):
        by_row = tl.load(a_scales + rows * (K // 128) + block)
        by_tile = tl.load(b_scales + (n // 128) * (K // 128) + block)
        acc += tl.dot(tl.load(left), tl.load(right)) * (by_row * by_tile)[:, None]
        left += 128
        right += 128
    tl.store(c + rows[:, None] * N + columns[None, :], acc.to(c.dtype.element_ty))


@triton.jit
def convolution(x, w, y, PIXELS, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr,
                F: tl.constexpr, R: tl.constexpr, PAD: tl.constexpr, BM: tl.constexpr,
                BN: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    """Steps of one, the result as large as the image."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    pixel = m + tl.arange(0, BM)
    p, q = pixel // W % H, pixel % W
    columns, ks = n + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros([BM, BN], tl.float32)
    for step in range(R * R * (C // BK)):
        window, k = step // (C // BK), step % (C // BK) * BK
        r, s = window // R - PAD, window % R - PAD
        inside = (p + r >= 0) & (p + r < H) & (q + s >= 0) & (q + s < W) & (pixel < PIXELS)
        at = (pixel + r * W + s)[:, None].to(tl.int64) * C + k + ks[None, :]
        rows = tl.load(x + at, inside[:, None], other=0.0)
        right = tl.load(w + (window * C + k + ks[:, None]) * F + columns[None, :])
        acc = tl.dot(rows, right, acc)
    out = y + pixel[:, None].to(tl.int64) * F + columns[None, :]
    tl.store(out, acc.to(y.dtype.element_ty), pixel[:, None] < PIXELS)


@triton.jit
def attend_pages(q, keys, values, table, lengths, parts, logs, scale, MOST, HEADS: tl.constexpr,
                 KV: tl.constexpr, D: tl.constexpr, PAGE: tl.constexpr,
                 ROWS: tl.constexpr):  # fmt: skip
    """A program a split, a head of keys and a sequence."""
    split, head, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    length = tl.load(lengths + batch)
    pages = tl.cdiv(length, PAGE)
    share = tl.cdiv(pages, tl.num_programs(0))
    rows, columns, ks = tl.arange(0, ROWS), tl.arange(0, D), tl.arange(0, PAGE)
    at = (batch * KV + head) * HEADS + rows
    query = tl.load(q + at[:, None] * D + columns[None, :], rows[:, None] < HEADS, other=0.0)
    highest = tl.full([ROWS], -1e30, tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    acc = tl.zeros([ROWS, D], tl.float32)
    for number in range(split * share, min(split * share + share, pages)):
        page = tl.load(table + batch * MOST + number).to(tl.int64)
        place = ((page * PAGE + ks[:, None]) * KV + head) * D + columns[None, :]
        key, value = tl.load(keys + place), tl.load(values + place)
        score = tl.dot(query, tl.trans(key)) * scale
        score = tl.where((number * PAGE + ks)[None, :] < length, score, -float("inf"))
        higher = tl.maximum(highest, tl.max(score, 1))
        weight = tl.math.exp2(score - higher[:, None])
        shrink = tl.math.exp2(highest - higher)
        total = total * shrink + tl.sum(weight, 1)
        acc = tl.dot(weight.to(value.dtype), value, acc * shrink[:, None])
        highest = higher
    total = tl.maximum(total, 1e-30)
    out = ((batch * KV + head) * tl.num_programs(0) + split) * HEADS + rows
    tl.store(logs + out, highest + tl.math.log2(total), rows < HEADS)
    mean = acc / total[:, None]
    tl.store(parts + out[:, None] * D + columns[None, :], mean, rows[:, None] < HEADS)


@triton.jit
def join_splits(parts, logs, o, HEADS: tl.constexpr, D: tl.constexpr, SPLITS: tl.constexpr):
    """A program a head and sequence."""
    number = tl.program_id(0)
    of, own = number // HEADS, number % HEADS
    at = (of * SPLITS + tl.arange(0, SPLITS)) * HEADS + own
    log = tl.load(logs + at)
    weight = tl.math.exp2(log - tl.max(log, 0))
    columns = tl.arange(0, D)
    part = tl.load(parts + at[:, None] * D + columns[None, :])
    row = tl.sum(part * weight[:, None], 0) / tl.sum(weight, 0)
    tl.store(o + number * D + columns, row.to(o.dtype.element_ty))


@triton.jit
def cross_entropy(logits, labels, losses, CLASSES: tl.constexpr, B: tl.constexpr):
    """Logits become gradients."""
    row = tl.program_id(0).to(tl.int64)
    z = logits + row * CLASSES
    label = tl.load(labels + row)
    highest, total = -float("inf"), 0.0
    for start in range(0, CLASSES, B):
        columns = start + tl.arange(0, B)
        part = tl.load(z + columns, columns < CLASSES, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(highest, tl.max(part, 0))
        total = total * tl.exp(highest - higher) + tl.sum(tl.exp(part - higher), 0)
        highest = higher
    log = highest + tl.log(total)
    tl.store(losses + row, log - tl.load(z + label).to(tl.float32))
    tl.debug_barrier()
    for start in range(0, CLASSES, B):
        columns = start + tl.arange(0, B)
        part = tl.load(z + columns, columns < CLASSES, other=-float("inf")).to(tl.float32)
        slope = tl.exp(part - log) - tl.where(columns == label, 1.0, 0.0)
        tl.store(z + columns, slope.to(logits.dtype.element_ty), columns < CLASSES)


@triton.jit
def rms_norm(x, weight, y, scales, eps, N: tl.constexpr):
    """A row a program."""
    row, columns = tl.program_id(0).to(tl.int64), tl.arange(0, N)
    v = tl.load(x + row * N + columns).to(tl.float32)
    scale = tl.math.rsqrt(tl.sum(v * v, 0) / N + eps)
    tl.store(scales + row, scale)
    out = v * scale * tl.load(weight + columns).to(tl.float32)
    tl.store(y + row * N + columns, out.to(y.dtype.element_ty))


@triton.jit
def rms_norm_gradients(dy, x, weight, scales, dx, partial, ROWS, N: tl.constexpr):
    """Programs walk over rows and keep the sum for the weight."""
    columns = tl.arange(0, N)
    w = tl.load(weight + columns).to(tl.float32)
    dweight = tl.zeros([N], tl.float32)
    for row in range(tl.program_id(0), ROWS, tl.num_programs(0)):
        at = row * N + columns
        scale = tl.load(scales + row)
        normal = tl.load(x + at).to(tl.float32) * scale
        grad = tl.load(dy + at).to(tl.float32)
        dweight += grad * normal
        slope = grad * w
        along = tl.sum(slope * normal, 0) / N
        tl.store(dx + at, ((slope - normal * along) * scale).to(dx.dtype.element_ty))
    tl.store(partial + tl.program_id(0) * N + columns, dweight)


@triton.jit
def sum_columns(partial, total, ROWS, N: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """The rows of `partial` added up."""
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros([BM, BN], tl.float32)
    for m in range(0, ROWS, BM):
        rows = m + tl.arange(0, BM)
        at = rows[:, None] * N + columns[None, :]
        acc += tl.load(partial + at, rows[:, None] < ROWS, other=0.0)
    tl.store(total + columns, tl.sum(acc, 0).to(total.dtype.element_ty))
