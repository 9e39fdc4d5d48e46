"""Kernels of attention and of recurrences, as strangers to tilec write them."""

from __future__ import annotations

from typing import Any

import tilec
import tilec.language as tl


def _blocks(o: Any, BM: int) -> tuple[int, int, int]:
    return tl.cdiv(o.shape[2], BM), o.shape[1], o.shape[0]


@tilec.kernel(grid=_blocks)
def sink_attention(
    q: tl.array, k: tl.array, v: tl.array, sinks: tl.array, o: tl.array, scale: float, window: int,
    D: tl.const, BM: tl.const = tl.auto, BN: tl.const = tl.auto,
):  # fmt: skip
    """Causal, the last `window` keys, heads that share keys, and a logit of its own for each head
    that takes part of the sum: (batch, head, place, D)."""
    m, h, b = tl.program_id(0) * BM, tl.program_id(1), tl.program_id(2)
    kv = h // (q.shape[1] // k.shape[1])
    query = tl.load(q, (b, h, m, 0), (BM, D))
    sink = tl.load(sinks, h, ()).to(tl.f32)
    high, total = tl.full((BM,), sink, tl.f32), tl.full((BM,), 1.0, tl.f32)
    acc, row = tl.zeros((BM, D), tl.f32), m + tl.arange(BM)
    first = tl.maximum(m - window + 1, 0) // BN * BN
    for n in tl.range(first, tl.minimum(m + BM, k.shape[2]), BN):
        scores = tl.dot(query, tl.load(k, (b, kv, n, 0), (BN, D)).T) * scale
        behind = row[:, None] - (n + tl.arange(BN))[None, :]
        scores = tl.where((behind >= 0) & (behind < window), scores, -1e30)
        top = tl.maximum(high, tl.max(scores, 1))
        p, aged = tl.exp(scores - top[:, None]), tl.exp(high - top)
        total = total * aged + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), tl.load(v, (b, kv, n, 0), (BN, D)), acc * aged[:, None])
        high = top
    tl.store(o, (b, h, m, 0), (acc / total[:, None]).to(o.dtype))


@tilec.kernel(grid=_blocks)
def prefix_attention(
    q: tl.array, k: tl.array, v: tl.array, prefixes: tl.array, o: tl.array, scale: float,
    D: tl.const, BM: tl.const = tl.auto, BN: tl.const = tl.auto,
):  # fmt: skip
    """Keys of the prefix (a length for each sequence) for all, the others causal."""
    m, h, b = tl.program_id(0) * BM, tl.program_id(1), tl.program_id(2)
    query, prefix = tl.load(q, (b, h, m, 0), (BM, D)), tl.load(prefixes, b, ())
    high, total = tl.full((BM,), -tl.inf, tl.f32), tl.zeros((BM,), tl.f32)
    acc, row = tl.zeros((BM, D), tl.f32), m + tl.arange(BM)
    for n in tl.range(0, tl.minimum(tl.maximum(m + BM, prefix), k.shape[2]), BN):
        scores = tl.dot(query, tl.load(k, (b, h, n, 0), (BN, D)).T) * (scale * 1.4426950409)
        column = n + tl.arange(BN)
        seen = (column[None, :] <= row[:, None]) | (column[None, :] < prefix)
        scores = tl.where(seen & (column[None, :] < k.shape[2]), scores, -tl.inf)
        top = tl.maximum(high, tl.max(scores, 1))
        p, aged = tl.exp2(scores - top[:, None]), tl.exp2(high - top)
        total = total * aged + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), tl.load(v, (b, h, n, 0), (BN, D)), acc * aged[:, None])
        high = top
    tl.store(o, (b, h, m, 0), (acc / total[:, None]).to(o.dtype))


@tilec.kernel(grid=lambda q, k: (k.shape[2], q.shape[0]))
def paged_decoding(
    q: tl.array, k: tl.array, v: tl.array, pages: tl.array, lengths: tl.array, o: tl.array,
    scale: float, G: tl.const, D: tl.const, PAGE: tl.const,
):  # fmt: skip
    """One place a sequence: q and o (sequence, heads of keys, G, D), k and v (page, PAGE, heads,
    D), pages (sequence, most)."""
    h, b = tl.program_id(0), tl.program_id(1)
    length = tl.load(lengths, b, ())
    query = tl.load(q, (b, h, 0, 0), (G, D))
    high, total = tl.full((G,), -tl.inf, tl.f32), tl.zeros((G,), tl.f32)
    acc = tl.zeros((G, D), tl.f32)
    for i in tl.range(0, tl.cdiv(length, PAGE)):
        page = tl.load(pages, (b, i), ())
        key = tl.load(k, (page, 0, h, 0), (PAGE, D), dims=(1, 3))
        scores = tl.dot(query, key.T) * scale
        scores = tl.where((i * PAGE + tl.arange(PAGE) < length)[None, :], scores, -tl.inf)
        top = tl.maximum(high, tl.max(scores, 1))
        p, aged = tl.exp(scores - top[:, None]), tl.exp(high - top)
        total = total * aged + tl.sum(p, 1)
        value = tl.load(v, (page, 0, h, 0), (PAGE, D), dims=(1, 3))
        acc = tl.dot(p.to(v.dtype), value, acc * aged[:, None])
        high = top
    tl.store(o, (b, h, 0, 0), (acc / total[:, None]).to(o.dtype))


