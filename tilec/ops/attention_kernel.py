"""Attention forward by online softmax (arXiv:2205.14135, 2307.08691), for `attention`.

A program holds BM queries of one head and walks over the keys that any of them sees, BN at a time;
scores never reach memory. Blocks that all of them see whole have no mask: those before, at the left
edge of a window, and those behind, at the diagonal and at the end of the keys, have loops of their
own.
"""

# Of a kernel's functions only what a checker cannot infer is annotated.
# pyright: basic

from __future__ import annotations

import math
from typing import Any

import tilec
import tilec.language as tl

LOG2_E = math.log2(math.e)
"""Scores are kept in units of log 2: the hardware's exponential is 2^x."""
NOTHING = -1e30
"""The highest score of a query that has seen no key: finite, so that none is minus infinity less
itself."""
LEAST = 1e-30
"""What a sum of weights is taken for where it is 0, of a query that sees no key; else it is at
least about 1, the highest weight."""


def attend(state: Any, query: Any, key: Any, value: Any, factor: Any, visible: Any) -> Any:
    """The state after one more block of keys and values; `visible`: a mask, or None for all.

    State: of each query the highest score so far, the sum of weights, the weighted sum of values.
    """
    highest, total, acc = state
    score = tl.dot(query, key.T)
    if visible is not None:
        score = tl.where(visible, score, -tl.inf)
    higher = tl.maximum(highest, tl.max(score, 1) * factor)
    weight = tl.exp2(score * factor - higher[:, None], approx=True)
    shrink = tl.exp2(highest - higher, approx=True)
    total = total * shrink + tl.sum(weight, 1)
    acc = tl.dot(weight.to(value.dtype), value, acc * shrink[:, None])
    return higher, total, acc


def sees(rows: Any, columns: Any, keys: Any, causal: bool, window: Any) -> Any:
    """The mask of queries `rows` and keys `columns`, of which there are `keys`."""
    bound = tl.minimum(keys, rows + 1) if causal else keys
    visible = columns < bound
    return visible & (columns > rows - window) if window is not None else visible


@tilec.kernel(grid=lambda q, BM: (tl.cdiv(q.shape[2], BM), q.shape[1], q.shape[0]))
def attention_forward(
    q: tl.array,
    k: tl.array,
    v: tl.array,
    o: tl.array,
    scale: tl.f32,
    D: tl.const,
    DV: tl.const,
    logs=None,  # an array, or None
    window=None,  # an i32, or None
    CAUSAL: tl.const = False,
    BM: tl.const = tl.auto,
    BN: tl.const = tl.auto,
):
    """o = softmax(q k^T scale) v; `logs`: of each query the base-2 logarithm of its sum of weights.

    Arrays are (batch, heads, length, elements of a head), of q and k <= D, of v and o <= DV; heads
    of k and v divide those of q. CAUSAL: query i sees keys 0 to i, `window`: only the last so many.
    """
    batch, head, m = tl.program_id(2), tl.program_id(1), tl.program_id(0) * BM
    of = head // (q.shape[1] // k.shape[1])
    keys, factor = k.shape[2], scale * LOG2_E
    query = tl.load(q, (batch, head, m, 0), (BM, D))
    rows, columns = m + tl.arange(BM)[:, None], tl.arange(BN)[None, :]
    state = (
        tl.full((BM,), NOTHING, tl.f32),
        tl.zeros((BM,), tl.f32),
        tl.zeros((BM, DV), tl.f32),
    )
    end, seen, first = keys, keys, 0
    if CAUSAL:
        end, seen = tl.minimum(keys, m + BM), tl.minimum(keys, m + 1)
    whole = seen // BN * BN
    if window is not None:
        left = tl.maximum(0, m - window + 1) // BN * BN
        first = tl.cdiv(tl.maximum(0, m + BM - window), BN) * BN
        whole = tl.maximum(whole, left)
        first = tl.minimum(first, whole)
        for n in tl.range(left, first, BN):
            key = tl.load(k, (batch, of, n, 0), (BN, D))
            value = tl.load(v, (batch, of, n, 0), (BN, DV))
            visible = sees(rows, n + columns, keys, CAUSAL, window)
            state = attend(state, query, key, value, factor, visible)
    for n in tl.range(first, whole, BN):
        key = tl.load(k, (batch, of, n, 0), (BN, D))
        value = tl.load(v, (batch, of, n, 0), (BN, DV))
        state = attend(state, query, key, value, factor, None)
    for n in tl.range(whole, end, BN):
        key = tl.load(k, (batch, of, n, 0), (BN, D))
        value = tl.load(v, (batch, of, n, 0), (BN, DV))
        visible = sees(rows, n + columns, keys, CAUSAL, window)
        state = attend(state, query, key, value, factor, visible)
    highest, total, acc = state
    if logs is not None:
        tl.store(logs, (batch, head, m), highest + tl.log2(total))
    tl.store(o, (batch, head, m, 0), (acc / tl.maximum(total, LEAST)[:, None]).to(o.dtype))
