"""Kernels that the examples have none of, as a user writes them who leaves all choices to tilec."""

from __future__ import annotations

import tilec
import tilec.language as tl
from tilec.ops.attention_kernel import LOG2_E, attend

GELU = 0.7978845608028654
"""sqrt(2 / pi), of the approximation by tanh."""


def _programs(x, B):
    return tl.cdiv(x.shape[0], B)


def gelu(x):
    """x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), with tanh as a sigmoid."""
    return x * tl.sigmoid(2 * GELU * (x + 0.044715 * x * x * x), approx=True)


@tilec.kernel(grid=_programs)
def scale_array(x: tl.array, factor: tl.f32, B: tl.const = 1024):
    """x *= factor."""
    i = tl.program_id(0) * B
    tl.store(x, i, (tl.load(x, i, B).to(tl.f32) * factor).to(x.dtype))


@tilec.kernel(grid=_programs)
def activate(x: tl.array, y: tl.array, B: tl.const = 1024):
    """y = gelu(x)."""
    i = tl.program_id(0) * B
    tl.store(y, i, gelu(tl.load(x, i, B).to(tl.f32)).to(y.dtype))


@tilec.kernel(grid=_programs)
def gate(x: tl.array, g: tl.array, y: tl.array, B: tl.const = 1024):
    """y = silu(g) x."""
    i = tl.program_id(0) * B
    a, b = tl.load(x, i, B).to(tl.f32), tl.load(g, i, B).to(tl.f32)
    tl.store(y, i, (tl.silu(b, approx=True) * a).to(y.dtype))


@tilec.kernel(grid=_programs)
def blend(x: tl.array, z: tl.array, w: tl.array, y: tl.array, B: tl.const = 1024):
    """y = x + w (z - x)."""
    i = tl.program_id(0) * B
    a, b, c = (tl.load(each, i, B).to(tl.f32) for each in (x, z, w))
    tl.store(y, i, (a + c * (b - a)).to(y.dtype))


@tilec.kernel(grid=_programs)
def mix_products(
    x: tl.array, z: tl.array, w: tl.array, u: tl.array, y: tl.array, B: tl.const = 1024
):
    """y = x z + w u."""
    i = tl.program_id(0) * B
    a, b, c, d = (tl.load(each, i, B).to(tl.f32) for each in (x, z, w, u))
    tl.store(y, i, (a * b + c * d).to(y.dtype))


@tilec.kernel(grid=_programs)
def mix_gated(
    x: tl.array, z: tl.array, w: tl.array, u: tl.array, g: tl.array, y: tl.array,
    B: tl.const = 1024,
):  # fmt: skip
    """y = sigmoid(g) x z + w u."""
    i = tl.program_id(0) * B
    a, b, c, d, e = (tl.load(each, i, B).to(tl.f32) for each in (x, z, w, u, g))
    tl.store(y, i, (tl.sigmoid(e, approx=True) * a * b + c * d).to(y.dtype))


ADAM_EPS = 1e-3


@tilec.kernel(grid=_programs)
def adam(
    x: tl.array, grad: tl.array, mean: tl.array, square: tl.array, rate: tl.f32,
    B: tl.const = 1024,
):  # fmt: skip
    """A step of Adam (arXiv:1412.6980) with momenta 0.9 and 0.99, biases left as they are."""
    i = tl.program_id(0) * B
    g = tl.load(grad, i, B)
    m = 0.9 * tl.load(mean, i, B) + 0.1 * g
    v = 0.99 * tl.load(square, i, B) + 0.01 * (g * g)
    tl.store(mean, i, m)
    tl.store(square, i, v)
    tl.store(x, i, tl.load(x, i, B) - rate * m / (tl.sqrt(v) + ADAM_EPS))


@tilec.kernel(grid=lambda x: x.shape[0])
def long_rms_norm(x: tl.array, weight: tl.array, y: tl.array, eps: tl.f32, B: tl.const = tl.auto):
    """`tilec.examples.rms_norm` of rows longer than a tile: read twice."""
    row, columns = tl.program_id(0), x.shape[1]
    squares = tl.zeros((B,), tl.f32)
    for start in tl.range(0, columns, B):
        v = tl.load(x, (row, start), B).to(tl.f32)
        squares += v * v
    scale = tl.rsqrt(tl.sum(squares) / columns + eps)
    for start in tl.range(0, columns, B):
        v = tl.load(x, (row, start), B).to(tl.f32)
        w = tl.load(weight, start, B).to(tl.f32)
        tl.store(y, (row, start), (v * scale * w).to(y.dtype))


@tilec.kernel(grid=lambda x: x.shape[0])
def whole_rms_norm(x: tl.array, weight: tl.array, y: tl.array, eps: tl.f32, N: tl.const):
    """The same of rows of at most N elements, of several CTAs each."""
    row = tl.program_id(0)
    v = tl.load(x, (row, 0), N).to(tl.f32)
    scale = tl.rsqrt(tl.sum(v * v) / x.shape[1] + eps)
    tl.store(y, (row, 0), (v * scale * tl.load(weight, 0, N).to(tl.f32)).to(y.dtype))


LARGEST_E4M3 = 448.0


@tilec.kernel(grid=lambda x: x.shape[0])
def quantise_rows(x: tl.array, y: tl.array, scales: tl.array, N: tl.const):
    """y = x / scales in fp8, the largest of a row 448; rows of at most N elements."""
    row = tl.program_id(0)
    v = tl.load(x, (row, 0), N).to(tl.f32)
    scale = tl.maximum(tl.max(tl.abs(v)), 1e-12) / LARGEST_E4M3
    tl.store(scales, row, scale)
    tl.store(y, (row, 0), (v * (1 / scale)).to(y.dtype))


