"""Shapes, reductions and scans of the language on the emulator, compared with NumPy."""

from __future__ import annotations

import math

import numpy as np
from one_program import f32, i32, run

import tilec
import tilec.language as tl

# --- shapes


@tilec.kernel
def shapes(x: tl.array, out: tl.array, flat: tl.array):
    a = tl.load(x, (0, 0), (6, 5))
    row, column = tl.arange(5), tl.arange(6)[:, None]
    tl.store(out, (0, 0), a + row[None, :] * 10 + column * 100)
    tl.store(out, (6, 0), tl.load(x, (0, 0), (5, 6), dims=(1, 0)).T)
    first, second = tl.split(a, 2, axis=0)
    tl.store(out, (12, 0), tl.cat((second, first)))
    tl.store(flat, 0, a.reshape(30))
    tl.store(flat, 30, tl.permute(a, (1, 0)).reshape(-1))
    pair = tl.join((row, row * 2))
    tl.static_assert(pair.shape == (5, 2))
    tl.store(flat, 60, pair.reshape(10).to(tl.f32))
    tl.store(flat, 70, tl.take(a, (4 - row)[None, :].broadcast_to((6, 5)), 1).reshape(30))


@tilec.kernel
def cat_of_many_sizes(x: tl.array, out: tl.array):
    a, b, c = tl.load(x, (0, 0), (6, 5)), tl.load(x, (0, 0), (3, 5)), tl.load(x, (1, 0), (3, 5))
    tl.store(out, (0, 0), tl.cat((a, b, c, tl.load(x, (5, 0), (1, 5)), a, b)))
    tl.store(out, (22, 0), tl.cat((tl.load(x, (0, 4), (6, 1)), a[:, :], a + 1), axis=-1))


def test_cat_takes_tiles_of_many_sizes() -> None:
    x, out = f32(6, 5), np.zeros((28, 11), np.float32)
    run(cat_of_many_sizes, x, out)
    rows = np.concatenate([x, x[:3], x[1:4], x[5:], x, x[:3]])
    np.testing.assert_array_equal(out[:22, :5], rows)
    np.testing.assert_array_equal(out[22:], np.concatenate([x[:, 4:], x, x + 1], 1))


@tilec.kernel
def cat_of_dots(x: tl.array, y: tl.array, out: tl.array, rows: tl.array):
    a, b = tl.load(x, (0, 0), (64, 32)), tl.load(y, (0, 0), (32, 64))
    # Reduced along n, the first product holds whole rows in a warp; the second does not.
    first, second = tl.dot(a, b), tl.dot(b.T, a.T)
    tl.store(rows, 0, tl.sum(first, 1))
    top = tl.load(x, (0, 0), (32, 32)).to(tl.f32)
    tl.store(out, (0, 0), tl.cat((second, first, second)))
    tl.store(out, (192, 0), tl.cat((tl.cat((top, top), 1), first, second)))


def test_cat_of_dots_in_several_layouts() -> None:
    x, y = f32(64, 32).astype(np.float16), f32(32, 64, seed=1).astype(np.float16)
    out, rows = np.zeros((352, 64), np.float32), np.zeros(64, np.float32)
    run(cat_of_dots, x, y, out, rows)
    wide, tall = x.astype(np.float64), y.astype(np.float64)
    first, second, top = wide @ tall, tall.T @ wide.T, np.tile(wide[:32], 2)
    want = np.concatenate([second, first, second, top, first, second])
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(rows, first.sum(1), rtol=1e-5, atol=1e-4)


def test_shapes() -> None:
    x = f32(6, 5)
    out, flat = np.zeros((18, 5), np.float32), np.zeros(100, np.float32)
    run(shapes, x, out, flat)
    row, column = np.arange(5), np.arange(6)[:, None]
    np.testing.assert_allclose(out[:6], x + row * 10 + column * 100, rtol=1e-6)
    np.testing.assert_array_equal(out[6:12], x)
    np.testing.assert_array_equal(out[12:], np.concatenate([x[3:], x[:3]]))
    np.testing.assert_array_equal(flat[:30], x.reshape(-1))
    np.testing.assert_array_equal(flat[30:60], x.T.reshape(-1))
    np.testing.assert_array_equal(flat[60:70], np.stack([row, row * 2], -1).reshape(-1))
    np.testing.assert_array_equal(flat[70:], x[:, ::-1].reshape(-1))


# --- reductions and scans


def welford(m1, v1, n1, m2, v2, n2):
    n = n1 + n2
    d = m2 - m1
    share = n2 / tl.maximum(n, 1.0)
    return m1 + d * share, v1 + v2 + d * d * n1 * share, n


