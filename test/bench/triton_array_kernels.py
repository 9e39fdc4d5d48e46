"""The kernels of `drawn_array_kernels` and `drawn_product_kernels` in Triton."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def swap_axes(x, y, ROWS, COLUMNS, BM: tl.constexpr, BN: tl.constexpr):
    """Tiles transposed."""
    b = tl.program_id(2).to(tl.int64) * ROWS * COLUMNS
    i = tl.program_id(1) * BM + tl.arange(0, BM)
    j = tl.program_id(0) * BN + tl.arange(0, BN)
    inside = (i < ROWS)[:, None] & (j < COLUMNS)[None, :]
    tile = tl.load(x + b + i.to(tl.int64)[:, None] * COLUMNS + j[None, :], inside)
    tl.store(y + b + j.to(tl.int64)[:, None] * ROWS + i[None, :], tl.trans(tile), tl.trans(inside))


@triton.jit
def rotate_halves(x, cosines, sines, y, TIME, HEADS, HALF, H: tl.constexpr,
                  B: tl.constexpr):  # fmt: skip
    """A token a program."""
    t, b = tl.program_id(0), tl.program_id(1)
    i = tl.arange(0, B)
    c = tl.load(cosines + t * HALF + i, i < HALF)[None, :]
    s = tl.load(sines + t * HALF + i, i < HALF)[None, :]
    h = tl.arange(0, H)[:, None]
    at = ((b.to(tl.int64) * TIME + t) * HEADS + h) * (2 * HALF) + i[None, :]
    inside = (h < HEADS) & (i < HALF)[None, :]
    first = tl.load(x + at, inside).to(tl.float32)
    second = tl.load(x + at + HALF, inside).to(tl.float32)
    tl.store(y + at, (first * c - second * s).to(y.dtype.element_ty), inside)
    tl.store(y + at + HALF, (second * c + first * s).to(y.dtype.element_ty), inside)


@triton.jit
def rotate_pairs(x, cosines, sines, y, TIME, HEADS, HALF, H: tl.constexpr,
                 B: tl.constexpr):  # fmt: skip
    """A token a program; neighbours are pairs."""
    t, b = tl.program_id(0), tl.program_id(1)
    i = tl.arange(0, B)
    c = tl.load(cosines + t * HALF + i, i < HALF)[None, :]
    s = tl.load(sines + t * HALF + i, i < HALF)[None, :]
    h, j = tl.arange(0, H)[:, None], tl.arange(0, 2 * B)
    at = ((b.to(tl.int64) * TIME + t) * HEADS + h) * (2 * HALF) + j[None, :]
    inside = (h < HEADS) & (j < 2 * HALF)[None, :]
    pairs = tl.reshape(tl.load(x + at, inside).to(tl.float32), (H, B, 2))
    first, second = tl.split(pairs)
    turned = tl.reshape(tl.join(first * c - second * s, second * c + first * s), (H, 2 * B))
    tl.store(y + at, turned.to(y.dtype.element_ty), inside)


@triton.jit
def sum_bags(table, rows, y, WIDTH, EACH, B: tl.constexpr):
    """A row a program, or a part of it."""
    n, i = tl.program_id(0).to(tl.int64), tl.program_id(1) * B + tl.arange(0, B)
    total = tl.zeros([B], tl.float32)
    for k in range(EACH):
        row = tl.load(rows + n * EACH + k).to(tl.int64)
        total += tl.load(table + row * WIDTH + i, i < WIDTH, other=0.0).to(tl.float32)
    tl.store(y + n * WIDTH + i, total.to(y.dtype.element_ty), i < WIDTH)


@triton.jit
def write_slots(keys, values, slots, kept_keys, kept_values, WIDTH, B: tl.constexpr):
    """A token a program."""
    t, i = tl.program_id(0).to(tl.int64), tl.arange(0, B)
    slot = tl.load(slots + t).to(tl.int64)
    inside = i < WIDTH
    tl.store(kept_keys + slot * WIDTH + i, tl.load(keys + t * WIDTH + i, inside), inside)
    tl.store(kept_values + slot * WIDTH + i, tl.load(values + t * WIDTH + i, inside), inside)


@triton.jit
def filter_rows(x, weight, bias, y, CHANNELS, TIME, WIDTH: tl.constexpr,
                B: tl.constexpr):  # fmt: skip
    """A part of a channel a program."""
    t, c = tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1)
    at = (tl.program_id(2).to(tl.int64) * CHANNELS + c) * TIME
    total = tl.zeros([B], tl.float32) + tl.load(bias + c).to(tl.float32)
    for k in tl.static_range(WIDTH):
        i = t + (k - WIDTH + 1)
        v = tl.load(x + at + i, (i >= 0) & (i < TIME), other=0.0).to(tl.float32)
        total += tl.load(weight + c * WIDTH + k).to(tl.float32) * v
    tl.store(y + at + t, (total * tl.sigmoid(total)).to(y.dtype.element_ty), t < TIME)


@triton.jit
def filter_columns(x, weight, bias, y, CHANNELS, TIME, WIDTH: tl.constexpr, BT: tl.constexpr,
                   BC: tl.constexpr):  # fmt: skip
    """The same where channels lie side by side."""
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    t = tl.program_id(1) * BT + tl.arange(0, BT)[:, None]
    there = c < CHANNELS
    x += tl.program_id(2).to(tl.int64) * TIME * CHANNELS
    y += tl.program_id(2).to(tl.int64) * TIME * CHANNELS
    total = tl.zeros([BT, BC], tl.float32) + tl.load(bias + c, there).to(tl.float32)[None, :]
    for k in tl.static_range(WIDTH):
        i = t + (k - WIDTH + 1)
        inside = (i >= 0) & (i < TIME) & there[None, :]
        v = tl.load(x + i * CHANNELS + c[None, :], inside, other=0.0).to(tl.float32)
        total += tl.load(weight + c * WIDTH + k, there).to(tl.float32)[None, :] * v
    out = (total * tl.sigmoid(total)).to(y.dtype.element_ty)
    tl.store(y + t * CHANNELS + c[None, :], out, (t < TIME) & there[None, :])


@triton.jit
def group_norm(x, weight, bias, y, EPS, CHANNELS, SPACE, B: tl.constexpr):
    """A group a program."""
    g, i = tl.program_id(0), tl.arange(0, B)
    size = CHANNELS * SPACE
    at = (tl.program_id(1).to(tl.int64) * tl.num_programs(0) + g) * size + i
    inside = i < size
    v = tl.load(x + at, inside, other=0.0).to(tl.float32)
    v = tl.where(inside, v - tl.sum(v, 0) / size, 0.0)
    scale = tl.rsqrt(tl.sum(v * v, 0) / size + EPS)
    c = g * CHANNELS + i // SPACE
    w = tl.load(weight + c, inside).to(tl.float32)
    out = v * scale * w + tl.load(bias + c, inside).to(tl.float32)
    tl.store(y + at, out.to(y.dtype.element_ty), inside)


@triton.jit
def sum_columns_in_parts(x, sums, squares, ROWS, COLUMNS, BM: tl.constexpr,
                         BN: tl.constexpr):  # fmt: skip
    """Some rows of a block of columns a program."""
    n, part = tl.program_id(0) * BN + tl.arange(0, BN), tl.program_id(1)
    there = n < COLUMNS
    total = tl.zeros([BM, BN], tl.float32)
    square = tl.zeros([BM, BN], tl.float32)
    for first in range(part * BM, ROWS, tl.num_programs(1) * BM):
        m = first + tl.arange(0, BM)[:, None]
        at = m.to(tl.int64) * COLUMNS + n[None, :]
        v = tl.load(x + at, (m < ROWS) & there[None, :], other=0.0).to(tl.float32)
        total += v
        square += v * v
    tl.store(sums + part * COLUMNS + n, tl.sum(total, 0), there)
    tl.store(squares + part * COLUMNS + n, tl.sum(square, 0), there)


@triton.jit
def join_moments(sums, squares, mean, variance, ROWS, COLUMNS, PARTS: tl.constexpr,
                 B: tl.constexpr):  # fmt: skip
    """Columns of the parts."""
    n = tl.program_id(0) * B + tl.arange(0, B)
    at = tl.arange(0, PARTS)[:, None] * COLUMNS + n[None, :]
    there = (n < COLUMNS)[None, :]
    middle = tl.sum(tl.load(sums + at, there, other=0.0), 0) / ROWS
    square = tl.sum(tl.load(squares + at, there, other=0.0), 0) / ROWS
    tl.store(mean + n, middle, n < COLUMNS)
    tl.store(variance + n, square - middle * middle, n < COLUMNS)


@triton.jit
def add_along_rows(x, y, COLUMNS, B: tl.constexpr):
    """A row a program, in parts of B elements."""
    row = tl.program_id(0).to(tl.int64) * COLUMNS
    before = 0.0
    for start in range(0, COLUMNS, B):
        i = start + tl.arange(0, B)
        v = tl.load(x + row + i, i < COLUMNS, other=0.0).to(tl.float32)
        tl.store(y + row + i, (before + tl.cumsum(v, 0)).to(y.dtype.element_ty), i < COLUMNS)
        before += tl.sum(v, 0)


@triton.jit
def add_along_columns(x, y, ROWS, COLUMNS, BM: tl.constexpr, BN: tl.constexpr):
    """A block of columns a program."""
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    b = tl.program_id(1).to(tl.int64) * ROWS * COLUMNS
    before = tl.zeros([BN], tl.float32)
    for first in range(0, ROWS, BM):
        m = first + tl.arange(0, BM)[:, None]
        at, inside = b + m * COLUMNS + n[None, :], (m < ROWS) & (n < COLUMNS)[None, :]
        v = tl.load(x + at, inside, other=0.0).to(tl.float32)
        out = tl.cumsum(v, 0) + before[None, :]
        tl.store(y + at, out.to(y.dtype.element_ty), inside)
        before += tl.sum(v, 0)


@triton.jit
def pool(x, y, ROWS, COLUMNS, HIGH, WIDE, SIDE: tl.constexpr, STEP: tl.constexpr,
         MARGIN: tl.constexpr, B: tl.constexpr):  # fmt: skip
    """Some results of a plane a program."""
    i = tl.program_id(0) * B + tl.arange(0, B)
    plane = tl.program_id(1).to(tl.int64)
    row, column = i // WIDE, i % WIDE
    most = tl.full([B], float("-inf"), tl.float32)
    for d in tl.static_range(SIDE * SIDE):
        r, c = row * STEP + (d // SIDE - MARGIN), column * STEP + (d % SIDE - MARGIN)
        inside = (r >= 0) & (r < ROWS) & (c >= 0) & (c < COLUMNS) & (row < HIGH)
        v = tl.load(x + plane * ROWS * COLUMNS + r * COLUMNS + c, inside, other=float("-inf"))
        most = tl.maximum(most, v.to(tl.float32))
    tl.store(y + plane * HIGH * WIDE + i, most.to(y.dtype.element_ty), row < HIGH)


@triton.jit
def add_dropped(x, residual, y, SEED, P, COUNT, B: tl.constexpr):
    """Elements."""
    i = tl.program_id(0) * B + tl.arange(0, B)
    inside = i < COUNT
    bits = tl.randint(SEED, i).to(tl.uint32, bitcast=True)
    kept = (bits >> 8).to(tl.float32) * (1.0 / 16777216) >= P
    v = tl.where(kept, tl.load(x + i, inside).to(tl.float32) / (1 - P), 0.0)
    out = tl.load(residual + i, inside).to(tl.float32) + v
    tl.store(y + i, out.to(y.dtype.element_ty), inside)


@triton.jit
def gate_halves(x, y, COLUMNS, B: tl.constexpr):
    """A row a program, or a part of it."""
    row, i = tl.program_id(0).to(tl.int64), tl.program_id(1) * B + tl.arange(0, B)
    inside = i < COLUMNS
    a = tl.load(x + row * 2 * COLUMNS + i, inside).to(tl.float32)
    b = tl.load(x + row * 2 * COLUMNS + COLUMNS + i, inside).to(tl.float32)
    tl.store(y + row * COLUMNS + i, (a * tl.sigmoid(a) * b).to(y.dtype.element_ty), inside)


@triton.jit
def masked_softmax(x, bias, lengths, y, SCALE, ROWS, COLUMNS, B: tl.constexpr):
    """A row a program."""
    row, b, i = tl.program_id(0), tl.program_id(1), tl.arange(0, B)
    at = (b.to(tl.int64) * ROWS + row) * COLUMNS + i
    inside, seen = i < COLUMNS, i < tl.load(lengths + b)
    score = tl.load(x + at, seen).to(tl.float32) * SCALE
    score += tl.load(bias + row * COLUMNS + i, seen).to(tl.float32)
    score = tl.where(seen, score, float("-inf"))
    weight = tl.exp(score - tl.max(score, 0))
    tl.store(y + at, (weight / tl.sum(weight, 0)).to(y.dtype.element_ty), inside)


@triton.jit
def diffuse(x, y, RATE, DEPTH, ROWS, COLUMNS, BM: tl.constexpr, BN: tl.constexpr):
    """A tile of a plane a program."""
    j = tl.program_id(0) * BN + tl.arange(0, BN)[None, :]
    i = tl.program_id(1) * BM + tl.arange(0, BM)[:, None]
    k = tl.program_id(2)
    inside, plane = (i < ROWS) & (j < COLUMNS), ROWS * COLUMNS
    at = k.to(tl.int64) * plane + i * COLUMNS + j
    centre = tl.load(x + at, inside, other=0.0)
    around = -6.0 * centre
    around += tl.load(x + at - plane, inside & (k > 0), other=0.0)
    around += tl.load(x + at + plane, inside & (k < DEPTH - 1), other=0.0)
    around += tl.load(x + at - COLUMNS, inside & (i > 0), other=0.0)
    around += tl.load(x + at + COLUMNS, inside & (i < ROWS - 1), other=0.0)
    around += tl.load(x + at - 1, inside & (j > 0), other=0.0)
    around += tl.load(x + at + 1, inside & (j < COLUMNS - 1), other=0.0)
    tl.store(y + at, centre + RATE * around, inside)


@triton.jit
def sum_segments(x, starts, y, COLUMNS, BM: tl.constexpr, BN: tl.constexpr):
    """A segment's block of columns a program."""
    n, s = tl.program_id(0) * BN + tl.arange(0, BN), tl.program_id(1)
    first, end = tl.load(starts + s), tl.load(starts + s + 1)
    total = tl.zeros([BM, BN], tl.float32)
    for start in range(first, end, BM):
        m = start + tl.arange(0, BM)[:, None]
        at, inside = m.to(tl.int64) * COLUMNS + n[None, :], (m < end) & (n < COLUMNS)[None, :]
        total += tl.load(x + at, inside, other=0.0).to(tl.float32)
    out = tl.sum(total, 0).to(y.dtype.element_ty)
    tl.store(y + s.to(tl.int64) * COLUMNS + n, out, n < COLUMNS)


