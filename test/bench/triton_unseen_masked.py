"""Triton's counterparts of `unseen_masked`, as a competent user writes them."""

import triton
import triton.language as tl
from triton_unseen_attention import step

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def tanh(x):
    return 2.0 / (1.0 + tl.math.exp2(x * -2.8853900817779268)) - 1.0


@triton.jit
def capped_attention(
    q,
    k,
    v,
    sinks,
    o,
    lse,
    scale,
    cap,
    heads,
    length,
    d,
    D: tl.constexpr,
    SHARED: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    m, inner, head = tl.program_id(0) * BM, tl.arange(0, D), tl.program_id(1)
    rows, batch = m + tl.arange(0, BM), tl.program_id(2)
    base = (batch * heads + head).to(tl.int64) * length * d
    other = (batch * (heads // SHARED) + head // SHARED).to(tl.int64) * length * d
    query = tl.load(
        q + base + rows[:, None] * d + inner[None, :],
        mask=(rows[:, None] < length) & (inner[None, :] < d),
        other=0.0,
    )
    high = tl.zeros((BM,), tl.float32) + tl.load(sinks + head) * LOG2_E
    total, acc = tl.zeros((BM,), tl.float32) + 1.0, tl.zeros((BM, D), tl.float32)
    for n in range(0, min(m + BM, length), BN):
        columns = n + tl.arange(0, BN)
        there, mask = (
            other + columns[:, None] * d + inner[None, :],
            (columns[:, None] < length) & (inner[None, :] < d),
        )
        key, value = (
            tl.load(k + there, mask=mask, other=0.0),
            tl.load(v + there, mask=mask, other=0.0),
        )
        s = tanh(tl.dot(query, key.T) * (scale / cap)) * (cap * LOG2_E)
        s = tl.where(columns[None, :] <= rows[:, None], s, float("-inf"))
        acc, total, high = step(acc, total, high, s, value)
    out = (acc / total[:, None]).to(o.dtype.element_ty)
    tl.store(
        o + base + rows[:, None] * d + inner[None, :],
        out,
        mask=(rows[:, None] < length) & (inner[None, :] < d),
    )
    tl.store(
        lse + (batch * heads + head).to(tl.int64) * length + rows,
        (high + tl.math.log2(total)) / LOG2_E,
        mask=rows < length,
    )


@triton.jit
def block_sparse_attention(
    q,
    k,
    v,
    counts,
    places,
    o,
    scale,
    heads,
    length,
    blocks,
    most,
    D: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    i, inner, head = tl.program_id(0), tl.arange(0, D), tl.program_id(1)
    rows = i * BM + tl.arange(0, BM)
    base = (tl.program_id(2) * heads + head).to(tl.int64) * length * D
    at = base + rows[:, None] * D + inner[None, :]
    query = tl.load(q + at, mask=rows[:, None] < length, other=0.0)
    high, total, acc = (
        tl.full((BM,), -1e30, tl.float32),
        tl.zeros((BM,), tl.float32),
        tl.zeros((BM, D), tl.float32),
    )
    for j in range(tl.load(counts + head * blocks + i)):
        n = tl.load(places + (head * blocks + i) * most + j) * BN
        columns = n + tl.arange(0, BN)
        there, mask = base + columns[:, None] * D + inner[None, :], columns[:, None] < length
        key, value = (
            tl.load(k + there, mask=mask, other=0.0),
            tl.load(v + there, mask=mask, other=0.0),
        )
        s = tl.where(
            columns[None, :] < length, tl.dot(query, key.T) * (scale * LOG2_E), float("-inf")
        )
        acc, total, high = step(acc, total, high, s, value)
    tl.store(
        o + at,
        (acc / tl.maximum(total, 1e-30)[:, None]).to(o.dtype.element_ty),
        mask=rows[:, None] < length,
    )


@triton.jit
def tree_attention(
    q,
    k,
    v,
    mask_of,
    o,
    scale,
    heads,
    length,
    keys,
    D: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    m, inner = tl.program_id(0) * BM, tl.arange(0, D)
    rows, of = m + tl.arange(0, BM), (tl.program_id(2) * heads + tl.program_id(1)).to(tl.int64)
    at = of * length * D + rows[:, None] * D + inner[None, :]
    query = tl.load(q + at, mask=rows[:, None] < length, other=0.0)
    high, total, acc = (
        tl.full((BM,), -1e30, tl.float32),
        tl.zeros((BM,), tl.float32),
        tl.zeros((BM, D), tl.float32),
    )
    prefix = keys - length
    for n in range(0, keys, BN):
        columns = n + tl.arange(0, BN)
        there, mask = of * keys * D + columns[:, None] * D + inner[None, :], columns[:, None] < keys
        key, value = (
            tl.load(k + there, mask=mask, other=0.0),
            tl.load(v + there, mask=mask, other=0.0),
        )
        s = tl.dot(query, key.T) * (scale * LOG2_E)
        if n + BN > prefix:
            c = columns[None, :] - prefix
            seen = tl.load(
                mask_of + rows[:, None] * length + c,
                mask=(rows[:, None] < length) & (c >= 0) & (c < length),
                other=0,
            )
            s = tl.where((c < 0) | (seen != 0), s, float("-inf"))
        acc, total, high = step(acc, total, high, s, value)
    tl.store(o + at, (acc / total[:, None]).to(o.dtype.element_ty), mask=rows[:, None] < length)


@triton.jit
def split_cross(
    q,
    k,
    v,
    parts,
    logs,
    scale,
    heads,
    length,
    keys,
    D: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    part, inner, rows = tl.program_id(0), tl.arange(0, D), tl.arange(0, BM)
    of, splits = (tl.program_id(2) * heads + tl.program_id(1)).to(tl.int64), tl.num_programs(0)
    share = tl.cdiv(tl.cdiv(keys, splits), BN) * BN
    query = tl.load(
        q + of * length * D + rows[:, None] * D + inner[None, :],
        mask=rows[:, None] < length,
        other=0.0,
    )
    high, total, acc = (
        tl.full((BM,), -1e30, tl.float32),
        tl.zeros((BM,), tl.float32),
        tl.zeros((BM, D), tl.float32),
    )
    end = min(part * share + share, keys)
    for n in range(part * share, end, BN):
        columns = n + tl.arange(0, BN)
        there, mask = of * keys * D + columns[:, None] * D + inner[None, :], columns[:, None] < end
        key, value = (
            tl.load(k + there, mask=mask, other=0.0),
            tl.load(v + there, mask=mask, other=0.0),
        )
        s = tl.where(columns[None, :] < end, tl.dot(query, key.T) * (scale * LOG2_E), float("-inf"))
        acc, total, high = step(acc, total, high, s, value)
    total = tl.maximum(total, 1e-30)
    tl.store(
        parts + ((of * splits + part) * BM + rows[:, None]) * D + inner[None, :],
        acc / total[:, None],
    )
    tl.store(logs + (of * splits + part) * BM + rows, high + tl.math.log2(total))


@triton.jit
def eight_bit_attention(
    q, k, v, scales, o, scale, heads, length, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    m, inner, head = tl.program_id(0) * BM, tl.arange(0, D), tl.program_id(1)
    rows, base = m + tl.arange(0, BM), (tl.program_id(2) * heads + head).to(tl.int64) * length * D
    at = base + rows[:, None] * D + inner[None, :]
    query = tl.load(q + at, mask=rows[:, None] < length, other=0.0)
    factor = tl.load(scales + head * 3) * tl.load(scales + head * 3 + 1) * (scale * LOG2_E)
    high, total, acc = (
        tl.full((BM,), -1e30, tl.float32),
        tl.zeros((BM,), tl.float32),
        tl.zeros((BM, D), tl.float32),
    )
    for n in range(0, length, BN):
        columns = n + tl.arange(0, BN)
        there, mask = base + columns[:, None] * D + inner[None, :], columns[:, None] < length
        key, value = (
            tl.load(k + there, mask=mask, other=0.0),
            tl.load(v + there, mask=mask, other=0.0),
        )
        s = tl.where(columns[None, :] < length, tl.dot(query, key.T) * factor, float("-inf"))
        higher = tl.maximum(high, tl.max(s, 1))
        p, shrunk = tl.math.exp2(s - higher[:, None] + 8.0), tl.math.exp2(high - higher)
        acc = tl.dot(p.to(value.dtype), value, acc * shrunk[:, None])
        total, high = total * shrunk + tl.sum(p, 1), higher
    out = acc / total[:, None] * tl.load(scales + head * 3 + 2)
    tl.store(o + at, out.to(o.dtype.element_ty), mask=rows[:, None] < length)


@triton.jit
def differential_attention(
    q, k, v, o, scale, much, heads, length, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    m, inner, head = tl.program_id(0) * BM, tl.arange(0, D), tl.program_id(1)
    rows, batch = m + tl.arange(0, BM), tl.program_id(2)
    base = (batch * heads + head).to(tl.int64) * length * D
    at = rows[:, None] * D + inner[None, :]
    first = tl.load(q + 2 * base + at, mask=rows[:, None] < length, other=0.0)
    second = tl.load(q + 2 * base + length * D + at, mask=rows[:, None] < length, other=0.0)
    high, total, acc = (
        tl.full((BM,), -1e30, tl.float32),
        tl.zeros((BM,), tl.float32),
        tl.zeros((BM, D), tl.float32),
    )
    peak, mass, sums = (
        tl.full((BM,), -1e30, tl.float32),
        tl.zeros((BM,), tl.float32),
        tl.zeros((BM, D), tl.float32),
    )
    for n in range(0, min(m + BM, length), BN):
        columns = n + tl.arange(0, BN)
        there, mask = columns[:, None] * D + inner[None, :], columns[:, None] < length
        value = tl.load(v + base + there, mask=mask, other=0.0)
        key = tl.load(k + 2 * base + there, mask=mask, other=0.0)
        s = tl.where(
            columns[None, :] <= rows[:, None],
            tl.dot(first, key.T) * (scale * LOG2_E),
            float("-inf"),
        )
        acc, total, high = step(acc, total, high, s, value)
        key = tl.load(k + 2 * base + length * D + there, mask=mask, other=0.0)
        s = tl.where(
            columns[None, :] <= rows[:, None],
            tl.dot(second, key.T) * (scale * LOG2_E),
            float("-inf"),
        )
        sums, mass, peak = step(sums, mass, peak, s, value)
    out = acc / total[:, None] - much * (sums / mass[:, None])
    tl.store(o + base + at, out.to(o.dtype.element_ty), mask=rows[:, None] < length)
