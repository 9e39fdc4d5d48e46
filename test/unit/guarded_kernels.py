"""Attention and a grouped product in spellings of their control flow; see guarded_products.py.

Attention: o = softmax(q k^T) v, arrays (heads, length, elements). `keep`: per block of keys whether
it is seen; programs of queries that start at or behind `rows` do nothing. Grouped products: the
rows of a up to ends[g], from ends[g - 1] on, times b[g].
"""

from __future__ import annotations

import tilec
import tilec.language as tl
from tilec.examples.grouped_gemm import find_tile

LOG2_E = 1.4426950408889634
_ATTENTION = tilec.kernel(grid=lambda q, BM: (tl.cdiv(q.shape[1], BM), q.shape[0]))
_GROUPED = tilec.kernel(
    grid=lambda c, ends, BM, BN: (tl.cdiv(c.shape[0], BM) + ends.shape[0], tl.cdiv(c.shape[1], BN))
)


@tilec.function
def start(BM, D):
    """Highest score, sum of weights, weighted sum of values before any key."""
    return tl.full((BM,), -1e30, tl.f32), tl.zeros((BM,), tl.f32), tl.zeros((BM, D), tl.f32)


@tilec.function
def attend(state, query, k, v, head, n, BN, D):
    """The state after the keys from n on."""
    highest, total, acc = state
    key, value = tl.load(k, (head, n, 0), (BN, D)), tl.load(v, (head, n, 0), (BN, D))
    score = tl.dot(query, key.T) * LOG2_E
    score = tl.where(n + tl.arange(BN)[None, :] < k.shape[1], score, -1e30)
    higher = tl.maximum(highest, tl.max(score, 1))
    weight = tl.exp2(score - higher[:, None], approx=True)
    shrink = tl.exp2(highest - higher, approx=True)
    total = total * shrink + tl.sum(weight, 1)
    return higher, total, tl.dot(weight.to(value.dtype), value, acc * shrink[:, None])


@tilec.function
def finish(o, head, m, state):
    """Stores what is found."""
    _, total, acc = state
    tl.store(o, (head, m, 0), (acc / total[:, None]).to(o.dtype))


@tilec.function
def attend_all(q, k, v, o, head, m, BM, BN, D):
    """One tile of queries, all keys."""
    query, state = tl.load(q, (head, m, 0), (BM, D)), start(BM, D)
    for n in tl.range(0, k.shape[1], BN):
        state = attend(state, query, k, v, head, n, BN, D)
    finish(o, head, m, state)


@_ATTENTION
def attention_straight(
    q: tl.array, k: tl.array, v: tl.array, o: tl.array, keep: tl.array, rows: tl.i32,
    BM: tl.const = 128, BN: tl.const = 128, D: tl.const = 128,
):  # fmt: skip
    """No control flow but the loop."""
    attend_all(q, k, v, o, tl.program_id(1), tl.program_id(0) * BM, BM, BN, D)


@_ATTENTION
def attention_guard(
    q: tl.array, k: tl.array, v: tl.array, o: tl.array, keep: tl.array, rows: tl.i32,
    BM: tl.const = 128, BN: tl.const = 128, D: tl.const = 128,
):  # fmt: skip
    """`if` around the whole body."""
    if tl.program_id(0) * BM < rows:
        attend_all(q, k, v, o, tl.program_id(1), tl.program_id(0) * BM, BM, BN, D)


@_ATTENTION
def attention_return(
    q: tl.array, k: tl.array, v: tl.array, o: tl.array, keep: tl.array, rows: tl.i32,
    BM: tl.const = 128, BN: tl.const = 128, D: tl.const = 128,
):  # fmt: skip
    """`return` where memory says that there is nothing to do."""
    if tl.load(keep, (tl.program_id(1),), ()) == 0:
        return
    if tl.program_id(0) * BM >= rows:
        return
    attend_all(q, k, v, o, tl.program_id(1), tl.program_id(0) * BM, BM, BN, D)


@_ATTENTION
def attention_while(
    q: tl.array, k: tl.array, v: tl.array, o: tl.array, keep: tl.array, rows: tl.i32,
    BM: tl.const = 128, BN: tl.const = 128, D: tl.const = 128,
):  # fmt: skip
    """`while` that counts keys."""
    head, m = tl.program_id(1), tl.program_id(0) * BM
    query, state = tl.load(q, (head, m, 0), (BM, D)), start(BM, D)
    n = 0
    while n < k.shape[1]:
        state = attend(state, query, k, v, head, n, BN, D)
        n += BN
    finish(o, head, m, state)


