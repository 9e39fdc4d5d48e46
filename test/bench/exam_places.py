"""Kernels of images, grids, tables, bits and graphs, as strangers to tilec write them."""

from __future__ import annotations

import math

import tilec
import tilec.language as tl


@tilec.kernel(grid=lambda places, B: tl.cdiv(places.shape[0], B))
def weighted_bins(places: tl.array, weights: tl.array, y: tl.array, B: tl.const = 1024):
    """y[places] += weights."""
    i = tl.program_id(0) * B
    inside = i + tl.arange(B) < places.shape[0]
    tl.atomic_add(y, (tl.load(places, i, B),), tl.load(weights, i, B), mask=inside)


@tilec.kernel(grid=lambda x: x.shape[0])
def count_distinct(x: tl.array, y: tl.array, B: tl.const = tl.auto):
    """How many distinct numbers each sorted row has."""
    row, total = tl.program_id(0), tl.zeros((B,), tl.i32)
    for n in tl.range(0, x.shape[1], B):
        at = n + tl.arange(B)
        new = (at == 0) | (tl.load(x, (row, n), B) != tl.load(x, (row, n - 1), B))
        total += tl.where((at < x.shape[1]) & new, 1, 0)
    tl.store(y, row, tl.sum(total))


@tilec.kernel(grid=lambda x, BY, BX: (tl.cdiv(x.shape[2], BX), tl.cdiv(x.shape[1], BY), x.shape[0]))
def seven_points(
    x: tl.array,
    y: tl.array,
    middle: float,
    side: float,
    BY: tl.const = tl.auto,
    BX: tl.const = tl.auto,
):
    """A step of the 7-point stencil, zeros around the volume."""
    i, j, k = tl.program_id(2), tl.program_id(1) * BY, tl.program_id(0) * BX
    around = tl.load(x, (i - 1, j, k), (BY, BX)) + tl.load(x, (i + 1, j, k), (BY, BX))
    around += tl.load(x, (i, j - 1, k), (BY, BX)) + tl.load(x, (i, j + 1, k), (BY, BX))
    around += tl.load(x, (i, j, k - 1), (BY, BX)) + tl.load(x, (i, j, k + 1), (BY, BX))
    tl.store(y, (i, j, k), middle * tl.load(x, (i, j, k), (BY, BX)) + side * around)


@tilec.kernel(grid=lambda x, BY, BX: (tl.cdiv(x.shape[1], BX), tl.cdiv(x.shape[0], BY)))
def life(x: tl.array, y: tl.array, BY: tl.const = tl.auto, BX: tl.const = tl.auto):
    """A generation of Conway's game of life on a torus of bytes."""
    j = tl.program_id(1) * BY + tl.arange(BY)[:, None]
    k = tl.program_id(0) * BX + tl.arange(BX)[None, :]
    count = tl.zeros((BY, BX), tl.i32)
    for dj in tl.static_range(-1, 2):
        for dk in tl.static_range(-1, 2):
            at = ((j + dj) % x.shape[0], (k + dk) % x.shape[1])
            count += tl.gather(x, at).to(tl.i32)
    alive = tl.gather(x, (j, k)).to(tl.i32)
    now = (count == 3) | ((count == 4) & (alive == 1))
    tl.scatter(y, (j, k), now.to(y.dtype))


@tilec.kernel(grid=lambda x, BY, BX: (tl.cdiv(x.shape[2], BX), tl.cdiv(x.shape[1], BY), x.shape[0]))
def blur(x: tl.array, taps: tl.array, y: tl.array, BY: tl.const = tl.auto, BX: tl.const = tl.auto):
    """A 5 x 5 filter of planes, zeros around them."""
    p, j, k = tl.program_id(2), tl.program_id(1) * BY, tl.program_id(0) * BX
    total = tl.zeros((BY, BX), tl.f32)
    for dj in tl.static_range(5):
        for dk in tl.static_range(5):
            v = tl.load(x, (p, j + dj - 2, k + dk - 2), (BY, BX)).to(tl.f32)
            total += v * tl.load(taps, (dj, dk), ())
    tl.store(y, (p, j, k), total.to(y.dtype))


