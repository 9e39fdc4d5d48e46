"""What moves, sums and selects parts of arrays, as models need it between their products: kernels
that the examples have none of, as a user writes them who leaves all choices to tilec."""

from __future__ import annotations

import tilec
import tilec.language as tl


@tilec.kernel(grid=lambda x, BM, BN: (tl.cdiv(x.shape[2], BN), tl.cdiv(x.shape[1], BM), x.shape[0]))
def swap_axes(x: tl.array, y: tl.array, BM: tl.const = tl.auto, BN: tl.const = tl.auto):
    """y[b, j, i] = x[b, i, j]."""
    j, i, b = tl.program_id(0) * BN, tl.program_id(1) * BM, tl.program_id(2)
    tl.store(y, (b, j, i), tl.load(x, (b, i, j), (BM, BN)).T)


@tilec.kernel(grid=lambda x: (x.shape[1], x.shape[0]))
def rotate_halves(
    x: tl.array, cosines: tl.array, sines: tl.array, y: tl.array, H: tl.const, HALF: tl.const
):
    """Rotary embedding: each head's first half and its second are the two sides of its points.

    x, y (batch, time, heads, 2 HALF), cosines, sines (time, HALF).
    """
    t, b = tl.program_id(0), tl.program_id(1)
    c, s = (tl.load(a, (t, 0), (1, HALF)).to(tl.f32) for a in (cosines, sines))
    first, second = (tl.load(x, (b, t, 0, at), (H, HALF)).to(tl.f32) for at in (0, HALF))
    tl.store(y, (b, t, 0, 0), (first * c - second * s).to(y.dtype))
    tl.store(y, (b, t, 0, HALF), (second * c + first * s).to(y.dtype))


@tilec.kernel(grid=lambda x: (x.shape[1], x.shape[0]))
def rotate_pairs(
    x: tl.array, cosines: tl.array, sines: tl.array, y: tl.array, H: tl.const, HALF: tl.const
):
    """The same where neighbours are a point."""
    t, b = tl.program_id(0), tl.program_id(1)
    c, s = (tl.load(a, (t, 0), (1, HALF)).to(tl.f32)[:, :, None] for a in (cosines, sines))
    pairs = tl.reshape(tl.load(x, (b, t, 0, 0), (H, 2 * HALF)).to(tl.f32), (H, HALF, 2))
    first, second = tl.split(pairs, 2, 2)
    turned = tl.cat((first * c - second * s, second * c + first * s), 2)
    tl.store(y, (b, t, 0, 0), tl.reshape(turned, (H, 2 * HALF)).to(y.dtype))


@tilec.kernel(grid=lambda y, B: (y.shape[0], tl.cdiv(y.shape[1], B)))
def sum_bags(table: tl.array, rows: tl.array, y: tl.array, B: tl.const = tl.auto):
    """y[n]: the sum of the rows of `table` that rows[n] numbers."""
    n, start = tl.program_id(0), tl.program_id(1) * B
    total = tl.zeros((B,), tl.f32)
    for k in tl.range(rows.shape[1]):
        total += tl.load(table, (tl.load(rows, (n, k), ()), start), B).to(tl.f32)
    tl.store(y, (n, start), total.to(y.dtype))


@tilec.kernel(grid=lambda keys: keys.shape[0])
def write_slots(
    keys: tl.array, values: tl.array, slots: tl.array, kept_keys: tl.array, kept_values: tl.array,
    N: tl.const,
):  # fmt: skip
    """Rows of at most N elements into a cache, row t into row slots[t]."""
    t = tl.program_id(0)
    slot = tl.load(slots, t, ())
    tl.store(kept_keys, (slot, 0), tl.load(keys, (t, 0), N))
    tl.store(kept_values, (slot, 0), tl.load(values, (t, 0), N))


@tilec.kernel(grid=lambda x, B: (tl.cdiv(x.shape[2], B), x.shape[1], x.shape[0]))
def filter_rows(
    x: tl.array, weight: tl.array, bias: tl.array, y: tl.array, WIDTH: tl.const,
    B: tl.const = tl.auto,
):  # fmt: skip
    """y = silu(bias + x * weight) along the rows of each channel, from WIDTH elements up to each.

    x, y (batch, channels, time), weight (channels, WIDTH).
    """
    t, c, b = tl.program_id(0) * B, tl.program_id(1), tl.program_id(2)
    total = tl.full((B,), 0.0, tl.f32) + tl.load(bias, c, ()).to(tl.f32)
    for k in tl.static_range(WIDTH):
        w = tl.load(weight, (c, k), ()).to(tl.f32)
        total += w * tl.load(x, (b, c, t + (k - WIDTH + 1)), B).to(tl.f32)
    tl.store(y, (b, c, t), tl.silu(total, approx=True).to(y.dtype))


