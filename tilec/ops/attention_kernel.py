"""Attention forward by online softmax (arXiv:2205.14135, 2307.08691), for `attention`.

A program holds BM queries of one head and walks over the keys that any of them sees, BN at a time;
scores never reach memory. Blocks that all of them see whole are not masked. Those at the left edge
of a window, at the diagonal and at the end of the keys are: in a branch of the one loop, or in
loops of their own (`walks_once`). Where queries, keys and values lie is said once for each kernel:
heads of a batch, sequences packed one behind the other, or pages that a table names.
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
BEHIND = 8
"""Of a query's highest score, the most that what is taken for it may be behind: weights are up to
2^8 then, and what was added up need not be scaled for each higher score."""
WIDEST_ONCE = 128
"""Elements of a head up to which masks under the diagonal stand in a branch (`walks_once`)."""
ROWS_OF_THREE, ROWS_OF_FOUR = 192, 256
"""Of three and four warpgroups, with 64 each: threads have 160 and 112 registers, of two 240."""
NARROW_SHIFT = 8
"""Weights of fp8 are 2^8 times as large, which sums of weights are, too: f8e4m3 ends at 448, and
begins at 2^-9."""


def attend(
    state: Any,
    query: Any,
    key: Any,
    value: Any,
    factor: Any,
    visible: Any,
    bend: Any = None,
    kept: Any = None,
    partly: Any = None,
    seen: Any = None,
) -> Any:
    """The state after one more block of keys and values; `visible`: a mask, or None for all.

    State: of each query the highest score so far, the sum of weights, the weighted sum of values.
    `factor`: of scores; `bend`: of what is below tanh, where scores have a cap; `kept`: the mask of
    weights that dropout leaves, which counts for the values alone. `partly`: whether some query
    does not see some of these keys; `seen`: what `sees` wants to know of the mask then.
    """
    highest, total, acc = state
    score = tl.dot(query, key.T)
    if bend is not None:
        score = tl.tanh(score * bend, approx=True)
    if visible is not None:
        score = tl.where(visible, score, -tl.inf)
    if partly is not None and partly:
        score = tl.where(sees(*seen), score, -tl.inf)
    higher = tl.max(score, 1) * factor
    if value.dtype.bits == 8:  # whose weights have no room above
        higher = tl.maximum(highest, higher)
    else:
        higher = tl.where(higher > highest + BEHIND, higher, highest)
    weight = tl.exp2(score * factor - (higher - shift(value))[:, None], approx=True)
    shrink = tl.exp2(highest - higher, approx=True)
    total = total * shrink + tl.sum(weight, 1)
    if kept is not None:
        weight = tl.where(kept, weight, 0.0)
    acc = tl.dot(weight.to(value.dtype), value, acc * shrink[:, None])
    return higher, total, acc


def shift(values: Any) -> Any:
    """Of weights that are multiplied by `values`, an array or a tile: the power of 2 they have."""
    return NARROW_SHIFT if values.dtype.bits == 8 else 0


def bent(scale: Any, cap: Any) -> Any:
    """(factor, bend) of `attend`: scores s * scale, or cap * tanh(s * scale / cap)."""
    return (scale * LOG2_E, None) if cap is None else (cap * LOG2_E, scale / cap)


def sees(rows: Any, columns: Any, bound: Any, window: Any) -> Any:
    """The mask of queries at `rows`, which see keys below `bound`, and keys `columns`."""
    visible = columns < bound
    return visible & (columns > rows - window) if window is not None else visible


def keeps(drop: Any, q: Any, k: Any, place: Any, rows: Any, columns: Any) -> Any:
    """The mask of the weights that dropout keeps, None without. `drop`: (the probability to go, a
    seed), both None without. `place`: batch, head, row 0 of the queries.

    A weight's chance follows from the seed and its number: that of its query among all of `q`,
    times the keys of `k`, and its key's.
    """
    probability, seed = drop
    if probability is None:
        return None
    batch, head, start = place
    query = (batch * q.shape[1] + head) * q.shape[2] + start + rows
    return tl.rand(seed, query.to(tl.i64) * k.shape[2] + columns) >= probability


def block(x: Any, place: Any, n: Any, size: Any, width: Any) -> Any:
    """`size` keys or values from number `n` on. `place`: batch, head, the row of the first; the
    table of pages and the keys of one, or None."""
    batch, head, start, table, page = place
    if table is None:
        return tl.load(x, (batch, head, start + n, 0), (size, width))
    if page % size == 0:
        number = tl.load(table, (batch, n // page), ())
        return tl.load(x, (number, n % page, head, 0), (size, width), dims=(1, 3))
    rows = n + tl.arange(size)
    number = tl.gather(table, (batch, rows // page))
    return tl.gather(x, (number[:, None], (rows % page)[:, None], head, tl.arange(width)[None, :]))


def attend_block(
    state: Any, each: Any, n: Any, masked: Any, keys: Any = None, partly: Any = None
) -> Any:
    """`attend` for the block of keys from number `n` on. `each`: what is the same for all of them.
    `masked`: whether always; `partly`: None, or whether it is. `keys`: how many there are, where
    what lies behind them may be anything."""
    query, (q, k, v), (mine, theirs), rows, bound, (scale, cap, _, window), drop, sizes = each
    size, width, other = sizes
    factor, bend = bent(scale, cap)
    key, value = block(k, theirs, n, size, width), block(v, theirs, n, size, other)
    columns = n + tl.arange(size)[None, :]
    if keys is not None:  # 0 times what is no number is none
        value = tl.where(n + tl.arange(size)[:, None] < keys, value, 0.0)
    seen = rows, columns, bound, window
    visible = sees(*seen) if masked else None
    kept = keeps(drop, q, k, mine, rows, columns)
    return attend(state, query, key, value, factor, visible, bend, kept, partly, seen)


def walks_once(causal: Any, window: Any, rows: Any, width: Any, values: Any) -> Any:
    """Whether a kernel has one loop over keys, with masks in a branch, of `rows` queries a program
    and heads of `width` elements.

    A program of two loops issues its first product, and awaits its last one, twice, where its last
    block is always masked, as under the diagonal. Heads of 128 elements, causal, 1024 long take 139
    us in one loop and 148 in two, 4096 long 421 and 443, of 64 in 128 rows, 1024 long, 202 and 218
    (H200, bf16, the least of seven). Full ones mask no block as a rule: 213 and 207 with 128
    elements, 1024 long. By three warpgroups, whose threads have few registers, ptxas computes the
    weights of rows one after the other there, not side by side: 64 elements, causal, 8192 long,
    1168 and 1074; by four, full, 1024 long, 276 in one, not timed in two. Windows, wider heads and
    fp8 were not timed with a branch.
    """
    narrow = width <= WIDEST_ONCE and values.dtype.bits == 16 and window is None
    return narrow and (rows == ROWS_OF_FOUR or (causal and rows != ROWS_OF_THREE))


def walk_apart(state: Any, each: Any, bounds: Any, keys: Any, demands: Any) -> Any:
    """The state after blocks of keys between `bounds`: with masks up to the second, at the left
    edge of a window, and from the third on. `each`, `keys`: as in `attend_block`."""
    left, first, whole, end = bounds
    size: tl.const = each[-1][0]
    if each[5][-1] is not None:
        for n in tl.range(left, first, size):
            state = attend_block(state, each, n, True)
    for n in tl.range(first, whole, size, stages=demands[0], warp_specialize=demands[1]):
        state = attend_block(state, each, n, False)
    for n in tl.range(whole, end, size):
        state = attend_block(state, each, n, True, keys)
    return state


def walk(
    state: Any,
    query: Any,
    arrays: Any,
    place: Any,
    span: Any,
    how: Any,
    drop: Any,
    sizes: Any,
    demands: Any = (None, None),
    part: Any = None,
    once: Any = False,
) -> Any:
    """The state of queries after all keys that they see, or after one `part` of these: its number,
    and how many there are.

    `arrays`: q, k, v. `place`: of q, as in `keeps`; of k and v, as in `block`. `span`: the rows of
    the queries (a column), the first, how many; the number of keys, and whether what lies behind
    them may be anything. `how`: scale, cap, whether causal, the window. `sizes`: BN, D, DV. `once`:
    in one loop (`walks_once`).
    """
    rows, m, many, keys, dirty = span
    _, _, causal, window = how
    size: tl.const = sizes[0]
    end, seen, first, bound = keys, keys, 0, keys
    if causal:
        end, seen = tl.minimum(keys, m + many), tl.minimum(keys, m + 1)
        bound = tl.minimum(keys, rows + 1)
    if dirty:
        seen = tl.maximum(0, seen)  # of queries in front of all keys
    left, whole = 0, seen // size * size
    if window is not None:
        left = tl.maximum(0, m - window + 1) // size * size
        first = tl.cdiv(tl.maximum(0, m + many - window), size) * size
        whole = tl.maximum(whole, left)
        first = tl.minimum(first, whole)
    if part is not None:
        share = tl.cdiv(tl.cdiv(end - left, part[1]), size) * size
        low = left + part[0] * share
        high = tl.minimum(end, low + share)
        left, end = low, high
        whole = tl.maximum(low, tl.minimum(whole, high))
        first = tl.maximum(low, tl.minimum(first, whole))
    each = query, arrays, place, rows, bound, how, drop, sizes
    if once and not dirty:
        for n in tl.range(left, end, size, stages=demands[0], warp_specialize=demands[1]):
            state = attend_block(state, each, n, False, partly=n + size > seen)
        return state
    return walk_apart(state, each, (left, first, whole, end), keys if dirty else None, demands)


def put(x: Any, head: Any, start: Any, m: Any, many: Any, tile: Any) -> None:
    """Stores rows `m` on of a packed sequence of `many`, whose first is row `start`: the rows
    behind its end are the next one's."""
    rows = m + tl.arange(tile.shape[0])
    if tile.ndim == 1:
        tl.scatter(x, (0, head, start + rows), tile, mask=rows < many)
    else:
        at = (0, head, (start + rows)[:, None], tl.arange(tile.shape[1])[None, :])
        tl.scatter(x, at, tile, mask=rows[:, None] < many)