@tilec.kernel(grid=lambda x, BY, BX: (tl.cdiv(x.shape[2], BX), tl.cdiv(x.shape[1], BY), x.shape[0]))
def dilate(x: tl.array, y: tl.array, BY: tl.const = tl.auto, BX: tl.const = tl.auto):
    """The greatest of 3 x 3 bytes."""
    p, j, k = tl.program_id(2), tl.program_id(1) * BY, tl.program_id(0) * BX
    high = tl.zeros((BY, BX), x.dtype)
    for dj in tl.static_range(-1, 2):
        for dk in tl.static_range(-1, 2):
            high = tl.maximum(high, tl.load(x, (p, j + dj, k + dk), (BY, BX)))
    tl.store(y, (p, j, k), high)


@tilec.kernel(grid=lambda y, BX: (tl.cdiv(y.shape[2], BX), y.shape[1], y.shape[0]))
def resize(x: tl.array, y: tl.array, BX: tl.const = tl.auto):
    """Planes of another size, bilinear, as torch's with align_corners=False."""
    p, j, k = tl.program_id(2), tl.program_id(1), tl.program_id(0) * BX + tl.arange(BX)
    down = tl.cast(x.shape[1], tl.f32) / tl.cast(y.shape[1], tl.f32)
    across = tl.cast(x.shape[2], tl.f32) / tl.cast(y.shape[2], tl.f32)
    v = tl.maximum((j.to(tl.f32) + 0.5) * down - 0.5, 0.0)
    h = tl.maximum((k.to(tl.f32) + 0.5) * across - 0.5, 0.0)
    top, left = v.to(tl.i32), h.to(tl.i32)
    below, right = tl.minimum(top + 1, x.shape[1] - 1), tl.minimum(left + 1, x.shape[2] - 1)
    v, h = v - top.to(tl.f32), h - left.to(tl.f32)
    a = tl.gather(x, (p, top, left)).to(tl.f32) * (1.0 - h)
    a += tl.gather(x, (p, top, right)).to(tl.f32) * h
    b = tl.gather(x, (p, below, left)).to(tl.f32) * (1.0 - h)
    b += tl.gather(x, (p, below, right)).to(tl.f32) * h
    tl.scatter(y, (p, j, k), (a * (1.0 - v) + b * v).to(y.dtype))


@tilec.kernel(grid=lambda x: x.shape[0])
def hadamard(x: tl.array, y: tl.array, scale: float, N: tl.const):
    """Each row times the Hadamard matrix of N, a power of two."""
    row = tl.program_id(0)
    v = tl.load(x, (row, 0), N).to(tl.f32)
    step = 1
    for _ in tl.static_range(int(math.log2(N))):
        other = tl.exchange(v, step)
        v = tl.where((tl.arange(N) & step) == 0, v + other, other - v)
        step = 2 * step
    tl.store(y, (row, 0), (v * scale).to(y.dtype))


@tilec.kernel(grid=lambda b, BM: (tl.cdiv(b.shape[2], BM), b.shape[0]))
def solve_triangles(a: tl.array, b: tl.array, x: tl.array, N: tl.const, BM: tl.const = tl.auto):
    """x with a x = b: lower triangles a (batch, N, N), b (batch, N, columns)."""
    m, one = tl.program_id(0) * BM, tl.program_id(1)
    left, row = tl.load(b, (one, 0, m), (N, BM)), tl.arange(N)
    for i in tl.range(0, N):
        column = tl.load(a, (one, 0, i), (N, 1))
        found = tl.sum(tl.where(row[:, None] == i, left, 0.0), 0) / tl.load(a, (one, i, i), ())
        below = tl.where(row[:, None] > i, column, 0.0)
        left = tl.where(row[:, None] == i, found[None, :], left - below * found[None, :])
    tl.store(x, (one, 0, m), left)


