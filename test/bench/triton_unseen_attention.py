"""Triton's counterparts of `unseen_attention`, as a competent user writes them."""

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def step(acc, total, high, s, value):
    """A step of softmax, in powers of two, while sums grow."""
    higher = tl.maximum(high, tl.max(s, 1))
    p, shrunk = tl.math.exp2(s - higher[:, None]), tl.math.exp2(high - higher)
    acc = tl.dot(p.to(value.dtype), value, acc * shrunk[:, None])
    return acc, total * shrunk + tl.sum(p, 1), higher


@triton.jit
def biased_attention(
    q,
    k,
    v,
    bias,
    o,
    scale,
    heads,
    length,
    keys,
    D: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    rows, inner = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    head, batch = tl.program_id(1), tl.program_id(2)
    of = (batch * heads + head).to(tl.int64)
    at = of * length * D + rows[:, None] * D + inner[None, :]
    query = tl.load(q + at, mask=rows[:, None] < length, other=0.0)
    high, total = tl.full((BM,), float("-inf"), tl.float32), tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n in range(0, keys, BN):
        columns = n + tl.arange(0, BN)
        there, mask = of * keys * D + columns[:, None] * D + inner[None, :], columns[:, None] < keys
        key = tl.load(k + there, mask=mask, other=0.0)
        value = tl.load(v + there, mask=mask, other=0.0)
        mask = (rows[:, None] < length) & (columns[None, :] < keys)
        place = head.to(tl.int64) * length * keys + rows[:, None] * keys + columns[None, :]
        b = tl.load(bias + place, mask=mask, other=0.0).to(tl.float32)
        s = tl.dot(query, key.T) * (scale * LOG2_E) + b * LOG2_E
        s = tl.where(columns[None, :] < keys, s, float("-inf"))
        acc, total, high = step(acc, total, high, s, value)
    out = (acc / total[:, None]).to(o.dtype.element_ty)
    tl.store(o + at, out, mask=rows[:, None] < length)


@triton.jit
def slanted_attention(
    q, k, v, slopes, o, scale, heads, length, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    m, inner, wide = tl.program_id(0) * BM, tl.arange(0, D), heads * D
    rows, head = m + tl.arange(0, BM), tl.program_id(1)
    base = (tl.program_id(2) * length * heads + head).to(tl.int64) * D
    query = tl.load(
        q + base + rows[:, None] * wide + inner[None, :], mask=rows[:, None] < length, other=0.0
    )
    slope = tl.load(slopes + head) * LOG2_E
    high, total = tl.full((BM,), float("-inf"), tl.float32), tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n in range(0, min(m + BM, length), BN):
        columns = n + tl.arange(0, BN)
        there, mask = base + columns[:, None] * wide + inner[None, :], columns[:, None] < length
        key = tl.load(k + there, mask=mask, other=0.0)
        value = tl.load(v + there, mask=mask, other=0.0)
        s = tl.dot(query, key.T) * (scale * LOG2_E)
        s += slope * (columns[None, :] - rows[:, None]).to(tl.float32)
        s = tl.where(columns[None, :] <= rows[:, None], s, float("-inf"))
        acc, total, high = step(acc, total, high, s, value)
    out = (acc / total[:, None]).to(o.dtype.element_ty)
    tl.store(o + base + rows[:, None] * wide + inner[None, :], out, mask=rows[:, None] < length)


@triton.jit
def near_attention(
    qkv, o, scale, window, heads, length, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    m, inner, wide = tl.program_id(0) * BM, tl.arange(0, D), 3 * heads * D
    rows, head, batch = m + tl.arange(0, BM), tl.program_id(1), tl.program_id(2).to(tl.int64)
    base = qkv + batch * length * wide + head * D
    query = tl.load(
        base + rows[:, None] * wide + inner[None, :], mask=rows[:, None] < length, other=0.0
    )
    high, total = tl.full((BM,), -1e30, tl.float32), tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n in range(max(m - window, 0) // BN * BN, min(m + BM, length), BN):
        columns = n + tl.arange(0, BN)
        there, mask = base + columns[:, None] * wide + inner[None, :], columns[:, None] < length
        key = tl.load(there + heads * D, mask=mask, other=0.0)
        value = tl.load(there + 2 * heads * D, mask=mask, other=0.0)
        apart = rows[:, None] - columns[None, :]
        s = tl.dot(query, key.T) * (scale * LOG2_E)
        s = tl.where((apart >= 0) & (apart <= window), s, float("-inf"))
        acc, total, high = step(acc, total, high, s, value)
    out = (acc / total[:, None]).to(o.dtype.element_ty)
    at = o + (batch * length * heads + head) * D + rows[:, None] * heads * D + inner[None, :]
    tl.store(at, out, mask=rows[:, None] < length)


@triton.jit
def latent_decoding(
    q, cache, parts, logs, scale, heads, keys, splits,
    W: tl.constexpr, V: tl.constexpr, BH: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    rows, low, rest = tl.program_id(0) * BH + tl.arange(0, BH), tl.arange(0, V), tl.arange(0, W - V)
    split, batch = tl.program_id(1), tl.program_id(2).to(tl.int64)
    share = tl.cdiv(tl.cdiv(keys, splits), BN) * BN
    mask, at = rows[:, None] < heads, q + (batch * heads + rows)[:, None] * W
    query = tl.load(at + low[None, :], mask=mask, other=0.0)
    query_rest = tl.load(at + V + rest[None, :], mask=mask, other=0.0)
    high, total = tl.full((BH,), -1e30, tl.float32), tl.zeros((BH,), tl.float32)
    acc, end = tl.zeros((BH, V), tl.float32), min(split * share + share, keys)
    for n in range(split * share, end, BN):
        columns = n + tl.arange(0, BN)
        there, inside = cache + (batch * keys + columns)[:, None] * W, columns[:, None] < end
        latent = tl.load(there + low[None, :], mask=inside, other=0.0)
        s = tl.dot(query, latent.T)
        s = tl.dot(query_rest, tl.load(there + V + rest[None, :], mask=inside, other=0.0).T, s)
        s = tl.where(columns[None, :] < end, s * (scale * LOG2_E), float("-inf"))
        acc, total, high = step(acc, total, high, s, latent)
    total = tl.maximum(total, 1e-30)
    place = (batch * splits + split) * heads + rows
    tl.store(parts + place[:, None] * V + low[None, :], acc / total[:, None], mask=mask)
    tl.store(logs + place, high + tl.math.log2(total), mask=rows < heads)


@triton.jit
def cross_attention(
    q, k, v, o, scale, heads, length, keys, d,
    D: tl.constexpr, N: tl.constexpr, BM: tl.constexpr,
):  # fmt: skip
    rows, inner, columns = (
        tl.program_id(0) * BM + tl.arange(0, BM),
        tl.arange(0, D),
        tl.arange(0, N),
    )
    head, batch, wide = tl.program_id(1), tl.program_id(2), heads * d
    at = (batch * length * heads + head) * d + rows[:, None] * wide + inner[None, :]
    mask = (rows[:, None] < length) & (inner[None, :] < d)
    query = tl.load(q + at, mask=mask, other=0.0)
    there = (batch * keys * heads + head) * d + columns[:, None] * wide + inner[None, :]
    inside = (columns[:, None] < keys) & (inner[None, :] < d)
    key, value = (
        tl.load(k + there, mask=inside, other=0.0),
        tl.load(v + there, mask=inside, other=0.0),
    )
    s = tl.dot(query, key.T) * (scale * LOG2_E)
    s = tl.where(columns[None, :] < keys, s, float("-inf"))
    p = tl.math.exp2(s - tl.max(s, 1)[:, None])
    out = tl.dot(p.to(value.dtype), value) / tl.sum(p, 1)[:, None]
    tl.store(o + at, out.to(o.dtype.element_ty), mask=mask)


@triton.jit
def key_value_sums(k, v, state, length, D: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    inner, part = tl.arange(0, D), tl.program_id(1) * BD + tl.arange(0, BD)
    of = tl.program_id(0).to(tl.int64)
    acc = tl.zeros((BD, D), tl.float32)
    for n in range(0, length, BN):
        rows = (of * length + n + tl.arange(0, BN))[:, None] * D
        mask = (n + tl.arange(0, BN))[:, None] < length
        key = tl.load(k + rows + part[None, :], mask=mask, other=0.0)
        key = tl.where(mask, tl.maximum(key, 0.0) + 1.0, 0.0).to(k.dtype.element_ty)
        acc = tl.dot(key.T, tl.load(v + rows + inner[None, :], mask=mask, other=0.0), acc)
    at = state + of * D * D + part[:, None] * D + inner[None, :]
    tl.store(at, acc.to(state.dtype.element_ty))


@triton.jit
def retention(
    q, k, v, rates, o, heads, length, D: tl.constexpr, BC: tl.constexpr, BV: tl.constexpr
):
    inner, part = tl.arange(0, D), tl.program_id(1) * BV + tl.arange(0, BV)
    of = tl.program_id(0).to(tl.int64)
    rate, state = tl.load(rates + of % heads), tl.zeros((D, BV), tl.float32)
    step = tl.arange(0, BC).to(tl.float32)
    apart = step[:, None] - step[None, :]
    within = tl.where(apart >= 0, tl.math.exp2(tl.maximum(apart, 0.0) * rate), 0.0)
    for c in range(0, length, BC):
        rows = (of * length + c + tl.arange(0, BC))[:, None] * D
        mask = (c + tl.arange(0, BC))[:, None] < length
        query = tl.load(q + rows + inner[None, :], mask=mask, other=0.0)
        key = tl.load(k + rows + inner[None, :], mask=mask, other=0.0)
        value = tl.load(v + rows + part[None, :], mask=mask, other=0.0)
        out = tl.dot(query, state.to(query.dtype)) * tl.math.exp2((step + 1.0) * rate)[:, None]
        out = tl.dot((tl.dot(query, key.T) * within).to(value.dtype), value, out)
        tl.store(o + rows + part[None, :], out.to(o.dtype.element_ty), mask=mask)
        aged = (key.to(tl.float32) * tl.math.exp2((BC - 1.0 - step) * rate)[:, None]).to(key.dtype)
        state = tl.dot(aged.T, value, state * tl.math.exp2(BC * rate))


@triton.jit
def delta_rule(q, k, v, beta, o, length, D: tl.constexpr, BC: tl.constexpr, BV: tl.constexpr):
    inner, part = tl.arange(0, D), tl.program_id(1) * BV + tl.arange(0, BV)
    of, step = tl.program_id(0).to(tl.int64), tl.arange(0, BC)
    state = tl.zeros((D, BV), tl.float32)
    for c in range(0, length, BC):
        rows, mask = (of * length + c + step)[:, None] * D, (c + step)[:, None] < length
        key = tl.load(k + rows + inner[None, :], mask=mask, other=0.0)
        query = tl.load(q + rows + inner[None, :], mask=mask, other=0.0)
        value = tl.load(v + rows + part[None, :], mask=mask, other=0.0).to(tl.float32)
        much = tl.load(beta + of * length + c + step, mask=c + step < length, other=0.0)
        power = tl.dot(key, key.T) * -much[:, None]
        power = tl.where(step[:, None] > step[None, :], power, 0.0)
        inverse = tl.where(step[:, None] == step[None, :], 1.0, power)
        for _ in tl.static_range(4):
            power = tl.dot(power.to(key.dtype), power.to(key.dtype))
            inverse = tl.dot(power.to(key.dtype), inverse.to(key.dtype), inverse)
        state16 = state.to(key.dtype)
        error = (value - tl.dot(key, state16)) * much[:, None]
        change = tl.dot(inverse.to(key.dtype), error.to(key.dtype)).to(key.dtype)
        seen = tl.where(step[:, None] >= step[None, :], tl.dot(query, key.T), 0.0)
        out = tl.dot(seen.to(key.dtype), change, tl.dot(query, state16))
        tl.store(o + rows + part[None, :], out.to(o.dtype.element_ty), mask=mask)
        state = tl.dot(key.T, change, state)
