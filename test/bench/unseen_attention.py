"""Attention of kinds and recurrences in spellings that the examples have none of.

Exponentials are the hardware's approximations, as Triton's are always."""

from __future__ import annotations

import tilec
import tilec.language as tl

LOG2_E = 1.4426950408889634


@tilec.kernel(grid=lambda q, BM: (tl.cdiv(q.shape[2], BM), q.shape[1], q.shape[0]))
def biased_attention(
    q: tl.array, k: tl.array, v: tl.array, bias: tl.array, o: tl.array, scale: float, D: tl.const,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, STAGES: tl.const = None,
):  # fmt: skip
    """softmax(q k^T scale + bias) v; bias (heads, queries, keys)."""
    m, h, b = tl.program_id(0) * BM, tl.program_id(1), tl.program_id(2)
    query = tl.load(q, (b, h, m, 0), (BM, D))
    high, total = tl.full((BM,), -tl.inf, tl.f32), tl.zeros((BM,), tl.f32)
    acc = tl.zeros((BM, D), tl.f32)
    for n in tl.range(0, k.shape[2], BN, stages=STAGES):
        s = tl.dot(query, tl.load(k, (b, h, n, 0), (BN, D)).T) * scale
        s += tl.load(bias, (h, m, n), (BM, BN)).to(tl.f32)
        s = tl.where(n + tl.arange(BN)[None, :] < k.shape[2], s, -tl.inf)
        higher = tl.maximum(high, tl.max(s, 1))
        p = tl.exp(s - higher[:, None], approx=True)
        shrunk = tl.exp(high - higher, approx=True)
        total, high = total * shrunk + tl.sum(p, 1), higher
        value = tl.load(v, (b, h, n, 0), (BN, D))
        acc = tl.dot(p.to(value.dtype), value, acc * shrunk[:, None])
    tl.store(o, (b, h, m, 0), (acc / total[:, None]).to(o.dtype))


@tilec.kernel(grid=lambda q, BM: (tl.cdiv(q.shape[1], BM), q.shape[2], q.shape[0]))
def slanted_attention(
    q: tl.array, k: tl.array, v: tl.array, slopes: tl.array, o: tl.array, scale: float,
    D: tl.const, BM: tl.const = tl.auto, BN: tl.const = tl.auto, STAGES: tl.const = None,
):  # fmt: skip
    """Causal, with ALiBi's slopes; arrays are (batch, length, heads, D)."""
    m, h, b = tl.program_id(0) * BM, tl.program_id(1), tl.program_id(2)
    query = tl.load(q, (b, m, h, 0), (BM, D), dims=(1, 3))
    slope = tl.load(slopes, h, ())
    high, total = tl.full((BM,), -tl.inf, tl.f32), tl.zeros((BM,), tl.f32)
    acc, row = tl.zeros((BM, D), tl.f32), m + tl.arange(BM)[:, None]
    for n in tl.range(0, tl.minimum(m + BM, k.shape[1]), BN, stages=STAGES):
        column = n + tl.arange(BN)[None, :]
        s = tl.dot(query, tl.load(k, (b, n, h, 0), (BN, D), dims=(1, 3)).T) * scale
        s += slope * (column - row).to(tl.f32)
        s = tl.where(column <= row, s, -tl.inf)
        higher = tl.maximum(high, tl.max(s, 1))
        p = tl.exp(s - higher[:, None], approx=True)
        shrunk = tl.exp(high - higher, approx=True)
        total, high = total * shrunk + tl.sum(p, 1), higher
        value = tl.load(v, (b, n, h, 0), (BN, D), dims=(1, 3))
        acc = tl.dot(p.to(value.dtype), value, acc * shrunk[:, None])
    tl.store(o, (b, m, h, 0), (acc / total[:, None])[None, :, None].to(o.dtype))


