"""Attention backward: the gradients of q, k and v from that of the output (arXiv:2307.08691).

Scores are computed again, block by block, from what the forward pass keeps of each query: the
base-2 logarithm of its sum of weights. One kernel holds keys and walks over the queries that see
them, of all heads that share them; one holds queries and walks over the keys. Blocks that all
queries see whole are not masked. No atomics: the same bits every time.
"""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

import tilec
import tilec.language as tl
from tilec.examples.attention import LOG2_E
from tilec.examples.running import compare, launch, poisoned


@tilec.kernel(grid=lambda o, BM: (tl.cdiv(o.shape[2], BM), o.shape[1], o.shape[0]))
def weigh_gradients(o: tl.array, do: tl.array, delta: tl.array, D: tl.const, BM: tl.const = 64):
    """delta = sum of o * do over the elements of a head: what the softmax takes off each score."""
    at = (tl.program_id(2), tl.program_id(1), tl.program_id(0) * BM)
    output, grad = tl.load(o, (*at, 0), (BM, D)), tl.load(do, (*at, 0), (BM, D))
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
    CAUSAL: tl.const = False,
    BM: tl.const = tl.auto,
    BN: tl.const = tl.auto,
):
    """dk, dv of BN keys. Scores lie transposed, (BN, BM): they are left operands as they are."""
    batch, head, n = tl.program_id(2), tl.program_id(1), tl.program_id(0) * BN
    shared_by, factor = q.shape[1] // k.shape[1], scale * LOG2_E
    key, value = (tl.load(x, (batch, head, n, 0), (BN, D)) for x in (k, v))
    dkey, dvalue = tl.zeros((BN, D), tl.f32), tl.zeros((BN, D), tl.f32)
    for h in tl.range(head * shared_by, tl.minimum((head + 1) * shared_by, q.shape[1])):
        for m in tl.range(n // BM * BM if CAUSAL else 0, q.shape[2], BM):
            query, grad = (tl.load(x, (batch, h, m, 0), (BM, D)) for x in (q, do))
            log, off = (tl.load(x, (batch, h, m), BM)[None, :] for x in (logs, delta))
            weight = tl.exp2(tl.dot(key, query.T) * factor - log, approx=True)
            if CAUSAL and m < n + BN:
                seen = n + tl.arange(BN)[:, None] <= m + tl.arange(BM)[None, :]
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
    CAUSAL: tl.const = False,
    BM: tl.const = tl.auto,
    BN: tl.const = tl.auto,
):
    """dq of BM queries."""
    batch, head, m = tl.program_id(2), tl.program_id(1), tl.program_id(0) * BM
    of, factor = head // (q.shape[1] // k.shape[1]), scale * LOG2_E
    query, grad = (tl.load(x, (batch, head, m, 0), (BM, D)) for x in (q, do))
    log, off = (tl.load(x, (batch, head, m), BM)[:, None] for x in (logs, delta))
    dquery = tl.zeros((BM, D), tl.f32)
    end = tl.minimum(k.shape[2], m + BM) if CAUSAL else k.shape[2]
    seen = tl.minimum(end, m + 1) if CAUSAL else end
    bound = tl.minimum(end, m + 1 + tl.arange(BM))[:, None] if CAUSAL else end
    for n in tl.range(0, end, BN):
        key, value = (tl.load(x, (batch, of, n, 0), (BN, D)) for x in (k, v))
        weight = tl.exp2(tl.dot(query, key.T) * factor - log, approx=True)
        if n + BN > seen:
            weight = tl.where(n + tl.arange(BN)[None, :] < bound, weight, 0.0)
        dscore = weight * (tl.dot(grad, value.T) - off)
        dquery = tl.dot(dscore.to(key.dtype), key, dquery)
    tl.store(dq, (batch, head, m, 0), (dquery * scale).to(dq.dtype))


def reference(q: Any, k: Any, v: Any, do: Any, causal: bool, scale: float) -> list[np.ndarray]:
    """o, logs, dq, dk, dv in float64."""
    shared_by = q.shape[1] // k.shape[1]
    q, do = q.astype(np.float64), do.astype(np.float64)
    k, v = (np.repeat(x.astype(np.float64), shared_by, axis=1) for x in (k, v))
    score = q @ np.swapaxes(k, -1, -2) * scale
    if causal:
        score[..., np.triu(np.ones(score.shape[-2:], bool), 1)] = -np.inf
    total = np.exp(score).sum(-1, keepdims=True)
    weight = np.exp(score) / total
    o = weight @ v
    dscore = weight * (do @ np.swapaxes(v, -1, -2) - (o * do).sum(-1, keepdims=True))
    by_head = np.swapaxes(dscore, -1, -2) @ q * scale, np.swapaxes(weight, -1, -2) @ do
    dk, dv = (x.reshape(len(x), -1, shared_by, *x.shape[2:]).sum(2) for x in by_head)
    return [o, np.log2(total)[..., 0], dscore @ k * scale, dk, dv]


def main() -> None:
    """Two heads of queries that share keys, lengths that fill no tile, causal and not."""
    rng = np.random.default_rng(0)
    heads, kv_heads, width = 2, 1, 12
    scale, tiles = 1 / math.sqrt(width), {"D": 16, "BM": 64, "BN": 64}
    for length, causal in ((40, False), (75, True)):
        q, do = rng.standard_normal((2, 1, heads, length, width)).astype(ml_dtypes.bfloat16)
        k, v = rng.standard_normal((2, 1, kv_heads, length, width)).astype(ml_dtypes.bfloat16)
        o, logs, *expected = reference(q, k, v, do, causal, scale)
        logs, delta = logs.astype(np.float32), poisoned(logs.shape, np.float32)
        launch(weigh_gradients, o.astype(q.dtype), do, delta, D=16)
        dq, dk, dv = (poisoned(x.shape, x.dtype) for x in (q, k, v))
        launch(key_gradients, q, k, v, do, logs, delta, dk, dv, scale, CAUSAL=causal, **tiles)
        launch(query_gradients, q, k, v, do, logs, delta, dq, scale, CAUSAL=causal, **tiles)
        for name, found, right in zip(("dq", "dk", "dv"), (dq, dk, dv), expected, strict=True):
            compare(f"{name}{' causal' if causal else ''}", found, right, 1e-2)


if __name__ == "__main__":
    main()
