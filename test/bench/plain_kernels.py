"""Kernels of `plain.py` and what each computes, as one writes it in torch."""

from __future__ import annotations

import tilec
import tilec.language as tl


def _rows(x):
    return x.shape[0]


def _flat(x, B):
    return tl.cdiv(x.shape[0], B)


def _tiles(y, BM, BN):
    return tl.cdiv(y.shape[0], BM), tl.cdiv(y.shape[1], BN)


@tilec.kernel(grid=_flat)
def option_prices(x, strikes, times, y, rate: float, B: tl.const = tl.auto):
    """Calls by Black and Scholes, a volatility of 0.3."""
    i = tl.program_id(0) * B
    s, k, t = (tl.load(each, i, B, padding=1.0) for each in (x, strikes, times))
    spread = 0.3 * tl.sqrt(t)
    d = (tl.log(s / k) + (rate + 0.045) * t) / spread
    near, far = (0.5 * (1 + tl.erf(each * 0.70710678)) for each in (d, d - spread))
    tl.store(y, i, s * near - k * tl.exp(-rate * t) * far)


@tilec.kernel(grid=_rows)
def divergences(x, z, y, N: tl.const):
    """Of each row of log probabilities x from z."""
    row = tl.program_id(0)
    p = tl.load(x, (row, 0), N, padding=-tl.inf).to(tl.f32)
    q = tl.load(z, (row, 0), N).to(tl.f32)
    tl.store(y, row, tl.sum(tl.where(p > -tl.inf, tl.exp(p) * (p - q), 0.0)))


@tilec.kernel(grid=lambda x, B: (tl.cdiv(x.shape[2], B), x.shape[0]))
def channel_norm(x, weight, bias, y, C: tl.const, B: tl.const = tl.auto):
    """A layer norm over the channels of images x: (images, channels, places)."""
    i, image = tl.program_id(0) * B, tl.program_id(1)
    v = tl.load(x, (image, 0, i), (C, B)).to(tl.f32)
    mean = tl.sum(v, 0) / C
    v = v - mean
    scale = tl.rsqrt(tl.sum(v * v, 0) / C + 1e-6)
    w, b = (tl.load(each, 0, C).to(tl.f32)[:, None] for each in (weight, bias))
    tl.store(y, (image, 0, i), (v * scale * w + b).to(y.dtype))


@tilec.kernel(grid=_rows)
def add_norm_quantise(x, residual, weight, total, y, scales, N: tl.const):
    """total = x + residual; y: its RMS norm in fp8 with a scale a row."""
    row = tl.program_id(0)
    v = tl.load(x, (row, 0), N).to(tl.f32) + tl.load(residual, (row, 0), N).to(tl.f32)
    tl.store(total, (row, 0), v.to(total.dtype))
    v = v * tl.rsqrt(tl.sum(v * v) / N + 1e-6) * tl.load(weight, 0, N).to(tl.f32)
    scale = tl.maximum(tl.max(tl.abs(v)), 1e-10) / 448
    tl.store(scales, row, scale)
    tl.store(y, (row, 0), (v / scale).to(y.dtype))


@tilec.kernel(grid=_rows)
def best_expert(x, weights, places, N: tl.const):
    """The place of the largest score of each row and its share by softmax."""
    row = tl.program_id(0)
    v = tl.load(x, (row, 0), N, padding=-tl.inf).to(tl.f32)
    top = tl.max(v)
    tl.store(weights, row, 1 / tl.sum(tl.exp(v - top)))
    tl.store(places, row, tl.argmax(v).to(tl.i32))


@tilec.kernel(grid=lambda p, B: tl.cdiv(p.shape[0], B))
def lion(p, m, g, rate: float, B: tl.const = tl.auto):
    """A step of Lion, p and m in place."""
    i = tl.program_id(0) * B
    old, mean, slope = (tl.load(each, i, B).to(tl.f32) for each in (p, m, g))
    way = 0.9 * mean + 0.1 * slope
    sign = tl.where(way > 0, 1.0, tl.where(way < 0, -1.0, 0.0))
    tl.store(p, i, (old - rate * (sign + 0.01 * old)).to(p.dtype))
    tl.store(m, i, (0.99 * mean + 0.01 * slope).to(m.dtype))