def begin(rows: Any, width: Any, values: Any, sink: Any) -> Any:
    """The state of queries that have seen no key. `sink`: None, or scores that count as those of a
    key of value 0, one or one a query."""
    acc = tl.zeros((rows, width), tl.f32)
    none = tl.zeros((rows,), tl.f32)
    if sink is None:
        return tl.full((rows,), NOTHING, tl.f32), none, acc
    return none + sink.to(tl.f32) * LOG2_E, none + 2.0 ** shift(values), acc


def sink_of(sinks: Any, head: Any) -> Any:
    """The sink of a head, None without."""
    return None if sinks is None else tl.load(sinks, head, ())


def finish(state: Any, values: Any, dropout: Any) -> Any:
    """(the weighted means of values, the base-2 logarithms of the sums of weights)."""
    highest, total, acc = state
    mean = acc / tl.maximum(total, LEAST)[:, None]
    if dropout is not None:
        mean = mean / (1.0 - dropout)
    return mean, highest + tl.log2(total, approx=True) - shift(values)


@tilec.kernel(grid=lambda q, BM: (tl.cdiv(q.shape[2], BM), q.shape[1], q.shape[0]))
def attention(
    q: tl.array,
    k: tl.array,
    v: tl.array,
    o: tl.array,
    scale: tl.f32,
    D: tl.const,
    DV: tl.const = None,
    logs=None,  # what is None here is an array
    window=None,  # an i32
    cap=None,  # an f32
    sinks=None,
    dropout=None,  # an f32
    seed=None,  # an integer
    lengths=None,
    table=None,
    CAUSAL: tl.const = False,
    SHARED: tl.const = 1,
    PAGE: tl.const = None,
    BM: tl.const = tl.auto,
    BN: tl.const = tl.auto,
    STAGES: tl.const = None,
    WARP_SPECIALIZE: tl.const = None,
):
    """o = softmax(q k^T scale) v; `logs`: of each query the base-2 logarithm of its sum of weights.

    Arrays are (batch, heads, length, elements of a head), of q and k <= D, of v and o <= DV, which
    is D if not given; SHARED heads of q have one of k and v. CAUSAL: query i sees keys 0 to i,
    `window`: only the last so many. `lengths`: keys of each batch, whose last its queries are.
    `table` (batch, pages of one): k and v are (pages, PAGE, heads, elements).
    STAGES, WARP_SPECIALIZE: demands of the loop over keys.
    """
    batch, head, m = tl.program_id(2), tl.program_id(1), tl.program_id(0) * BM
    width: tl.const = D if DV is None else DV
    keys, at = k.shape[2], m
    if lengths is not None:
        keys = tl.assume(tl.load(lengths, batch, ()), min=0)
        at = m + keys - q.shape[2]
    query = tl.load(q, (batch, head, m, 0), (BM, D))
    state = walk(
        begin(BM, width, v, sink_of(sinks, head)),
        query,
        (q, k, v),
        ((batch, head, 0), (batch, head // SHARED, 0, table, PAGE)),
        (at + tl.arange(BM)[:, None], at, BM, keys, lengths is not None),
        (scale, cap, CAUSAL, window),
        (dropout, seed),
        (BN, D, width),
        (STAGES, WARP_SPECIALIZE),
        once=walks_once(CAUSAL, window, BM, max(D, width), v),
    )
    mean, log = finish(state, v, dropout)
    if logs is not None:
        tl.store(logs, (batch, head, m), log)
    tl.store(o, (batch, head, m, 0), mean.to(o.dtype))
