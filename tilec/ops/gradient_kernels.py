"""The gradients of attention (arXiv:2307.08691, B.4), for `attention_gradients`.

Scores are computed again, block by block, from the base-2 logarithm of each query's sum of weights.
One kernel holds queries and walks over the keys; it also says what the softmax takes off each
score, which the other one needs: that holds keys and walks over the queries that see them, of all
heads that share them. Blocks that all queries see whole are not masked. No atomics: the same bits
every time.
"""

# Of a kernel's functions only what a checker cannot infer is annotated.
# pyright: basic

from __future__ import annotations

from typing import Any

import tilec
import tilec.language as tl
from tilec.ops.attention_kernel import LOG2_E, bent, keeps, sees
from tilec.ops.gradient_plan import BLOCK, DEALT


def weigh(product: Any, log: Any, factor: Any, bend: Any) -> Any:
    """(weights, the slope of the cap's curve, or None) from products of queries and keys."""
    if bend is None:
        return tl.exp2(product * factor - log, approx=True), None
    score = tl.tanh(product * bend, approx=True)
    return tl.exp2(score * factor - log, approx=True), 1.0 - score * score


def of_scores(weight: Any, dweight: Any, off: Any, slope: Any, kept: Any, dropout: Any) -> Any:
    """The gradients of scores from those of weights. `off`: what the softmax takes off each."""
    if kept is not None:
        dweight = tl.where(kept, dweight / (1.0 - dropout), 0.0)
    dscore = weight * (dweight - off)
    return dscore if slope is None else dscore * slope


def has_edge(m: Any, size: Any, n: Any, many: Any, length: Any, how: Any) -> Any:
    """Whether some of `size` queries from `m` on do not see some of `many` keys from `n` on, or are
    behind the `length` of theirs; None where that cannot be."""
    _, _, causal, window = how
    found = None if length is None else m + size > length
    if causal:
        found = m < n + many if found is None else found | (m < n + many)
    return found if window is None else found | (m + size > n + window)


def walk_queries(
    arrays: Any,
    place: Any,
    span: Any,
    how: Any,
    drop: Any,
    sizes: Any,
    given: Any = None,
    stages: Any = None,
) -> Any:
    """(dk, dv) of a block of keys, from all queries that see them, of all heads that share them.
    Scores lie transposed, (keys, queries): they are left operands as they are.

    `arrays`: q, k, v, do, logs, delta. `place`: batch, head of the keys, rows of the first query
    and the first key. `span`: how many queries there are, and whether others lie behind them; the
    first key of the block. `how`, `drop`: as in `attention_kernel.walk`. `sizes`: queries a step,
    keys, elements of a query and of a value; heads that share keys. `given`: None, or the array
    that takes the gradients of scores as they are multiplied, (heads, keys, queries `dealt`), and
    the row of these keys' head among those it has. `stages`: a demand of the loop.
    """
    q, k, v, do, logs, delta = arrays
    batch, head, start, begin = place
    length, packed, n = span
    scale, cap, causal, window = how
    size, many, width, other, shared = sizes
    key = tl.load(k, (batch, head, begin + n, 0), (many, width))
    value = tl.load(v, (batch, head, begin + n, 0), (many, other))
    row = 0 if given is None else given[1] * shared
    factor, bend = bent(scale, cap)
    step: tl.const = size if given is None else BLOCK
    dkey, dvalue = tl.zeros((many, width), tl.f32), tl.zeros((many, other), tl.f32)
    last = length
    if window is not None:
        last = tl.minimum(last, n + many - 1 + window)
    for one in tl.range(shared):
        h = head * shared + one
        begun = n // step * step if causal else 0
        for m in tl.range(begun, last, size, stages=stages):
            at = (batch, h, start + m)
            query, grad = tl.load(q, (*at, 0), (size, width)), tl.load(do, (*at, 0), (size, other))
            log, off = (tl.load(x, at, size)[None, :] for x in (logs, delta))
            weight, slope = weigh(tl.dot(key, query.T), log, factor, bend)
            partly = has_edge(m, size, n, many, length if packed else None, how)
            if partly is not None and partly:
                rows, columns = m + tl.arange(size)[None, :], n + tl.arange(many)[:, None]
                seen = rows < length
                if causal:
                    seen = sees(rows, columns, rows + 1, window)
                if causal and packed:
                    seen = seen & (rows < length)
                weight = tl.where(seen, weight, 0.0)
            across = m + tl.arange(size)[None, :], n + tl.arange(many)[:, None]
            kept = keeps(drop, q, k, (batch, h, start), *across)
            left = weight if kept is None else tl.where(kept, weight, 0.0)
            dvalue = tl.dot(left.to(grad.dtype), grad, dvalue)
            dscore = of_scores(weight, tl.dot(value, grad.T), off, slope, kept, drop[0])
            dscore = dscore.to(query.dtype)
            dkey = tl.dot(dscore, query, dkey)
            if given is not None:
                tl.store(given[0], (row + one, n, m), dealt(dscore))
    if drop[0] is not None:
        dvalue = dvalue / (1.0 - drop[0])
    return dkey * scale, dvalue