@tilec.kernel(grid=lambda x, BT: (tl.cdiv(x.shape[1], BT), x.shape[2], x.shape[0]))
def swap_heads(x: tl.array, y: tl.array, D: tl.const, BT: tl.const = 32):
    """(batch, time, head, D) to (batch, head, time, D)."""
    t, h, b = tl.program_id(0) * BT, tl.program_id(1), tl.program_id(2)
    tl.store(y, (b, h, t, 0), tl.load(x, (b, t, h, 0), (BT, D), dims=(1, 3)))


@tilec.kernel(grid=lambda y, B: (tl.cdiv(y.shape[2], B), y.shape[1], y.shape[0]))
def reflect_pad(x: tl.array, y: tl.array, by: int, B: tl.const = 256):
    """Planes with `by` more elements at each side, mirrored."""
    k, j, p = tl.program_id(0) * B + tl.arange(B), tl.program_id(1) - by, tl.program_id(2)
    high, wide = x.shape[1], x.shape[2]
    j = tl.abs(j)
    j = tl.where(j >= high, 2 * (high - 1) - j, j)
    column = tl.abs(k - by)
    column = tl.where(column >= wide, 2 * (wide - 1) - column, column)
    tl.scatter(y, (p, tl.program_id(1), k), tl.gather(x, (p, j, column)))


@tilec.kernel(grid=lambda x, B: tl.cdiv(x.shape[0], B))
def between_points(
    x: tl.array, table: tl.array, y: tl.array, low: float, step: float, B: tl.const = 1024
):
    """Linear interpolation in a table of even steps."""
    i = tl.program_id(0) * B
    at = (tl.load(x, i, B) - low) / step
    at = tl.clamp(at, 0.0, tl.cast(table.shape[0] - 1, tl.f32))
    cell = tl.minimum(at.to(tl.i32), table.shape[0] - 2)
    a, b = tl.gather(table, (cell,)), tl.gather(table, (cell + 1,))
    tl.store(y, i, a + (at - cell.to(tl.f32)) * (b - a))


@tilec.kernel(grid=lambda y, BM, BN: (tl.cdiv(y.shape[0], BM), tl.cdiv(y.shape[1], BN)))
def hamming(x: tl.array, z: tl.array, y: tl.array, BM: tl.const = 32, BN: tl.const = 64):
    """In how many bits rows of x (M, words) and z (N, words) differ."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    count = tl.zeros((BM, BN), tl.i32)
    for k in tl.range(0, x.shape[1]):
        a, b = tl.load(x, (m, k), (BM, 1)), tl.load(z, (n, k), (BN, 1))
        count += tl.popc(a ^ b.T)
    tl.store(y, (m, n), count)


@tilec.kernel(grid=lambda x, B: tl.cdiv(x.shape[0], B))
def hash_words(x: tl.array, y: tl.array, seed: tl.u32, B: tl.const = 1024):
    """Murmur's last step, twice."""
    i = tl.program_id(0) * B
    h = tl.load(x, i, B) ^ seed
    for _ in tl.static_range(2):
        h = (h ^ (h >> 16)) * 0x85EBCA6B
        h = (h ^ (h >> 13)) * 0xC2B2AE35
        h = h ^ (h >> 16)
    tl.store(y, i, h)


