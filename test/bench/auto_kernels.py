"""Kernels whose tiles are the compiler's choice: attention of other kinds than the example's, a
recurrence in chunks, products with work beside them. Nothing here is known to the compiler."""

from __future__ import annotations

import tilec
import tilec.language as tl
from tilec.ops.attention_kernel import LOG2_E, attend


@tilec.kernel(grid=lambda q, BM: (tl.cdiv(q.shape[2], BM), q.shape[1], q.shape[0]))
def shared_attention(
    q: tl.array, k: tl.array, v: tl.array, o: tl.array, scale: tl.f32,
    DK: tl.const, DV: tl.const, CAUSAL: tl.const,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto,
):  # fmt: skip
    """o = softmax(q k^T scale) v, where heads of q share those of k and v, and values have other
    widths than keys; arrays are (batch, heads, length, DK or DV)."""
    batch, head, m = tl.program_id(2), tl.program_id(1), tl.program_id(0) * BM
    of, keys, factor = head // (q.shape[1] // k.shape[1]), k.shape[2], scale * LOG2_E
    query = tl.load(q, (batch, head, m, 0), (BM, DK))
    state = (tl.full((BM,), -tl.inf, tl.f32), tl.zeros((BM,), tl.f32), tl.zeros((BM, DV), tl.f32))
    end, seen, bound = keys, keys, keys
    if CAUSAL:
        end, seen = tl.minimum(keys, m + BM), tl.minimum(keys, m + 1)
        bound = tl.minimum(keys, m + 1 + tl.arange(BM))[:, None]
    whole = seen // BN * BN
    for n in tl.range(0, whole, BN):
        key = tl.load(k, (batch, of, n, 0), (BN, DK))
        value = tl.load(v, (batch, of, n, 0), (BN, DV))
        state = attend(state, query, key, value, factor, None)
    for n in tl.range(whole, end, BN):
        key = tl.load(k, (batch, of, n, 0), (BN, DK))
        value = tl.load(v, (batch, of, n, 0), (BN, DV))
        state = attend(state, query, key, value, factor, n + tl.arange(BN)[None, :] < bound)
    _, total, acc = state
    tl.store(o, (batch, head, m, 0), (acc / total[:, None]).to(o.dtype))


@tilec.kernel(grid=lambda v, BV: (tl.cdiv(v.shape[3], BV), v.shape[1], v.shape[0]))
def recurrence(
    q: tl.array, k: tl.array, v: tl.array, g: tl.array, o: tl.array,
    DK: tl.const, BC: tl.const = tl.auto, BV: tl.const = tl.auto,
):  # fmt: skip
    """o[i] = q[i] S[i], S[i] = exp(g[i]) S[i - 1] + k[i]^T v[i], BC steps at a time; arrays are
    (batch, heads, length, DK or width of values), g without the last."""
    batch, head, n = tl.program_id(2), tl.program_id(1), tl.program_id(0) * BV
    state = tl.zeros((DK, BV), tl.f32)
    for c in tl.range(0, q.shape[2], BC):
        query = tl.load(q, (batch, head, c, 0), (BC, DK))
        key = tl.load(k, (batch, head, c, 0), (BC, DK))
        value = tl.load(v, (batch, head, c, n), (BC, BV))
        gate = tl.load(g, (batch, head, c), (BC,))
        since, whole = tl.cumsum(gate), tl.sum(gate)
        apart = tl.exp(tl.minimum(since[:, None] - since[None, :], 0.0))
        seen = tl.arange(BC)[:, None] >= tl.arange(BC)[None, :]
        score = tl.where(seen, tl.dot(query, key.T) * apart, 0.0)
        before = tl.dot(query, state.to(query.dtype)) * tl.exp(since)[:, None]
        out = tl.dot(score.to(value.dtype), value, before)
        tl.store(o, (batch, head, c, n), out.to(o.dtype))
        left = (value * tl.exp(whole - since)[:, None]).to(value.dtype)
        state = tl.dot(key.T, left, state * tl.exp(whole))


@tilec.kernel(grid=lambda y, BM, BN: (tl.cdiv(y.shape[0], BM), tl.cdiv(y.shape[1], BN)))
def updated_product(
    x: tl.array, w: tl.array, a: tl.array, b: tl.array, y: tl.array, R: tl.const,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
):  # fmt: skip
    """y = x w + (x a) b: a product and an update of rank R."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc, low = tl.zeros((BM, BN), tl.f32), tl.zeros((BM, R), tl.f32)
    for k in tl.range(0, x.shape[1], BK):
        rows = tl.load(x, (m, k), (BM, BK))
        acc = tl.dot(rows, tl.load(w, (k, n), (BK, BN)), acc)
        low = tl.dot(rows, tl.load(a, (k, 0), (BK, R)), low)
    acc = tl.dot(low.to(x.dtype), tl.load(b, (0, n), (R, BN)), acc)
    tl.store(y, (m, n), acc.to(y.dtype))


@tilec.kernel(grid=lambda c, BM, BN: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)))
def gated(
    a: tl.array, b: tl.array, g: tl.array, c: tl.array,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
):  # fmt: skip
    """c = silu(a g) * (a b)."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc, gate = tl.zeros((BM, BN), tl.f32), tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK):
        x = tl.load(a, (m, k), (BM, BK))
        acc = tl.dot(x, tl.load(b, (k, n), (BK, BN)), acc)
        gate = tl.dot(x, tl.load(g, (k, n), (BK, BN)), gate)
    tl.store(c, (m, n), (gate / (1 + tl.exp(-gate)) * acc).to(c.dtype))


@tilec.kernel(grid=lambda x, sums, BM: (tl.cdiv(x.shape[0], BM), sums.shape[1]))
def losses(
    x: tl.array, w: tl.array, sums: tl.array, part: int,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
):  # fmt: skip
    """sums[i, p] = log of the sum of exp(x[i] w[j]) over part p of the rows of w, `part` rows each:
    what a loss needs of logits that reach no memory."""
    m, p = tl.program_id(0) * BM, tl.program_id(1)
    highest, total = tl.full((BM,), -tl.inf, tl.f32), tl.zeros((BM,), tl.f32)
    end = tl.minimum((p + 1) * part, w.shape[0])
    for n in tl.range(p * part, end, BN):
        acc = tl.zeros((BM, BN), tl.f32)
        for k in tl.range(0, x.shape[1], BK):
            rows = tl.load(x, (m, k), (BM, BK))
            acc = tl.dot(rows, tl.load(w, (n, k), (BN, BK)).T, acc)
        acc = tl.where(n + tl.arange(BN)[None, :] < end, acc, -tl.inf)
        higher = tl.maximum(highest, tl.max(acc, 1))
        total = total * tl.exp(highest - higher) + tl.sum(tl.exp(acc - higher[:, None]), 1)
        highest = higher
    tl.store(sums, (m, p), (highest + tl.log(total))[:, None])