def dealt(tile: Any) -> Any:
    """A tile whose columns lie in another order: in each `DEALT` of them those that a thread has of
    a product's sums, pairs of four blocks, are neighbours. Stores of it are vectors as they are."""
    tl.static_assert(tile.shape[1] % DEALT == 0)
    if tile.shape[1] % DEALT == 0:  # in others `tl.auto` looks what its constants are for
        parts = tl.reshape(tile, (tile.shape[0], tile.shape[1] // DEALT, 4, 4, 2))
        tile = tl.reshape(tl.permute(parts, (0, 1, 3, 2, 4)), tile.shape)
    return tile


def taken_off(o: Any, do: Any, at: Any, many: Any, width: Any) -> Any:
    """What the softmax takes off the scores of `many` queries from `at` on: sums of o * do over the
    elements of a head. Loaded anew, as threads add up neighbours: the products' copy of `do` comes
    by tensor copies, which no register then keeps from running ahead."""
    output, grad = (tl.load(x, (*at, 0), (1, many, width)).to(tl.f32) for x in (o, do))
    return tl.reshape(tl.sum(output * grad, 2), (many,))


def walk_keys(
    off: Any,
    arrays: Any,
    place: Any,
    span: Any,
    how: Any,
    drop: Any,
    sizes: Any,
    stages: Any = None,
) -> Any:
    """dq of a block of queries, from all keys that they see.

    `off`: of each query, `taken_off`. `arrays`: q, k, v, do, logs. `place`: batch, head, rows of
    the first query and the first key. `span`: the first query of the block, how many keys there
    are. `sizes`: queries, keys a step, elements of a query and of a value; heads that share keys.
    `stages`: a demand of the loop.
    """
    q, k, v, do, logs = arrays
    batch, head, start, begin = place
    m, keys = span
    scale, cap, causal, window = how
    many, size, width, other, shared = sizes
    query = tl.load(q, (batch, head, start + m, 0), (many, width))
    grad = tl.load(do, (batch, head, start + m, 0), (many, other))
    of = head // shared
    factor, bend = bent(scale, cap)
    log, off = tl.load(logs, (batch, head, start + m), many)[:, None], off[:, None]
    dquery = tl.zeros((many, width), tl.f32)
    rows = m + tl.arange(many)[:, None]
    end, seen, first, bound = keys, keys, 0, keys
    if causal:
        end, seen = tl.minimum(end, m + many), tl.minimum(end, m + 1)
        bound = tl.minimum(keys, rows + 1)
    if window is not None:
        first = tl.maximum(0, m - window + 1) // size * size
    for n in tl.range(first, end, size, stages=stages):
        key = tl.load(k, (batch, of, begin + n, 0), (size, width))
        value = tl.load(v, (batch, of, begin + n, 0), (size, other))
        weight, slope = weigh(tl.dot(query, key.T), log, factor, bend)
        partly = n + size > seen
        if window is not None:
            partly = partly | (n < m + many - window)
        if partly:
            columns = n + tl.arange(size)[None, :]
            weight = tl.where(sees(rows, columns, bound, window), weight, 0.0)
        kept = keeps(drop, q, k, (batch, head, start), rows, n + tl.arange(size)[None, :])
        dscore = of_scores(weight, tl.dot(grad, value.T), off, slope, kept, drop[0])
        dquery = tl.dot(dscore.to(key.dtype), key, dquery)
    return dquery * scale


@tilec.kernel(grid=lambda logs: logs.shape[1])
def sink_gradients(
    logs: tl.array, delta: tl.array, sinks: tl.array, dsinks: tl.array, B: tl.const = tl.auto
):
    """dsinks of a head (f32): a sink takes its weight of delta off, and no value adds to it."""
    head = tl.program_id(0)
    sink = tl.load(sinks, head, ()).to(tl.f32) * LOG2_E
    total = tl.zeros((B,), tl.f32)
    for batch in tl.range(logs.shape[0]):
        for m in tl.range(0, logs.shape[2], B):
            log = tl.load(logs, (batch, head, m), B, padding=tl.inf)
            total -= tl.exp2(sink - log) * tl.load(delta, (batch, head, m), B)
    tl.store(dsinks, head, tl.sum(total))


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
    DV: tl.const = None,
    window=None,  # an i32, or None
    cap=None,  # an f32, or None
    dropout=None,  # an f32, or None
    seed=None,  # an integer, or None
    CAUSAL: tl.const = False,
    SHARED: tl.const = 1,
    BM: tl.const = tl.auto,
    BN: tl.const = tl.auto,
):
    """dk, dv of BN keys; parameters are those of `attention`, what it gave, and the `delta` that
    `query_gradients` gave."""
    batch, head, n = tl.program_id(2), tl.program_id(1), tl.program_id(0) * BN
    dkey, dvalue = walk_queries(
        (q, k, v, do, logs, delta),
        (batch, head, 0, 0),
        (q.shape[2], False, n),
        (scale, cap, CAUSAL, window),
        (dropout, seed),
        (BM, BN, D, D if DV is None else DV, SHARED),
    )
    tl.store(dk, (batch, head, n, 0), dkey.to(dk.dtype))
    tl.store(dv, (batch, head, n, 0), dvalue.to(dv.dtype))


@tilec.kernel(grid=lambda q, BM: (tl.cdiv(q.shape[2], BM), q.shape[1], q.shape[0]))
def query_gradients(
    q: tl.array,
    k: tl.array,
    v: tl.array,
    o: tl.array,
    do: tl.array,
    logs: tl.array,
    delta: tl.array,
    dq: tl.array,
    scale: tl.f32,
    D: tl.const,
    DV: tl.const = None,
    window=None,  # an i32, or None
    cap=None,  # an f32, or None
    dropout=None,  # an f32, or None
    seed=None,  # an integer, or None
    CAUSAL: tl.const = False,
    SHARED: tl.const = 1,
    BM: tl.const = tl.auto,
    BN: tl.const = tl.auto,
):
    """dq of BM queries, and `delta`: what the softmax takes off their scores; parameters are those
    of `attention`, and what it gave."""
    batch, head, m = tl.program_id(2), tl.program_id(1), tl.program_id(0) * BM
    width: tl.const = D if DV is None else DV
    off = taken_off(o, do, (batch, head, m), BM, width)
    dquery = walk_keys(
        off,
        (q, k, v, do, logs),
        (batch, head, 0, 0),
        (m, k.shape[2]),
        (scale, cap, CAUSAL, window),
        (dropout, seed),
        (BM, BN, D, width, SHARED),
    )
    tl.store(delta, (batch, head, m), off)
    tl.store(dq, (batch, head, m, 0), dquery.to(dq.dtype))
