"""Products of unusual shapes, alone and inside of something: kernels that the examples have none
of, as a user writes them who leaves all choices to tilec."""

from __future__ import annotations

import tilec
import tilec.language as tl


@tilec.kernel(grid=lambda y, BM: (tl.cdiv(y.shape[1], BM), y.shape[0]))
def multiply_vectors(
    a: tl.array, x: tl.array, y: tl.array, BM: tl.const = tl.auto, BK: tl.const = tl.auto
):
    """y[b] = a[b] @ x[b]: a (batch, M, K), x (batch, K)."""
    m, b = tl.program_id(0) * BM, tl.program_id(1)
    total = tl.zeros((BM, BK), tl.f32)
    for k in tl.range(0, a.shape[2], BK):
        v = tl.load(x, (b, k), BK).to(tl.f32)
        total += tl.load(a, (b, m, k), (BM, BK)).to(tl.f32) * v[None, :]
    tl.store(y, (b, m), tl.sum(total, 1)[None, :].to(y.dtype))


@tilec.kernel(grid=lambda a: a.shape[0])
def multiply_small(a: tl.array, b: tl.array, c: tl.array, M: tl.const, N: tl.const, K: tl.const):
    """c[i] = a[i] @ b[i] of small matrices, a program each."""
    i = tl.program_id(0)
    product = tl.dot(tl.load(a, (i, 0, 0), (M, K)), tl.load(b, (i, 0, 0), (K, N)))
    tl.store(c, (i, 0, 0), product.to(c.dtype))


@tilec.kernel(grid=lambda c, BM, BN: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)))
def gram(
    x: tl.array, c: tl.array,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
):  # fmt: skip
    """c = x^T x of a tall x."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, x.shape[0], BK):
        acc = tl.dot(tl.load(x, (k, m), (BK, BM)).T, tl.load(x, (k, n), (BK, BN)), acc)
    tl.store(c, (m, n), acc.to(c.dtype))


@tilec.kernel(grid=lambda x, BM: tl.cdiv(x.shape[0], BM))
def nearest(
    x: tl.array, centres: tl.array, least: tl.array, places: tl.array,
    D: tl.const, BM: tl.const = tl.auto, BN: tl.const = tl.auto,
):  # fmt: skip
    """least[i]: the square of the distance of point x[i] to the nearest of `centres`, which is
    number places[i]; of at most D numbers each."""
    m = tl.program_id(0) * BM
    point = tl.load(x, (m, 0), (BM, D))
    best, place = tl.full((BM,), tl.inf, tl.f32), tl.zeros((BM,), tl.i32)
    for n in tl.range(0, centres.shape[0], BN):
        centre = tl.load(centres, (n, 0), (BN, D))
        wide = centre.to(tl.f32)
        far = tl.sum(wide * wide, 1)[None, :] - 2.0 * tl.dot(point, centre.T)
        far = tl.where(n + tl.arange(BN)[None, :] < centres.shape[0], far, tl.inf)
        found, at = tl.min(far, 1, return_indices=True)
        place = tl.where(found < best, at + n.to(tl.i32), place)
        best = tl.minimum(found, best)
    wide = point.to(tl.f32)
    tl.store(least, m, best + tl.sum(wide * wide, 1))
    tl.store(places, m, place)


@tilec.kernel(grid=lambda h, BM, BN: (tl.cdiv(h.shape[0], BM), tl.cdiv(h.shape[1], BN)))
def lstm_cell(
    x: tl.array, before: tl.array, state: tl.array, wx: tl.array, wh: tl.array, bias: tl.array,
    h: tl.array, c: tl.array,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
):  # fmt: skip
    """A step of an LSTM: x (batch, inputs), before, state, h, c (batch, units),
    wx (4, units, inputs), wh (4, units, units), bias (4, units) of the gates i, f, g and o."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    zeros = tl.zeros((BM, BN), tl.f32)
    i, f, g, o = zeros, zeros, zeros, zeros
    for k in tl.range(0, x.shape[1], BK):
        a = tl.load(x, (m, k), (BM, BK))
        i = tl.dot(a, tl.load(wx, (0, n, k), (BN, BK)).T, i)
        f = tl.dot(a, tl.load(wx, (1, n, k), (BN, BK)).T, f)
        g = tl.dot(a, tl.load(wx, (2, n, k), (BN, BK)).T, g)
        o = tl.dot(a, tl.load(wx, (3, n, k), (BN, BK)).T, o)
    for k in tl.range(0, before.shape[1], BK):
        a = tl.load(before, (m, k), (BM, BK))
        i = tl.dot(a, tl.load(wh, (0, n, k), (BN, BK)).T, i)
        f = tl.dot(a, tl.load(wh, (1, n, k), (BN, BK)).T, f)
        g = tl.dot(a, tl.load(wh, (2, n, k), (BN, BK)).T, g)
        o = tl.dot(a, tl.load(wh, (3, n, k), (BN, BK)).T, o)
    i, f, g, o = (
        gate + tl.load(bias, (number, n), BN).to(tl.f32)[None, :]
        for number, gate in enumerate((i, f, g, o))
    )
    kept = tl.sigmoid(f, approx=True) * tl.load(state, (m, n), (BM, BN)).to(tl.f32)
    kept += tl.sigmoid(i, approx=True) * tl.tanh(g)
    tl.store(c, (m, n), kept.to(c.dtype))
    tl.store(h, (m, n), (tl.sigmoid(o, approx=True) * tl.tanh(kept)).to(h.dtype))
