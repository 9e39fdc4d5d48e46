"""Triton's counterparts of `exam_updates`, as a competent user writes them."""

import triton
import triton.language as tl


@triton.jit
def rms_norm_slope(x, dy, gain, dx, parts, m, n, eps, N: tl.constexpr, BM: tl.constexpr):
    column = tl.arange(0, N)
    inside, first = column < n, tl.program_id(0) * BM
    w = tl.load(gain + column, mask=inside, other=0.0).to(tl.float32)
    total = tl.zeros((N,), tl.float32)
    for i in range(first, min(first + BM, m)):
        at = i.to(tl.int64) * n + column
        v = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        slope = tl.load(dy + at, mask=inside, other=0.0).to(tl.float32)
        scale = tl.rsqrt(tl.sum(v * v) / n + eps)
        normal = v * scale
        total += slope * normal
        slope = slope * w
        along = tl.sum(slope * normal) / n
        tl.store(dx + at, ((slope - normal * along) * scale).to(dx.dtype.element_ty), mask=inside)
    tl.store(parts + tl.program_id(0) * n + column, total, mask=inside)


@triton.jit
def swiglu_slope(x, gate, dy, dx, dgate, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    inside = i < n
    v = tl.load(x + i, mask=inside).to(tl.float32)
    g = tl.load(gate + i, mask=inside).to(tl.float32)
    d = tl.load(dy + i, mask=inside).to(tl.float32)
    s = tl.sigmoid(g)
    tl.store(dx + i, (d * g * s).to(dx.dtype.element_ty), mask=inside)
    slope = d * v * s * (1.0 + g * (1.0 - s))
    tl.store(dgate + i, slope.to(dgate.dtype.element_ty), mask=inside)


@triton.jit
def adamw_rounded(w, low, g, m, v, n, rate, decay, clip, up, down, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    inside = i < n
    slope = tl.load(g + i, mask=inside).to(tl.float32) * clip
    first = 0.9 * tl.load(m + i, mask=inside).to(tl.float32) + 0.1 * slope
    second = 0.999 * tl.load(v + i, mask=inside).to(tl.float32) + 0.001 * slope * slope
    weight = tl.load(w + i, mask=inside)
    weight -= rate * ((first / up) / (tl.sqrt(second / down) + 1e-8) + decay * weight)
    tl.store(m + i, first.to(m.dtype.element_ty), mask=inside)
    tl.store(v + i, second.to(v.dtype.element_ty), mask=inside)
    tl.store(w + i, weight, mask=inside)
    tl.store(low + i, weight.to(low.dtype.element_ty), mask=inside)


@triton.jit
def factored_step(w, g, of_row, of_column, n, rate, mean, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    r = tl.load(of_row + row) / mean
    for start in range(0, n, B):
        column = start + tl.arange(0, B)
        inside, at = column < n, row * n + column
        slope = tl.load(g + at, mask=inside, other=0.0).to(tl.float32)
        scale = tl.rsqrt(r * tl.load(of_column + column, mask=inside, other=1.0) + 1e-12)
        v = tl.load(w + at, mask=inside, other=0.0).to(tl.float32) - rate * slope * scale
        tl.store(w + at, v.to(w.dtype.element_ty), mask=inside)


@triton.jit
def column_squares(x, y, m, n, BM: tl.constexpr, BN: tl.constexpr, PART: tl.constexpr):
    column, first = tl.program_id(0) * BN + tl.arange(0, BN), tl.program_id(1) * PART
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(first, first + PART, BM):
        row = start + tl.arange(0, BM)
        inside = (row[:, None] < m) & (column[None, :] < n)
        at = row[:, None].to(tl.int64) * n + column[None, :]
        v = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        total += v * v
    tl.atomic_add(y + column, tl.sum(total, 0), mask=column < n, sem="relaxed")


@triton.jit
def mx_quantise(x, y, scales, n, B: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + row * n + at, mask=at < n, other=0.0).to(tl.float32)
    v = tl.reshape(v, (B // 32, 32))
    bits = tl.max(tl.abs(v), 1).to(tl.int32, bitcast=True)
    exponent = tl.minimum(tl.maximum((bits >> 23) - 8, 1), 254)
    scale = (exponent << 23).to(tl.float32, bitcast=True)
    block = tl.program_id(0) * (B // 32) + tl.arange(0, B // 32)
    tl.store(scales + row * (n // 32) + block, exponent.to(tl.uint8), mask=block < n // 32)
    out = tl.reshape(v / scale[:, None], (B,)).to(y.dtype.element_ty)
    tl.store(y + row * n + at, out, mask=at < n)


@triton.jit
def table_dequantise(codes, table, scales, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B
    half = i // 2 + tl.arange(0, B // 2)
    pairs = tl.load(codes + half, mask=half < n // 2, other=0)
    code = tl.join(pairs >> 4, pairs & 15).reshape((B,)).to(tl.int32)
    at = i + tl.arange(0, B)
    scale = tl.load(scales + at // 64, mask=at < n, other=0.0)
    v = tl.load(table + code) * scale
    tl.store(y + at, v.to(y.dtype.element_ty), mask=at < n)


@triton.jit
def affine_bytes(x, y, scales, zeros, n, N: tl.constexpr):
    row, column = tl.program_id(0).to(tl.int64), tl.arange(0, N)
    v = tl.load(x + row * n + column, mask=column < n, other=0.0).to(tl.float32)
    low, high = tl.minimum(tl.min(v), 0.0), tl.maximum(tl.max(v), 0.0)
    scale = tl.maximum(high - low, 1e-6) / 255.0
    zero = tl.floor(-low / scale + 0.5)
    tl.store(scales + row, scale)
    tl.store(zeros + row, zero.to(tl.int32))
    out = tl.minimum(tl.maximum(tl.floor(v / scale + 0.5) + zero, 0.0), 255.0)
    tl.store(y + row * n + column, out.to(tl.uint8), mask=column < n)


@triton.jit
def rotate_gathered(
    x, places, cos, sin, y, heads, D: tl.constexpr, R: tl.constexpr, H: tl.constexpr
):
    t = tl.program_id(1)
    h = tl.program_id(0) * H + tl.arange(0, H)
    place, k = tl.load(places + t), tl.arange(0, R // 2)
    c = tl.load(cos + place * (R // 2) + k)[None, :]
    s = tl.load(sin + place * (R // 2) + k)[None, :]
    base = (t.to(tl.int64) * heads + h[:, None]) * D
    at = base + tl.arange(0, R)[None, :]
    v = tl.load(x + at, mask=h[:, None] < heads, other=0.0).to(tl.float32)
    a, b = tl.split(tl.reshape(v, (H, R // 2, 2)))
    turned = tl.reshape(tl.join(a * c - b * s, a * s + b * c), (H, R))
    tl.store(y + at, turned.to(y.dtype.element_ty), mask=h[:, None] < heads)
    if R < D:
        for start in tl.static_range(R, D, R):
            rest = base + start + tl.arange(0, R)[None, :]
            inside = (h[:, None] < heads) & (start + tl.arange(0, R)[None, :] < D)
            tl.store(y + rest, tl.load(x + rest, mask=inside, other=0.0), mask=inside)
