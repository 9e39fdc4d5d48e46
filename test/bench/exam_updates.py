"""Kernels that change states or quantise, as strangers to tilec write them."""

from __future__ import annotations

from typing import Any

import tilec
import tilec.language as tl


def _rows(x: Any) -> Any:
    return x.shape[0]


@tilec.kernel(grid=lambda x, BM: tl.cdiv(x.shape[0], BM))
def rms_norm_slope(
    x: tl.array, dy: tl.array, gain: tl.array, dx: tl.array, parts: tl.array, eps: float,
    N: tl.const, BM: tl.const = 16,
):  # fmt: skip
    """dx of a rms norm, and for each BM rows their sum of dy * normal, the slope of the gain."""
    first = tl.program_id(0) * BM
    w, total = tl.load(gain, 0, N).to(tl.f32), tl.zeros((N,), tl.f32)
    for i in tl.range(first, tl.minimum(first + BM, x.shape[0])):
        v, slope = (tl.load(each, (i, 0), N).to(tl.f32) for each in (x, dy))
        scale = tl.rsqrt(tl.sum(v * v) / x.shape[1] + eps)
        normal = v * scale
        total += slope * normal
        slope = slope * w
        along = tl.sum(slope * normal) / x.shape[1]
        tl.store(dx, (i, 0), ((slope - normal * along) * scale).to(dx.dtype))
    tl.store(parts, (tl.program_id(0), 0), total)


@tilec.kernel(grid=lambda x, B: tl.cdiv(x.shape[0], B))
def swiglu_slope(
    x: tl.array, gate: tl.array, dy: tl.array, dx: tl.array, dgate: tl.array, B: tl.const = 1024
):
    """Slopes of y = silu(gate) * x."""
    i = tl.program_id(0) * B
    v, g, d = (tl.load(each, i, B).to(tl.f32) for each in (x, gate, dy))
    s = tl.sigmoid(g)
    tl.store(dx, i, (d * g * s).to(dx.dtype))
    tl.store(dgate, i, (d * v * s * (1.0 + g * (1.0 - s))).to(dgate.dtype))


@tilec.kernel(grid=lambda w, B: tl.cdiv(w.shape[0], B))
def adamw_rounded(
    w: tl.array, low: tl.array, g: tl.array, m: tl.array, v: tl.array, rate: float, decay: float,
    clip: float, step: int, B: tl.const = tl.auto,
):  # fmt: skip
    """A step of AdamW on f32 weights with 16-bit copies, gradients and moments."""
    i = tl.program_id(0) * B
    slope = tl.load(g, i, B).to(tl.f32) * clip
    first = 0.9 * tl.load(m, i, B).to(tl.f32) + 0.1 * slope
    second = 0.999 * tl.load(v, i, B).to(tl.f32) + 0.001 * slope * slope
    t = tl.cast(step, tl.f32)
    up, down = 1.0 - tl.pow(0.9, t), 1.0 - tl.pow(0.999, t)
    weight = tl.load(w, i, B)
    weight -= rate * ((first / up) / (tl.sqrt(second / down) + 1e-8) + decay * weight)
    tl.store(m, i, first.to(m.dtype))
    tl.store(v, i, second.to(v.dtype))
    tl.store(w, i, weight)
    tl.store(low, i, weight.to(low.dtype))


@tilec.kernel(grid=lambda w: w.shape[0])
def factored_step(
    w: tl.array, g: tl.array, of_row: tl.array, of_column: tl.array, rate: float, mean: float,
    B: tl.const = tl.auto,
):  # fmt: skip
    """w -= rate g / sqrt(of_row of_column / mean), as Adafactor does."""
    row = tl.program_id(0)
    r = tl.load(of_row, row, ()) / mean
    for n in tl.range(0, w.shape[1], B):
        slope = tl.load(g, (row, n), B).to(tl.f32)
        scale = tl.rsqrt(r * tl.load(of_column, n, B) + 1e-12)
        v = tl.load(w, (row, n), B).to(tl.f32) - rate * slope * scale
        tl.store(w, (row, n), v.to(w.dtype))