@tilec.kernel(grid=lambda qkv, BM: (tl.cdiv(qkv.shape[1], BM), qkv.shape[3], qkv.shape[0]))
def near_attention(
    qkv: tl.array, o: tl.array, scale: float, window: int, D: tl.const,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, STAGES: tl.const = None,
):  # fmt: skip
    """Each query sees itself and `window` keys before; qkv (batch, length, 3, heads, D)."""
    m, h, b = tl.program_id(0) * BM, tl.program_id(1), tl.program_id(2)
    query = tl.load(qkv, (b, m, 0, h, 0), (BM, D), dims=(1, 4))
    high, total = tl.full((BM,), -1e30, tl.f32), tl.zeros((BM,), tl.f32)
    acc, row = tl.zeros((BM, D), tl.f32), m + tl.arange(BM)[:, None]
    start = tl.maximum(m - window, 0) // BN * BN
    for n in tl.range(start, tl.minimum(m + BM, qkv.shape[1]), BN, stages=STAGES):
        column = n + tl.arange(BN)[None, :]
        key = tl.load(qkv, (b, n, 1, h, 0), (BN, D), dims=(1, 4))
        s = tl.dot(query, key.T) * (scale * LOG2_E)
        s = tl.where((column <= row) & (column >= row - window), s, -tl.inf)
        higher = tl.maximum(high, tl.max(s, 1))
        p = tl.exp2(s - higher[:, None], approx=True)
        shrunk = tl.exp2(high - higher, approx=True)
        total, high = total * shrunk + tl.sum(p, 1), higher
        value = tl.load(qkv, (b, n, 2, h, 0), (BN, D), dims=(1, 4))
        acc = tl.dot(p.to(value.dtype), value, acc * shrunk[:, None])
    tl.store(o, (b, m, h, 0), (acc / total[:, None])[None, :, None].to(o.dtype))


@tilec.kernel(grid=lambda q, parts, BH: (tl.cdiv(q.shape[1], BH), parts.shape[1], q.shape[0]))
def latent_decoding(
    q: tl.array, cache: tl.array, parts: tl.array, logs: tl.array, scale: float,
    W: tl.const, V: tl.const, BH: tl.const = 16, BN: tl.const = tl.auto,
):  # fmt: skip
    """A query a sequence of many heads over one latent cache, whose first V of W numbers are the
    values; splits of the keys: parts (batch, splits, heads, V), logs without V."""
    h, split, b = tl.program_id(0) * BH, tl.program_id(1), tl.program_id(2)
    share = tl.cdiv(tl.cdiv(cache.shape[1], tl.num_programs(1)), BN) * BN
    low = tl.load(q, (b, h, 0), (BH, V))
    rest = tl.load(q, (b, h, V), (BH, W - V))
    high, total = tl.full((BH,), -1e30, tl.f32), tl.zeros((BH,), tl.f32)
    acc, end = tl.zeros((BH, V), tl.f32), tl.minimum(split * share + share, cache.shape[1])
    for n in tl.range(split * share, end, BN):
        latent = tl.load(cache, (b, n, 0), (BN, V))
        s = tl.dot(low, latent.T)
        s = tl.dot(rest, tl.load(cache, (b, n, V), (BN, W - V)).T, s) * (scale * LOG2_E)
        s = tl.where(n + tl.arange(BN)[None, :] < end, s, -tl.inf)
        higher = tl.maximum(high, tl.max(s, 1))
        p = tl.exp2(s - higher[:, None], approx=True)
        shrunk = tl.exp2(high - higher, approx=True)
        total, high = total * shrunk + tl.sum(p, 1), higher
        acc = tl.dot(p.to(latent.dtype), latent, acc * shrunk[:, None])
    tl.store(parts, (b, split, h, 0), acc / tl.maximum(total, 1e-30)[:, None])
    tl.store(logs, (b, split, h), high + tl.log2(tl.maximum(total, 1e-30)))


@tilec.kernel(grid=lambda q, BM: (tl.cdiv(q.shape[1], BM), q.shape[2], q.shape[0]))
def cross_attention(
    q: tl.array, k: tl.array, v: tl.array, o: tl.array, scale: float,
    D: tl.const, N: tl.const, BM: tl.const = tl.auto,
):  # fmt: skip
    """Keys so few that one tile holds them; arrays are (batch, length, heads, D)."""
    m, h, b = tl.program_id(0) * BM, tl.program_id(1), tl.program_id(2)
    query = tl.load(q, (b, m, h, 0), (BM, D), dims=(1, 3))
    key = tl.load(k, (b, 0, h, 0), (N, D), dims=(1, 3))
    value = tl.load(v, (b, 0, h, 0), (N, D), dims=(1, 3))
    s = tl.where(tl.arange(N)[None, :] < k.shape[1], tl.dot(query, key.T) * scale, -tl.inf)
    p = tl.softmax(s, 1, approx=True)
    out = tl.dot(p.to(value.dtype), value)
    tl.store(o, (b, m, h, 0), out[None, :, None].to(o.dtype))


