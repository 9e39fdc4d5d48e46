"""Triton's counterparts of `exam_places`, as a competent user writes them."""

import triton
import triton.language as tl


@triton.jit
def weighted_bins(places, weights, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    at = tl.load(places + i, mask=i < n, other=0)
    v = tl.load(weights + i, mask=i < n, other=0.0)
    tl.atomic_add(y + at, v, mask=i < n, sem="relaxed")


@triton.jit
def count_distinct(x, y, n, B: tl.constexpr):
    row, total = tl.program_id(0).to(tl.int64), tl.zeros((B,), tl.int32)
    for start in range(0, n, B):
        at = start + tl.arange(0, B)
        v = tl.load(x + row * n + at, mask=at < n)
        before = tl.load(x + row * n + at - 1, mask=(at > 0) & (at < n))
        total += tl.where((at < n) & ((at == 0) | (v != before)), 1, 0)
    tl.store(y + row, tl.sum(total))


@triton.jit
def _place(high, wide, BY: tl.constexpr, BX: tl.constexpr):
    plane = tl.program_id(2).to(tl.int64) * high * wide
    j = tl.program_id(1) * BY + tl.arange(0, BY)[:, None]
    k = tl.program_id(0) * BX + tl.arange(0, BX)[None, :]
    return plane, j, k


@triton.jit
def seven_points(x, y, deep, high, wide, middle, side, BY: tl.constexpr, BX: tl.constexpr):
    plane, j, k = _place(high, wide, BY, BX)
    i, inside, at = tl.program_id(2), (j < high) & (k < wide), plane + j * wide + k
    v = tl.load(x + at - high * wide, mask=inside & (i > 0), other=0.0)
    v += tl.load(x + at + high * wide, mask=inside & (i + 1 < deep), other=0.0)
    v += tl.load(x + at - wide, mask=inside & (j > 0), other=0.0)
    v += tl.load(x + at + wide, mask=inside & (j + 1 < high), other=0.0)
    v += tl.load(x + at - 1, mask=inside & (k > 0), other=0.0)
    v += tl.load(x + at + 1, mask=inside & (k + 1 < wide), other=0.0)
    v = middle * tl.load(x + at, mask=inside, other=0.0) + side * v
    tl.store(y + at, v, mask=inside)


@triton.jit
def life(x, y, high, wide, BY: tl.constexpr, BX: tl.constexpr):
    _, j, k = _place(high, wide, BY, BX)
    inside, count = (j < high) & (k < wide), tl.zeros((BY, BX), tl.int32)
    for dj in tl.static_range(3):
        for dk in tl.static_range(3):
            jj, kk = (j + dj + high - 1) % high, (k + dk + wide - 1) % wide
            count += tl.load(x + jj * wide + kk, mask=inside, other=0).to(tl.int32)
    alive = tl.load(x + j * wide + k, mask=inside, other=0).to(tl.int32)
    now = (count == 3) | ((count == 4) & (alive == 1))
    tl.store(y + j * wide + k, now.to(y.dtype.element_ty), mask=inside)


@triton.jit
def blur(x, taps, y, high, wide, BY: tl.constexpr, BX: tl.constexpr):
    plane, j, k = _place(high, wide, BY, BX)
    total = tl.zeros((BY, BX), tl.float32)
    for dj in tl.static_range(5):
        for dk in tl.static_range(5):
            jj, kk = j + dj - 2, k + dk - 2
            inside = (jj >= 0) & (jj < high) & (kk >= 0) & (kk < wide)
            v = tl.load(x + plane + jj * wide + kk, mask=inside, other=0.0).to(tl.float32)
            total += v * tl.load(taps + dj * 5 + dk)
    at, inside = plane + j * wide + k, (j < high) & (k < wide)
    tl.store(y + at, total.to(y.dtype.element_ty), mask=inside)


@triton.jit
def dilate(x, y, high, wide, BY: tl.constexpr, BX: tl.constexpr):
    plane, j, k = _place(high, wide, BY, BX)
    best = tl.zeros((BY, BX), tl.uint8)
    for dj in tl.static_range(3):
        for dk in tl.static_range(3):
            jj, kk = j + dj - 1, k + dk - 1
            inside = (jj >= 0) & (jj < high) & (kk >= 0) & (kk < wide)
            best = tl.maximum(best, tl.load(x + plane + jj * wide + kk, mask=inside, other=0))
    tl.store(y + plane + j * wide + k, best, mask=(j < high) & (k < wide))


@triton.jit
def resize(x, y, high, wide, new_high, new_wide, BX: tl.constexpr):
    p, j = tl.program_id(2).to(tl.int64), tl.program_id(1)
    k = tl.program_id(0) * BX + tl.arange(0, BX)
    inside = k < new_wide
    v = tl.maximum((j.to(tl.float32) + 0.5) * (high / new_high) - 0.5, 0.0)
    h = tl.maximum((k.to(tl.float32) + 0.5) * (wide / new_wide) - 0.5, 0.0)
    top, left = v.to(tl.int32), h.to(tl.int32)
    below, right = tl.minimum(top + 1, high - 1), tl.minimum(left + 1, wide - 1)
    v, h = v - top, h - left
    first, second = x + (p * high + top) * wide, x + (p * high + below) * wide
    a = tl.load(first + left, mask=inside, other=0.0).to(tl.float32) * (1.0 - h)
    a += tl.load(first + right, mask=inside, other=0.0).to(tl.float32) * h
    b = tl.load(second + left, mask=inside, other=0.0).to(tl.float32) * (1.0 - h)
    b += tl.load(second + right, mask=inside, other=0.0).to(tl.float32) * h
    out = (a * (1.0 - v) + b * v).to(y.dtype.element_ty)
    tl.store(y + (p * new_high + j) * new_wide + k, out, mask=inside)


@triton.jit
def hadamard(x, y, scale, N: tl.constexpr, LOG: tl.constexpr):
    row, column = tl.program_id(0).to(tl.int64), tl.arange(0, N)
    v = tl.load(x + row * N + column).to(tl.float32)
    for _ in tl.static_range(LOG):  # the last bit of places becomes the first
        a, b = tl.split(tl.reshape(v, (N // 2, 2)))
        v = tl.reshape(tl.permute(tl.join(a + b, a - b), (1, 0)), (N,))
    tl.store(y + row * N + column, (v * scale).to(y.dtype.element_ty))


@triton.jit
def solve_triangles(a, b, x, m, N: tl.constexpr, NP: tl.constexpr, BM: tl.constexpr):
    column, one = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1).to(tl.int64)
    row = tl.arange(0, NP)
    at = (one * N + row[:, None]) * m + column[None, :]
    inside = (row[:, None] < N) & (column[None, :] < m)
    left = tl.load(b + at, mask=inside, other=0.0)
    for i in range(N):
        below = tl.load(a + one * N * N + row * N + i, mask=(row > i) & (row < N), other=0.0)
        found = tl.sum(tl.where(row[:, None] == i, left, 0.0), 0)
        found = found / tl.load(a + one * N * N + i * N + i)
        next_ = left - below[:, None] * found[None, :]
        left = tl.where(row[:, None] == i, found[None, :], next_)
    tl.store(x + at, left, mask=inside)


@triton.jit
def swap_heads(x, y, steps, heads, D: tl.constexpr, BT: tl.constexpr):
    t, h = tl.program_id(0) * BT + tl.arange(0, BT)[:, None], tl.program_id(1)
    b, d = tl.program_id(2).to(tl.int64), tl.arange(0, D)[None, :]
    v = tl.load(x + ((b * steps + t) * heads + h) * D + d, mask=t < steps)
    tl.store(y + ((b * heads + h) * steps + t) * D + d, v, mask=t < steps)


@triton.jit
def reflect_pad(x, y, high, wide, by, B: tl.constexpr):
    k, row = tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1)
    p, new_wide = tl.program_id(2).to(tl.int64), wide + 2 * by
    j, column = tl.abs(row - by), tl.abs(k - by)
    j = tl.where(j >= high, 2 * (high - 1) - j, j)
    column = tl.where(column >= wide, 2 * (wide - 1) - column, column)
    v = tl.load(x + (p * high + j) * wide + column, mask=k < new_wide)
    tl.store(y + (p * (high + 2 * by) + row) * new_wide + k, v, mask=k < new_wide)


@triton.jit
def between_points(x, table, y, n, points, low, step, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    at = (tl.load(x + i, mask=i < n, other=0.0) - low) / step
    at = tl.minimum(tl.maximum(at, 0.0), (points - 1).to(tl.float32))
    cell = tl.minimum(at.to(tl.int32), points - 2)
    a, b = tl.load(table + cell), tl.load(table + cell + 1)
    tl.store(y + i, a + (at - cell) * (b - a), mask=i < n)


@triton.jit
def _ones(v):
    v = v - ((v >> 1) & 0x55555555)
    v = (v & 0x33333333) + ((v >> 2) & 0x33333333)
    v = (v + (v >> 4)) & 0x0F0F0F0F
    return ((v * 0x01010101) >> 24) & 0x3F


@triton.jit
def hamming(x, z, y, m, n, words, BM: tl.constexpr, BN: tl.constexpr):
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    count = tl.zeros((BM, BN), tl.int32)
    for k in range(words):
        a = tl.load(x + row * words + k, mask=row < m, other=0)
        b = tl.load(z + column * words + k, mask=column < n, other=0)
        both = a[:, None] ^ b[None, :]
        count += tl.inline_asm_elementwise("popc.b32 $0, $1;", "=r,r", [both], tl.int32, True, 1)
    inside = (row[:, None] < m) & (column[None, :] < n)
    tl.store(y + row[:, None] * n + column[None, :], count, mask=inside)


@triton.jit
def hash_words(x, y, n, seed, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    h = tl.load(x + i, mask=i < n, other=0).to(tl.uint32) ^ seed.to(tl.uint32)
    for _ in tl.static_range(2):
        h = (h ^ (h >> 16)) * 0x85EBCA6B
        h = (h ^ (h >> 13)) * 0xC2B2AE35
        h = h ^ (h >> 16)
    tl.store(y + i, h, mask=i < n)


@triton.jit
def pull(x, mass, f, n, eps, BM: tl.constexpr, BN: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    ax = tl.load(x + i, mask=i < n, other=0.0)[:, None]
    ay = tl.load(x + n + i, mask=i < n, other=0.0)[:, None]
    az = tl.load(x + 2 * n + i, mask=i < n, other=0.0)[:, None]
    fx = tl.zeros((BM, BN), tl.float32)
    fy, fz = fx, fx
    for start in range(0, n, BN):
        j = start + tl.arange(0, BN)
        dx = tl.load(x + j, mask=j < n, other=0.0)[None, :] - ax
        dy = tl.load(x + n + j, mask=j < n, other=0.0)[None, :] - ay
        dz = tl.load(x + 2 * n + j, mask=j < n, other=0.0)[None, :] - az
        near = tl.rsqrt(dx * dx + dy * dy + dz * dz + eps)
        weight = tl.load(mass + j, mask=j < n, other=0.0)[None, :] * near * near * near
        fx += weight * dx
        fy += weight * dy
        fz += weight * dz
    tl.store(f + i, tl.sum(fx, 1), mask=i < n)
    tl.store(f + n + i, tl.sum(fy, 1), mask=i < n)
    tl.store(f + 2 * n + i, tl.sum(fz, 1), mask=i < n)


@triton.jit
def _least(p, q):
    return tl.minimum(p, q)


@triton.jit
def edit_distance(a, b, y, na, nb, N: tl.constexpr):
    pair, at = tl.program_id(0).to(tl.int64), tl.arange(0, N)
    word, row = tl.load(b + pair * nb + at, mask=at < nb, other=0), at + 1
    for i in range(na):
        letter = tl.load(a + pair * na + i)
        before = tl.gather(row, tl.maximum(at - 1, 0), 0)
        before = tl.where(at == 0, i, before)
        best = tl.minimum(row + 1, before + tl.where(word == letter, 0, 1))
        best = tl.where(at == 0, tl.minimum(best, i + 2), best) - at
        row = tl.associative_scan(best, 0, _least) + at
    tl.store(y + pair, tl.sum(tl.where(at == nb - 1, row, 0)))


@triton.jit
def sparse_times_rows(starts, columns, weights, x, y, n, BN: tl.constexpr):
    column, row = tl.program_id(0) * BN + tl.arange(0, BN), tl.program_id(1)
    total = tl.zeros((BN,), tl.float32)
    for i in range(tl.load(starts + row), tl.load(starts + row + 1)):
        at = tl.load(columns + i).to(tl.int64) * n + column
        v = tl.load(x + at, mask=column < n, other=0.0).to(tl.float32)
        total += tl.load(weights + i) * v
    at = row.to(tl.int64) * n + column
    tl.store(y + at, total.to(y.dtype.element_ty), mask=column < n)


@triton.jit
def city_distances(x, z, y, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        inner = start + tl.arange(0, BK)
        inside = (row[:, None] < m) & (inner[None, :] < k)
        a = tl.load(x + row[:, None] * k + inner[None, :], mask=inside, other=0.0)
        inside = (column[:, None] < n) & (inner[None, :] < k)
        b = tl.load(z + column[:, None] * k + inner[None, :], mask=inside, other=0.0)
        total += tl.sum(tl.abs(a[:, None, :] - b[None, :, :]), 2)
    inside = (row[:, None] < m) & (column[None, :] < n)
    tl.store(y + row[:, None] * n + column[None, :], total, mask=inside)


@triton.jit
def mean_of_paths(y, seed, drift, swing, steps, B: tl.constexpr, PATHS: tl.constexpr):
    program = tl.program_id(0)
    path = program * B + tl.arange(0, B)
    walk, total = tl.zeros((B,), tl.float32), tl.zeros((B,), tl.float32)
    for step in range(steps):
        walk += drift + swing * tl.randn(seed, path * steps + step)
        total += tl.exp(walk)
    tl.atomic_add(y + program * B // PATHS, tl.sum(total) / (PATHS * steps), sem="relaxed")
