"""Small programs that the examples have none of: sums, sorts, stencils, rows of sparse matrices."""

from __future__ import annotations

import tilec
import tilec.language as tl


@tilec.kernel(grid=lambda y: y.shape[0])
def midpoint_sums(y: tl.array, step: tl.f32, N: tl.const, WAVES: tl.const = False):
    """y[p]: the integral over the N steps of program p by the midpoint rule, of 4 / (1 + x^2) or
    with WAVES of exp(-x) sin(9 x)."""
    program = tl.program_id(0)
    x = ((program * N + tl.arange(N)).to(tl.f32) + 0.5) * step
    f = tl.exp(-x) * tl.sin(9 * x) if WAVES else 4 / (1 + x * x)
    tl.store(y, program, tl.sum(f) * step)


def mixed(x):
    """32 bits that look random, by the hash PCG-RXS-M-XS (jcgt.org/published/0009/03/02)."""
    state = x * 747796405 + 2891336453
    word = ((state >> ((state >> 28) + 4)) ^ state) * 277803737
    return (word >> 22) ^ word


@tilec.kernel(grid=lambda y: y.shape[0])
def count_hits(y: tl.array, N: tl.const):
    """y[p]: how many of the N points of program p, drawn in a square, lie in a circle's quarter."""
    program = tl.program_id(0)
    i = (program * N + tl.arange(N)).to(tl.u32)
    first, second = ((mixed(2 * i + j) >> 8).to(tl.i32).to(tl.f32) for j in (0, 1))
    a, b = first * 2.0**-24, second * 2.0**-24
    tl.store(y, program, tl.sum(tl.where(a * a + b * b < 1.0, 1.0, 0.0)))


@tilec.kernel(grid=lambda y, BM, BN: (tl.cdiv(y.shape[0], BM), tl.cdiv(y.shape[1], BN)))
def stencil(
    x: tl.array, y: tl.array, RADIUS: tl.const = 1, BM: tl.const = tl.auto, BN: tl.const = tl.auto
):
    """y: half of x and the mean of its RADIUS neighbours in each direction; zeros around x."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    around = tl.zeros((BM, BN), tl.f32)
    for d in tl.static_range(1, RADIUS + 1):
        for at in ((m - d, n), (m + d, n), (m, n - d), (m, n + d)):
            around += tl.load(x, at, (BM, BN)).to(tl.f32)
    centre = tl.load(x, (m, n), (BM, BN)).to(tl.f32)
    tl.store(y, (m, n), (0.5 * centre + around * (0.5 / (4 * RADIUS))).to(y.dtype))


@tilec.kernel(grid=lambda y: y.shape[0])
def multiply_sparse_rows(
    starts: tl.array, columns: tl.array, values: tl.array, x: tl.array, y: tl.array,
    B: tl.const = tl.auto,
):  # fmt: skip
    """y = a x, of a the elements that are there, row by row: `starts` (rows + 1)."""
    row = tl.program_id(0)
    first, end = tl.load(starts, row, ()), tl.load(starts, row + 1, ())
    acc = tl.zeros((B,), tl.f32)
    for at in tl.range(first, end, B):
        there = at + tl.arange(B) < end
        column = tl.load(columns, at, B)
        acc += tl.where(there, tl.load(values, at, B) * tl.gather(x, column, mask=there), 0.0)
    tl.store(y, row, tl.sum(acc))


@tilec.kernel(grid=lambda x, R: tl.cdiv(x.shape[0], R))
def sort_rows(x: tl.array, y: tl.array, N: tl.const, LOG: tl.const, R: tl.const = 1):
    """y: each row of x in ascending order, by Batcher's bitonic network; rows of at most N = 2^LOG
    elements, R a program."""
    row = tl.program_id(0) * R
    v = tl.load(x, (row, 0), (R, N), padding=tl.inf)
    for level in tl.static_range(1, LOG + 1):
        for down in tl.static_range(level):
            span = 1 << (level - 1 - down)
            pairs = R * N // (2 * span)
            low, high = tl.split(tl.reshape(v, (pairs, 2, span)), 2, 1)
            rising = ((tl.arange(pairs) * (2 * span)) % N >> level) % 2 == 0
            less, more = tl.minimum(low, high), tl.maximum(low, high)
            first = tl.where(rising[:, None, None], less, more)
            second = tl.where(rising[:, None, None], more, less)
            v = tl.reshape(tl.cat((first, second), 1), (R, N))
    tl.store(y, (row, 0), v)


@tilec.kernel(grid=lambda x: x.shape[0])
def largest_of_rows(x: tl.array, y: tl.array, N: tl.const, K: tl.const):
    """y: the K largest elements of each row of at most N elements, the largest first."""
    row = tl.program_id(0)
    v, columns = tl.load(x, (row, 0), N, padding=-tl.inf), tl.arange(N)
    for k in tl.static_range(K):
        tl.store(y, (row, k), tl.max(v))
        v = tl.where(columns == tl.argmax(v, 0), -tl.inf, v)


@tilec.kernel(grid=lambda x, R: tl.cdiv(x.shape[0], R))
def order_rows(x: tl.array, y: tl.array, N: tl.const, R: tl.const = 1):
    """y: each row of x, of N elements, in ascending order."""
    row = tl.program_id(0) * R
    tl.store(y, (row, 0), tl.sort(tl.load(x, (row, 0), (R, N))))


@tilec.kernel(grid=lambda x, R: tl.cdiv(x.shape[0], R))
def order_rows_with_places(
    x: tl.array, y: tl.array, places: tl.array, N: tl.const, R: tl.const = 1
):
    """And where each element was."""
    row = tl.program_id(0) * R
    found, at = tl.sort(tl.load(x, (row, 0), (R, N)), return_indices=True)
    tl.store(y, (row, 0), found)
    tl.store(places, (row, 0), at)


@tilec.kernel(grid=lambda x, R: tl.cdiv(x.shape[0], R))
def first_of_rows(x: tl.array, y: tl.array, N: tl.const, K: tl.const, R: tl.const = 1):
    """y: the K largest of each row of x, of N elements, in descending order."""
    row = tl.program_id(0) * R
    tl.store(y, (row, 0), tl.topk(tl.load(x, (row, 0), (R, N)), K))


@tilec.kernel(grid=lambda x, R: tl.cdiv(x.shape[0], R))
def first_of_rows_with_places(
    x: tl.array, y: tl.array, places: tl.array, N: tl.const, K: tl.const, R: tl.const = 1
):
    """And where each element was."""
    row = tl.program_id(0) * R
    found, at = tl.topk(tl.load(x, (row, 0), (R, N)), K, return_indices=True)
    tl.store(y, (row, 0), found)
    tl.store(places, (row, 0), at)