@tilec.kernel(grid=_blocks)
def normed_attention(
    q: tl.array, k: tl.array, v: tl.array, gain: tl.array, lengths: tl.array, o: tl.array,
    scale: float, D: tl.const, BM: tl.const = tl.auto, BN: tl.const = tl.auto,
):  # fmt: skip
    """Queries and keys are rms-normed in the kernel; sequences have so many keys."""
    m, h, b = tl.program_id(0) * BM, tl.program_id(1), tl.program_id(2)
    w, length = tl.load(gain, 0, D).to(tl.f32)[None, :], tl.load(lengths, b, ())
    query = tl.load(q, (b, h, m, 0), (BM, D)).to(tl.f32)
    query = query * tl.rsqrt(tl.sum(query * query, 1) / D + 1e-6)[:, None] * w
    query = query.to(q.dtype)
    high, total = tl.full((BM,), -tl.inf, tl.f32), tl.zeros((BM,), tl.f32)
    acc = tl.zeros((BM, D), tl.f32)
    for n in tl.range(0, tl.minimum(length, k.shape[2]), BN):
        key = tl.load(k, (b, h, n, 0), (BN, D)).to(tl.f32)
        key = key * tl.rsqrt(tl.sum(key * key, 1) / D + 1e-6)[:, None] * w
        scores = tl.dot(query, key.to(k.dtype).T) * scale
        scores = tl.where((n + tl.arange(BN) < length)[None, :], scores, -tl.inf)
        top = tl.maximum(high, tl.max(scores, 1))
        p, aged = tl.exp(scores - top[:, None]), tl.exp(high - top)
        total = total * aged + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), tl.load(v, (b, h, n, 0), (BN, D)), acc * aged[:, None])
        high = top
    tl.store(o, (b, h, m, 0), (acc / total[:, None]).to(o.dtype))


