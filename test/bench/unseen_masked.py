"""Attention that no other bench has: sinks and caps, lists of blocks, trees, few queries, bytes,
and the difference of two."""

from __future__ import annotations

import tilec
import tilec.language as tl

LOG2_E = 1.4426950408889634


@tilec.kernel(grid=lambda q, BM: (tl.cdiv(q.shape[2], BM), q.shape[1], q.shape[0]))
def capped_attention(
    q: tl.array,
    k: tl.array,
    v: tl.array,
    sinks: tl.array,
    o: tl.array,
    lse: tl.array,
    scale: float,
    cap: float,
    D: tl.const,
    SHARED: tl.const,
    BM: tl.const = tl.auto,
    BN: tl.const = tl.auto,
):
    """Causal, cap * tanh(s / cap), a sink a head, and the logarithms."""
    m, h, b = tl.program_id(0) * BM, tl.program_id(1), tl.program_id(2)
    query = tl.load(q, (b, h, m, 0), (BM, D))
    high = tl.full((BM,), 0.0, tl.f32) + tl.load(sinks, h, ()) * LOG2_E
    total, acc, row = (
        tl.full((BM,), 1.0, tl.f32),
        tl.zeros((BM, D), tl.f32),
        m + tl.arange(BM)[:, None],
    )
    for n in tl.range(0, tl.minimum(m + BM, k.shape[2]), BN):
        key, value = (
            tl.load(k, (b, h // SHARED, n, 0), (BN, D)),
            tl.load(v, (b, h // SHARED, n, 0), (BN, D)),
        )
        s = tl.tanh(tl.dot(query, key.T) * (scale / cap), approx=True) * (cap * LOG2_E)
        s = tl.where(n + tl.arange(BN)[None, :] <= row, s, -tl.inf)
        higher = tl.maximum(high, tl.max(s, 1))
        p, shrunk = tl.exp2(s - higher[:, None], approx=True), tl.exp2(high - higher, approx=True)
        total, high = total * shrunk + tl.sum(p, 1), higher
        acc = tl.dot(p.to(value.dtype), value, acc * shrunk[:, None])
    tl.store(o, (b, h, m, 0), (acc / total[:, None]).to(o.dtype))
    tl.store(lse, (b, h, m), (high + tl.log2(total)) / LOG2_E)


@tilec.kernel(grid=lambda q, BM: (tl.cdiv(q.shape[2], BM), q.shape[1], q.shape[0]))
def block_sparse_attention(
    q: tl.array,
    k: tl.array,
    v: tl.array,
    counts: tl.array,
    places: tl.array,
    o: tl.array,
    scale: float,
    D: tl.const,
    BM: tl.const = 64,
    BN: tl.const = 64,
):
    """A list of blocks of 64 keys for each block of 64 queries of a head."""
    i, h, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    query = tl.load(q, (b, h, i * BM, 0), (BM, D))
    high, total, acc = (
        tl.full((BM,), -1e30, tl.f32),
        tl.zeros((BM,), tl.f32),
        tl.zeros((BM, D), tl.f32),
    )
    for j in tl.range(tl.load(counts, (h, i), ())):
        n = tl.load(places, (h, i, j), ()) * BN
        key, value = tl.load(k, (b, h, n, 0), (BN, D)), tl.load(v, (b, h, n, 0), (BN, D))
        s = tl.dot(query, key.T) * (scale * LOG2_E)
        s = tl.where(n + tl.arange(BN)[None, :] < k.shape[2], s, -tl.inf)
        higher = tl.maximum(high, tl.max(s, 1))
        p, shrunk = tl.exp2(s - higher[:, None], approx=True), tl.exp2(high - higher, approx=True)
        total, high = total * shrunk + tl.sum(p, 1), higher
        acc = tl.dot(p.to(value.dtype), value, acc * shrunk[:, None])
    tl.store(o, (b, h, i * BM, 0), (acc / tl.maximum(total, 1e-30)[:, None]).to(o.dtype))


@tilec.kernel(grid=lambda q, BM: (tl.cdiv(q.shape[2], BM), q.shape[1], q.shape[0]))
def tree_attention(
    q: tl.array,
    k: tl.array,
    v: tl.array,
    tree: tl.array,
    o: tl.array,
    scale: float,
    D: tl.const,
    BM: tl.const = tl.auto,
    BN: tl.const = tl.auto,
):
    """Queries are drafts behind a prefix: they see all of it, and of each other what `tree`
    (queries, queries), i8, says."""
    m, h, b = tl.program_id(0) * BM, tl.program_id(1), tl.program_id(2)
    query = tl.load(q, (b, h, m, 0), (BM, D))
    high, total, acc = (
        tl.full((BM,), -1e30, tl.f32),
        tl.zeros((BM,), tl.f32),
        tl.zeros((BM, D), tl.f32),
    )
    prefix = k.shape[2] - q.shape[2]
    for n in tl.range(0, k.shape[2], BN):
        key, value = tl.load(k, (b, h, n, 0), (BN, D)), tl.load(v, (b, h, n, 0), (BN, D))
        s = tl.dot(query, key.T) * (scale * LOG2_E)
        if n + BN > prefix:
            column = n + tl.arange(BN)[None, :]
            seen = tl.load(tree, (m, n - prefix), (BM, BN)) != 0
            s = tl.where((column < prefix) | (seen & (column < k.shape[2])), s, -tl.inf)
        higher = tl.maximum(high, tl.max(s, 1))
        p, shrunk = tl.exp2(s - higher[:, None], approx=True), tl.exp2(high - higher, approx=True)
        total, high = total * shrunk + tl.sum(p, 1), higher
        acc = tl.dot(p.to(value.dtype), value, acc * shrunk[:, None])
    tl.store(o, (b, h, m, 0), (acc / total[:, None]).to(o.dtype))


@tilec.kernel(grid=lambda q, parts: (parts.shape[2], q.shape[1], q.shape[0]))
def split_cross(
    q: tl.array,
    k: tl.array,
    v: tl.array,
    parts: tl.array,
    logs: tl.array,
    scale: float,
    D: tl.const,
    BM: tl.const = 16,
    BN: tl.const = tl.auto,
):
    """Few queries over long keys, split: parts (batch, heads, splits, BM, D), logs without D."""
    split, h, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    share = tl.cdiv(tl.cdiv(k.shape[2], tl.num_programs(0)), BN) * BN
    query = tl.load(q, (b, h, 0, 0), (BM, D))
    high, total, acc = (
        tl.full((BM,), -1e30, tl.f32),
        tl.zeros((BM,), tl.f32),
        tl.zeros((BM, D), tl.f32),
    )
    end = tl.minimum(split * share + share, k.shape[2])
    for n in tl.range(split * share, end, BN):
        key, value = tl.load(k, (b, h, n, 0), (BN, D)), tl.load(v, (b, h, n, 0), (BN, D))
        s = tl.where(
            n + tl.arange(BN)[None, :] < end, tl.dot(query, key.T) * (scale * LOG2_E), -tl.inf
        )
        higher = tl.maximum(high, tl.max(s, 1))
        p, shrunk = tl.exp2(s - higher[:, None], approx=True), tl.exp2(high - higher, approx=True)
        total, high = total * shrunk + tl.sum(p, 1), higher
        acc = tl.dot(p.to(value.dtype), value, acc * shrunk[:, None])
    tl.store(parts, (b, h, split, 0, 0), acc / tl.maximum(total, 1e-30)[:, None])
    tl.store(logs, (b, h, split, 0), high + tl.log2(tl.maximum(total, 1e-30)))


@tilec.kernel(grid=lambda q, BM: (tl.cdiv(q.shape[2], BM), q.shape[1], q.shape[0]))
def eight_bit_attention(
    q: tl.array,
    k: tl.array,
    v: tl.array,
    scales: tl.array,
    o: tl.array,
    scale: float,
    D: tl.const,
    BM: tl.const = tl.auto,
    BN: tl.const = tl.auto,
):
    """q, k, v of e4m3 with a scale a head each, scales (heads, 3); weights are e4m3, times 256."""
    m, h, b = tl.program_id(0) * BM, tl.program_id(1), tl.program_id(2)
    query = tl.load(q, (b, h, m, 0), (BM, D))
    factor = tl.load(scales, (h, 0), ()) * tl.load(scales, (h, 1), ()) * (scale * LOG2_E)
    high, total, acc = (
        tl.full((BM,), -1e30, tl.f32),
        tl.zeros((BM,), tl.f32),
        tl.zeros((BM, D), tl.f32),
    )
    for n in tl.range(0, k.shape[2], BN):
        key, value = tl.load(k, (b, h, n, 0), (BN, D)), tl.load(v, (b, h, n, 0), (BN, D))
        s = tl.where(
            n + tl.arange(BN)[None, :] < k.shape[2], tl.dot(query, key.T) * factor, -tl.inf
        )
        higher = tl.maximum(high, tl.max(s, 1))
        p, shrunk = (
            tl.exp2(s - higher[:, None] + 8.0, approx=True),
            tl.exp2(high - higher, approx=True),
        )
        total, high = total * shrunk + tl.sum(p, 1), higher
        acc = tl.dot(p.to(value.dtype), value, acc * shrunk[:, None])
    tl.store(o, (b, h, m, 0), (acc / total[:, None] * tl.load(scales, (h, 2), ())).to(o.dtype))


@tilec.kernel(grid=lambda q, BM: (tl.cdiv(q.shape[2], BM), q.shape[1] // 2, q.shape[0]))
def differential_attention(
    q: tl.array,
    k: tl.array,
    v: tl.array,
    o: tl.array,
    scale: float,
    much: float,
    D: tl.const,
    DV: tl.const,
    BM: tl.const = tl.auto,
    BN: tl.const = tl.auto,
):
    """Causal; of heads 2 h and 2 h + 1 of q and k: the softmax of one less `much` of the other's,
    times head h of v."""
    m, h, b = tl.program_id(0) * BM, tl.program_id(1), tl.program_id(2)
    first, second = tl.load(q, (b, 2 * h, m, 0), (BM, D)), tl.load(q, (b, 2 * h + 1, m, 0), (BM, D))
    high, total, acc = (
        tl.full((BM,), -1e30, tl.f32),
        tl.zeros((BM,), tl.f32),
        tl.zeros((BM, DV), tl.f32),
    )
    peak, mass, sums = (
        tl.full((BM,), -1e30, tl.f32),
        tl.zeros((BM,), tl.f32),
        tl.zeros((BM, DV), tl.f32),
    )
    row = m + tl.arange(BM)[:, None]
    for n in tl.range(0, tl.minimum(m + BM, k.shape[2]), BN):
        value = tl.load(v, (b, h, n, 0), (BN, DV))
        seen = n + tl.arange(BN)[None, :] <= row
        s = tl.dot(first, tl.load(k, (b, 2 * h, n, 0), (BN, D)).T) * (scale * LOG2_E)
        s = tl.where(seen, s, -tl.inf)
        higher = tl.maximum(high, tl.max(s, 1))
        p, shrunk = tl.exp2(s - higher[:, None], approx=True), tl.exp2(high - higher, approx=True)
        total, high = total * shrunk + tl.sum(p, 1), higher
        acc = tl.dot(p.to(value.dtype), value, acc * shrunk[:, None])
        s = tl.dot(second, tl.load(k, (b, 2 * h + 1, n, 0), (BN, D)).T) * (scale * LOG2_E)
        s = tl.where(seen, s, -tl.inf)
        higher = tl.maximum(peak, tl.max(s, 1))
        p, shrunk = tl.exp2(s - higher[:, None], approx=True), tl.exp2(peak - higher, approx=True)
        mass, peak = mass * shrunk + tl.sum(p, 1), higher
        sums = tl.dot(p.to(value.dtype), value, sums * shrunk[:, None])
    tl.store(o, (b, h, m, 0), (acc / total[:, None] - much * (sums / mass[:, None])).to(o.dtype))
