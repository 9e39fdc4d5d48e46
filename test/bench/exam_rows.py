"""Kernels of rows and of flat arrays, as strangers to tilec write them: norms, losses, routing,
scans, quantisation, optimizers."""

from __future__ import annotations

from typing import Any

import tilec
import tilec.language as tl


def _rows(x: Any) -> Any:
    return x.shape[0]


@tilec.kernel(grid=_rows)
def add_norm_fp8(
    x: tl.array, residual: tl.array, gain: tl.array, y: tl.array, scales: tl.array, eps: float,
    N: tl.const,
):  # fmt: skip
    """residual += x; y: its rms norm in fp8, with a scale a row."""
    row = tl.program_id(0)
    v = tl.load(x, (row, 0), N).to(tl.f32) + tl.load(residual, (row, 0), N).to(tl.f32)
    tl.store(residual, (row, 0), v.to(residual.dtype))
    v = v * tl.rsqrt(tl.sum(v * v) / x.shape[1] + eps) * tl.load(gain, 0, N).to(tl.f32)
    scale = tl.maximum(tl.max(tl.abs(v)), 1e-6) / 448.0
    tl.store(scales, row, scale)
    tl.store(y, (row, 0), (v / scale).to(y.dtype))


@tilec.kernel(grid=lambda y, GROUP: (tl.cdiv(y.shape[1], 8 * GROUP), y.shape[0]))
def gated_block_fp8(x: tl.array, y: tl.array, scales: tl.array, GROUP: tl.const = 128):
    """y = silu(left half) * right half in fp8, a scale for each GROUP columns."""
    g, row = tl.program_id(0) * 8, tl.program_id(1)
    a = tl.load(x, (row, g * GROUP), 8 * GROUP).to(tl.f32)
    b = tl.load(x, (row, y.shape[1] + g * GROUP), 8 * GROUP).to(tl.f32)
    v = (tl.silu(a) * b).reshape((8, GROUP))
    scale = tl.maximum(tl.max(tl.abs(v), 1), 1e-10) / 448.0
    tl.store(scales, (row, g), scale)
    tl.store(y, (row, g * GROUP), (v / scale[:, None]).reshape((8 * GROUP,)).to(y.dtype))


@tilec.kernel(grid=_rows)
def focal_loss(x: tl.array, labels: tl.array, y: tl.array, alpha: float, B: tl.const = tl.auto):
    """The sum over classes of the sigmoid focal loss with gamma = 2."""
    row = tl.program_id(0)
    label = tl.load(labels, row, ())
    total = tl.zeros((B,), tl.f32)
    for n in tl.range(0, x.shape[1], B):
        v = tl.load(x, (row, n), B).to(tl.f32)
        column = n + tl.arange(B)
        one = column == label
        p = tl.sigmoid(v)
        miss = tl.where(one, 1.0 - p, p)
        bce = tl.maximum(v, 0.0) - tl.where(one, v, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(v)))
        loss = tl.where(one, alpha, 1.0 - alpha) * miss * miss * bce
        total += tl.where(column < x.shape[1], loss, 0.0)
    tl.store(y, row, tl.sum(total))


@tilec.kernel(grid=lambda dx: dx.shape[0])
def distil_slope(
    student: tl.array, teacher: tl.array, dx: tl.array, T: float, B: tl.const = tl.auto
):
    """dx = (softmax(student / T) - softmax(teacher / T)) / T."""
    row = tl.program_id(0)
    ms, mt, ss, st = -tl.inf, -tl.inf, 0.0, 0.0
    for n in tl.range(0, student.shape[1], B):
        s = tl.load(student, (row, n), B, padding=-tl.inf).to(tl.f32) / T
        t = tl.load(teacher, (row, n), B, padding=-tl.inf).to(tl.f32) / T
        ns, nt = tl.maximum(ms, tl.max(s)), tl.maximum(mt, tl.max(t))
        ss = ss * tl.exp(ms - ns) + tl.sum(tl.exp(s - ns))
        st = st * tl.exp(mt - nt) + tl.sum(tl.exp(t - nt))
        ms, mt = ns, nt
    for n in tl.range(0, student.shape[1], B):
        s = tl.load(student, (row, n), B).to(tl.f32) / T
        t = tl.load(teacher, (row, n), B).to(tl.f32) / T
        slope = (tl.exp(s - ms) / ss - tl.exp(t - mt) / st) / T
        tl.store(dx, (row, n), slope.to(dx.dtype))


@tilec.kernel(grid=_rows)
def min_p_sample(
    x: tl.array, noise: tl.array, y: tl.array, heat: float, least: float, B: tl.const = tl.auto
):
    """The place of the largest x / heat - log(-log(noise)) where softmax(x) >= least of its
    greatest."""
    row = tl.program_id(0)
    top = tl.full((B,), -tl.inf, tl.f32)
    for n in tl.range(0, x.shape[1], B):
        top = tl.maximum(top, tl.load(x, (row, n), B, padding=-tl.inf).to(tl.f32))
    bar = tl.max(top) + tl.log(least) * heat
    best, place = -tl.inf, 0
    for n in tl.range(0, x.shape[1], B):
        v = tl.load(x, (row, n), B, padding=-tl.inf).to(tl.f32)
        u = tl.load(noise, (row, n), B, padding=0.5)
        score = tl.where(v >= bar, v / heat - tl.log(-tl.log(u)), -tl.inf)
        high, at = tl.max(score, return_indices=True)
        place = tl.where(high > best, (n + at).to(tl.i32), place)
        best = tl.maximum(best, high)
    tl.store(y, row, place)