@tilec.kernel(grid=lambda x, BM: tl.cdiv(x.shape[1], BM))
def pull(
    x: tl.array,
    mass: tl.array,
    f: tl.array,
    eps: float,
    BM: tl.const = tl.auto,
    BN: tl.const = tl.auto,
):
    """Gravity among bodies: x and f (3, bodies)."""
    m = tl.program_id(0) * BM
    ax, ay, az = (tl.load(x, (d, m), BM)[:, None] for d in (0, 1, 2))
    fx, fy, fz = (tl.zeros((BM, BN), tl.f32) for _ in (0, 1, 2))
    for n in tl.range(0, x.shape[1], BN):
        dx, dy, dz = (
            tl.load(x, (d, n), BN)[None, :] - own for d, own in ((0, ax), (1, ay), (2, az))
        )
        near = tl.rsqrt(dx * dx + dy * dy + dz * dz + eps)
        weight = tl.load(mass, n, BN)[None, :] * near * near * near
        fx += weight * dx
        fy += weight * dy
        fz += weight * dz
    for d, total in ((0, fx), (1, fy), (2, fz)):
        tl.store(f, (d, m), tl.sum(total, 1))


@tilec.kernel(grid=lambda a: a.shape[0])
def edit_distance(a: tl.array, b: tl.array, y: tl.array, N: tl.const):
    """Levenshtein's distance of pairs of words of full length."""
    pair, at = tl.program_id(0), tl.arange(N)
    word = tl.load(b, (pair, 0), N)
    row = (at + 1).to(tl.i32)  # without the column of the empty word
    for i in tl.range(0, a.shape[1]):
        letter = tl.load(a, (pair, i), ())
        before = tl.take(row, tl.maximum(at - 1, 0), 0)
        before = tl.where(at == 0, i.to(tl.i32), before)
        best = tl.minimum(row + 1, before + tl.where(word == letter, 0, 1))
        best = tl.where(at == 0, tl.minimum(best, i.to(tl.i32) + 2), best) - at.to(tl.i32)
        row = tl.associative_scan(best, 0, lambda p, q: tl.minimum(p, q)) + at.to(tl.i32)
    tl.store(y, pair, tl.sum(tl.where(at == b.shape[1] - 1, row, 0)))


@tilec.kernel(grid=lambda starts, y, BN: (tl.cdiv(y.shape[1], BN), y.shape[0]))
def sparse_times_rows(
    starts: tl.array, columns: tl.array, weights: tl.array, x: tl.array, y: tl.array,
    BN: tl.const = 128,
):  # fmt: skip
    """A sparse matrix (CSR) times x."""
    n, row = tl.program_id(0) * BN, tl.program_id(1)
    total = tl.zeros((BN,), tl.f32)
    for i in tl.range(tl.load(starts, row, ()), tl.load(starts, row + 1, ())):
        v = tl.load(x, (tl.load(columns, i, ()), n), BN).to(tl.f32)
        total += tl.load(weights, i, ()) * v
    tl.store(y, (row, n), total.to(y.dtype))


@tilec.kernel(grid=lambda y, BM, BN: (tl.cdiv(y.shape[0], BM), tl.cdiv(y.shape[1], BN)))
def city_distances(
    x: tl.array, z: tl.array, y: tl.array, BM: tl.const = 32, BN: tl.const = 32, BK: tl.const = 16
):
    """Sums of absolute differences of all rows of x and z."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, x.shape[1], BK):
        a, b = tl.load(x, (m, k), (BM, BK)), tl.load(z, (n, k), (BN, BK))
        total += tl.sum(tl.abs(a[:, None, :] - b[None, :, :]), 2)
    tl.store(y, (m, n), total)


@tilec.kernel(grid=lambda y: y.shape[0])
def mean_of_paths(
    y: tl.array, seed: int, drift: float, swing: float, steps: int, B: tl.const = 1024
):
    """Averages over B paths of the mean of exp of a random walk."""
    program = tl.program_id(0)
    path = program * B + tl.arange(B)
    walk, total = tl.zeros((B,), tl.f32), tl.zeros((B,), tl.f32)
    for step in tl.range(0, steps):
        walk += drift + swing * tl.randn(seed, (path * steps + step).to(tl.i32))
        total += tl.exp(walk)
    tl.store(y, program, tl.sum(total) / (B * tl.cast(steps, tl.f32)))
