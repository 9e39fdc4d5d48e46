"""Triton's counterparts of `exam_rows` and `exam_updates`, as a competent user writes them."""

import triton
import triton.language as tl


@triton.jit
def add_norm_fp8(x, residual, gain, y, scales, n, eps, N: tl.constexpr):
    row, column = tl.program_id(0).to(tl.int64), tl.arange(0, N)
    inside = column < n
    v = tl.load(x + row * n + column, mask=inside, other=0.0).to(tl.float32)
    v += tl.load(residual + row * n + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(residual + row * n + column, v.to(residual.dtype.element_ty), mask=inside)
    v = v * tl.rsqrt(tl.sum(v * v) / n + eps)
    v *= tl.load(gain + column, mask=inside, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(v)), 1e-6) / 448.0
    tl.store(scales + row, scale)
    tl.store(y + row * n + column, (v / scale).to(y.dtype.element_ty), mask=inside)


@triton.jit
def gated_block_fp8(x, y, scales, n, GROUP: tl.constexpr, G: tl.constexpr):
    row, g = tl.program_id(1).to(tl.int64), tl.program_id(0) * G + tl.arange(0, G)
    at = g[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    a = tl.load(x + row * 2 * n + at, mask=at < n, other=0.0).to(tl.float32)
    b = tl.load(x + row * 2 * n + n + at, mask=at < n, other=0.0).to(tl.float32)
    v = a * tl.sigmoid(a) * b
    scale = tl.maximum(tl.max(tl.abs(v), 1), 1e-10) / 448.0
    groups = n // GROUP
    tl.store(scales + row * groups + g, scale, mask=g < groups)
    tl.store(y + row * n + at, (v / scale[:, None]).to(y.dtype.element_ty), mask=at < n)


@triton.jit
def focal_loss(x, labels, y, n, alpha, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    label, total = tl.load(labels + row), tl.zeros((B,), tl.float32)
    for start in range(0, n, B):
        column = start + tl.arange(0, B)
        v = tl.load(x + row * n + column, mask=column < n, other=0.0).to(tl.float32)
        one = column == label
        p = tl.sigmoid(v)
        miss = tl.where(one, 1.0 - p, p)
        bce = tl.maximum(v, 0.0) - tl.where(one, v, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(v)))
        loss = tl.where(one, alpha, 1.0 - alpha) * miss * miss * bce
        total += tl.where(column < n, loss, 0.0)
    tl.store(y + row, tl.sum(total))


@triton.jit
def distil_slope(student, teacher, dx, n, T, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    ms, mt, ss, st = float("-inf"), float("-inf"), 0.0, 0.0
    for start in range(0, n, B):
        column = start + tl.arange(0, B)
        at, inside = row * n + column, column < n
        s = tl.load(student + at, mask=inside, other=float("-inf")).to(tl.float32) / T
        t = tl.load(teacher + at, mask=inside, other=float("-inf")).to(tl.float32) / T
        ns, nt = tl.maximum(ms, tl.max(s)), tl.maximum(mt, tl.max(t))
        ss = ss * tl.exp(ms - ns) + tl.sum(tl.exp(s - ns))
        st = st * tl.exp(mt - nt) + tl.sum(tl.exp(t - nt))
        ms, mt = ns, nt
    for start in range(0, n, B):
        column = start + tl.arange(0, B)
        at, inside = row * n + column, column < n
        s = tl.load(student + at, mask=inside, other=0.0).to(tl.float32) / T
        t = tl.load(teacher + at, mask=inside, other=0.0).to(tl.float32) / T
        slope = (tl.exp(s - ms) / ss - tl.exp(t - mt) / st) / T
        tl.store(dx + at, slope.to(dx.dtype.element_ty), mask=inside)


@triton.jit
def min_p_sample(x, noise, y, n, heat, least, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    top = tl.full((B,), float("-inf"), tl.float32)
    for start in range(0, n, B):
        column = start + tl.arange(0, B)
        v = tl.load(x + row * n + column, mask=column < n, other=float("-inf"))
        top = tl.maximum(top, v.to(tl.float32))
    bar = tl.max(top) + tl.log(least) * heat
    best, place = float("-inf"), 0
    for start in range(0, n, B):
        column = start + tl.arange(0, B)
        v = tl.load(x + row * n + column, mask=column < n, other=float("-inf")).to(tl.float32)
        u = tl.load(noise + row * n + column, mask=column < n, other=0.5)
        score = tl.where(v >= bar, v / heat - tl.log(-tl.log(u)), float("-inf"))
        high, at = tl.max(score, 0, return_indices=True)
        place = tl.where(high > best, start + at, place)
        best = tl.maximum(best, high)
    tl.store(y + row, place)


@triton.jit
def route_tokens(
    x, weights, experts, counts, m, E: tl.constexpr, K: tl.constexpr, ROWS: tl.constexpr
):
    row, column = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, E)
    v = tl.load(x + row[:, None] * E + column[None, :], mask=row[:, None] < m, other=0.0)
    v = v.to(tl.float32)
    highest = tl.max(v, 1)
    total = tl.zeros((ROWS,), tl.float32)
    k_of = tl.arange(0, K)
    high, which = tl.zeros((ROWS, K), tl.float32), tl.zeros((ROWS, K), tl.int32)
    for k in tl.static_range(K):
        found, at = tl.max(v, 1, return_indices=True)
        p = tl.exp(found - highest)
        high = tl.where(k_of[None, :] == k, p[:, None], high)
        which = tl.where(k_of[None, :] == k, at[:, None], which)
        total += p
        v = tl.where(column[None, :] == at[:, None], float("-inf"), v)
    at, inside = row[:, None] * K + k_of[None, :], row[:, None] < m
    tl.store(weights + at, high / total[:, None], mask=inside)
    tl.store(experts + at, which, mask=inside)
    tl.atomic_add(counts + which, 1, mask=inside, sem="relaxed")


@triton.jit
def _join(a, p, b, q):
    m = tl.maximum(a, b)
    return m, p * tl.exp(a - m) + q * tl.exp(b - m)


@triton.jit
def running_logsumexp(x, y, n, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    high = -1e30
    for start in range(0, n, B):
        column = start + tl.arange(0, B)
        v = tl.load(x + row * n + column, mask=column < n, other=-1e30).to(tl.float32)
        m, s = tl.associative_scan((v, tl.full((B,), 1.0, tl.float32)), 0, _join)
        top = tl.maximum(m, high)
        lse = top + tl.log(s * tl.exp(m - top) + tl.exp(high - top))
        tl.store(y + row * n + column, lse, mask=column < n)
        high = tl.max(lse)


@triton.jit
def _restart(a, f, b, g):
    return tl.where(g != 0, b, a + b), f | g


@triton.jit
def restarted_sums(x, starts, y, n, B: tl.constexpr):
    row, carried = tl.program_id(0).to(tl.int64), 0.0
    for start in range(0, n, B):
        column = start + tl.arange(0, B)
        flag = tl.load(starts + row * n + column, mask=column < n, other=0).to(tl.int32)
        v = tl.load(x + row * n + column, mask=column < n, other=0.0).to(tl.float32)
        total, seen = tl.associative_scan((v, flag), 0, _restart)
        total = tl.where(seen != 0, total, total + carried)
        tl.store(y + row * n + column, total, mask=column < n)
        carried = tl.sum(tl.where(tl.arange(0, B) == B - 1, total, 0.0))


@triton.jit
def _follow(p, u, q, w):
    return p * q, u * q + w


@triton.jit
def linear_recurrence(a, x, y, steps, channels, BT: tl.constexpr, BC: tl.constexpr):
    c, b = tl.program_id(0) * BC + tl.arange(0, BC), tl.program_id(1).to(tl.int64)
    state = tl.zeros((BC,), tl.float32)
    for start in range(0, steps, BT):
        t = start + tl.arange(0, BT)
        at = (b * steps + t[:, None]) * channels + c[None, :]
        inside = (t[:, None] < steps) & (c[None, :] < channels)
        decay = tl.load(a + at, mask=inside, other=1.0).to(tl.float32)
        v = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        decays, sums = tl.associative_scan((decay, v), 0, _follow)
        out = sums + decays * state[None, :]
        tl.store(y + at, out.to(y.dtype.element_ty), mask=inside)
        state = tl.sum(tl.where(tl.arange(0, BT)[:, None] == BT - 1, out, 0.0), 0)


@triton.jit
def group_norm_silu(
    x, gain, bias, y, size, eps, G: tl.constexpr, C: tl.constexpr, CP: tl.constexpr,
    B: tl.constexpr,
):  # fmt: skip
    g, image = tl.program_id(0), tl.program_id(1).to(tl.int64)
    base, c, place = (image * G + g) * C * size, tl.arange(0, CP), tl.arange(0, B)
    total, squares = tl.zeros((CP, B), tl.float32), tl.zeros((CP, B), tl.float32)
    for p in range(0, size, B):
        inside = (c[:, None] < C) & (p + place[None, :] < size)
        at = base + c[:, None] * size + p + place[None, :]
        v = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        total += v
        squares += v * v
    mean = tl.sum(total) / (C * size)
    scale = tl.rsqrt(tl.sum(squares) / (C * size) - mean * mean + eps)
    w = tl.load(gain + g * C + c, mask=c < C, other=0.0).to(tl.float32) * scale
    b = tl.load(bias + g * C + c, mask=c < C, other=0.0).to(tl.float32)
    for p in range(0, size, B):
        inside = (c[:, None] < C) & (p + place[None, :] < size)
        at = base + c[:, None] * size + p + place[None, :]
        v = (tl.load(x + at, mask=inside, other=0.0).to(tl.float32) - mean) * w[:, None]
        v += b[:, None]
        tl.store(y + at, (v * tl.sigmoid(v)).to(y.dtype.element_ty), mask=inside)