@tilec.kernel(grid=lambda x: x.shape[0])
def quantise_long_rows(x: tl.array, y: tl.array, scales: tl.array, B: tl.const = tl.auto):
    """The same of rows longer than a tile: read twice."""
    row = tl.program_id(0)
    most = tl.zeros((B,), tl.f32)
    for start in tl.range(0, x.shape[1], B):
        most = tl.maximum(most, tl.abs(tl.load(x, (row, start), B).to(tl.f32)))
    scale = tl.maximum(tl.max(most), 1e-12) / LARGEST_E4M3
    tl.store(scales, row, scale)
    for start in tl.range(0, x.shape[1], B):
        v = tl.load(x, (row, start), B).to(tl.f32)
        tl.store(y, (row, start), (v * (1 / scale)).to(y.dtype))


@tilec.kernel(grid=lambda c, BM, BN: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)))
def biased_product(
    a: tl.array, b: tl.array, bias: tl.array, residual: tl.array, c: tl.array,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
):  # fmt: skip
    """c = gelu(a @ b + bias) + residual."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK):
        acc = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(b, (k, n), (BK, BN)), acc)
    y = gelu(acc + tl.load(bias, n, BN).to(tl.f32)[None, :])
    tl.store(c, (m, n), (y + tl.load(residual, (m, n), (BM, BN)).to(tl.f32)).to(c.dtype))


@tilec.kernel(grid=lambda q, BM: (tl.cdiv(q.shape[2], BM), q.shape[1], q.shape[0]))
def shared_attention(
    q: tl.array, k: tl.array, v: tl.array, o: tl.array, scale: tl.f32,
    D: tl.const, DV: tl.const, CAUSAL: tl.const = False, WINDOW: tl.const = None,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto,
):  # fmt: skip
    """Attention where heads of queries share those of keys (D) and values (DV),
    and with WINDOW a query sees itself and the WINDOW - 1 keys before it."""
    batch, head, m = tl.program_id(2), tl.program_id(1), tl.program_id(0) * BM
    of = head // (q.shape[1] // k.shape[1])
    keys, factor = k.shape[2], scale * LOG2_E
    query = tl.load(q, (batch, head, m, 0), (BM, D))
    rows = m + tl.arange(BM)[:, None]
    # Finite, so that rows that see nothing of a block subtract no infinities.
    state = (tl.full((BM,), -1e30, tl.f32), tl.zeros((BM,), tl.f32), tl.zeros((BM, DV), tl.f32))
    first = tl.maximum(0, m - WINDOW + 1) // BN * BN if WINDOW else 0
    end = tl.minimum(keys, m + BM) if CAUSAL else keys
    whole = first if WINDOW else (tl.minimum(keys, m + 1) if CAUSAL else keys) // BN * BN
    for n in tl.range(first, whole, BN):
        key, value = tl.load(k, (batch, of, n, 0), (BN, D)), tl.load(v, (batch, of, n, 0), (BN, DV))
        state = attend(state, query, key, value, factor, None)
    for n in tl.range(whole, end, BN):
        key, value = tl.load(k, (batch, of, n, 0), (BN, D)), tl.load(v, (batch, of, n, 0), (BN, DV))
        columns = n + tl.arange(BN)[None, :]
        visible = (columns < keys) & (columns <= rows) if CAUSAL else columns < keys
        if WINDOW:
            visible = visible & (columns > rows - WINDOW)
        state = attend(state, query, key, value, factor, visible)
    _, total, acc = state
    tl.store(o, (batch, head, m, 0), (acc / total[:, None]).to(o.dtype))


@tilec.kernel(grid=lambda v, BV: (tl.cdiv(v.shape[3], BV), v.shape[1], v.shape[0]))
def chunked_recurrence(
    q: tl.array, k: tl.array, v: tl.array, decay: tl.array, o: tl.array,
    D: tl.const, BV: tl.const = tl.auto, C: tl.const = tl.auto,
):  # fmt: skip
    """state = exp(decay) state + k v^T, o = q state, C steps at a time (arXiv:2405.21060).

    q, k (batch, heads, length, D), v, o (.., elements of a value), decay (batch, heads, length).
    """
    n, head, batch = tl.program_id(0) * BV, tl.program_id(1), tl.program_id(2)
    state = tl.zeros((D, BV), tl.f32)
    i = tl.arange(C)
    for t in tl.range(0, q.shape[2], C):
        query, key = (tl.load(x, (batch, head, t, 0), (C, D)) for x in (q, k))
        value = tl.load(v, (batch, head, t, n), (C, BV))
        rate = tl.load(decay, (batch, head, t), C)
        passed, total = tl.cumsum(rate), tl.sum(rate)
        seen = i[:, None] >= i[None, :]
        weight = tl.where(seen, tl.exp(passed[:, None] - passed[None, :]), 0.0)
        inside = (tl.dot(query, key.T) * weight).to(value.dtype)
        before = tl.dot(query, state.to(query.dtype)) * tl.exp(passed)[:, None]
        tl.store(o, (batch, head, t, n), tl.dot(inside, value, before).to(o.dtype))
        left = (value.to(tl.f32) * tl.exp(total - passed)[:, None]).to(value.dtype)
        state = tl.dot(key.T, left, state * tl.exp(total))