@tilec.kernel(grid=lambda u, BV: (tl.cdiv(u.shape[3], BV), u.shape[1], u.shape[0]))
def delta_states(
    k: tl.array, w: tl.array, u: tl.array, g: tl.array, states: tl.array, v: tl.array,
    D: tl.const, BC: tl.const = 64, BV: tl.const = tl.auto,
):  # fmt: skip
    """The gated delta rule's states at chunks of BC, and v = u - w S: g is log2 of the decay, added
    up in each chunk."""
    n, h, b = tl.program_id(0) * BV, tl.program_id(1), tl.program_id(2)
    state = tl.zeros((D, BV), tl.f32)
    for c in tl.range(0, k.shape[2], BC):
        tl.store(states, (b, h, c // BC, 0, n), state.to(states.dtype))
        new = tl.load(u, (b, h, c, n), (BC, BV)).to(tl.f32)
        new -= tl.dot(tl.load(w, (b, h, c, 0), (BC, D)), state.to(w.dtype))
        tl.store(v, (b, h, c, n), new.to(v.dtype))
        decay, last = tl.load(g, (b, h, c), BC), tl.load(g, (b, h, c + BC - 1), ())
        new = new * tl.exp2(last - decay)[:, None]
        state = state * tl.exp2(last)
        state = tl.dot(tl.load(k, (b, h, c, 0), (BC, D)).T, new.to(k.dtype), state)


@tilec.kernel(grid=lambda v, BV: (tl.cdiv(v.shape[3], BV), v.shape[1], v.shape[0]))
def gated_retention(
    q: tl.array, k: tl.array, v: tl.array, g: tl.array, o: tl.array,
    D: tl.const, BC: tl.const = tl.auto, BV: tl.const = tl.auto,
):  # fmt: skip
    """o[i] = q[i] S[i], S[i] = 2^g[i] S[i - 1] + k[i]^T v[i], a g for each place and head."""
    n, h, b = tl.program_id(0) * BV, tl.program_id(1), tl.program_id(2)
    state, at = tl.zeros((D, BV), tl.f32), tl.arange(BC)
    for c in tl.range(0, q.shape[2], BC):
        query, key = tl.load(q, (b, h, c, 0), (BC, D)), tl.load(k, (b, h, c, 0), (BC, D))
        value = tl.load(v, (b, h, c, n), (BC, BV))
        sums = tl.cumsum(tl.load(g, (b, h, c), BC))
        whole = tl.sum(tl.where(at == BC - 1, sums, 0.0))
        out = tl.dot(query, state.to(query.dtype)) * tl.exp2(sums)[:, None]
        apart = sums[:, None] - sums[None, :]
        weights = tl.dot(query, key.T) * tl.exp2(tl.minimum(apart, 0.0))
        weights = tl.where(at[:, None] >= at[None, :], weights, 0.0)
        out = tl.dot(weights.to(value.dtype), value, out)
        tl.store(o, (b, h, c, n), out.to(o.dtype))
        value = (value.to(tl.f32) * tl.exp2(whole - sums)[:, None]).to(value.dtype)
        state = tl.dot(key.T, value, state * tl.exp2(whole))


@tilec.kernel(grid=lambda v, BV: (tl.cdiv(v.shape[3], BV), v.shape[1], v.shape[0]))
def gated_keys(
    q: tl.array, k: tl.array, v: tl.array, g: tl.array, o: tl.array,
    D: tl.const, BC: tl.const = 16, BV: tl.const = tl.auto,
):  # fmt: skip
    """As `gated_retention` with a decay for each element of keys: g (batch, head, place, D)."""
    n, h, b = tl.program_id(0) * BV, tl.program_id(1), tl.program_id(2)
    state, at = tl.zeros((D, BV), tl.f32), tl.arange(BC)
    for c in tl.range(0, q.shape[2], BC):
        query, key = tl.load(q, (b, h, c, 0), (BC, D)), tl.load(k, (b, h, c, 0), (BC, D))
        value = tl.load(v, (b, h, c, n), (BC, BV))
        sums = tl.cumsum(tl.load(g, (b, h, c, 0), (BC, D)), 0)
        whole = tl.sum(tl.where(at[:, None] == BC - 1, sums, 0.0), 0)
        aged = (query.to(tl.f32) * tl.exp2(sums)).to(q.dtype)
        young = (key.to(tl.f32) * tl.exp2(-sums)).to(k.dtype)
        weights = tl.where(at[:, None] >= at[None, :], tl.dot(aged, young.T), 0.0)
        out = tl.dot(weights.to(v.dtype), value, tl.dot(aged, state.to(q.dtype)))
        tl.store(o, (b, h, c, n), out.to(o.dtype))
        left = (key.to(tl.f32) * tl.exp2(whole[None, :] - sums)).to(k.dtype)
        state = tl.dot(left.T, value, state * tl.exp2(whole)[:, None])


@tilec.kernel(grid=lambda v, BV: (tl.cdiv(v.shape[3], BV), v.shape[1], v.shape[0]))
def step_recurrence(
    r: tl.array, k: tl.array, v: tl.array, w: tl.array, bonus: tl.array, o: tl.array,
    D: tl.const, BV: tl.const = 32,
):  # fmt: skip
    """RWKV 6, a place after the other: o = r (S + bonus k^T v), S = w S + k^T v."""
    n, h, b = tl.program_id(0) * BV, tl.program_id(1), tl.program_id(2)
    state, extra = tl.zeros((D, BV), tl.f32), tl.load(bonus, (h, 0), D)[:, None]
    for t in tl.range(0, r.shape[2]):
        key, decay, reads = (tl.load(x, (b, h, t, 0), D).to(tl.f32)[:, None] for x in (k, w, r))
        both = key * tl.load(v, (b, h, t, n), BV).to(tl.f32)[None, :]
        tl.store(o, (b, h, t, n), tl.sum(reads * (state + extra * both), 0).to(o.dtype))
        state = decay * state + both


@tilec.kernel(grid=lambda y, BM, BN: (tl.cdiv(y.shape[1], BM), tl.cdiv(y.shape[2], BN), y.shape[0]))
def additive_scores(
    q: tl.array, k: tl.array, v: tl.array, y: tl.array,
    BM: tl.const = 32, BN: tl.const = 32, BK: tl.const = 16,
):  # fmt: skip
    """y[i, j]: the sum of v tanh(q[i] + k[j])."""
    m, n, b = tl.program_id(0) * BM, tl.program_id(1) * BN, tl.program_id(2)
    total = tl.zeros((BM, BN), tl.f32)
    for c in tl.range(0, q.shape[2], BK):
        x = tl.load(q, (b, m, c), (BM, BK))[:, None, :] + tl.load(k, (b, n, c), (BN, BK))[None]
        total += tl.sum(tl.load(v, c, BK)[None, None, :] * tl.tanh(x, approx=True), 2)
    tl.store(y, (b, m, n), total)


@tilec.kernel(grid=lambda x, BT, BC: (tl.cdiv(x.shape[2], BC), tl.cdiv(x.shape[1], BT), x.shape[0]))
def short_convolution(
    x: tl.array, w: tl.array, bias: tl.array, y: tl.array,
    BT: tl.const = 32, BC: tl.const = 64, TAPS: tl.const = 4,
):  # fmt: skip
    """silu of a causal filter of each channel: x (batch, time, channel), w (tap, channel)."""
    c, t, b = tl.program_id(0) * BC, tl.program_id(1) * BT, tl.program_id(2)
    total = tl.zeros((BT, BC), tl.f32) + tl.load(bias, c, BC).to(tl.f32)[None, :]
    for tap in tl.static_range(TAPS):
        v = tl.load(x, (b, t + tap - (TAPS - 1), c), (BT, BC)).to(tl.f32)
        total += v * tl.load(w, (tap, c), BC).to(tl.f32)[None, :]
    tl.store(y, (b, t, c), tl.silu(total).to(y.dtype))