@triton.jit
def multiply_vectors(a, x, y, ROWS, COLUMNS, BM: tl.constexpr, BK: tl.constexpr):
    """Some rows of a matrix a program."""
    m, b = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1).to(tl.int64)
    at = (b * ROWS + m)[:, None] * COLUMNS
    total = tl.zeros([BM, BK], tl.float32)
    for start in range(0, COLUMNS, BK):
        k = start + tl.arange(0, BK)
        there = k < COLUMNS
        v = tl.load(x + b * COLUMNS + k, there, other=0.0).to(tl.float32)
        inside = (m < ROWS)[:, None] & there[None, :]
        total += tl.load(a + at + k[None, :], inside, other=0.0).to(tl.float32) * v[None, :]
    tl.store(y + b * ROWS + m, tl.sum(total, 1).to(y.dtype.element_ty), m < ROWS)


@triton.jit
def multiply_small(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                   TF32: tl.constexpr):  # fmt: skip
    """A product a program."""
    i = tl.program_id(0).to(tl.int64)
    m, n, k = tl.arange(0, BM)[:, None], tl.arange(0, BN)[None, :], tl.arange(0, BK)
    left = tl.load(a + i * M * K + m * K + k[None, :], (m < M) & (k < K)[None, :], other=0.0)
    right = tl.load(b + i * K * N + k[:, None] * N + n, (k < K)[:, None] & (n < N), other=0.0)
    product = tl.dot(left, right, input_precision="tf32" if TF32 else "ieee")
    at = c + i * M * N + m * N + n
    tl.store(at, product.to(c.dtype.element_ty), (m < M) & (n < N))


