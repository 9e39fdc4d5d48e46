"""The gradients of attention (arXiv:2307.08691, B.4), for `attention_gradients`.

Scores are computed again, block by block, from the base-2 logarithm of each query's sum of weights.
One kernel holds keys and walks over the queries that see them, of all heads that share them; one
holds queries and walks over the keys. Blocks that all queries see whole are not masked. No atomics:
the same bits every time.
"""

# Of a kernel's functions only what a checker cannot infer is annotated.
# pyright: basic

from __future__ import annotations

import tilec
import tilec.language as tl
from tilec.ops.attention_kernel import LOG2_E, sees


@tilec.kernel(grid=lambda o, BM: (tl.cdiv(o.shape[2], BM), o.shape[1], o.shape[0]))
def weigh_gradients(
    o: tl.array, do: tl.array, delta: tl.array, DV: tl.const, BM: tl.const = tl.auto
):
    """delta = sum of o * do over the elements of a head: what the softmax takes off each score."""
    at = (tl.program_id(2), tl.program_id(1), tl.program_id(0) * BM)
    output, grad = tl.load(o, (*at, 0), (BM, DV)), tl.load(do, (*at, 0), (BM, DV))
    tl.store(delta, at, tl.sum(output.to(tl.f32) * grad.to(tl.f32), 1))


@tilec.kernel(grid=lambda k, BN: (tl.cdiv(k.shape[2], BN), k.shape[1], k.shape[0]))
def key_gradients(
    q: tl.array,
    k: tl.array,
    v: tl.array,
    do: tl.array,
    logs: tl.array,
    delta: tl.array,
    dk: tl.array,
    dv: tl.array,
    scale: tl.f32,
    D: tl.const,
    DV: tl.const,
    window=None,  # an i32, or None
    CAUSAL: tl.const = False,
    BM: tl.const = tl.auto,
    BN: tl.const = tl.auto,
):
    """dk, dv of BN keys. Scores lie transposed, (BN, BM): they are left operands as they are."""
    batch, head, n = tl.program_id(2), tl.program_id(1), tl.program_id(0) * BN
    shared_by, factor = q.shape[1] // k.shape[1], scale * LOG2_E
    key = tl.load(k, (batch, head, n, 0), (BN, D))
    value = tl.load(v, (batch, head, n, 0), (BN, DV))
    dkey, dvalue = tl.zeros((BN, D), tl.f32), tl.zeros((BN, DV), tl.f32)
    last = q.shape[2]
    if window is not None:
        last = tl.minimum(last, n + BN - 1 + window)
    for h in tl.range(head * shared_by, (head + 1) * shared_by):
        for m in tl.range(n // BM * BM if CAUSAL else 0, last, BM):
            query = tl.load(q, (batch, h, m, 0), (BM, D))
            grad = tl.load(do, (batch, h, m, 0), (BM, DV))
            log, off = (tl.load(x, (batch, h, m), BM)[None, :] for x in (logs, delta))
            weight = tl.exp2(tl.dot(key, query.T) * factor - log, approx=True)
            if CAUSAL:
                partly = m < n + BN
                if window is not None:
                    partly = partly | (m + BM > n + window)
                if partly:
                    rows, columns = m + tl.arange(BM)[None, :], n + tl.arange(BN)[:, None]
                    seen = sees(rows, columns, k.shape[2], True, window)
                    weight = tl.where(seen, weight, 0.0)
            dvalue = tl.dot(weight.to(grad.dtype), grad, dvalue)
            dscore = weight * (tl.dot(value, grad.T) - off)
            dkey = tl.dot(dscore.to(query.dtype), query, dkey)
    tl.store(dk, (batch, head, n, 0), (dkey * scale).to(dk.dtype))
    tl.store(dv, (batch, head, n, 0), dvalue.to(dv.dtype))


@tilec.kernel(grid=lambda q, BM: (tl.cdiv(q.shape[2], BM), q.shape[1], q.shape[0]))
def query_gradients(
    q: tl.array,
    k: tl.array,
    v: tl.array,
    do: tl.array,
    logs: tl.array,
    delta: tl.array,
    dq: tl.array,
    scale: tl.f32,
    D: tl.const,
    DV: tl.const,
    window=None,  # an i32, or None
    CAUSAL: tl.const = False,
    BM: tl.const = tl.auto,
    BN: tl.const = tl.auto,
):
    """dq of BM queries."""
    batch, head, m = tl.program_id(2), tl.program_id(1), tl.program_id(0) * BM
    of, factor = head // (q.shape[1] // k.shape[1]), scale * LOG2_E
    query = tl.load(q, (batch, head, m, 0), (BM, D))
    grad = tl.load(do, (batch, head, m, 0), (BM, DV))
    log, off = (tl.load(x, (batch, head, m), BM)[:, None] for x in (logs, delta))
    dquery = tl.zeros((BM, D), tl.f32)
    end, seen, first = k.shape[2], k.shape[2], 0
    if CAUSAL:
        end, seen = tl.minimum(end, m + BM), tl.minimum(end, m + 1)
    if window is not None:
        first = tl.maximum(0, m - window + 1) // BN * BN
    for n in tl.range(first, end, BN):
        key = tl.load(k, (batch, of, n, 0), (BN, D))
        value = tl.load(v, (batch, of, n, 0), (BN, DV))
        weight = tl.exp2(tl.dot(query, key.T) * factor - log, approx=True)
        partly = n + BN > seen
        if window is not None:
            partly = partly | (n < m + BM - window)
        if partly:
            rows, columns = m + tl.arange(BM)[:, None], n + tl.arange(BN)[None, :]
            weight = tl.where(sees(rows, columns, k.shape[2], CAUSAL, window), weight, 0.0)
        dscore = weight * (tl.dot(grad, value.T) - off)
        dquery = tl.dot(dscore.to(key.dtype), key, dquery)
    tl.store(dq, (batch, head, m, 0), (dquery * scale).to(dq.dtype))
