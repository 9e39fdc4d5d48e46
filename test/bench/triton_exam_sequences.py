"""Triton's counterparts of `exam_sequences`, as a competent user writes them."""

import triton
import triton.language as tl


@triton.jit
def sink_attention(
    q, k, v, sinks, o, heads, kv_heads, length, scale, window,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    m, h, b = tl.program_id(0) * BM, tl.program_id(1), tl.program_id(2).to(tl.int64)
    row, d = m + tl.arange(0, BM), tl.arange(0, D)
    base = (b * heads + h) * length * D
    kv = (b * kv_heads + h // (heads // kv_heads)) * length * D
    at = base + row[:, None] * D + d[None, :]
    query = tl.load(q + at, mask=row[:, None] < length, other=0.0)
    sink = tl.load(sinks + h).to(tl.float32)
    high, total = tl.zeros((BM,), tl.float32) + sink, tl.full((BM,), 1.0, tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    first = tl.maximum(m - window + 1, 0) // BN * BN
    for n in range(first, tl.minimum(m + BM, length), BN):
        column = n + tl.arange(0, BN)
        inside = column[:, None] < length
        key = tl.load(k + kv + column[:, None] * D + d[None, :], mask=inside, other=0.0)
        scores = tl.dot(query, key.T) * scale
        behind = row[:, None] - column[None, :]
        scores = tl.where((behind >= 0) & (behind < window), scores, -1e30)
        top = tl.maximum(high, tl.max(scores, 1))
        p, aged = tl.exp(scores - top[:, None]), tl.exp(high - top)
        total = total * aged + tl.sum(p, 1)
        value = tl.load(v + kv + column[:, None] * D + d[None, :], mask=inside, other=0.0)
        acc = tl.dot(p.to(value.dtype), value, acc * aged[:, None])
        high = top
    out = (acc / total[:, None]).to(o.dtype.element_ty)
    tl.store(o + at, out, mask=row[:, None] < length)


@triton.jit
def prefix_attention(
    q, k, v, prefixes, o, heads, length, scale,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    m, h, b = tl.program_id(0) * BM, tl.program_id(1), tl.program_id(2).to(tl.int64)
    row, d = m + tl.arange(0, BM), tl.arange(0, D)
    base, prefix = (b * heads + h) * length * D, tl.load(prefixes + b)
    at = base + row[:, None] * D + d[None, :]
    query = tl.load(q + at, mask=row[:, None] < length, other=0.0)
    high, total = tl.full((BM,), float("-inf"), tl.float32), tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n in range(0, tl.minimum(tl.maximum(m + BM, prefix), length), BN):
        column = n + tl.arange(0, BN)
        inside = column[:, None] < length
        key = tl.load(k + base + column[:, None] * D + d[None, :], mask=inside, other=0.0)
        scores = tl.dot(query, key.T) * (scale * 1.4426950409)
        seen = (column[None, :] <= row[:, None]) | (column[None, :] < prefix)
        scores = tl.where(seen & (column[None, :] < length), scores, float("-inf"))
        top = tl.maximum(high, tl.max(scores, 1))
        p, aged = tl.exp2(scores - top[:, None]), tl.exp2(high - top)
        total = total * aged + tl.sum(p, 1)
        value = tl.load(v + base + column[:, None] * D + d[None, :], mask=inside, other=0.0)
        acc = tl.dot(p.to(value.dtype), value, acc * aged[:, None])
        high = top
    out = (acc / total[:, None]).to(o.dtype.element_ty)
    tl.store(o + at, out, mask=row[:, None] < length)


@triton.jit
def paged_decoding(
    q, k, v, pages, lengths, o, kv_heads, most, scale,
    G: tl.constexpr, GP: tl.constexpr, D: tl.constexpr, PAGE: tl.constexpr,
):  # fmt: skip
    h, b = tl.program_id(0), tl.program_id(1).to(tl.int64)
    length, d, g, place = (
        tl.load(lengths + b),
        tl.arange(0, D),
        tl.arange(0, GP),
        tl.arange(0, PAGE),
    )
    at = ((b * kv_heads + h) * G + g[:, None]) * D + d[None, :]
    query = tl.load(q + at, mask=g[:, None] < G, other=0.0)
    high, total = tl.full((GP,), float("-inf"), tl.float32), tl.zeros((GP,), tl.float32)
    acc = tl.zeros((GP, D), tl.float32)
    for i in range(0, tl.cdiv(length, PAGE)):
        page = tl.load(pages + b * most + i).to(tl.int64)
        of = ((page * PAGE + place[:, None]) * kv_heads + h) * D + d[None, :]
        scores = tl.dot(query, tl.load(k + of).T) * scale
        scores = tl.where((i * PAGE + place < length)[None, :], scores, float("-inf"))
        top = tl.maximum(high, tl.max(scores, 1))
        p, aged = tl.exp(scores - top[:, None]), tl.exp(high - top)
        total = total * aged + tl.sum(p, 1)
        value = tl.load(v + of)
        acc = tl.dot(p.to(value.dtype), value, acc * aged[:, None])
        high = top
    out = (acc / total[:, None]).to(o.dtype.element_ty)
    tl.store(o + at, out, mask=g[:, None] < G)


@triton.jit
def normed_attention(
    q, k, v, gain, lengths, o, heads, length, scale,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    m, h, b = tl.program_id(0) * BM, tl.program_id(1), tl.program_id(2).to(tl.int64)
    row, d = m + tl.arange(0, BM), tl.arange(0, D)
    w, keys = tl.load(gain + d).to(tl.float32)[None, :], tl.load(lengths + b)
    base = (b * heads + h) * length * D
    at = base + row[:, None] * D + d[None, :]
    query = tl.load(q + at, mask=row[:, None] < length, other=0.0).to(tl.float32)
    query = query * tl.rsqrt(tl.sum(query * query, 1) / D + 1e-6)[:, None] * w
    query = query.to(q.dtype.element_ty)
    high, total = tl.full((BM,), float("-inf"), tl.float32), tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n in range(0, tl.minimum(keys, length), BN):
        column = n + tl.arange(0, BN)
        inside = column[:, None] < length
        key = tl.load(k + base + column[:, None] * D + d[None, :], mask=inside, other=0.0)
        key = key.to(tl.float32)
        key = key * tl.rsqrt(tl.sum(key * key, 1) / D + 1e-6)[:, None] * w
        scores = tl.dot(query, key.to(query.dtype).T) * scale
        scores = tl.where((column < keys)[None, :], scores, float("-inf"))
        top = tl.maximum(high, tl.max(scores, 1))
        p, aged = tl.exp(scores - top[:, None]), tl.exp(high - top)
        total = total * aged + tl.sum(p, 1)
        value = tl.load(v + base + column[:, None] * D + d[None, :], mask=inside, other=0.0)
        acc = tl.dot(p.to(value.dtype), value, acc * aged[:, None])
        high = top
    out = (acc / total[:, None]).to(o.dtype.element_ty)
    tl.store(o + at, out, mask=row[:, None] < length)


@triton.jit
def _sequence(heads, length, D: tl.constexpr, BV: tl.constexpr):
    """Where a head of a sequence begins, of its keys; columns of values."""
    place = (tl.program_id(2).to(tl.int64) * heads + tl.program_id(1)) * length
    return place, tl.program_id(0) * BV + tl.arange(0, BV), tl.arange(0, D)


@triton.jit
def delta_states(
    k, w, u, g, states, v, heads, length, DV, D: tl.constexpr, BC: tl.constexpr, BV: tl.constexpr
):
    place, n, d = _sequence(heads, length, D, BV)
    state, inside = tl.zeros((D, BV), tl.float32), n[None, :] < DV
    for c in range(0, length, BC):
        row = place + c + tl.arange(0, BC)
        there = c + tl.arange(0, BC) < length
        at = ((place // length * tl.cdiv(length, BC) + c // BC) * D + d[:, None]) * DV + n[None, :]
        tl.store(states + at, state.to(states.dtype.element_ty), mask=inside)
        at, both = row[:, None] * DV + n[None, :], there[:, None] & inside
        of = row[:, None] * D + d[None, :]
        new = tl.load(u + at, mask=both, other=0.0).to(tl.float32)
        a = tl.load(w + of, mask=there[:, None], other=0.0)
        new -= tl.dot(a, state.to(a.dtype))
        tl.store(v + at, new.to(v.dtype.element_ty), mask=both)
        decay, last = tl.load(g + row, mask=there, other=0.0), tl.load(g + place + c + BC - 1)
        new = new * tl.exp2(last - decay)[:, None]
        key = tl.load(k + of, mask=there[:, None], other=0.0)
        state = tl.dot(key.T, new.to(key.dtype), state * tl.exp2(last))


@triton.jit
def gated_retention(
    q, k, v, g, o, heads, length, DV, D: tl.constexpr, BC: tl.constexpr, BV: tl.constexpr
):
    place, n, d = _sequence(heads, length, D, BV)
    state, i = tl.zeros((D, BV), tl.float32), tl.arange(0, BC)
    for c in range(0, length, BC):
        row, there = place + c + i, c + i < length
        of, at = row[:, None] * D + d[None, :], row[:, None] * DV + n[None, :]
        both = there[:, None] & (n[None, :] < DV)
        query = tl.load(q + of, mask=there[:, None], other=0.0)
        key = tl.load(k + of, mask=there[:, None], other=0.0)
        value = tl.load(v + at, mask=both, other=0.0)
        sums = tl.cumsum(tl.load(g + row, mask=there, other=0.0))
        whole = tl.sum(tl.where(i == BC - 1, sums, 0.0))
        out = tl.dot(query, state.to(query.dtype)) * tl.exp2(sums)[:, None]
        weights = tl.dot(query, key.T) * tl.exp2(tl.minimum(sums[:, None] - sums[None, :], 0.0))
        weights = tl.where(i[:, None] >= i[None, :], weights, 0.0)
        out = tl.dot(weights.to(value.dtype), value, out)
        tl.store(o + at, out.to(o.dtype.element_ty), mask=both)
        value = (value.to(tl.float32) * tl.exp2(whole - sums)[:, None]).to(value.dtype)
        state = tl.dot(key.T, value, state * tl.exp2(whole))


@triton.jit
def gated_keys(
    q, k, v, g, o, heads, length, DV, D: tl.constexpr, BC: tl.constexpr, BV: tl.constexpr
):
    place, n, d = _sequence(heads, length, D, BV)
    state, i = tl.zeros((D, BV), tl.float32), tl.arange(0, BC)
    for c in range(0, length, BC):
        row, there = place + c + i, c + i < length
        of, at = row[:, None] * D + d[None, :], row[:, None] * DV + n[None, :]
        both = there[:, None] & (n[None, :] < DV)
        query = tl.load(q + of, mask=there[:, None], other=0.0)
        key = tl.load(k + of, mask=there[:, None], other=0.0)
        value = tl.load(v + at, mask=both, other=0.0)
        sums = tl.cumsum(tl.load(g + of, mask=there[:, None], other=0.0), 0)
        whole = tl.sum(tl.where(i[:, None] == BC - 1, sums, 0.0), 0)
        aged = (query.to(tl.float32) * tl.exp2(sums)).to(query.dtype)
        young = (key.to(tl.float32) * tl.exp2(-sums)).to(key.dtype)
        weights = tl.where(i[:, None] >= i[None, :], tl.dot(aged, young.T), 0.0)
        out = tl.dot(weights.to(value.dtype), value, tl.dot(aged, state.to(aged.dtype)))
        tl.store(o + at, out.to(o.dtype.element_ty), mask=both)
        left = (key.to(tl.float32) * tl.exp2(whole[None, :] - sums)).to(key.dtype)
        state = tl.dot(left.T, value, state * tl.exp2(whole)[:, None])


@triton.jit
def step_recurrence(r, k, v, w, bonus, o, heads, length, DV, D: tl.constexpr, BV: tl.constexpr):
    place, n, d = _sequence(heads, length, D, BV)
    extra = tl.load(bonus + tl.program_id(1) * D + d)[:, None]
    state = tl.zeros((D, BV), tl.float32)
    for t in range(length):
        key = tl.load(k + (place + t) * D + d).to(tl.float32)[:, None]
        decay = tl.load(w + (place + t) * D + d).to(tl.float32)[:, None]
        reads = tl.load(r + (place + t) * D + d).to(tl.float32)[:, None]
        value = tl.load(v + (place + t) * DV + n, mask=n < DV, other=0.0).to(tl.float32)
        both = key * value[None, :]
        out = tl.sum(reads * (state + extra * both), 0)
        tl.store(o + (place + t) * DV + n, out.to(o.dtype.element_ty), mask=n < DV)
        state = decay * state + both


@triton.jit
def additive_scores(q, k, v, y, m, n, c, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    b, total = tl.program_id(2).to(tl.int64), tl.zeros((BM, BN), tl.float32)
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    for start in range(0, c, BK):
        e = start + tl.arange(0, BK)
        inside = (i[:, None] < m) & (e[None, :] < c)
        one = tl.load(q + (b * m + i[:, None]) * c + e[None, :], mask=inside, other=0.0)
        inside = (j[:, None] < n) & (e[None, :] < c)
        two = tl.load(k + (b * n + j[:, None]) * c + e[None, :], mask=inside, other=0.0)
        x = one[:, None, :] + two[None, :, :]
        x = tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [x], tl.float32, True, 1)
        weight = tl.load(v + e, mask=e < c, other=0.0)
        total += tl.sum(weight[None, None, :] * x, 2)
    inside = (i[:, None] < m) & (j[None, :] < n)
    tl.store(y + (b * m + i[:, None]) * n + j[None, :], total, mask=inside)


@triton.jit
def short_convolution(
    x, w, bias, y, steps, channels, BT: tl.constexpr, BC: tl.constexpr, TAPS: tl.constexpr
):
    b = tl.program_id(2).to(tl.int64) * steps
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    t = tl.program_id(1) * BT + tl.arange(0, BT)
    first = tl.load(bias + c, mask=c < channels, other=0.0).to(tl.float32)
    total = tl.zeros((BT, BC), tl.float32) + first[None, :]
    for tap in tl.static_range(TAPS):
        at = t[:, None] + tap - (TAPS - 1)
        inside = (at >= 0) & (at < steps) & (c[None, :] < channels)
        v = tl.load(x + (b + at) * channels + c[None, :], mask=inside, other=0.0).to(tl.float32)
        weight = tl.load(w + tap * channels + c, mask=c < channels, other=0.0).to(tl.float32)
        total += v * weight[None, :]
    out = (total * tl.sigmoid(total)).to(y.dtype.element_ty)
    inside = (t[:, None] < steps) & (c[None, :] < channels)
    tl.store(y + (b + t[:, None]) * channels + c[None, :], out, mask=inside)