@triton.jit
def gram(x, c, ROWS, COLUMNS, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A tile a program."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros([BM, BN], tl.float32)
    for start in range(0, ROWS, BK):
        k = start + tl.arange(0, BK).to(tl.int64)
        left, right = k[None, :] * COLUMNS + m[:, None], k[:, None] * COLUMNS + n[None, :]
        a = tl.load(x + left, (k < ROWS)[None, :] & (m < COLUMNS)[:, None], other=0.0)
        b = tl.load(x + right, (k < ROWS)[:, None] & (n < COLUMNS)[None, :], other=0.0)
        acc = tl.dot(a, b, acc)
    inside = (m < COLUMNS)[:, None] & (n < COLUMNS)[None, :]
    tl.store(c + m[:, None] * COLUMNS + n[None, :], acc, inside)


@triton.jit
def nearest(x, centres, least, places, POINTS, CENTRES, WIDTH, D: tl.constexpr, BM: tl.constexpr,
            BN: tl.constexpr):  # fmt: skip
    """Some points a program."""
    m, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    inside = (m < POINTS)[:, None] & (d < WIDTH)[None, :]
    point = tl.load(x + m.to(tl.int64)[:, None] * WIDTH + d[None, :], inside, other=0.0)
    best = tl.full([BM], float("inf"), tl.float32)
    place = tl.zeros([BM], tl.int32)
    for start in range(0, CENTRES, BN):
        n = start + tl.arange(0, BN)
        there = (n < CENTRES)[:, None] & (d < WIDTH)[None, :]
        centre = tl.load(centres + n[:, None] * WIDTH + d[None, :], there, other=0.0)
        wide = centre.to(tl.float32)
        far = tl.sum(wide * wide, 1)[None, :] - 2.0 * tl.dot(point, tl.trans(centre))
        far = tl.where((n < CENTRES)[None, :], far, float("inf"))
        found, at = tl.min(far, 1, return_indices=True)
        place = tl.where(found < best, at + start, place)
        best = tl.minimum(found, best)
    wide = point.to(tl.float32)
    tl.store(least + m, best + tl.sum(wide * wide, 1), m < POINTS)
    tl.store(places + m, place, m < POINTS)


@triton.jit
def _gates(i, f, g, o, a, w, m, n, BATCH, UNITS, WIDTH, BK: tl.constexpr):
    for start in range(0, WIDTH, BK):
        k = start + tl.arange(0, BK)
        there = (k < WIDTH)[None, :]
        v = tl.load(a + m[:, None] * WIDTH + k[None, :], (m < BATCH)[:, None] & there, other=0.0)
        at, inside = w + n[:, None] * WIDTH + k[None, :], (n < UNITS)[:, None] & there
        step = UNITS * WIDTH
        i = tl.dot(v, tl.trans(tl.load(at, inside, other=0.0)), i)
        f = tl.dot(v, tl.trans(tl.load(at + step, inside, other=0.0)), f)
        g = tl.dot(v, tl.trans(tl.load(at + 2 * step, inside, other=0.0)), g)
        o = tl.dot(v, tl.trans(tl.load(at + 3 * step, inside, other=0.0)), o)
    return i, f, g, o


@triton.jit
def lstm_cell(x, before, state, wx, wh, bias, h, c, BATCH, INPUTS, UNITS, BM: tl.constexpr,
              BN: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    """A tile of all gates a program."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    i = tl.zeros([BM, BN], tl.float32)
    f = tl.zeros([BM, BN], tl.float32)
    g = tl.zeros([BM, BN], tl.float32)
    o = tl.zeros([BM, BN], tl.float32)
    i, f, g, o = _gates(i, f, g, o, x, wx, m, n, BATCH, UNITS, INPUTS, BK)
    i, f, g, o = _gates(i, f, g, o, before, wh, m, n, BATCH, UNITS, UNITS, BK)
    there = n < UNITS
    i += tl.load(bias + n, there).to(tl.float32)[None, :]
    f += tl.load(bias + UNITS + n, there).to(tl.float32)[None, :]
    g += tl.load(bias + 2 * UNITS + n, there).to(tl.float32)[None, :]
    o += tl.load(bias + 3 * UNITS + n, there).to(tl.float32)[None, :]
    at, inside = m[:, None] * UNITS + n[None, :], (m < BATCH)[:, None] & there[None, :]
    kept = tl.sigmoid(f) * tl.load(state + at, inside).to(tl.float32)
    kept += tl.sigmoid(i) * (2 * tl.sigmoid(2 * g) - 1)
    tl.store(c + at, kept.to(c.dtype.element_ty), inside)
    out = tl.sigmoid(o) * (2 * tl.sigmoid(2 * kept) - 1)
    tl.store(h + at, out.to(h.dtype.element_ty), inside)