@tilec.kernel(grid=lambda x, BN: (tl.cdiv(x.shape[1], BN), tl.cdiv(x.shape[0], 512)))
def column_squares(x: tl.array, y: tl.array, BM: tl.const = 32, BN: tl.const = 128):
    """y += sums of squares of columns, 512 rows a program."""
    n, first = tl.program_id(0) * BN, tl.program_id(1) * 512
    total = tl.zeros((BM, BN), tl.f32)
    for m in tl.range(first, first + 512, BM):
        v = tl.load(x, (m, n), (BM, BN)).to(tl.f32)
        total += v * v
    tl.atomic_add(y, (n + tl.arange(BN),), tl.sum(total, 0))


@tilec.kernel(grid=lambda x: (tl.cdiv(x.shape[1], 2048), x.shape[0]))
def mx_quantise(x: tl.array, y: tl.array, scales: tl.array):
    """Blocks of 32 to fp8, with scales that are powers of two: the exponent's byte."""
    n, row = tl.program_id(0) * 2048, tl.program_id(1)
    v = tl.load(x, (row, n), 2048).to(tl.f32).reshape((64, 32))
    bits = tl.bitcast(tl.max(tl.abs(v), 1), tl.i32)
    exponent = tl.clamp((bits >> 23) - 8, 1, 254)
    scale = tl.bitcast(exponent << 23, tl.f32)
    tl.store(scales, (row, n // 32), exponent.to(tl.u8))
    tl.store(y, (row, n), (v / scale[:, None]).reshape((2048,)).to(y.dtype))


@tilec.kernel(grid=lambda y, B: tl.cdiv(y.shape[0], B))
def table_dequantise(
    codes: tl.array, table: tl.array, scales: tl.array, y: tl.array, B: tl.const = 2048
):
    """y = table[code] scale: two codes of 4 bits a byte, the first high; a scale for each 64."""
    i = tl.program_id(0) * B
    pairs = tl.load(codes, i // 2, B // 2)
    code = tl.join((pairs >> 4, pairs & 15)).reshape((B,)).to(tl.i32)
    v = (
        tl.gather(table, (code,)).reshape((B // 64, 64))
        * tl.load(scales, i // 64, B // 64)[:, None]
    )
    tl.store(y, i, v.reshape((B,)).to(y.dtype))


@tilec.kernel(grid=_rows)
def affine_bytes(x: tl.array, y: tl.array, scales: tl.array, zeros: tl.array, N: tl.const):
    """Rows to u8 between their least and greatest."""
    row = tl.program_id(0)
    v = tl.load(x, (row, 0), N).to(tl.f32)
    inside = tl.arange(N) < x.shape[1]
    low = tl.minimum(tl.min(tl.where(inside, v, tl.inf)), 0.0)
    high = tl.maximum(tl.max(tl.where(inside, v, -tl.inf)), 0.0)
    scale = tl.maximum(high - low, 1e-6) / 255.0
    zero = tl.round(-low / scale)
    tl.store(scales, row, scale)
    tl.store(zeros, row, zero.to(tl.i32))
    tl.store(y, (row, 0), tl.clamp(tl.round(v / scale) + zero, 0.0, 255.0).to(tl.u8))


@tilec.kernel(grid=lambda x: (x.shape[1], x.shape[0]))
def rotate_gathered(
    x: tl.array, places: tl.array, cos: tl.array, sin: tl.array, y: tl.array,
    D: tl.const, R: tl.const,
):  # fmt: skip
    """Rotates neighbours among the first R of D elements of each head by the token's place in the
    tables: x (token, head, D)."""
    h, t = tl.program_id(0), tl.program_id(1)
    place = tl.load(places, t, ())
    c, s = tl.load(cos, (place, 0), R // 2), tl.load(sin, (place, 0), R // 2)
    a, b = tl.split(tl.load(x, (t, h, 0), R).to(tl.f32).reshape((R // 2, 2)), 2, axis=1)
    a, b = a.reshape((R // 2,)), b.reshape((R // 2,))
    turned = tl.join((a * c - b * s, a * s + b * c)).reshape((R,))
    tl.store(y, (t, h, 0), turned.to(y.dtype))
    if R < D:
        rest = tl.load(x, (t, h, R), D - R)
        tl.store(y, (t, h, R), rest)