@_ATTENTION
def attention_skips(
    q: tl.array, k: tl.array, v: tl.array, o: tl.array, keep: tl.array, rows: tl.i32,
    BM: tl.const = 128, BN: tl.const = 128, D: tl.const = 128,
):  # fmt: skip
    """Blocks of keys that are not seen."""
    head, m = tl.program_id(1), tl.program_id(0) * BM
    query, state = tl.load(q, (head, m, 0), (BM, D)), start(BM, D)
    for n in tl.range(0, k.shape[1], BN):
        if tl.load(keep, (n // BN,), ()) > 0:
            state = attend(state, query, k, v, head, n, BN, D)
    finish(o, head, m, state)


@_ATTENTION
def attention_breaks(
    q: tl.array, k: tl.array, v: tl.array, o: tl.array, keep: tl.array, rows: tl.i32,
    BM: tl.const = 128, BN: tl.const = 128, D: tl.const = 128,
):  # fmt: skip
    """`break` at the first block of keys that is not seen."""
    head, m = tl.program_id(1), tl.program_id(0) * BM
    query, state = tl.load(q, (head, m, 0), (BM, D)), start(BM, D)
    for n in tl.range(0, k.shape[1], BN):
        if tl.load(keep, (n // BN,), ()) == 0:
            break
        state = attend(state, query, k, v, head, n, BN, D)
    finish(o, head, m, state)


@tilec.function
def multiply(a, b, c, group, m, stop, n, depth, BM, BN, BK):
    """One tile of c, of the rows from m on that are before `stop`."""
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, depth, BK):
        acc = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(b, (group, k, n), (BK, BN)), acc)
    rows, columns = m + tl.arange(BM), n + tl.arange(BN)
    mask = (rows < stop)[:, None]
    tl.scatter(c, (rows[:, None], columns[None, :]), acc.to(c.dtype), mask=mask)


@_GROUPED
def grouped_zero_trips(
    a: tl.array, b: tl.array, c: tl.array, ends: tl.array,
    BM: tl.const = 128, BN: tl.const = 128, BK: tl.const = 64,
):  # fmt: skip
    """A trip count of 0 for programs without rows."""
    group, m, stop = find_tile(ends, tl.program_id(0), BM)
    depth = tl.where(m < stop, a.shape[1], 0)
    multiply(a, b, c, group, m, stop, tl.program_id(1) * BN, depth, BM, BN, BK)


@_GROUPED
def grouped_guard(
    a: tl.array, b: tl.array, c: tl.array, ends: tl.array,
    BM: tl.const = 128, BN: tl.const = 128, BK: tl.const = 64,
):  # fmt: skip
    """`if` around what they would do."""
    group, m, stop = find_tile(ends, tl.program_id(0), BM)
    if m < stop:
        multiply(a, b, c, group, m, stop, tl.program_id(1) * BN, a.shape[1], BM, BN, BK)


@_GROUPED
def grouped_return(
    a: tl.array, b: tl.array, c: tl.array, ends: tl.array,
    BM: tl.const = 128, BN: tl.const = 128, BK: tl.const = 64,
):  # fmt: skip
    """`return` before it."""
    group, m, stop = find_tile(ends, tl.program_id(0), BM)
    if m >= stop:
        return
    multiply(a, b, c, group, m, stop, tl.program_id(1) * BN, a.shape[1], BM, BN, BK)


@_GROUPED
def grouped_searching(
    a: tl.array, b: tl.array, c: tl.array, ends: tl.array,
    BM: tl.const = 128, BN: tl.const = 128, BK: tl.const = 64,
):  # fmt: skip
    """The group found by a `while` loop; its rows under a guard."""
    group, first, stop = 0, 0, tl.load(ends, (0,), ())
    while (group < ends.shape[0] - 1) & (stop // BM + group + 1 <= tl.program_id(0)):
        group += 1
        first = stop
        stop = tl.load(ends, (group,), ())
    m = tl.assume(first + (tl.program_id(0) - first // BM - group) * BM, min=0)
    if m < stop:
        multiply(a, b, c, group, m, stop, tl.program_id(1) * BN, a.shape[1], BM, BN, BK)


ATTENTION = (
    attention_straight,
    attention_guard,
    attention_return,
    attention_while,
    attention_skips,
    attention_breaks,
)
GROUPED = (grouped_zero_trips, grouped_guard, grouped_return, grouped_searching)
