"""Kernels of matrix products, as strangers to tilec write them: with something in front of the
product, or behind it."""

from __future__ import annotations

from typing import Any

import tilec
import tilec.language as tl


def _tiles(y: Any, BM: int, BN: int) -> tuple[int, int]:
    return tl.cdiv(y.shape[0], BM), tl.cdiv(y.shape[1], BN)


@tilec.kernel(grid=_tiles)
def gelu_product(
    x: tl.array, w: tl.array, bias: tl.array, residual: tl.array, y: tl.array,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
):  # fmt: skip
    """y = gelu(x w^T + bias) + residual, gelu by its tanh."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, x.shape[1], BK):
        acc = tl.dot(tl.load(x, (m, k), (BM, BK)), tl.load(w, (n, k), (BN, BK)).T, acc)
    v = acc + tl.load(bias, n, BN).to(tl.f32)[None, :]
    v = 0.5 * v * (1.0 + tl.tanh(0.7978845608 * (v + 0.044715 * v * v * v)))
    tl.store(y, (m, n), (v + tl.load(residual, (m, n), (BM, BN)).to(tl.f32)).to(y.dtype))


@tilec.kernel(grid=lambda x, BM: tl.cdiv(x.shape[0], BM))
def vocabulary_losses(
    x: tl.array, w: tl.array, labels: tl.array, y: tl.array,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
):  # fmt: skip
    """Cross entropy of the logits x w^T, which are never stored."""
    m = tl.program_id(0) * BM
    label = tl.load(labels, m, BM)
    high, total = tl.full((BM,), -1e30, tl.f32), tl.zeros((BM,), tl.f32)
    own = tl.zeros((BM,), tl.f32)
    for n in tl.range(0, w.shape[0], BN):
        acc = tl.zeros((BM, BN), tl.f32)
        for k in tl.range(0, x.shape[1], BK):
            acc = tl.dot(tl.load(x, (m, k), (BM, BK)), tl.load(w, (n, k), (BN, BK)).T, acc)
        column = n + tl.arange(BN)
        acc = tl.where(column[None, :] < w.shape[0], acc, -1e30)
        own += tl.sum(tl.where(column[None, :] == label[:, None], acc, 0.0), 1)
        top = tl.maximum(high, tl.max(acc, 1))
        total = total * tl.exp(high - top) + tl.sum(tl.exp(acc - top[:, None]), 1)
        high = top
    tl.store(y, m, high + tl.log(total) - own)


@tilec.kernel(grid=_tiles)
def norm_product(
    x: tl.array, gain: tl.array, w: tl.array, y: tl.array, eps: float,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
):  # fmt: skip
    """y = rms_norm(x) w^T in one pass."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc, squares = tl.zeros((BM, BN), tl.f32), tl.zeros((BM,), tl.f32)
    for k in tl.range(0, x.shape[1], BK):
        a = tl.load(x, (m, k), (BM, BK))
        v = a.to(tl.f32)
        squares += tl.sum(v * v, 1)
        a = (v * tl.load(gain, k, BK).to(tl.f32)[None, :]).to(x.dtype)
        acc = tl.dot(a, tl.load(w, (n, k), (BN, BK)).T, acc)
    scale = tl.rsqrt(squares / x.shape[1] + eps)
    tl.store(y, (m, n), (acc * scale[:, None]).to(y.dtype))