@tilec.kernel(grid=lambda x, ROWS: tl.cdiv(x.shape[0], ROWS))
def route_tokens(
    x: tl.array, weights: tl.array, experts: tl.array, counts: tl.array,
    E: tl.const, K: tl.const = 8, ROWS: tl.const = 16,
):  # fmt: skip
    """The K most probable experts of E, their probabilities divided by their sum, and how many
    tokens each expert has."""
    row = tl.program_id(0) * ROWS
    v = tl.load(x, (row, 0), (ROWS, E), padding=-tl.inf).to(tl.f32)
    high, which = tl.topk(v, K, axis=1, return_indices=True)
    p = tl.exp(high - tl.max(v, 1, keepdims=True))
    tl.store(weights, (row, 0), p / tl.sum(p, 1, keepdims=True))
    tl.store(experts, (row, 0), which.to(tl.i32))
    real = (row + tl.arange(ROWS) < x.shape[0])[:, None]
    tl.atomic_add(counts, (which,), 1, mask=real)


@tilec.kernel(grid=_rows)
def running_logsumexp(x: tl.array, y: tl.array, B: tl.const = tl.auto):
    """y[i] = log of the sum of exp(x[j]), j <= i."""
    row, high, total = tl.program_id(0), -1e30, 0.0
    for n in tl.range(0, x.shape[1], B):
        v = tl.load(x, (row, n), B, padding=-1e30).to(tl.f32)
        m, s = tl.associative_scan(
            (v, tl.full((B,), 1.0, tl.f32)),
            0,
            lambda a, p, b, q: (
                tl.maximum(a, b),
                p * tl.exp(a - tl.maximum(a, b)) + q * tl.exp(b - tl.maximum(a, b)),
            ),
        )
        top = tl.maximum(m, high)
        both = s * tl.exp(m - top) + total * tl.exp(high - top)
        tl.store(y, (row, n), top + tl.log(both))
        lse = tl.max(top + tl.log(both))
        high, total = lse, 1.0


@tilec.kernel(grid=_rows)
def restarted_sums(x: tl.array, starts: tl.array, y: tl.array, B: tl.const = 1024):
    """Running sums along rows that begin anew where `starts` is not 0."""
    row, carried = tl.program_id(0), 0.0
    for n in tl.range(0, x.shape[1], B):
        flag = tl.load(starts, (row, n), B).to(tl.i32)
        v = tl.load(x, (row, n), B).to(tl.f32)
        total, seen = tl.associative_scan(
            (v, flag), 0, lambda a, f, b, g: (tl.where(g != 0, b, a + b), f | g)
        )
        total = tl.where(seen != 0, total, total + carried)
        tl.store(y, (row, n), total)
        carried = tl.sum(tl.where(tl.arange(B) == B - 1, total, 0.0))


@tilec.kernel(grid=lambda x, BC: (tl.cdiv(x.shape[2], BC), x.shape[0]))
def linear_recurrence(
    a: tl.array, x: tl.array, y: tl.array, BT: tl.const = 64, BC: tl.const = tl.auto
):
    """y[t] = a[t] y[t - 1] + x[t] for each channel: (batch, time, channel)."""
    c, b = tl.program_id(0) * BC, tl.program_id(1)
    state = tl.zeros((BC,), tl.f32)
    for t in tl.range(0, x.shape[1], BT):
        decay = tl.load(a, (b, t, c), (BT, BC), padding=1).to(tl.f32)
        v = tl.load(x, (b, t, c), (BT, BC)).to(tl.f32)
        decays, sums = tl.associative_scan((decay, v), 0, lambda p, u, q, w: (p * q, u * q + w))
        out = sums + decays * state[None, :]
        tl.store(y, (b, t, c), out.to(y.dtype))
        state = tl.sum(tl.where(tl.arange(BT)[:, None] == BT - 1, out, 0.0), 0)


@tilec.kernel(grid=lambda x, G: (G, x.shape[0]))
def group_norm_silu(
    x: tl.array, gain: tl.array, bias: tl.array, y: tl.array, eps: float,
    G: tl.const, C: tl.const, B: tl.const = tl.auto,
):  # fmt: skip
    """silu(group norm) of (image, channel, place), C channels in each of G groups."""
    g, image = tl.program_id(0), tl.program_id(1)
    total, squares = tl.zeros((C, B), tl.f32), tl.zeros((C, B), tl.f32)
    for p in tl.range(0, x.shape[2], B):
        v = tl.load(x, (image, g * C, p), (C, B)).to(tl.f32)
        total += v
        squares += v * v
    count = C * x.shape[2]
    mean = tl.sum(total) / count
    scale = tl.rsqrt(tl.sum(squares) / count - mean * mean + eps)
    w, b = tl.load(gain, g * C, C).to(tl.f32) * scale, tl.load(bias, g * C, C).to(tl.f32)
    for p in tl.range(0, x.shape[2], B):
        v = tl.load(x, (image, g * C, p), (C, B)).to(tl.f32)
        v = (v - mean) * w[:, None] + b[:, None]
        tl.store(y, (image, g * C, p), tl.silu(v).to(y.dtype))
