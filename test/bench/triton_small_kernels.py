"""The kernels of `drawn_small_kernels` in Triton, and a histogram."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def midpoint_sums(y, step, N: tl.constexpr, WAVES: tl.constexpr):
    """Part of an integral a program."""
    program = tl.program_id(0)
    x = ((program * N + tl.arange(0, N)).to(tl.float32) + 0.5) * step
    f = tl.exp(-x) * tl.sin(9 * x) if WAVES else 4 / (1 + x * x)
    tl.store(y + program, tl.sum(f, 0) * step)


@triton.jit
def _mixed(x):
    state = x * 747796405 + 2891336453
    word = ((state >> ((state >> 28) + 4)) ^ state) * 277803737
    return (word >> 22) ^ word


@triton.jit
def count_hits(y, N: tl.constexpr):
    """Random points in a circle, N a program."""
    program = tl.program_id(0)
    i = (program * N + tl.arange(0, N)).to(tl.uint32)
    a = (_mixed(2 * i) >> 8).to(tl.float32) * (1.0 / 16777216)
    b = (_mixed(2 * i + 1) >> 8).to(tl.float32) * (1.0 / 16777216)
    tl.store(y + program, tl.sum(tl.where(a * a + b * b < 1.0, 1.0, 0.0), 0))


@triton.jit
def stencil(x, y, ROWS, COLUMNS, RADIUS: tl.constexpr, BM: tl.constexpr,
            BN: tl.constexpr):  # fmt: skip
    """A cross of neighbours."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    columns = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    inside = (rows < ROWS) & (columns < COLUMNS)
    at = rows.to(tl.int64) * COLUMNS + columns
    around = tl.zeros([BM, BN], tl.float32)
    for d in tl.static_range(1, RADIUS + 1):
        up, down = inside & (rows >= d), inside & (rows < ROWS - d)
        left, right = inside & (columns >= d), inside & (columns < COLUMNS - d)
        around += tl.load(x + at - d * COLUMNS, up, other=0.0).to(tl.float32)
        around += tl.load(x + at + d * COLUMNS, down, other=0.0).to(tl.float32)
        around += tl.load(x + at - d, left, other=0.0).to(tl.float32)
        around += tl.load(x + at + d, right, other=0.0).to(tl.float32)
    centre = tl.load(x + at, inside, other=0.0).to(tl.float32)
    out = 0.5 * centre + around * (0.5 / (4 * RADIUS))
    tl.store(y + at, out.to(y.dtype.element_ty), inside)


@triton.jit
def multiply_sparse_rows(starts, columns, values, x, y, B: tl.constexpr):
    """A row a program."""
    row = tl.program_id(0)
    first, end = tl.load(starts + row), tl.load(starts + row + 1)
    acc = tl.zeros([B], tl.float32)
    for at in range(first, end, B):
        i = at + tl.arange(0, B)
        column = tl.load(columns + i, i < end, other=0)
        value = tl.load(values + i, i < end, other=0.0)
        acc += value * tl.load(x + column, i < end, other=0.0)
    tl.store(y + row, tl.sum(acc, 0))


@triton.jit
def sort_rows(x, y, ROWS, COLUMNS, R: tl.constexpr, N: tl.constexpr):
    """R short rows a program."""
    rows = tl.program_id(0) * R + tl.arange(0, R)[:, None]
    columns = tl.arange(0, N)[None, :]
    there = (rows < ROWS) & (columns < COLUMNS)
    at = rows.to(tl.int64) * COLUMNS + columns
    v = tl.load(x + at, there, other=float("inf"))
    tl.store(y + at, tl.sort(v, 1), there)


@triton.jit
def largest_of_rows(x, y, COLUMNS, N: tl.constexpr, K: tl.constexpr,
                    NETWORK: tl.constexpr):  # fmt: skip
    """The K largest of a row; by `tl.topk` where NETWORK, of a power of two, else one by one."""
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, N)
    v = tl.load(x + row * COLUMNS + c, c < COLUMNS, other=-float("inf"))
    if NETWORK:
        tl.store(y + row * K + tl.arange(0, K), tl.topk(v, K))
    else:
        for k in tl.static_range(K):
            tl.store(y + row * K + k, tl.max(v, 0))
            v = tl.where(c == tl.argmax(v, 0), -float("inf"), v)


