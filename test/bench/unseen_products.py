"""Products with unusual work behind, between or beside them: kernels of the set of unseen ones."""

from __future__ import annotations

from typing import Any

import tilec
import tilec.language as tl


def _tiles(y: Any, BM: int, BN: int) -> tuple[int, int]:
    return tl.cdiv(y.shape[0], BM), tl.cdiv(y.shape[1], BN)


@tilec.kernel(grid=lambda x, BM: tl.cdiv(x.shape[0], BM))
def best_class(
    x: tl.array, w: tl.array, best: tl.array, which: tl.array,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
):  # fmt: skip
    """The largest of each row of x w^T, and its column."""
    m = tl.program_id(0) * BM
    highest, column = tl.full((BM,), -tl.inf, tl.f32), tl.zeros((BM,), tl.i32)
    for n in tl.range(0, w.shape[0], BN):
        acc = tl.zeros((BM, BN), tl.f32)
        for k in tl.range(0, x.shape[1], BK):
            acc = tl.dot(tl.load(x, (m, k), (BM, BK)), tl.load(w, (n, k), (BN, BK)).T, acc)
        acc = tl.where(n + tl.arange(BN)[None, :] < w.shape[0], acc, -tl.inf)
        found, at = tl.max(acc, 1, return_indices=True)
        column = tl.where(found > highest, at + n.to(tl.i32), column)
        highest = tl.maximum(highest, found)
    tl.store(best, m, highest)
    tl.store(which, m, column)


@tilec.kernel(grid=lambda y, BM: tl.cdiv(y.shape[0], BM))
def normed_product(
    x: tl.array, w: tl.array, gain: tl.array, y: tl.array, eps: float,
    N: tl.const, BM: tl.const = tl.auto, BK: tl.const = tl.auto,
):  # fmt: skip
    """Rows of x w by their root mean square: N columns, a whole row a program."""
    m = tl.program_id(0) * BM
    acc = tl.zeros((BM, N), tl.f32)
    for k in tl.range(0, x.shape[1], BK):
        acc = tl.dot(tl.load(x, (m, k), (BM, BK)), tl.load(w, (k, 0), (BK, N)), acc)
    scale = tl.rsqrt(tl.sum(acc * acc, 1) / w.shape[1] + eps)
    out = acc * scale[:, None] * tl.load(gain, 0, N).to(tl.f32)[None, :]
    tl.store(y, (m, 0), out.to(y.dtype))


@tilec.kernel(grid=_tiles)
def gated_halves_product(
    x: tl.array, w: tl.array, y: tl.array,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
):  # fmt: skip
    """gelu(x w[:H]^T) * (x w[H:]^T): both halves of one matrix of weights."""
    m, n, half = tl.program_id(0) * BM, tl.program_id(1) * BN, y.shape[1]
    gate, up = tl.zeros((BM, BN), tl.f32), tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, x.shape[1], BK):
        rows = tl.load(x, (m, k), (BM, BK))
        gate = tl.dot(rows, tl.load(w, (n, k), (BN, BK)).T, gate)
        up = tl.dot(rows, tl.load(w, (half + n, k), (BN, BK)).T, up)
    gate = 0.5 * gate * (1.0 + tl.erf(gate * 0.7071067811865476))
    tl.store(y, (m, n), (gate * up).to(y.dtype))


@tilec.kernel(grid=_tiles)
def quantised_product(
    x: tl.array, w: tl.array, y: tl.array, scales: tl.array,
    BM: tl.const = tl.auto, BN: tl.const = 128, BK: tl.const = tl.auto,
):  # fmt: skip
    """x w in fp8, with a scale for each row's every BN columns."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, x.shape[1], BK):
        acc = tl.dot(tl.load(x, (m, k), (BM, BK)), tl.load(w, (k, n), (BK, BN)), acc)
    scale = tl.maximum(tl.max(tl.abs(acc), 1) / 448.0, 1e-10)
    tl.store(y, (m, n), (acc / scale[:, None]).to(y.dtype))
    tl.store(scales, (m, tl.program_id(1)), scale[:, None])


@tilec.kernel(grid=_tiles)
def residual_product(
    x: tl.array, w: tl.array, bias: tl.array, kept: tl.array, gain: tl.array, old: tl.array,
    y: tl.array, factor: float,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
):  # fmt: skip
    """old + gain * dropped(x w^T + bias): `kept` says what is left, `factor` makes up for it."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, x.shape[1], BK):
        acc = tl.dot(tl.load(x, (m, k), (BM, BK)), tl.load(w, (n, k), (BN, BK)).T, acc)
    acc += tl.load(bias, n, BN).to(tl.f32)[None, :]
    acc = tl.where(tl.load(kept, (m, n), (BM, BN)) != 0, acc * factor, 0.0)
    acc *= tl.load(gain, n, BN).to(tl.f32)[None, :]
    tl.store(y, (m, n), (acc + tl.load(old, (m, n), (BM, BN)).to(tl.f32)).to(y.dtype))


