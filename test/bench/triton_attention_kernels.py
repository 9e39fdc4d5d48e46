"""Attention forward in Triton, in the form of its tutorial; lengths are multiples of the tile."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _walk(acc, total, highest, query, k, v, base, low, high, m, scale, BM: tl.constexpr,
          BN: tl.constexpr, MASKED: tl.constexpr, SPECIALIZE: tl.constexpr):  # fmt: skip
    """Online softmax over keys `low` to `high`."""
    rows, columns = m + tl.arange(0, BM), tl.arange(0, BN)
    for n in tl.range(low, high, BN, warp_specialize=SPECIALIZE):
        n = tl.multiple_of(n, BN)
        score = tl.dot(query, k.load([base + n, 0]).T)
        if MASKED:
            seen = rows[:, None] >= n + columns[None, :]
            score = score * scale + tl.where(seen, 0, -1.0e6)
            higher = tl.maximum(highest, tl.max(score, 1))
            score -= higher[:, None]
        else:
            higher = tl.maximum(highest, tl.max(score, 1) * scale)
            score = score * scale - higher[:, None]
        weight = tl.math.exp2(score)
        shrink = tl.math.exp2(highest - higher)
        sums = tl.sum(weight, 1)
        acc = acc * shrink[:, None]
        value = v.load([base + n, 0])
        acc = tl.dot(weight.to(value.dtype), value, acc)
        total = total * shrink + sums
        highest = higher
    return acc, total, highest


@triton.jit
def _attend(q, k, v, o, scale, heads, LENGTH: tl.constexpr, D: tl.constexpr, BM: tl.constexpr,
            BN: tl.constexpr, OUT: tl.constexpr, CAUSAL: tl.constexpr,
            SPECIALIZE: tl.constexpr):  # fmt: skip
    m = tl.program_id(0) * BM
    base = tl.program_id(1) * LENGTH
    highest = tl.full([BM], -float("inf"), tl.float32)
    total = tl.full([BM], 1.0, tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    query = q.load([base + m, 0])
    whole = m if CAUSAL else LENGTH
    acc, total, highest = _walk(
        acc, total, highest, query, k, v, base, 0, whole, m, scale, BM, BN, False, SPECIALIZE
    )
    if CAUSAL:
        acc, total, highest = _walk(
            acc, total, highest, query, k, v, base, m, m + BM, m, scale, BM, BN, True, SPECIALIZE
        )
    o.store([base + m, 0], (acc / total[:, None]).to(OUT))


@triton.jit
def plain(q, k, v, o, scale, heads, LENGTH: tl.constexpr, D: tl.constexpr, BM: tl.constexpr,
          BN: tl.constexpr, OUT: tl.constexpr, CAUSAL: tl.constexpr):  # fmt: skip
    """q, k, v, o: descriptors of (heads x LENGTH) x D; `scale` in units of log 2."""
    _attend(q, k, v, o, scale, heads, LENGTH, D, BM, BN, OUT, CAUSAL, False)


@triton.jit
def specialized(q, k, v, o, scale, heads, LENGTH: tl.constexpr, D: tl.constexpr,
                BM: tl.constexpr, BN: tl.constexpr, OUT: tl.constexpr,
                CAUSAL: tl.constexpr):  # fmt: skip
    """Warp-specialised, of pointers; Triton 3.6 fails to compile the causal form."""
    rows = heads * LENGTH
    q = tl.make_tensor_descriptor(q, [rows, D], [D, 1], [BM, D])
    k = tl.make_tensor_descriptor(k, [rows, D], [D, 1], [BN, D])
    v = tl.make_tensor_descriptor(v, [rows, D], [D, 1], [BN, D])
    o = tl.make_tensor_descriptor(o, [rows, D], [D, 1], [BM, D])
    _attend(q, k, v, o, scale, heads, LENGTH, D, BM, BN, OUT, CAUSAL, True)