@tilec.kernel(grid=_tiles)
def rank_one(y, u, v, rate: float, BM: tl.const = tl.auto, BN: tl.const = tl.auto):
    """y += rate u v^T."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    a, b = tl.load(u, m, BM).to(tl.f32), tl.load(v, n, BN).to(tl.f32)
    old = tl.load(y, (m, n), (BM, BN)).to(tl.f32)
    tl.store(y, (m, n), (old + rate * a[:, None] * b[None, :]).to(y.dtype))


@tilec.kernel(grid=_rows)
def largest_places(x, places, B: tl.const = 4096):
    """argmax of long rows, in steps of B."""
    row = tl.program_id(0)
    best, at = tl.full((B,), -tl.inf, tl.f32), tl.zeros((B,), tl.i32)
    for i in tl.range(0, x.shape[1], B):
        v = tl.load(x, (row, i), B, padding=-tl.inf).to(tl.f32)
        at = tl.where(v > best, (i + tl.arange(B)).to(tl.i32), at)
        best = tl.maximum(v, best)
    top = tl.max(best)
    tl.store(places, row, tl.min(tl.where(best == top, at, 2147483647)))


@tilec.kernel(grid=lambda y, BH, BW: (tl.cdiv(y.shape[2], BW), tl.cdiv(y.shape[1], BH), y.shape[0]))
def double_bilinear(x, y, BH: tl.const = tl.auto, BW: tl.const = tl.auto):
    """Planes at twice their size, between four neighbours."""
    j, i, plane = tl.program_id(0) * BW, tl.program_id(1) * BH, tl.program_id(2)
    down, right = i + tl.arange(BH), j + tl.arange(BW)
    h, w = x.shape[1], x.shape[2]
    top = tl.maximum(0.5 * down.to(tl.f32) - 0.25, 0.0)
    left = tl.maximum(0.5 * right.to(tl.f32) - 0.25, 0.0)
    r, c = tl.floor(top).to(tl.i32), tl.floor(left).to(tl.i32)
    a, b = (top - r.to(tl.f32))[:, None], (left - c.to(tl.f32))[None, :]
    low, far = tl.minimum(r + 1, (h - 1).to(tl.i32)), tl.minimum(c + 1, (w - 1).to(tl.i32))
    part = tl.window(x, (plane, 0, 0), (1, h, w))
    p, q, s, t = (
        tl.gather(part, (0, down[:, None], over[None, :])).to(tl.f32)
        for down, over in ((r, c), (r, far), (low, c), (low, far))
    )
    v = (1 - a) * ((1 - b) * p + b * q) + a * ((1 - b) * s + b * t)
    tl.store(y, (plane, i, j), v.to(y.dtype))


@tilec.kernel(grid=lambda y, BH, BW: (tl.cdiv(y.shape[2], BW), tl.cdiv(y.shape[1], BH), y.shape[0]))
def depthwise(x, taps, y, C: tl.const, BH: tl.const = tl.auto, BW: tl.const = tl.auto):
    """3 x 3, a filter a channel, planes (images * channels, height, width), zeros around."""
    j, i, plane = tl.program_id(0) * BW, tl.program_id(1) * BH, tl.program_id(2)
    total = tl.zeros((BH, BW), tl.f32)
    for a in tl.static_range(3):
        for b in tl.static_range(3):
            v = tl.load(x, (plane, i + a - 1, j + b - 1), (BH, BW)).to(tl.f32)
            total += v * tl.load(taps, (plane % C, a * 3 + b), ()).to(tl.f32)
    tl.store(y, (plane, i, j), total.to(y.dtype))


@tilec.kernel(grid=lambda x, B: tl.cdiv(x.shape[0], B))
def square_parts(x, y, B: tl.const = 16384):
    """Sums of squares of B numbers each, of which the caller makes a norm."""
    program = tl.program_id(0)
    v = tl.load(x, program * B, B).to(tl.f32)
    tl.store(y, program, tl.sum(v * v))


@tilec.kernel(grid=lambda x, B: (tl.cdiv(x.shape[2], B), x.shape[0]))
def middle_softmax(x, y, S: tl.const, B: tl.const = tl.auto):
    """Over the second of three axes."""
    i, image = tl.program_id(0) * B, tl.program_id(1)
    v = tl.load(x, (image, 0, i), (S, B), padding=-tl.inf).to(tl.f32)
    v = tl.exp(v - tl.max(v, 0))
    tl.store(y, (image, 0, i), (v / tl.sum(v, 0)).to(y.dtype))


@tilec.kernel(grid=lambda x, B: (tl.cdiv(x.shape[1], B), x.shape[0]))
def normal_images(x, y, B: tl.const = 512):
    """Bytes (images, places, 3) to floats (images, 3, places), less a mean, by a deviation."""
    i, image = tl.program_id(0) * B, tl.program_id(1)
    at = i + tl.arange(B)
    for c in tl.static_range(3):
        v = tl.gather(x, (image, at, c)).to(tl.f32)
        tl.store(y, (image, c, i), ((v / 255 - 0.45) / 0.226).to(y.dtype)[None, None, :])


@tilec.kernel(grid=_rows)
def causal_scores(x, y, N: tl.const):
    """softmax of 0.125 x over columns up to the row's number in its square."""
    row = tl.program_id(0)
    last = row % x.shape[1]
    v = tl.load(x, (row, 0), N).to(tl.f32) * 0.125
    v = tl.where(tl.arange(N) <= last, v, -tl.inf)
    v = tl.exp(v - tl.max(v))
    tl.store(y, (row, 0), (v / tl.sum(v)).to(y.dtype))