@tilec.kernel(grid=lambda x, y, BM, BN: (tl.cdiv(x.shape[0], BM), tl.cdiv(y.shape[1], BN)))
def scattered_product(
    x: tl.array, w: tl.array, places: tl.array, y: tl.array,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
):  # fmt: skip
    """y[places[i]] = x[i] w."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, x.shape[1], BK):
        acc = tl.dot(tl.load(x, (m, k), (BM, BK)), tl.load(w, (k, n), (BK, BN)), acc)
    place = tl.load(places, m, BM, padding=-1)
    tl.scatter(y, (place[:, None], n + tl.arange(BN)[None, :]), acc.to(y.dtype))


@tilec.kernel(grid=lambda x, BM: tl.cdiv(x.shape[0], BM))
def two_layers(
    x: tl.array, up: tl.array, down: tl.array, y: tl.array, D: tl.const,
    BM: tl.const = tl.auto, BH: tl.const = tl.auto,
):  # fmt: skip
    """relu(x up^T)^2 down, of D elements a row: the hidden ones reach no memory."""
    m = tl.program_id(0) * BM
    rows, acc = tl.load(x, (m, 0), (BM, D)), tl.zeros((BM, D), tl.f32)
    for h in tl.range(0, up.shape[0], BH):
        hidden = tl.maximum(tl.dot(rows, tl.load(up, (h, 0), (BH, D)).T), 0.0)
        acc = tl.dot((hidden * hidden).to(x.dtype), tl.load(down, (h, 0), (BH, D)), acc)
    tl.store(y, (m, 0), acc.to(y.dtype))


@tilec.kernel(grid=_tiles)
def low_rank(
    x: tl.array, a: tl.array, b: tl.array, y: tl.array, R: tl.const,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
):  # fmt: skip
    """(x a^T) b^T through R columns."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    low = tl.zeros((BM, R), tl.f32)
    for k in tl.range(0, x.shape[1], BK):
        low = tl.dot(tl.load(x, (m, k), (BM, BK)), tl.load(a, (0, k), (R, BK)).T, low)
    out = tl.dot(low.to(x.dtype), tl.load(b, (n, 0), (BN, R)).T)
    tl.store(y, (m, n), out.to(y.dtype))


@tilec.kernel(grid=lambda dw, BM, BN: (tl.cdiv(dw.shape[0], BM), tl.cdiv(dw.shape[1], BN)))
def weight_gradient(
    dy: tl.array, x: tl.array, dw: tl.array,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
):  # fmt: skip
    """dy^T x of many rows."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, x.shape[0], BK):
        acc = tl.dot(tl.load(dy, (k, m), (BK, BM)).T, tl.load(x, (k, n), (BK, BN)), acc)
    tl.store(dw, (m, n), acc.to(dw.dtype))


@tilec.kernel(grid=_tiles)
def few_rows(
    x: tl.array, w: tl.array, bias: tl.array, y: tl.array,
    BM: tl.const = 16, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
):  # fmt: skip
    """silu(x w^T + bias) of 1 to 16 rows."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, x.shape[1], BK):
        acc = tl.dot(tl.load(x, (m, k), (BM, BK)), tl.load(w, (n, k), (BN, BK)).T, acc)
    acc += tl.load(bias, n, BN).to(tl.f32)[None, :]
    tl.store(y, (m, n), (acc * tl.sigmoid(acc)).to(y.dtype))


@tilec.kernel(
    grid=lambda s, BM, BN: (
        tl.cdiv(s.shape[2], BM), tl.cdiv(s.shape[3], BN), s.shape[0] * s.shape[1],
    )
)  # fmt: skip
def head_scores(
    q: tl.array, k: tl.array, s: tl.array, scale: float,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
):  # fmt: skip
    """Scores of all heads; q and k (batch, length, heads, D), s (batch, heads, length, keys)."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    batch, head = tl.program_id(2) // s.shape[1], tl.program_id(2) % s.shape[1]
    acc = tl.zeros((BM, BN), tl.f32)
    for d in tl.range(0, q.shape[3], BK):
        query = tl.load(q, (batch, m, head, d), (BM, BK), dims=(1, 3))
        key = tl.load(k, (batch, n, head, d), (BN, BK), dims=(1, 3))
        acc = tl.dot(query, key.T, acc)
    tl.store(s, (batch, head, m, n), (acc * scale)[None, None].to(s.dtype))


@tilec.kernel(grid=lambda x: x.shape[0])
def interactions(x: tl.array, z: tl.array, F: tl.const, D: tl.const):
    """Products of all pairs of F vectors of each example, as recommenders form them."""
    i = tl.program_id(0)
    vectors = tl.load(x, (i, 0, 0), (1, F, D)).reshape((F, D))
    tl.store(z, (i, 0, 0), tl.dot(vectors, vectors.T)[None].to(z.dtype))


@tilec.kernel(grid=_tiles)
def triangular_product(
    a: tl.array, b: tl.array, y: tl.array,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
):  # fmt: skip
    """The lower triangle of a, times b."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, tl.minimum(m + BM, a.shape[1]), BK):
        lower = m + tl.arange(BM)[:, None] >= k + tl.arange(BK)[None, :]
        rows = tl.where(lower, tl.load(a, (m, k), (BM, BK)), 0.0)
        acc = tl.dot(rows, tl.load(b, (k, n), (BK, BN)), acc)
    tl.store(y, (m, n), acc.to(y.dtype))