@tilec.kernel
def reductions(x: tl.array, k: tl.array, out: tl.array, ints: tl.array):
    a, i = tl.load(x, (0, 0), (8, 12)), tl.load(k, (0, 0), (8, 12))
    tl.store(out, (0, 0), tl.sum(a, 1))
    tl.store(out, (1, 0), tl.max(a, 1))
    tl.store(out, (2, 0), a.min(1))
    tl.store(out, (3, 0), tl.prod(a, axis=-1))
    _, square, count = tl.reduce((a, a * 0, a * 0 + 1), 1, welford)
    tl.store(out, (4, 0), square / count)
    tl.store(out, (5, 0), tl.full(8, tl.sum(a), tl.f32))
    tl.store(out, (6, 0), tl.max(a - tl.max(a, 1, keepdims=True), 1))
    tl.store(ints, (0, 0), tl.argmax(a, 1))
    tl.store(ints, (1, 0), tl.argmin(i, 1))
    tl.store(ints, (2, 0), tl.any(i > 45, 1).to(tl.i32) + tl.all(i > -45, 1))
    tl.store(ints, (3, 0), tl.reduce(i, 1, lambda p, q: p ^ q))
    tl.store(ints, (4, 0), tl.sum(i.to(tl.i8), 1))
    tl.store(ints, (5, 0), tl.reduce(i, 1, tl.maximum))


def test_reductions() -> None:
    x, k = f32(8, 12), i32(8, 12)
    out, ints = np.zeros((7, 8), np.float32), np.zeros((6, 8), np.int32)
    run(reductions, x, k, out, ints)
    expected = [
        x.sum(1),
        x.max(1),
        x.min(1),
        x.prod(1),
        x.astype(np.float64).var(1),
        np.full(8, x.sum()),
        np.zeros(8),
    ]
    for row, want in zip(out, expected, strict=True):
        np.testing.assert_allclose(row, want, rtol=1e-4, atol=1e-5)
    counts = (k > 45).any(1).astype(int) + (k > -45).all(1)
    whole = [x.argmax(1), k.argmin(1), counts, np.bitwise_xor.reduce(k, 1), k.sum(1), k.max(1)]
    for row, want in zip(ints, whole, strict=True):
        np.testing.assert_array_equal(row, want)


def test_argmax_takes_nan_and_the_first_of_equals() -> None:
    x, k = np.zeros((8, 12), np.float32), np.zeros((8, 12), np.int32)
    x[0, [3, 7]] = 5
    x[1, 9] = np.nan
    out, ints = np.zeros((7, 8), np.float32), np.zeros((6, 8), np.int32)
    run(reductions, x, k, out, ints)
    assert tuple(ints[0, :3]) == (3, 9, 0)
    assert math.isnan(out[1, 1])


@tilec.kernel
def place_of_largest(x: tl.array, y: tl.array):
    v = tl.load(x, 0, 12)
    tl.store(y, 0, tl.argmax(v))
    tl.store(y, 1, v.argmin())


def test_argmax_of_one_dimension_needs_no_axis() -> None:
    x, y = np.random.default_rng(4).permutation(12).astype(np.int32), np.zeros(2, np.int32)
    place_of_largest[1](x, y)
    assert tuple(y) == (x.argmax(), x.argmin())


@tilec.kernel
def count_once(counts: tl.array):
    tl.atomic_add(counts, (0, 1), tl.full((1, 1), 3, tl.i32))


def test_a_tile_of_one_element_goes_to_one_place() -> None:
    counts = np.zeros((2, 2), np.int32)
    count_once[2](counts)
    assert counts.tolist() == [[0, 6], [0, 0]]


def linear(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@tilec.kernel
def scans(x: tl.array, y: tl.array, out: tl.array):
    a, b = tl.load(x, 0, 50), tl.load(y, 0, 50)
    tl.store(out, (0, 0), tl.cumsum(a))
    tl.store(out, (1, 0), tl.cumsum(a, reverse=True))
    tl.store(out, (2, 0), tl.cumprod(a))
    _, h = tl.associative_scan((a, b), 0, linear)
    tl.store(out, (3, 0), h)


def test_scans() -> None:
    a, b = f32(50), f32(50, seed=1)
    out = np.zeros((4, 50), np.float32)
    run(scans, a, b, out)
    x, y = a.astype(np.float64), b.astype(np.float64)
    state, states = 0.0, []
    for p, q in zip(x, y, strict=True):
        state = state * p + q
        states.append(state)
    expected = [x.cumsum(), x[::-1].cumsum()[::-1], x.cumprod(), states]
    for row, want in zip(out, expected, strict=True):
        np.testing.assert_allclose(row, want, rtol=1e-4, atol=1e-5)