@tilec.kernel(grid=lambda x, BN: tl.cdiv(x.shape[1], BN))
def column_logs(x, y, BM: tl.const = tl.auto, BN: tl.const = tl.auto):
    """log of the sum of exp of each column, in one pass."""
    n = tl.program_id(0) * BN
    top, total = tl.full((BN,), -1e30, tl.f32), tl.zeros((BN,), tl.f32)
    for m in tl.range(0, x.shape[0], BM):
        v = tl.load(x, (m, n), (BM, BN), padding=-tl.inf).to(tl.f32)
        high = tl.maximum(top, tl.max(v, 0))
        total = total * tl.exp(top - high) + tl.sum(tl.exp(v - high), 0)
        top = high
    tl.store(y, n, top + tl.log(total))


@tilec.kernel(grid=_tiles)
def cosines(x, z, y, BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto):
    """Of every row of x and every row of z."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    p, q = tl.zeros((BM,), tl.f32), tl.zeros((BN,), tl.f32)
    for k in tl.range(0, x.shape[1], BK):
        a, b = tl.load(x, (m, k), (BM, BK)), tl.load(z, (n, k), (BN, BK))
        acc = tl.dot(a, b.T, acc)
        p += tl.sum(a.to(tl.f32) * a.to(tl.f32), 1)
        q += tl.sum(b.to(tl.f32) * b.to(tl.f32), 1)
    scale = tl.rsqrt(tl.maximum(p, 1e-12))[:, None] * tl.rsqrt(tl.maximum(q, 1e-12))[None, :]
    tl.store(y, (m, n), (acc * scale).to(y.dtype))


@tilec.kernel(grid=_tiles)
def newton_step(
    x, y, a: float, b: float, BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto
):
    """y = a x + b x x, x square (Muon's)."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, x.shape[1], BK):
        acc = tl.dot(tl.load(x, (m, k), (BM, BK)), tl.load(x, (k, n), (BK, BN)), acc)
    tl.store(y, (m, n), (a * tl.load(x, (m, n), (BM, BN)).to(tl.f32) + b * acc).to(y.dtype))


@tilec.kernel(grid=lambda x, BM: tl.cdiv(x.shape[0], BM))
def classify(x, w, bias, y, C: tl.const, BM: tl.const = tl.auto, BK: tl.const = tl.auto):
    """log softmax of x w + bias, few classes."""
    m = tl.program_id(0) * BM
    acc = tl.zeros((BM, C), tl.f32)
    for k in tl.range(0, x.shape[1], BK):
        acc = tl.dot(tl.load(x, (m, k), (BM, BK)), tl.load(w, (k, 0), (BK, C)), acc)
    v = acc + tl.load(bias, 0, C).to(tl.f32)[None, :]
    v = v - tl.max(v, 1)[:, None]
    tl.store(y, (m, 0), (v - tl.log(tl.sum(tl.exp(v), 1))[:, None]).to(y.dtype))


@tilec.kernel(grid=lambda x, B: (tl.cdiv(x.shape[1], B), x.shape[0]))
def gru_gates(x, h, y, B: tl.const = tl.auto):
    """A GRU's state y in place; its three gates of the inputs and of the state, and a fourth that
    nobody reads, are the columns of x and h."""
    i, row = tl.program_id(0) * B, tl.program_id(1)
    v, u = (tl.load(each, (row, i, 0), (B, 4)).to(tl.f32) for each in (x, h))
    r, z, n, _ = (tl.reshape(each, (B,)) for each in tl.split(v, 4, 1))
    a, b, c, _ = (tl.reshape(each, (B,)) for each in tl.split(u, 4, 1))
    reset, keep = tl.sigmoid(r + a), tl.sigmoid(z + b)
    new = tl.tanh(n + reset * c)
    old = tl.load(y, (row, i), B).to(tl.f32)
    tl.store(y, (row, i), (new + keep * (old - new)).to(y.dtype))


@tilec.kernel(grid=lambda x, B: (tl.cdiv(x.shape[1], B), x.shape[0]))
def add_rows_at(x, places, y, B: tl.const = 256):
    """y[places[i]] += x[i], places may be equal."""
    i, row = tl.program_id(0) * B, tl.program_id(1)
    tl.atomic_add(y, (tl.load(places, row, ()), i + tl.arange(B)), tl.load(x, (row, i), B))


@tilec.kernel(grid=lambda x, BM: tl.cdiv(x.shape[0], BM))
def nearest_point(x, z, y, BM: tl.const = tl.auto, BN: tl.const = tl.auto):
    """The squared distance of each point of x to the nearest of z; rows of 4, the last is 0."""
    m = tl.program_id(0) * BM
    a = [tl.load(x, (m, d), (BM, 1)) for d in (0, 1, 2)]
    best = tl.full((BM, BN), tl.inf, tl.f32)
    for n in tl.range(0, z.shape[0], BN):
        b = [tl.reshape(tl.load(z, (n, d), (BN, 1), padding=1e18), (1, BN)) for d in (0, 1, 2)]
        s, t, u = a[0] - b[0], a[1] - b[1], a[2] - b[2]
        best = tl.minimum(best, s * s + t * t + u * u)
    tl.store(y, m, tl.min(best, 1))


@tilec.kernel(grid=_rows)
def running_products(x, y, N: tl.const):
    """cumprod of rows of numbers near 1."""
    row = tl.program_id(0)
    v = tl.load(x, (row, 0), N, padding=1.0).to(tl.f32)
    tl.store(y, (row, 0), tl.cumprod(v, 0).to(y.dtype))


@tilec.kernel(grid=lambda y, BT, BC: (tl.cdiv(y.shape[2], BC), tl.cdiv(y.shape[1], BT), y.shape[0]))
def join_interleaved(x, z, y, BT: tl.const = 16, BC: tl.const = 64):
    """y[..., 2 i] = x, y[..., 2 i + 1] = z."""
    c, t, b = tl.program_id(0) * BC, tl.program_id(1) * BT, tl.program_id(2)
    p, q = (
        tl.reshape(tl.load(each, (b, t, c // 2), (BT, BC // 2)), (BT, BC // 2)) for each in (x, z)
    )
    tl.store(y, (b, t, c), tl.reshape(tl.join((p, q)), (BT, BC)))


@tilec.kernel(grid=lambda y, B: (tl.cdiv(y.shape[1], B), y.shape[0]))
def fold_planes(x, y, B: tl.const = tl.auto):
    """Sums over images: x (images, channels, places) to y (channels, places)."""
    i, c = tl.program_id(0) * B, tl.program_id(1)
    total = tl.zeros((B,), tl.f32)
    for image in tl.range(0, x.shape[0]):
        total += tl.load(x, (image, c, i), B).to(tl.f32)
    tl.store(y, (c, i), total.to(y.dtype))


@tilec.kernel(grid=_tiles)
def gated_pair(x, w, v, y, BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto):
    """y = silu(x w^T) * (x v^T)."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    p, q = tl.zeros((BM, BN), tl.f32), tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, x.shape[1], BK):
        a = tl.load(x, (m, k), (BM, BK))
        p = tl.dot(a, tl.load(w, (n, k), (BN, BK)).T, p)
        q = tl.dot(a, tl.load(v, (n, k), (BN, BK)).T, q)
    tl.store(y, (m, n), (tl.silu(p) * q).to(y.dtype))


@tilec.kernel(grid=lambda y, BM, BN: (tl.cdiv(y.shape[1], BM), tl.cdiv(y.shape[2], BN), y.shape[0]))
def batch_gelu(
    x, w, bias, y, BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto
):
    """y[b] = gelu(x[b] w[b] + bias[b])."""
    m, n, b = tl.program_id(0) * BM, tl.program_id(1) * BN, tl.program_id(2)
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, x.shape[2], BK):
        acc = tl.dot(tl.load(x, (b, m, k), (BM, BK)), tl.load(w, (b, k, n), (BK, BN)), acc)
    v = acc + tl.load(bias, (b, n), BN).to(tl.f32)[None, :]
    tl.store(y, (b, m, n), (0.5 * v * (1 + tl.erf(v * 0.70710678))).to(y.dtype))
