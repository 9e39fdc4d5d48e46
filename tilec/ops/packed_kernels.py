"""Attention and its gradients of sequences packed one behind the other, each to itself.

Arrays are those of one batch, (1, heads, tokens, elements): `starts` says where sequences begin,
the last one's end behind them, `key_starts` the same of keys and values, where theirs differ.
`longest`: no sequence has more tokens. Programs behind the end of theirs do nothing.
"""

# Of a kernel's functions only what a checker cannot infer is annotated.
# pyright: basic

from __future__ import annotations

from typing import Any

import tilec
import tilec.language as tl
from tilec.ops.attention_kernel import begin, finish, put, sink_of, walk
from tilec.ops.gradient_kernels import taken_off, walk_keys, walk_queries


def span_of(starts: Any, number: Any) -> Any:
    """(the first token of a sequence, how many it has)."""
    first, behind = (tl.load(starts, number + i, ()) for i in (0, 1))
    return first, behind - first


def spans_of(starts: Any, key_starts: Any, number: Any) -> Any:
    """`span_of` the queries of a sequence, and of its keys."""
    queries = span_of(starts, number)
    return queries, span_of(starts if key_starts is None else key_starts, number)


@tilec.kernel(
    grid=lambda q, starts, longest, BM: (tl.cdiv(longest, BM), q.shape[1], starts.shape[0] - 1)
)
def packed_attention(
    q: tl.array,
    k: tl.array,
    v: tl.array,
    o: tl.array,
    starts: tl.array,
    longest: tl.i32,
    scale: tl.f32,
    D: tl.const,
    DV: tl.const = None,
    key_starts=None,  # what is None here is an array
    logs=None,
    window=None,  # an i32
    cap=None,  # an f32
    sinks=None,
    dropout=None,  # an f32
    seed=None,  # an integer
    CAUSAL: tl.const = False,
    SHARED: tl.const = 1,
    BM: tl.const = tl.auto,
    BN: tl.const = tl.auto,
):
    """`attention` of each sequence; `logs` (1, heads, tokens)."""
    sequence, head, m = tl.program_id(2), tl.program_id(1), tl.program_id(0) * BM
    width: tl.const = D if DV is None else DV
    (start, length), (first, keys) = spans_of(starts, key_starts, sequence)
    if m < length:
        query = tl.load(q, (0, head, start + m, 0), (BM, D))
        state = walk(
            begin(BM, width, v, sink_of(sinks, head)),
            query,
            (q, k, v),
            ((0, head, start), (0, head // SHARED, first, None, None)),
            (m + tl.arange(BM)[:, None], m, BM, keys, False),
            (scale, cap, CAUSAL, window),
            (dropout, seed),
            (BN, D, width),
        )
        mean, log = finish(state, v, dropout)
        if logs is not None:
            put(logs, head, start, m, length, log)
        put(o, head, start, m, length, mean.to(o.dtype))


@tilec.kernel(
    grid=lambda k, starts, longest, BN: (tl.cdiv(longest, BN), k.shape[1], starts.shape[0] - 1)
)
def packed_key_gradients(
    q: tl.array,
    k: tl.array,
    v: tl.array,
    do: tl.array,
    logs: tl.array,
    delta: tl.array,
    dk: tl.array,
    dv: tl.array,
    starts: tl.array,
    longest: tl.i32,
    scale: tl.f32,
    D: tl.const,
    DV: tl.const = None,
    key_starts=None,  # an array, or None
    window=None,  # an i32, or None
    cap=None,  # an f32, or None
    dropout=None,  # an f32, or None
    seed=None,  # an integer, or None
    CAUSAL: tl.const = False,
    SHARED: tl.const = 1,
    BM: tl.const = tl.auto,
    BN: tl.const = tl.auto,
):
    """`key_gradients` of each sequence; `longest`: of keys."""
    sequence, head, n = tl.program_id(2), tl.program_id(1), tl.program_id(0) * BN
    (start, length), (first, keys) = spans_of(starts, key_starts, sequence)
    if n < keys:
        dkey, dvalue = walk_queries(
            (q, k, v, do, logs, delta),
            (0, head, start, first),
            (length, True, n),
            (scale, cap, CAUSAL, window),
            (dropout, seed),
            (BM, BN, D, D if DV is None else DV, SHARED),
        )
        put(dk, head, first, n, keys, dkey.to(dk.dtype))
        put(dv, head, first, n, keys, dvalue.to(dv.dtype))


@tilec.kernel(
    grid=lambda q, starts, longest, BM: (tl.cdiv(longest, BM), q.shape[1], starts.shape[0] - 1)
)
def packed_query_gradients(
    q: tl.array,
    k: tl.array,
    v: tl.array,
    o: tl.array,
    do: tl.array,
    logs: tl.array,
    delta: tl.array,
    dq: tl.array,
    starts: tl.array,
    longest: tl.i32,
    scale: tl.f32,
    D: tl.const,
    DV: tl.const = None,
    key_starts=None,  # an array, or None
    window=None,  # an i32, or None
    cap=None,  # an f32, or None
    dropout=None,  # an f32, or None
    seed=None,  # an integer, or None
    CAUSAL: tl.const = False,
    SHARED: tl.const = 1,
    BM: tl.const = tl.auto,
    BN: tl.const = tl.auto,
):
    """`query_gradients` of each sequence; `longest`: of queries."""
    sequence, head, m = tl.program_id(2), tl.program_id(1), tl.program_id(0) * BM
    (start, length), (first, keys) = spans_of(starts, key_starts, sequence)
    width: tl.const = D if DV is None else DV
    if m < length:
        off = taken_off(o, do, (0, head, start + m), BM, width)
        put(delta, head, start, m, length, off)
        dquery = walk_keys(
            off,
            (q, k, v, do, logs),
            (0, head, start, first),
            (m, keys),
            (scale, cap, CAUSAL, window),
            (dropout, seed),
            (BM, BN, D, width, SHARED),
        )
        put(dq, head, start, m, length, dquery.to(dq.dtype))