@tilec.kernel(grid=_tiles)
def gathered_product(
    x: tl.array, rows: tl.array, w: tl.array, y: tl.array,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
):  # fmt: skip
    """y = x[rows] w."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    row, acc = tl.load(rows, m, BM), tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, x.shape[1], BK):
        a = tl.gather(x, (row[:, None], k + tl.arange(BK)[None, :]))
        acc = tl.dot(a, tl.load(w, (k, n), (BK, BN)), acc)
    tl.store(y, (m, n), acc.to(y.dtype))


@tilec.kernel(grid=_tiles)
def fp8_weights(
    x: tl.array, w: tl.array, scales: tl.array, y: tl.array,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto,
):  # fmt: skip
    """x (w scales)^T: w (N, K) of fp8 with a scale for each 128 x 128 of it."""
    tl.static_assert(128 % BN == 0, "a tile has one scale")
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, x.shape[1], 128):
        scale = tl.load(scales, (n // 128, k // 128), ())
        a, b = tl.load(x, (m, k), (BM, 128)), tl.load(w, (n, k), (BN, 128)).to(x.dtype)
        acc += tl.dot(a, b.T) * scale
    tl.store(y, (m, n), acc.to(y.dtype))


@tilec.kernel(grid=_tiles)
def fp8_blocks(
    x: tl.array, of_x: tl.array, w: tl.array, of_w: tl.array, y: tl.array,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto,
):  # fmt: skip
    """x w^T of fp8: scales for each 128 of a row of x, and for each 128 x 128 of w."""
    tl.static_assert(128 % BN == 0, "a tile has one scale")
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, x.shape[1], 128):
        a, b = tl.load(x, (m, k), (BM, 128)), tl.load(w, (n, k), (BN, 128))
        scale = tl.load(of_x, (m, k // 128), (BM, 1)) * tl.load(of_w, (n // 128, k // 128), ())
        acc += tl.dot(a, b.T) * scale
    tl.store(y, (m, n), acc.to(y.dtype))


@tilec.kernel(grid=lambda x: x.shape[0])
def many_small(x: tl.array, w: tl.array, y: tl.array, M: tl.const, N: tl.const, K: tl.const):
    """A small product a program: (batch, M, K) (batch, K, N)."""
    b = tl.program_id(0)
    a = tl.load(x, (b, 0, 0), (M, K))
    tl.store(y, (b, 0, 0), tl.dot(a, tl.load(w, (b, 0, 0), (K, N))).to(y.dtype))


@tilec.kernel(grid=_tiles)
def strided_convolution(
    x: tl.array, w: tl.array, y: tl.array, H: tl.const, W: tl.const, C: tl.const,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto,
):  # fmt: skip
    """3 x 3 with stride 2 and a border of 1: x (images H W, C), w (9, C, out), y (images H/2 W/2,
    out)."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    at = m + tl.arange(BM)
    image, place = at // (H // 2 * (W // 2)), at % (H // 2 * (W // 2))
    top, left = place // (W // 2) * 2 - 1, place % (W // 2) * 2 - 1
    acc = tl.zeros((BM, BN), tl.f32)
    for dy in tl.static_range(3):
        for dx in tl.static_range(3):
            j, i = top + dy, left + dx
            inside = (j >= 0) & (j < H) & (i >= 0) & (i < W)
            row = tl.where(inside, (image * H + j) * W + i, -1)
            a = tl.gather(x, (row[:, None], tl.arange(C)[None, :]))
            acc = tl.dot(a, tl.load(w, (3 * dy + dx, 0, n), (C, BN)), acc)
    tl.store(y, (m, n), acc.to(y.dtype))


@tilec.kernel(
    grid=lambda x, y, BM, BN: (tl.cdiv(x.shape[1], BM), tl.cdiv(y.shape[3], BN), 2 * x.shape[0])
)
def doubled_convolution(
    x: tl.array, w: tl.array, y: tl.array,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
):  # fmt: skip
    """A transposed convolution of 2 x 2 with stride 2: x (rows, W, C), w (2, C, 2 out), y (rows, 2,
    W, 2 out)."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    row, half = tl.program_id(2) // 2, tl.program_id(2) % 2
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, x.shape[2], BK):
        a, b = tl.load(x, (row, m, k), (BM, BK)), tl.load(w, (half, k, n), (BK, BN))
        acc = tl.dot(a, b, acc)
    tl.store(y, (row, half, m, n), acc.to(y.dtype))


@tilec.kernel(grid=_tiles)
def newton_schulz(
    a: tl.array, y: tl.array, one: float, two: float,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
):  # fmt: skip
    """y = one a + two a a of a symmetric matrix."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK):
        acc = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(a, (k, n), (BK, BN)), acc)
    v = two * acc + one * tl.load(a, (m, n), (BM, BN)).to(tl.f32)
    tl.store(y, (m, n), v.to(y.dtype))


