"""Kernels run on the emulator and compared with NumPy: what the language's constructs mean."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tilec
import tilec.language as tl

EMULATOR = "emulator"


def run(kernel: tilec.call.jit.Kernel, *arguments: object, **named: object) -> None:
    """Launches one program on the emulator."""
    kernel.on(EMULATOR)[1](*arguments, **named)


def f32(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def i32(*shape: int, low: int = -50, high: int = 50, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(low, high, shape, dtype=np.int32)


# --- integer and float operators


@tilec.kernel
def integer_operators(x: tl.array, y: tl.array, out: tl.array):
    a, b = tl.load(x, 0, 61), tl.load(y, 0, 61, padding=1)
    tl.store(out, (0, 0), a + b)
    tl.store(out, (1, 0), a - b)
    tl.store(out, (2, 0), a * b)
    tl.store(out, (3, 0), a // b)
    tl.store(out, (4, 0), a % b)
    tl.store(out, (5, 0), a // 8)
    tl.store(out, (6, 0), a % 8)
    tl.store(out, (7, 0), a & b)
    tl.store(out, (8, 0), a | b)
    tl.store(out, (9, 0), a ^ b)
    tl.store(out, (10, 0), a << 3)
    tl.store(out, (11, 0), a >> 2)
    tl.store(out, (12, 0), -a)
    tl.store(out, (13, 0), ~a)
    tl.store(out, (14, 0), tl.abs(a))
    tl.store(out, (15, 0), tl.maximum(a, b))
    tl.store(out, (16, 0), tl.minimum(a, 3))
    tl.store(out, (17, 0), a**3)
    tl.store(out, (18, 0), tl.cdiv(a, 7))
    tl.store(out, (19, 0), a // -5)
    tl.store(out, (20, 0), 100 % b)


def test_integer_operators_are_pythons() -> None:
    a, b = i32(61), i32(61, seed=1)
    b[b == 0] = 7
    out = np.zeros((21, 61), np.int32)
    run(integer_operators, a, b, out)
    expected = [
        a + b,
        a - b,
        a * b,
        a // b,
        a % b,
        a // 8,
        a % 8,
        a & b,
        a | b,
        a ^ b,
        a << 3,
        a >> 2,
        -a,
        ~a,
        np.abs(a),
        np.maximum(a, b),
        np.minimum(a, 3),
        a**3,
        -(-a // 7),
        a // -5,
        100 % b,
    ]
    for row, want in zip(out, expected, strict=True):
        np.testing.assert_array_equal(row, want)


@tilec.kernel
def float_operators(x: tl.array, y: tl.array, out: tl.array):
    a, b = tl.load(x, 0, 33), tl.load(y, 0, 33)
    tl.store(out, (0, 0), a + b * 2)
    tl.store(out, (1, 0), a / b)
    tl.store(out, (2, 0), a // b)
    tl.store(out, (3, 0), a % b)
    tl.store(out, (4, 0), a**2)
    tl.store(out, (5, 0), a**-2)
    tl.store(out, (6, 0), tl.where((a > 0) & (b > 0), 1.0, a))
    tl.store(out, (7, 0), tl.clamp(a, -0.5, 0.5))
    tl.store(out, (8, 0), tl.fma(a, b, 1))
    tl.store(out, (9, 0), tl.floor(a))
    tl.store(out, (10, 0), tl.round(a * 2))
    tl.store(out, (11, 0), tl.abs(a) ** 1.5)


def test_float_operators() -> None:
    a, b = f32(33), f32(33, seed=1)
    out = np.zeros((12, 33), np.float32)
    run(float_operators, a, b, out)
    x, y = a.astype(np.float64), b.astype(np.float64)
    expected = [
        x + y * 2,
        x / y,
        np.floor(x / y),
        x % y,
        x**2,
        x**-2,
        np.where((x > 0) & (y > 0), 1.0, x),
        np.clip(x, -0.5, 0.5),
        x * y + 1,
        np.floor(x),
        np.round(x * 2),
        np.abs(x) ** 1.5,
    ]
    for row, want in zip(out, expected, strict=True):
        np.testing.assert_allclose(row, want, rtol=2e-5, atol=2e-6)


@tilec.kernel
def mixed(x: tl.array, k: tl.array, h: tl.array, out: tl.array):
    a, i, s = tl.load(x, 0, 20), tl.load(k, 0, 20), tl.load(h, 0, 20)
    tl.static_assert((a + i).dtype == tl.f32)
    tl.static_assert((s + i).dtype == tl.f16)
    tl.static_assert((s + a).dtype == tl.f32)
    tl.static_assert((s + 1.5).dtype == tl.f16)
    tl.static_assert((i + 1).dtype == tl.i32)
    tl.static_assert((i + 1.5).dtype == tl.f32)
    tl.static_assert((i / 2).dtype == tl.f32)
    tl.static_assert((i > 0).dtype == tl.i1)
    tl.static_assert(((i > 0) + 1).dtype == tl.i32)
    tl.static_assert(((i > 0) & (a > 0)).dtype == tl.i1)
    tl.static_assert((tl.program_id(0) + i).dtype == tl.index)
    tl.static_assert((s + s.to(tl.bf16)).dtype == tl.f32)
    tl.static_assert((i.to(tl.i8) + i.to(tl.i64)).dtype == tl.i64)
    tl.store(out, (0, 0), a + i)
    tl.store(out, (1, 0), (s + i).to(tl.f32))
    tl.store(out, (2, 0), i / 4)
    tl.store(out, (3, 0), ((i > 0) + (a > 0) * 2).to(tl.f32))
    tl.store(out, (4, 0), a.to(tl.i32).to(tl.f32))
    tl.store(out, (5, 0), (i > 0).to(tl.f32))
    tl.store(out, (6, 0), a.to(tl.i1).to(tl.f32))


def test_promotion() -> None:
    a, i, s = f32(20) * 10, i32(20), f32(20, seed=2).astype(np.float16)
    out = np.zeros((7, 20), np.float32)
    run(mixed, a, i, s, out)
    expected = [
        a + i,
        (s + i.astype(np.float16)).astype(np.float32),
        i / 4,
        (i > 0) * 1.0 + (a > 0) * 2,
        np.trunc(a),
        i > 0,
        a != 0,
    ]
    for row, want in zip(out, expected, strict=True):
        np.testing.assert_allclose(row, want, rtol=1e-6)


# --- control flow


@tilec.kernel
def collatz(start: tl.array, steps: tl.array):
    n = tl.load(start, 0, ())
    count = 0
    while n != 1:
        if n % 2 == 0:  # noqa: SIM108 - the statement is what is tested
            n = n // 2
        else:
            n = 3 * n + 1
        count += 1
    tl.store(steps, 0, count)


@pytest.mark.parametrize("start", [1, 2, 7, 27])
def test_while(start: int) -> None:
    steps = np.zeros(1, np.int32)
    run(collatz, np.array([start], np.int32), steps)
    n, count = start, 0
    while n != 1:
        n, count = (n // 2 if n % 2 == 0 else 3 * n + 1), count + 1
    assert steps[0] == count


@tilec.kernel
def first_at_least(x: tl.array, limit: tl.i32, out: tl.array):
    found = -1
    seen = 0
    for i in range(x.shape[0]):
        value = tl.load(x, i, ())
        if value < 0:
            continue
        seen += 1
        if value >= limit:
            found = i
            break
    tl.store(out, 0, found)
    tl.store(out, 1, seen.to(tl.i64))


@pytest.mark.parametrize("limit", [0, 5, 40, 1000])
def test_break_and_continue(limit: int) -> None:
    x = i32(37)
    out = np.zeros(2, np.int64)
    run(first_at_least, x, limit, out)
    found, seen = -1, 0
    for i, value in enumerate(x):
        if value < 0:
            continue
        seen += 1
        if value >= limit:
            found = i
            break
    assert tuple(out) == (found, seen)


@tilec.kernel
def early_return(x: tl.array, n: tl.i32, out: tl.array):
    if n < 0:
        tl.store(out, 0, -1)
        return
    if n == 0:
        tl.store(out, 0, 0)
    elif n == 1:
        tl.store(out, 0, 1)
        return
    tl.store(out, 1, n)


@pytest.mark.parametrize(("n", "expected"), [(-3, (-1, 9)), (0, (0, 0)), (1, (1, 9)), (5, (9, 5))])
def test_return_in_branches(n: int, expected: tuple[int, int]) -> None:
    out = np.full(2, 9, np.int32)
    run(early_return, np.zeros(1, np.float32), n, out)
    assert tuple(out) == expected


def sign(value):
    """Returns from branches, which the call merges."""
    if value > 0:
        return 1
    if value < 0:
        return -1
    return 0


def swap(pair):
    first, second = pair
    return second, first


@tilec.kernel
def helpers(x: tl.array, out: tl.array):
    for i in range(x.shape[0]):
        tl.store(out, i, sign(tl.load(x, i, ())))
    a, b = swap((1, 2))
    tl.static_assert((a, b) == (2, 1))


def test_helper_functions() -> None:
    x = i32(11)
    x[3] = 0
    out = np.zeros(11, np.int32)
    run(helpers, x, out)
    np.testing.assert_array_equal(out, np.sign(x))


@tilec.kernel
def unrolled(x: tl.array, out: tl.array, N: tl.const = 4):
    total = 0.0
    for i in tl.static_range(N):
        if i == 1:
            continue
        if i == 3:
            break
        total += tl.load(x, i, ())
    for scale in (1.0, 10.0, 100.0):
        total += scale
    values = [2 * i for i in range(3)]
    for position, value in enumerate(values):
        total += position * value
    tl.store(out, 0, total)


def test_static_loops() -> None:
    x = f32(4)
    out = np.zeros(1, np.float32)
    run(unrolled, x, out)
    np.testing.assert_allclose(out[0], x[0] + x[2] + 111 + (0 + 2 + 8), rtol=1e-6)


@tilec.kernel
def opened(x: tl.array, y: tl.array, out: tl.array):
    at = (1, out.shape[1] - 3)
    first, second = (tl.load(array, (*at, 2), 4) for array in (x, y))
    pair = (first * 10, second)
    tl.store(out, (*at[1:], 0), tl.maximum(*pair))


def test_tuples_are_opened() -> None:
    x, y = f32(2, 3, 8), f32(2, 3, 8) * 5
    out = np.zeros((2, 4), np.float32)
    run(opened, x, y, out)
    np.testing.assert_array_equal(out[1], np.maximum(x[1, 1, 2:6] * 10, y[1, 1, 2:6]))


@tilec.kernel
def downward(out: tl.array, n: tl.i32):
    position = 0
    for i in range(n, -1, -2):
        tl.store(out, position, i)
        position += 1  # noqa: SIM113


@pytest.mark.parametrize("n", [-1, 0, 5, 6])
def test_negative_step(n: int) -> None:
    out = np.full(8, -7, np.int64)
    expected = out.copy()
    expected[: len(range(n, -1, -2))] = list(range(n, -1, -2))
    run(downward, out, n)
    np.testing.assert_array_equal(out, expected)


@tilec.kernel
def reused_name(x: tl.array, out: tl.array):
    t = tl.load(x, 0, 8)
    for i in range(2):
        t = tl.load(x, i, ())
        tl.store(out, i, t)
    t = t if x.shape[0] > 3 else 5.0
    t = tl.load(x, 0, (4,))
    tl.store(out, 2, t)


def test_a_name_may_change_its_type_where_nothing_reads_the_old_one() -> None:
    x = f32(8)
    out = np.zeros(6, np.float32)
    with pytest.raises(tilec.CompileError, match=r"'t' changes in the loop"):
        run(reused_name, x, out)


@tilec.kernel
def dead_name(x: tl.array, out: tl.array):
    t = tl.load(x, 0, 8)
    for i in range(2):
        t = tl.load(x, i, ())
        tl.store(out, i, t)
    t = tl.load(x, 0, (4,))
    tl.store(out, 2, t)


def test_dead_names_are_not_carried() -> None:
    x = f32(8)
    out = np.zeros(6, np.float32)
    run(dead_name, x, out)
    np.testing.assert_array_equal(out, [x[0], x[1], *x[:4]])


@tilec.kernel
def nested(out: tl.array, n: tl.i32):
    total, rows = 0, 0
    for i in range(n):
        inner = 0
        for j in range(i):
            if j == 3:
                break
            inner += j
        total += inner
        rows += 1 if inner > 0 else 0
    tl.store(out, 0, total)
    tl.store(out, 1, rows.to(tl.i64))


def test_nested_loops() -> None:
    out = np.zeros(2, np.int64)
    run(nested, out, 7)
    inner = [sum(range(min(i, 3))) for i in range(7)]
    assert tuple(out) == (sum(inner), sum(v > 0 for v in inner))


@tilec.kernel
def scalar_logic(out: tl.array, a: tl.i32, b: tl.f32):
    tl.store(out, 0, 1 if 0 < a < 10 and not b > 1 else 0)
    tl.store(out, 1, 1 if a or b > 1 else 0)
    tl.store(out, 2, max(a, 3, 4) + min(a, 2))
    tl.store(out, 3, int(b) + len((1, 2)))
    tl.store(out, 4, a if b else -a)


@pytest.mark.parametrize(("a", "b"), [(5, 0.5), (0, 2.5), (20, 0.0), (-3, 1.5)])
def test_scalar_logic(a: int, b: float) -> None:
    out = np.zeros(5, np.int32)
    run(scalar_logic, out, a, b)
    expected = (
        1 if 0 < a < 10 and not b > 1 else 0,
        1 if a or b > 1 else 0,
        max(a, 3, 4) + min(a, 2),
        int(b) + 2,
        a if b else -a,
    )
    assert tuple(out) == expected


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


# --- memory


@tilec.kernel
def indexed(x: tl.array, order: tl.array, out: tl.array, counts: tl.array):
    i = tl.load(order, 0, 40, padding=-1)
    values = tl.gather(x, i, mask=i != 5, other=-1.0)
    tl.scatter(out, 39 - tl.arange(40), values, mask=i >= 0)
    tl.atomic_add(counts, i % 4, 1, mask=i >= 0)
    tl.atomic_max(counts, 4, tl.max(i))
    old = tl.atomic_cas(counts, 5, 0, 77)
    tl.atomic_xchg(counts, 6, old + 3)


@tilec.kernel
def indexed_by_two_dtypes(x: tl.array, far: tl.array, out: tl.array, counts: tl.array, row: tl.i64):
    i, j = tl.load(far, 0, 20), tl.arange(20)
    values = tl.gather(x, (i, j.to(tl.i8)), mask=j < 19, other=-1.0)
    tl.scatter(out, (j, i), values, mask=i >= 0)
    tl.scatter(out, (20, tl.arange(20, dtype=tl.i16)), values)
    tl.scatter(out, (row, j + tl.program_id(0)), values)
    tl.atomic_add(counts, (j % 3, i), 1)
    tl.atomic_cas(counts, (row - 18, j % 5), 0, 9)


def test_indices_may_be_of_several_dtypes() -> None:
    """i64 beyond 32 bits, i32, i16, i8, index and constants, two by two."""
    x, far = f32(24, 24), i32(20, low=0, high=20).astype(np.int64)
    far[[2, 7]] = 1 << 32, -(1 << 32) + 3
    out, counts = np.zeros((22, 20), np.float32), np.zeros((4, 20), np.int32)
    run(indexed_by_two_dtypes, x, far, out, counts, 21)
    inside = (far >= 0) & (far < 20)
    j = np.arange(20)
    values = np.where(inside & (j < 19), x[np.where(inside, far, 0), j], -1)
    want, tally = np.zeros_like(out), np.zeros_like(counts)
    want[j[inside], far[inside]] = values[inside]
    want[20], want[21] = values, values
    np.add.at(tally, ((j % 3)[inside], far[inside]), 1)
    tally[3, :5] = 9
    np.testing.assert_array_equal(out, want)
    np.testing.assert_array_equal(counts, tally)


def test_indexed_access() -> None:
    rng = np.random.default_rng(3)
    x, order = f32(40), rng.permutation(37).astype(np.int32)
    out, counts = np.zeros(40, np.float32), np.zeros(8, np.int32)
    run(indexed, x, order, out, counts)
    expected = np.zeros(40, np.float32)
    expected[39 - np.arange(37)] = np.where(order == 5, -1, x[order])
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(counts[:4], np.bincount(order % 4, minlength=4))
    assert tuple(counts[4:]) == (36, 77, 3, 0)


@tilec.kernel
def scalars(out: tl.array, a: tl.i64, b: tl.f64, c: tl.bf16, flag: bool, n, x):
    tl.static_assert(n.dtype == tl.i32)
    tl.static_assert(x.dtype == tl.f32)
    tl.store(out, 0, a.to(tl.f64))
    tl.store(out, 1, b)
    tl.store(out, 2, c.to(tl.f64))
    tl.store(out, 3, flag.to(tl.f64))
    tl.store(out, 4, (n + x).to(tl.f64))


def test_scalar_parameters() -> None:
    out = np.zeros(5)
    run(scalars, out, 2**40, math.pi, 1.5, True, 3, 0.25)
    np.testing.assert_array_equal(out, [2.0**40, math.pi, 1.5, 1.0, 3.25])


@tilec.kernel
def either(x, out: tl.array):
    value = x if x.ndim == 0 else tl.load(x, 0, ())
    tl.store(out, 0, value)


def test_an_argument_without_annotation_is_array_or_scalar() -> None:
    out = np.zeros(1, np.float32)
    run(either, 2.5, out)
    assert out[0] == 2.5
    run(either, np.array([7], np.float32), out)
    assert out[0] == 7


@tilec.kernel(grid=lambda out, n: tl.cdiv(n, 4) * 2)
def gridded(out: tl.array, n: tl.i32):
    tl.atomic_add(out, 0, 1)
    tl.store(out, 1, tl.num_programs(0))


def test_grid_rule_of_a_scalar() -> None:
    out = np.zeros(2, np.int64)
    gridded.on(EMULATOR)(out, 9)
    assert tuple(out) == (6, 6)


@tilec.kernel
def says(x: tl.array, n: tl.i32):
    print("n is", n, "of", x.shape[0])
    print(f"twice: {n * 2}")


def test_print(capsys: pytest.CaptureFixture[str]) -> None:
    run(says, np.zeros(3, np.float32), 5)
    shown = capsys.readouterr().out
    assert "n is 5 of 3" in shown
    assert "twice: 10" in shown


@tilec.kernel
def asserts(n: tl.i32, out: tl.array):
    assert n < 10, "n is too large"
    tl.store(out, 0, n)


def test_assert() -> None:
    out = np.zeros(1, np.int32)
    run(asserts, 5, out)
    assert out[0] == 5
    with pytest.raises(Exception, match="n is too large"):
        run(asserts, 50, out)


@tilec.kernel
def ptx(x: tl.array, out: tl.array):
    a = tl.load(x, 0, 16)
    tl.store(out, 0, tl.inline_ptx("neg.f32 $0, $1;", "=f,f", a, tl.f32))


def test_inline_ptx() -> None:
    x, out = f32(16), np.zeros(16, np.float32)
    run(ptx, x, out)
    np.testing.assert_array_equal(out, -x)


@tilec.kernel
def mixed_ptx(x: tl.array, n: tl.i32, out: tl.array, shifted: tl.array):
    scaled, moved = tl.inline_ptx(
        "fma.rn.f64 $0, $2, $2, $2; shl.b32 $1, $3, $4;",
        "=d,=r,d,r,r",
        (tl.load(x, 0, 16), tl.arange(16), n),
        (tl.f64, tl.i32),
    )
    tl.store(out, 0, scaled)
    tl.store(shifted, 0, moved)


def test_inline_ptx_of_several_dtypes() -> None:
    x, out = np.arange(16) / 4, np.zeros(16)
    shifted = np.zeros(16, np.int32)
    run(mixed_ptx, x, 3, out, shifted)
    np.testing.assert_array_equal(out, x * x + x)
    np.testing.assert_array_equal(shifted, np.arange(16) << 3)


@tilec.kernel
def composites(x: tl.array, out: tl.array):
    a = tl.load(x, (0, 0), (4, 9))
    tl.store(out, (0, 0), tl.softmax(a, 1))
    tl.store(out, (4, 0), tl.sigmoid(a))
    tl.store(out, (8, 0), tl.silu(a))


def test_composites() -> None:
    x, out = f32(4, 9), np.zeros((12, 9), np.float32)
    run(composites, x, out)
    wide = x.astype(np.float64)
    e = np.exp(wide - wide.max(1, keepdims=True))
    sigmoid = 1 / (1 + np.exp(-wide))
    expected = np.concatenate([e / e.sum(1, keepdims=True), sigmoid, wide * sigmoid])
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)


# fmt: off
MATH = [
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "cbrt", "sin",
    "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
    "erf", "erfc", "floor", "ceil", "round", "trunc", "abs",
]
# fmt: on


@tilec.kernel
def functions(x: tl.array, out: tl.array, FUNCTIONS: tl.const, APPROX: tl.const = False):
    a = tl.load(x, 0, 24)
    for row, f in enumerate(FUNCTIONS):
        tl.store(out, (row, 0), f(a, approx=True) if APPROX else f(a))
    tl.store(out, (len(FUNCTIONS), 0), tl.atan2(a, 2 - a))
    tl.store(out, (len(FUNCTIONS) + 1, 0), tl.pow(a, a + 1))


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(np.float16, 2e-3), (np.float32, 1e-5), (np.float64, 1e-12)]
)
def test_functions(dtype: type, tolerance: float) -> None:
    x = np.random.default_rng(0).uniform(0.05, 0.95, 24).astype(dtype)
    out = np.zeros((len(MATH) + 2, 24), dtype)
    run(functions, x, out, tuple(getattr(tl, name) for name in MATH))
    wide = x.astype(np.float64)
    references = {
        "rsqrt": lambda v: 1 / np.sqrt(v),
        "acosh": np.arccosh,
        "asin": np.arcsin,
        "acos": np.arccos,
        "atan": np.arctan,
        "asinh": np.arcsinh,
        "atanh": np.arctanh,
        "erf": np.vectorize(math.erf),
        "erfc": np.vectorize(math.erfc),
    }
    expected = []
    for name in MATH:
        with np.errstate(invalid="ignore"):
            expected.append((references.get(name) or getattr(np, name))(wide))
    expected += [np.arctan2(wide, 2 - wide), wide ** (wide + 1)]
    for name, row, want in zip([*MATH, "atan2", "pow"], out, expected, strict=True):
        np.testing.assert_allclose(
            row, want, rtol=tolerance, atol=tolerance * 1e-2, err_msg=name, equal_nan=True
        )


def test_approximations() -> None:
    names = ["exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "tanh"]
    x = np.random.default_rng(0).uniform(0.05, 0.95, 24).astype(np.float32)
    out = np.zeros((len(names) + 2, 24), np.float32)
    run(functions, x, out, tuple(getattr(tl, name) for name in names), APPROX=True)
    for name, row in zip(names, out, strict=False):
        want = 1 / np.sqrt(x) if name == "rsqrt" else getattr(np, name)(x)
        np.testing.assert_allclose(row, want, rtol=1e-3, err_msg=name)
