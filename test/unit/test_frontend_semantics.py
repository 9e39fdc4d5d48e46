"""Kernels run on the emulator and compared with NumPy: what the language's constructs mean."""

from __future__ import annotations

import math

import numpy as np
import pytest
from one_program import EMULATOR, f32, i32, run

import tilec
import tilec.language as tl

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
def negations(x: tl.array, y: tl.array, out: tl.array):
    m, n = tl.load(x, 0, 4) != 0, tl.load(y, 0, 4) != 0
    tl.store(out, (0, 0), ~m)
    tl.store(out, (1, 0), ~~m)
    tl.store(out, (2, 0), ~(~m & n))
    tl.store(out, (3, 0), tl.where(~m, n, ~n))
    for i in tl.static_range(4):
        p, q = tl.load(x, i, ()) != 0, tl.load(y, i, ()) != 0
        if ~(~p & q):
            tl.store(out, (4, i), True)


def test_not_of_booleans_is_one() -> None:
    m, n = np.array([0, 0, 1, 1], np.int32), np.array([0, 1, 0, 1], np.int32)
    out = np.zeros((5, 4), np.bool_)
    run(negations, m, n, out)
    p, q = m != 0, n != 0
    np.testing.assert_array_equal(out, [~p, p, p | ~q, np.where(p, ~q, q), p | ~q])


@tilec.kernel
def floor_divisions(x: tl.array, y: tl.array, out: tl.array):
    a, b = tl.load(x, 0, 36), tl.load(y, 0, 36)
    tl.store(out, (0, 0), a // b)
    tl.store(out, (1, 0), a % b)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_floor_divisions_of_floats_are_numpys(dtype: str) -> None:
    """Where the rounded a / b is the next whole number, of zeros and infinities, bit for bit."""
    some = np.array([1, -1, 0.0, -0.0, -0.3, 60000, 5, np.inf, np.nan]).astype(dtype)
    x, y = np.tile(some, 4), np.repeat(np.array([0.1, -0.3, np.inf, 0]).astype(dtype), 9)
    out = np.zeros((2, 36), dtype)
    run(floor_divisions, x, y, out)
    with np.errstate(all="ignore"):
        expected = np.stack([x // y, x % y]).astype(np.float64)
    np.testing.assert_array_equal(out.astype(np.float64), expected)
    some = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(out)[some], np.signbit(expected)[some])


@tilec.kernel
def divisions_by_constants(x: tl.array, out: tl.array):
    tl.store(out, 0, tl.load(x, 0, 60) / 3)


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_divisions_of_all_but_f32_are_correctly_rounded(dtype: str) -> None:
    x = (np.arange(1, 61) * 0.7).astype(dtype)
    out = np.zeros_like(x)
    run(divisions_by_constants, x, out)
    np.testing.assert_array_equal(out, (x.astype(np.float64) / 3).astype(dtype))


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
def methods_of_constants(out: tl.array, N: tl.const, NAME: tl.const, SIZES: tl.const):
    bits = 0
    for _ in tl.static_range(N.bit_length() - 1):
        bits += 1
    tl.store(out, 0, bits)
    tl.store(out, 1, N.bit_count() if NAME.lower().startswith("gel") else 0)
    tl.store(out, 2, SIZES.index(48) + 10 * SIZES.count(16))
    tl.store(out, 3, 1 if (N / 3).is_integer() else 2)


def test_constants_have_pythons_methods() -> None:
    out = np.zeros(4, np.int32)
    run(methods_of_constants, out, 160, "GELU", (16, 48, 16))
    np.testing.assert_array_equal(out, [7, 2, 21, 2])


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
    tl.store(out, (12, 0), tl.softmax(a, 1, approx=True))


def test_composites() -> None:
    x, out = f32(4, 9), np.zeros((16, 9), np.float32)
    run(composites, x, out)
    wide = x.astype(np.float64)
    e = np.exp(wide - wide.max(1, keepdims=True))
    sigmoid = 1 / (1 + np.exp(-wide))
    weights = e / e.sum(1, keepdims=True)
    expected = np.concatenate([weights, sigmoid, wide * sigmoid, weights])
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


def test_gates_divide_as_quotients_do() -> None:
    """A correctly rounded quotient of f32 branches in each element, around a call."""

    @tilec.kernel(grid=lambda x: 1)
    def gates(x: tl.array, y: tl.array):
        v = tl.load(x, 0, 64)
        tl.store(y, 0, tl.sigmoid(v) + tl.silu(v))

    ptx = gates.compile(["x:f32[?]", "y:f32[?]"], target="sm_90a").ptx
    assert "div.full.f32" in ptx
    assert "rcp.rn" not in ptx
    assert "div.rn" not in ptx