@tilec.kernel(grid=lambda x, BT, BC: (tl.cdiv(x.shape[2], BC), tl.cdiv(x.shape[1], BT), x.shape[0]))
def filter_columns(
    x: tl.array, weight: tl.array, bias: tl.array, y: tl.array, WIDTH: tl.const,
    BT: tl.const = tl.auto, BC: tl.const = tl.auto,
):  # fmt: skip
    """The same where channels lie side by side: x, y (batch, time, channels)."""
    c, t, b = tl.program_id(0) * BC, tl.program_id(1) * BT, tl.program_id(2)
    total = tl.zeros((BT, BC), tl.f32) + tl.load(bias, c, BC).to(tl.f32)[None, :]
    for k in tl.static_range(WIDTH):
        w = tl.load(weight, (c, k), (BC,), dims=(0,)).to(tl.f32)
        total += w[None, :] * tl.load(x, (b, t + (k - WIDTH + 1), c), (BT, BC)).to(tl.f32)
    tl.store(y, (b, t, c), tl.silu(total, approx=True).to(y.dtype))


@tilec.kernel(grid=lambda x, CHANNELS: (x.shape[1] // CHANNELS, x.shape[0]))
def group_norm(
    x: tl.array, weight: tl.array, bias: tl.array, y: tl.array, eps: tl.f32,
    CHANNELS: tl.const, SPACE: tl.const,
):  # fmt: skip
    """Groups of CHANNELS channels of SPACE elements, to mean 0 and variance 1; then weight and bias
    of a channel. x, y (batch, channels, SPACE)."""
    c, b = tl.program_id(0) * CHANNELS, tl.program_id(1)
    v = tl.load(x, (b, c, 0), (CHANNELS, SPACE)).to(tl.f32)
    v = v - tl.sum(v) / (CHANNELS * SPACE)
    scale = tl.rsqrt(tl.sum(v * v) / (CHANNELS * SPACE) + eps)
    w, shift = (tl.load(a, c, CHANNELS).to(tl.f32)[:, None] for a in (weight, bias))
    tl.store(y, (b, c, 0), (v * scale * w + shift).to(y.dtype))


@tilec.kernel(grid=lambda x, sums, BN: (tl.cdiv(x.shape[1], BN), sums.shape[0]))
def sum_columns_in_parts(
    x: tl.array, sums: tl.array, squares: tl.array, BM: tl.const = tl.auto, BN: tl.const = tl.auto
):
    """sums[p], squares[p]: of the columns of every sums.shape[0]th block of rows, from p on."""
    n, part = tl.program_id(0) * BN, tl.program_id(1)
    total, square = tl.zeros((BM, BN), tl.f32), tl.zeros((BM, BN), tl.f32)
    for m in tl.range(part * BM, x.shape[0], tl.num_programs(1) * BM):
        v = tl.load(x, (m, n), (BM, BN)).to(tl.f32)
        total += v
        square += v * v
    tl.store(sums, (part, n), tl.sum(total, 0)[None, :])
    tl.store(squares, (part, n), tl.sum(square, 0)[None, :])


@tilec.kernel(grid=lambda mean, B: tl.cdiv(mean.shape[0], B))
def join_moments(
    sums: tl.array, squares: tl.array, mean: tl.array, variance: tl.array, rows: tl.f32,
    PARTS: tl.const, B: tl.const = 64,
):  # fmt: skip
    """Mean and variance of the columns of `rows` rows, from PARTS sums."""
    n = tl.program_id(0) * B
    middle, square = (tl.sum(tl.load(a, (0, n), (PARTS, B)), 0) / rows for a in (sums, squares))
    tl.store(mean, n, middle)
    tl.store(variance, n, square - middle * middle)


@tilec.kernel(grid=lambda x: x.shape[0])
def add_along_rows(x: tl.array, y: tl.array, N: tl.const):
    """y: running sums of rows of at most N elements."""
    row = tl.program_id(0)
    tl.store(y, (row, 0), tl.cumsum(tl.load(x, (row, 0), N).to(tl.f32)).to(y.dtype))


@tilec.kernel(grid=lambda x: x.shape[0])
def add_along_long_rows(x: tl.array, y: tl.array, B: tl.const = tl.auto):
    """The same of rows of any length."""
    row = tl.program_id(0)
    before = 0.0
    for start in tl.range(0, x.shape[1], B):
        v = tl.load(x, (row, start), B).to(tl.f32)
        tl.store(y, (row, start), (before + tl.cumsum(v)).to(y.dtype))
        before += tl.sum(v)


@tilec.kernel(grid=lambda x, BN: (tl.cdiv(x.shape[2], BN), x.shape[0]))
def add_along_columns(x: tl.array, y: tl.array, BM: tl.const = tl.auto, BN: tl.const = tl.auto):
    """y: running sums of the columns of each matrix."""
    n, b = tl.program_id(0) * BN, tl.program_id(1)
    before = tl.zeros((BN,), tl.f32)
    for m in tl.range(0, x.shape[1], BM):
        v = tl.load(x, (b, m, n), (BM, BN)).to(tl.f32)
        tl.store(y, (b, m, n), (tl.cumsum(v, 0) + before[None, :]).to(y.dtype))
        before += tl.sum(v, 0)


@tilec.kernel(grid=lambda y, B: (tl.cdiv(y.shape[1] * y.shape[2], B), y.shape[0]))
def pool(
    x: tl.array, y: tl.array, SIDE: tl.const, STEP: tl.const, MARGIN: tl.const, B: tl.const = 512
):
    """y: the largest element of each window of SIDE x SIDE, STEP apart, of each plane."""
    i, plane = tl.program_id(0) * B + tl.arange(B), tl.program_id(1)
    row, column = i // y.shape[2], i % y.shape[2]
    most = tl.full((B,), -tl.inf, tl.f32)
    for d in tl.static_range(SIDE * SIDE):
        at = plane, row * STEP + (d // SIDE - MARGIN), column * STEP + (d % SIDE - MARGIN)
        most = tl.maximum(most, tl.gather(x, at, other=-tl.inf).to(tl.f32))
    tl.scatter(y, (plane, row, column), most.to(y.dtype))


@tilec.kernel(grid=lambda x, B: tl.cdiv(x.shape[0], B))
def add_dropped(
    x: tl.array, residual: tl.array, y: tl.array, seed: tl.i32, p: tl.f32, B: tl.const = 1024
):
    """y = residual + dropout(x), with probability p of a zero."""
    i = tl.program_id(0) * B
    kept = tl.rand(seed, i + tl.arange(B)) >= p
    v = tl.where(kept, tl.load(x, i, B).to(tl.f32) / (1 - p), 0.0)
    tl.store(y, i, (tl.load(residual, i, B).to(tl.f32) + v).to(y.dtype))


@tilec.kernel(grid=lambda y, B: (y.shape[0], tl.cdiv(y.shape[1], B)))
def gate_halves(x: tl.array, y: tl.array, B: tl.const = tl.auto):
    """y = silu(first half of x's row) * second half."""
    row, n = tl.program_id(0), tl.program_id(1) * B
    a, b = (tl.load(x, (row, at), B).to(tl.f32) for at in (n, n + y.shape[1]))
    tl.store(y, (row, n), (tl.silu(a, approx=True) * b).to(y.dtype))


@tilec.kernel(grid=lambda x: (x.shape[1], x.shape[0]))
def masked_softmax(
    x: tl.array, bias: tl.array, lengths: tl.array, y: tl.array, scale: tl.f32, N: tl.const
):
    """y: softmax of the rows of scale x + bias, of matrix b the first lengths[b] columns.

    x, y (matrices, rows, columns), bias (rows, columns), of at most N columns.
    """
    row, b = tl.program_id(0), tl.program_id(1)
    score = tl.load(x, (b, row, 0), N).to(tl.f32) * scale + tl.load(bias, (row, 0), N).to(tl.f32)
    score = tl.where(tl.arange(N) < tl.load(lengths, b, ()), score, -tl.inf)
    tl.store(y, (b, row, 0), tl.softmax(score).to(y.dtype))


@tilec.kernel(grid=lambda x, BM, BN: (tl.cdiv(x.shape[2], BN), tl.cdiv(x.shape[1], BM), x.shape[0]))
def diffuse(x: tl.array, y: tl.array, rate: tl.f32, BM: tl.const = tl.auto, BN: tl.const = tl.auto):
    """y = x + rate (the sum of six neighbours - 6 x); zeros around x."""
    j, i, k = tl.program_id(0) * BN, tl.program_id(1) * BM, tl.program_id(2)
    centre = tl.load(x, (k, i, j), (BM, BN))
    around = -6.0 * centre
    for at in ((k - 1, i, j), (k + 1, i, j), (k, i - 1, j), (k, i + 1, j), (k, i, j - 1)):
        around += tl.load(x, at, (BM, BN))
    around += tl.load(x, (k, i, j + 1), (BM, BN))
    tl.store(y, (k, i, j), centre + rate * around)


@tilec.kernel(grid=lambda y, BN: (tl.cdiv(y.shape[1], BN), y.shape[0]))
def sum_segments(
    x: tl.array, starts: tl.array, y: tl.array, BM: tl.const = tl.auto, BN: tl.const = tl.auto
):
    """y[s]: the sum of the rows of x from starts[s] to starts[s + 1]."""
    n, s = tl.program_id(0) * BN, tl.program_id(1)
    first, end = tl.load(starts, s, ()), tl.load(starts, s + 1, ())
    segment = tl.window(x, (first, 0), (end - first, x.shape[1]))
    total = tl.zeros((BN,), tl.f32)
    for m in tl.range(0, end - first, BM):
        total += tl.sum(tl.load(segment, (m, n), (BM, BN)).to(tl.f32), 0)
    tl.store(y, (s, n), total[None, :].to(y.dtype))