@tilec.kernel(grid=lambda state: (state.shape[1], state.shape[0]))
def key_value_sums(k: tl.array, v: tl.array, state: tl.array, D: tl.const, BN: tl.const = tl.auto):
    """state = f(k)^T v of each head, f(x) = relu(x) + 1; k, v (batch, heads, length, D)."""
    h, b = tl.program_id(0), tl.program_id(1)
    acc = tl.zeros((D, D), tl.f32)
    for n in tl.range(0, k.shape[2], BN):
        inside = n + tl.arange(BN)[:, None] < k.shape[2]
        key = tl.load(k, (b, h, n, 0), (BN, D))
        key = tl.where(inside, tl.maximum(key, 0.0) + 1.0, 0.0).to(k.dtype)
        acc = tl.dot(key.T, tl.load(v, (b, h, n, 0), (BN, D)), acc)
    tl.store(state, (b, h, 0, 0), acc.to(state.dtype))


@tilec.kernel(grid=lambda v, BV: (tl.cdiv(v.shape[3], BV), v.shape[1], v.shape[0]))
def retention(
    q: tl.array, k: tl.array, v: tl.array, rates: tl.array, o: tl.array,
    D: tl.const, BC: tl.const = tl.auto, BV: tl.const = tl.auto,
):  # fmt: skip
    """o[i] = q[i] S[i], S[i] = rate S[i - 1] + k[i]^T v[i], a rate (its log2) for each head."""
    n, h, b = tl.program_id(0) * BV, tl.program_id(1), tl.program_id(2)
    rate, state = tl.load(rates, h, ()), tl.zeros((D, BV), tl.f32)
    step = tl.arange(BC).to(tl.f32)
    apart = step[:, None] - step[None, :]
    inner = tl.exp2(tl.maximum(apart, 0.0) * rate, approx=True)
    inner = tl.where(apart >= 0, inner, 0.0)
    for c in tl.range(0, q.shape[2], BC):
        query = tl.load(q, (b, h, c, 0), (BC, D))
        key = tl.load(k, (b, h, c, 0), (BC, D))
        value = tl.load(v, (b, h, c, n), (BC, BV))
        since = tl.exp2((step + 1.0) * rate, approx=True)
        out = tl.dot(query, state.to(query.dtype)) * since[:, None]
        weights = (tl.dot(query, key.T) * inner).to(value.dtype)
        out = tl.dot(weights, value, out)
        tl.store(o, (b, h, c, n), out.to(o.dtype))
        left = tl.exp2((BC - 1.0 - step) * rate, approx=True)
        aged = (key.to(tl.f32) * left[:, None]).to(key.dtype)
        state = tl.dot(aged.T, value, state * tl.exp2(BC * rate, approx=True))


@tilec.kernel(grid=lambda v, BV: (tl.cdiv(v.shape[3], BV), v.shape[1], v.shape[0]))
def delta_rule(
    q: tl.array, k: tl.array, v: tl.array, beta: tl.array, o: tl.array,
    D: tl.const, BC: tl.const = 32, BV: tl.const = tl.auto,
):  # fmt: skip
    """S += beta k^T (v - k S), o = q S, BC steps at a time: the inverse of the unit triangle is the
    product of 1 + L^(2^i), as L^BC is 0."""
    n, h, b = tl.program_id(0) * BV, tl.program_id(1), tl.program_id(2)
    state, step = tl.zeros((D, BV), tl.f32), tl.arange(BC)
    for c in tl.range(0, q.shape[2], BC):
        key = tl.load(k, (b, h, c, 0), (BC, D))
        query = tl.load(q, (b, h, c, 0), (BC, D))
        value = tl.load(v, (b, h, c, n), (BC, BV)).to(tl.f32)
        much = tl.load(beta, (b, h, c), BC)
        power = tl.where(step[:, None] > step[None, :], tl.dot(key, key.T) * -much[:, None], 0.0)
        inverse = tl.where(step[:, None] == step[None, :], 1.0, power)
        for _ in tl.static_range(4):
            power = tl.dot(power.to(key.dtype), power.to(key.dtype))
            inverse = tl.dot(power.to(key.dtype), inverse.to(key.dtype), inverse)
        state16 = state.to(key.dtype)
        error = (value - tl.dot(key, state16)) * much[:, None]
        change = tl.dot(inverse.to(key.dtype), error.to(key.dtype)).to(key.dtype)
        seen = tl.where(step[:, None] >= step[None, :], tl.dot(query, key.T), 0.0)
        out = tl.dot(seen.to(key.dtype), change, tl.dot(query, state16))
        tl.store(o, (b, h, c, n), out.to(o.dtype))
        state = tl.dot(key.T, change, state)