@triton.jit
def _rows_of(x, ROWS, COLUMNS, R: tl.constexpr, N: tl.constexpr, PADDING: tl.constexpr):
    """R rows of a program, what they are in memory, and their places."""
    rows = tl.program_id(0) * R + tl.arange(0, R)[:, None]
    columns = tl.arange(0, N)[None, :]
    there = (rows < ROWS) & (columns < COLUMNS)
    at = rows.to(tl.int64) * COLUMNS + columns
    return tl.load(x + at, there, other=PADDING), rows.to(tl.int64), columns, there


@triton.jit
def _keys(v, places, DOWN: tl.constexpr):
    """f32 as integers of their order, and behind them their places."""
    bits = v.to(tl.int32, bitcast=True)
    key = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    if DOWN:
        places = ~places  # of equals the first: it is greater
    return (key.to(tl.int64) << 32) | (places.to(tl.int64) & 0xFFFFFFFF)


@triton.jit
def _apart(keys, DOWN: tl.constexpr):
    key, places = (keys >> 32).to(tl.int32), keys.to(tl.int32)
    bits = key ^ ((key >> 31) & 0x7FFFFFFF)
    return bits.to(tl.float32, bitcast=True), ~places if DOWN else places


@triton.jit
def order_rows(x, y, ROWS, COLUMNS, R: tl.constexpr, N: tl.constexpr,
               LAST: tl.constexpr):  # fmt: skip
    """R rows a program."""
    v, rows, columns, there = _rows_of(x, ROWS, COLUMNS, R, N, LAST)
    tl.store(y + rows * COLUMNS + columns, tl.sort(v, 1), there)


@triton.jit
def order_rows_with_places(x, y, places, ROWS, COLUMNS, R: tl.constexpr, N: tl.constexpr,
                           LAST: tl.constexpr):  # fmt: skip
    """The same, of f32, with where they were."""
    v, rows, columns, there = _rows_of(x, ROWS, COLUMNS, R, N, LAST)
    found, at = _apart(tl.sort(_keys(v, columns, False), 1), False)
    tl.store(y + rows * COLUMNS + columns, found, there)
    tl.store(places + rows * COLUMNS + columns, at, there)


@triton.jit
def first_of_rows(x, y, ROWS, COLUMNS, R: tl.constexpr, N: tl.constexpr, LAST: tl.constexpr,
                  COUNT: tl.constexpr, K: tl.constexpr):  # fmt: skip
    """The COUNT largest of R rows a program; K: the power of two above."""
    v, rows, _columns, _there = _rows_of(x, ROWS, COLUMNS, R, N, LAST)
    k = tl.arange(0, K)[None, :]
    tl.store(y + rows * COUNT + k, tl.topk(v, K, 1), (rows < ROWS) & (k < COUNT))


@triton.jit
def first_of_rows_with_places(x, y, places, ROWS, COLUMNS, R: tl.constexpr, N: tl.constexpr,
                              LAST: tl.constexpr, COUNT: tl.constexpr,
                              K: tl.constexpr):  # fmt: skip
    """The same, of f32, with where they were."""
    v, rows, columns, _there = _rows_of(x, ROWS, COLUMNS, R, N, LAST)
    found, at = _apart(tl.topk(_keys(v, columns, True), K, 1), True)
    k = tl.arange(0, K)[None, :]
    written = (rows < ROWS) & (k < COUNT)
    tl.store(y + rows * COUNT + k, found, written)
    tl.store(places + rows * COUNT + k, at, written)


@triton.jit
def histogram(values, low, width, counts, n, BINS, B: tl.constexpr, N: tl.constexpr):
    """Programs count many tiles before they add to `counts`."""
    found = tl.zeros([N], tl.int32)
    for first in range(tl.program_id(0) * B, n, tl.num_programs(0) * B):
        i = first + tl.arange(0, B)
        v = tl.load(values + i, i < n, other=float("inf"))
        bins = tl.floor((v - low) / width)
        inside = (bins >= 0) & (bins < BINS)
        found += tl.histogram(tl.where(inside, bins, 0.0).to(tl.int32), N, mask=inside)
    c = tl.arange(0, N)
    tl.atomic_add(counts + c, found, mask=c < BINS)