@tilec.kernel(grid=lambda y, experts, BN: (experts.shape[0], tl.cdiv(y.shape[1], BN)))
def gated_experts(
    x: tl.array, up: tl.array, gate: tl.array, experts: tl.array, y: tl.array,
    BM: tl.const = 64, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
):  # fmt: skip
    """y = silu(x gate^T) * (x up^T), BM rows after each other of one expert."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    expert = tl.load(experts, tl.program_id(0), ())
    u, g = tl.zeros((BM, BN), tl.f32), tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, x.shape[1], BK):
        a = tl.load(x, (m, k), (BM, BK))
        u = tl.dot(a, tl.load(up, (expert, n, k), (BN, BK)).T, u)
        g = tl.dot(a, tl.load(gate, (expert, n, k), (BN, BK)).T, g)
    tl.store(y, (m, n), (tl.silu(g) * u).to(y.dtype))


@tilec.kernel(grid=_tiles)
def gaussians(
    x: tl.array, z: tl.array, y: tl.array, gamma: float,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
):  # fmt: skip
    """y = exp(-gamma |x - z|^2) of all rows of x and z."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    xx, zz = tl.zeros((BM,), tl.f32), tl.zeros((BN,), tl.f32)
    for k in tl.range(0, x.shape[1], BK):
        a, b = tl.load(x, (m, k), (BM, BK)), tl.load(z, (n, k), (BN, BK))
        acc = tl.dot(a, b.T, acc)
        xx += tl.sum(a.to(tl.f32) * a.to(tl.f32), 1)
        zz += tl.sum(b.to(tl.f32) * b.to(tl.f32), 1)
    far = tl.maximum(xx[:, None] + zz[None, :] - 2.0 * acc, 0.0)
    tl.store(y, (m, n), tl.exp(-gamma * far).to(y.dtype))


@tilec.kernel(grid=lambda y, BM, BN: (tl.cdiv(y.shape[1], BM), tl.cdiv(y.shape[2], BN)))
def complex_product(
    a: tl.array, b: tl.array, y: tl.array,
    BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
):  # fmt: skip
    """Real parts and imaginary ones are planes."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    rr, ii, ri = (tl.zeros((BM, BN), tl.f32) for _ in (0, 1, 2))
    for k in tl.range(0, a.shape[2], BK):
        ar, ai = (tl.load(a, (part, m, k), (BM, BK)) for part in (0, 1))
        br, bi = (tl.load(b, (part, k, n), (BK, BN)) for part in (0, 1))
        rr = tl.dot(ar, br, rr)
        ii = tl.dot(ai, bi, ii)
        ri = tl.dot(ar, bi, tl.dot(ai, br, ri))
    tl.store(y, (0, m, n), (rr - ii).to(y.dtype))
    tl.store(y, (1, m, n), ri.to(y.dtype))


@tilec.kernel(grid=lambda y, BM, D: (tl.cdiv(y.shape[0], BM), tl.cdiv(y.shape[1], D)))
def rotated_product(
    x: tl.array, w: tl.array, cos: tl.array, sin: tl.array, y: tl.array, D: tl.const,
    BM: tl.const = tl.auto, BK: tl.const = tl.auto,
):  # fmt: skip
    """x w^T, then the halves of each head of D columns rotated by tables (row, D / 2)."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * D
    acc = tl.zeros((BM, D), tl.f32)
    for k in tl.range(0, x.shape[1], BK):
        acc = tl.dot(tl.load(x, (m, k), (BM, BK)), tl.load(w, (n, k), (D, BK)).T, acc)
    a, b = tl.split(acc, 2, axis=1)
    c, s = tl.load(cos, (m, 0), (BM, D // 2)), tl.load(sin, (m, 0), (BM, D // 2))
    tl.store(y, (m, n), (a * c - b * s).to(y.dtype))
    tl.store(y, (m, n + D // 2), (a * s + b * c).to(y.dtype))
