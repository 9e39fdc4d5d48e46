"""Floating-point opcodes: exact ones bit by bit, approximations within their stated error."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from elementwise_ptx import evaluate, floats, same

BF16 = np.dtype(ml_dtypes.bfloat16)
UFUNC = {"add": np.add, "sub": np.subtract, "mul": np.multiply}


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize("opcode", UFUNC)
@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_rounded_arithmetic(opcode: str, kind: str) -> None:
    dtype = kind.replace("f", "float")
    a, b = floats(dtype, seed=1), floats(dtype, seed=2)
    got = evaluate(f"{opcode}.{kind} {{o0}}, {{0}}, {{1}};", a, b, out=dtype)
    same(got, UFUNC[opcode](a, b))


def exact_fma(a: float, b: float, c: float, dtype: np.dtype) -> float:
    """a*b+c rounded once by rational arithmetic (finite values)."""
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    near = np.array(float(exact)).astype(dtype)
    candidates = [
        near,
        np.nextafter(near, dtype.type(np.inf)),
        np.nextafter(near, dtype.type(-np.inf)),
    ]
    best = min(
        candidates,
        key=lambda v: (abs(Fraction(float(v)) - exact), int(v.view(f"u{dtype.itemsize}")) & 1),
    )
    return float(best)


@pytest.mark.parametrize("kind", ["f16", "f32", "bf16"])
def test_fma_rounds_once(kind: str) -> None:
    dtype = BF16 if kind == "bf16" else np.dtype(kind.replace("f", "float"))
    rng = np.random.default_rng(1)
    a, b, c = (rng.standard_normal(2048).astype(dtype) for _ in range(3))
    c[::2] = (-(a * b)[::2] * dtype.type(1 + 1 / 64)).astype(dtype)  # cancellation
    c[1::4] = (c[1::4].astype(np.float64) * 2.0**-13).astype(dtype)  # ties
    a16 = [v.view(np.uint16) if dtype.itemsize == 2 else v for v in (a, b, c)]
    name = "uint16" if dtype.itemsize == 2 else "float32"
    got = evaluate(f"fma.rn.{kind} {{o0}}, {{0}}, {{1}}, {{2}};", *a16, out=name).view(dtype)
    want = [exact_fma(*row, dtype) for row in zip(a, b, c, strict=True)]
    same(got, np.array(want).astype(dtype))


def test_fma_double_rounding_trap() -> None:
    """a*b = 2^-24 - 2^-70: the float64 sum with c is a tie of float32, the exact one lies below."""
    a = np.full(32, (2**23 + 1) * 2.0**-47, np.float32)
    b = np.full(32, (2**23 - 1) * 2.0**-23, np.float32)
    c = np.full(32, 1.0 + 2.0**-23, np.float32)
    c[1::2] *= -1
    b[1::2] *= -1
    b[2::4] *= -1  # now the exact value lies on the other side
    got = evaluate("fma.rn.f32 {o0}, {0}, {1}, {2};", a, b, c, out="float32")
    want = [exact_fma(*row, np.dtype(np.float32)) for row in zip(a, b, c, strict=True)]
    same(got, np.array(want, np.float32))
    assert got[0] == c[0]


@pytest.mark.parametrize("mode", ["rz", "rm", "rp"])
@pytest.mark.parametrize("opcode", ["add", "mul"])
def test_directed_rounding(opcode: str, mode: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(512).astype(np.float32) for _ in range(2))
    got = evaluate(f"{opcode}.{mode}.f32 {{o0}}, {{0}}, {{1}};", a, b, out="float32")
    for x, y, value in zip(a.tolist(), b.tolist(), got.tolist(), strict=True):
        exact = Fraction(x) + Fraction(y) if opcode == "add" else Fraction(x) * Fraction(y)
        above = Fraction(float(np.nextafter(np.float32(value), np.float32(np.inf))))
        below = Fraction(float(np.nextafter(np.float32(value), np.float32(-np.inf))))
        down = mode == "rm" or (mode == "rz" and exact > 0)
        if down:
            assert Fraction(value) <= exact < above
        else:
            assert below < exact <= Fraction(value)


def test_flush_to_zero_keeps_the_sign() -> None:
    tiny = np.float32(1e-40)
    a = np.array([tiny, -tiny, 1.0, np.float32(2.0**-126)] * 8, np.float32)
    b = np.array([1.0, 1.0, tiny, 0.5] * 8, np.float32)
    body = "mul.ftz.f32 {o0}, {0}, {1}; mul.f32 {o1}, {0}, {1}; add.ftz.f32 {o2}, {0}, {1};"
    product, plain, total = evaluate(body, a, b, out=("float32",) * 3)
    same(product[:4], np.array([0.0, -0.0, 0.0, 0.0], np.float32))
    same(plain, a * b)
    same(total[:4], np.array([1.0, 1.0, 1.0, np.float32(0.5) + a[3]], np.float32))


def test_saturation_and_relu() -> None:
    a = floats("float32", seed=3)
    got = evaluate("add.sat.f32 {o0}, {0}, 0f00000000;", a, out="float32")
    same(
        got, np.where(np.isnan(a), np.float32(0), np.clip(a + np.float32(0), 0, 1) + np.float32(0))
    )
    h = floats("float16", seed=4)
    one = np.ones_like(h)
    got = evaluate("fma.rn.relu.f16 {o0}, {0}, {1}, {2};", h, one, one, out="float16")
    same(got, np.where(h + one < 0, np.float16(0), h + one))


@pytest.mark.parametrize("opcode", ["min", "max"])
@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_min_max_prefer_numbers_and_order_zeros(opcode: str, kind: str) -> None:
    dtype = kind.replace("f", "float")
    a, b = floats(dtype, seed=1), floats(dtype, seed=2)
    a[20:24], b[20:24] = [0.0, -0.0, 0.0, -0.0], [-0.0, 0.0, 0.0, -0.0]
    got = evaluate(f"{opcode}.{kind} {{o0}}, {{0}}, {{1}};", a, b, out=dtype)
    choose = min if opcode == "min" else max

    def formula(x: float, y: float) -> float:
        if math.isnan(x):
            return y
        if math.isnan(y):
            return x
        return choose((x, math.copysign(1, x)), (y, math.copysign(1, y)))[0]

    same(got, np.array([formula(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)], dtype))


def test_min_max_nan_is_canonical() -> None:
    a, b = floats("float32", seed=1), floats("float32", seed=2)
    got = evaluate("max.NaN.f32 {o0}, {0}, {1};", a, b, out="float32")
    nan = np.isnan(a) | np.isnan(b)
    assert (got.view(np.uint32)[nan] == 0x7FFFFFFF).all()
    same(got[~nan], np.maximum(a, b)[~nan])


def test_neg_abs_work_on_bits() -> None:
    a = floats("float32", seed=1)
    a.view(np.uint32)[5] = 0x7F800123  # a signalling NaN keeps its payload
    neg, absolute = evaluate("neg.f32 {o0}, {0}; abs.f32 {o1}, {0};", a, out=("uint32", "uint32"))
    same(neg, a.view(np.uint32) ^ np.uint32(1 << 31))
    same(absolute, a.view(np.uint32) & np.uint32(0x7FFFFFFF))
    got = evaluate("copysign.f32 {o0}, {0}, {1};", a, floats("float32", seed=2), out="float32")
    same(got, np.copysign(floats("float32", seed=2), a))


@pytest.mark.parametrize(
    ("body", "function", "ulp"),
    [
        ("div.rn.f32 {o0}, {1}, {0};", lambda x, y: y / x, 0),
        ("div.full.f32 {o0}, {1}, {0};", lambda x, y: y / x, 2),
        ("div.approx.f32 {o0}, {1}, {0};", lambda x, y: y / x, 2),
        ("rcp.rn.f32 {o0}, {0};", lambda x, y: 1 / x, 0),
        ("rcp.approx.ftz.f32 {o0}, {0};", lambda x, y: 1 / x, 1),
        ("sqrt.rn.f32 {o0}, {0};", lambda x, y: np.sqrt(x), 0),
        ("sqrt.approx.f32 {o0}, {0};", lambda x, y: np.sqrt(x), 1),
        ("rsqrt.approx.f32 {o0}, {0};", lambda x, y: 1 / np.sqrt(x), 2),
        ("ex2.approx.ftz.f32 {o0}, {1};", lambda x, y: np.exp2(y), 2),
        ("lg2.approx.f32 {o0}, {0};", lambda x, y: np.log2(x), 4),
        ("sin.approx.f32 {o0}, {1};", lambda x, y: np.sin(y), 8),
        ("cos.approx.f32 {o0}, {1};", lambda x, y: np.cos(y), 8),
        ("tanh.approx.f32 {o0}, {1};", lambda x, y: np.tanh(y), 8192),
    ],
)
def test_functions(body: str, function, ulp: int) -> None:
    rng = np.random.default_rng(5)
    x = rng.uniform(0.01, 50, 512).astype(np.float32)
    y = rng.uniform(-3, 3, 512).astype(np.float32)
    got = evaluate(body, x, y, out="float32")
    want = function(x.astype(np.float64), y.astype(np.float64))
    error = np.abs(got - want) / np.spacing(np.abs(want).astype(np.float32))
    assert error.max() <= max(ulp, 0.5), error.max()


@pytest.mark.parametrize("kind", ["f16x2", "bf16x2"])
def test_packed_arithmetic(kind: str) -> None:
    dtype = np.dtype(np.float16) if kind == "f16x2" else BF16
    rng = np.random.default_rng(2)
    a, b, c = (rng.standard_normal(512).astype(dtype) for _ in range(3))
    words = [v.view(np.uint32) for v in (a, b, c)]
    body = (
        f"fma.rn.{kind} {{o0}}, {{0}}, {{1}}, {{2}}; max.{kind} {{o1}}, {{0}}, {{1}}; "
        f"neg.{kind} {{o2}}, {{0}}; mul.rn.{kind} {{o3}}, {{0}}, {{1}};"
    )
    results = evaluate(body, *words, out=("uint32",) * 4)
    wide = [v.astype(np.float64) for v in (a, b, c)]
    wanted = [
        np.array([exact_fma(*row, dtype) for row in zip(a, b, c, strict=True)]).astype(dtype),
        np.maximum(a, b),
        -a,
        (wide[0] * wide[1]).astype(np.float32).astype(dtype),
    ]
    for got, want in zip(results, wanted, strict=True):
        same(got.view(dtype), want)


def test_testp() -> None:
    a = floats("float32", seed=1)
    for name, want in (
        ("finite", np.isfinite(a)),
        ("infinite", np.isinf(a)),
        ("number", ~np.isnan(a)),
        ("notanumber", np.isnan(a)),
        ("subnormal", (a != 0) & (np.abs(a) < 2.0**-126)),
        ("normal", (a == 0) | np.isfinite(a) & (np.abs(a) >= 2.0**-126)),
    ):
        body = f"testp.{name}.f32 %p1, {{0}}; selp.u32 {{o0}}, 1, 0, %p1;"
        same(evaluate(body, a, out="uint32"), want.astype(np.uint32))


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_mixed_precision_widens_exactly(kind: str) -> None:
    """PTX ISA 9.7.5: the first addend or both factors are narrow, result and last operand f32."""
    dtype = BF16 if kind == "bf16" else np.dtype("float16")
    rng = np.random.default_rng(9)
    a, b = (rng.standard_normal(512).astype(dtype) for _ in range(2))
    c = rng.standard_normal(512).astype(np.float32)
    raw_a, raw_b = a.view(np.uint16), b.view(np.uint16)
    wide_a, wide_b = a.astype(np.float32), b.astype(np.float32)
    for opcode in ("add", "sub"):
        got = evaluate(f"{opcode}.rn.f32.{kind} {{o0}}, {{0}}, {{1}};", raw_a, c, out="float32")
        same(got, UFUNC[opcode](wide_a, c))
    text = f"fma.rn.f32.{kind} {{o0}}, {{0}}, {{1}}, {{2}};"
    got = evaluate(text, raw_a, raw_b, c, out="float32")
    want = [exact_fma(*row, c.dtype) for row in zip(wide_a, wide_b, c, strict=True)]
    same(got, np.array(want).astype(np.float32))


def test_a_product_has_no_mixed_form() -> None:
    a, c = np.zeros(32, np.uint16), np.zeros(32, np.float32)
    with pytest.raises(ValueError, match="unsupported"):
        evaluate("mul.rn.f32.bf16 {o0}, {0}, {1};", a, c, out="float32")


def words(*values: int) -> np.ndarray:
    """32 float64 whose bits are `values`, repeated."""
    return np.resize(np.array(values, np.uint64), 32).view(np.float64)


def test_directed_float64_as_on_an_h200() -> None:
    a, b = words(0x94DD269DB5C1690F), words(0x407D000000000000)
    for body, operands, want in (
        ("add.rz.f64 {o0}, {0}, {1};", (a, b), 0x407CFFFFFFFFFFFF),
        ("sub.rm.f64 {o0}, {0}, {1};", (words(0x50E9B9C0060F05AF), words(0x2E93D5F714A1E52F)),
         0x50E9B9C0060F05AE),
        ("add.rp.f64 {o0}, {0}, {1};", (words(0x5B16CA06A7AA7363), words(0x042446C52DD89888)),
         0x5B16CA06A7AA7364),
        ("div.rz.f64 {o0}, {0}, {1};", (words(0x4B21BB53966B77F3), words(0x85FF53169BE40FD3)),
         0xFFEFFFFFFFFFFFFF),
        ("div.rm.f64 {o0}, {0}, {1};", (words(0x285F449C727149FE), words(0xF65D9945BF766F2C)),
         0x8000000000000001),
        ("div.rp.f64 {o0}, {0}, {1};", (words(0x3FA03F3C1F222017), words(0x3FE8F44A123EBD67)),
         0x3FA4D594771283E5),
        ("fma.rm.f64 {o0}, {0}, {1}, {2};",
         (words(0x3FF8EAAC386FFB4A), words(0x3FF8000000000000), words(0x41E0000000000000)),
         0x41E00000004AC004),
        ("add.rm.f64 {o0}, {0}, {1};", (words(0xBFF0000000000000), words(0x3FF0000000000000)),
         0x8000000000000000),
        ("rcp.rm.f64 {o0}, {0};", (words(0x4202A05F20000000),), 0x3DDB7CDFD9D7BDBA),
    ):  # fmt: skip
        got = evaluate(body, *operands, out="float64").view(np.uint64)
        assert set(got.tolist()) == {want}, (body, hex(int(got[0])))


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_fma_float64_against_rationals(mode: str) -> None:
    rng = np.random.default_rng(7)
    a, b = (rng.standard_normal(512) for _ in range(2))
    c = rng.standard_normal(512)
    c[::4] = -(a * b)[::4]
    a[1::8] *= 2.0**-800  # subnormal products
    b[1::8] *= 2.0**-270
    c[1::8] *= 2.0**-1060
    a[2::8] *= 2.0**700
    b[2::8] *= 2.0**330
    got = evaluate(f"fma.{mode}.f64 {{o0}}, {{0}}, {{1}}, {{2}};", a, b, c, out="float64")
    for x, y, z, value in zip(*(v.tolist() for v in (a, b, c, got)), strict=True):
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        if math.isinf(value):
            assert abs(exact) > Fraction(np.finfo("f8").max)
            continue
        low = Fraction(math.nextafter(value, -math.inf)) if value > -1.7e308 else exact - 1
        high = Fraction(math.nextafter(value, math.inf)) if value < 1.7e308 else exact + 1
        gap = Fraction(value) - exact
        if mode == "rn":
            assert abs(gap) <= min(abs(low - exact), abs(high - exact))
        elif mode == "rm" or (mode == "rz" and exact > 0):
            assert gap <= 0
            assert high > exact
        else:
            assert gap >= 0
            assert low < exact


def test_fma_float64_with_infinities() -> None:
    """A product of finite factors is finite, however large: an infinite addend decides alone."""
    big, inf = 1.7e308, math.inf
    rows = [(-big, big, inf), (big, big, -inf), (big, big, inf), (inf, 0.0, 1.0), (inf, 1.0, -inf),
            (inf, -2.0, 5.0), (2.0, 0.0, -inf)]  # fmt: skip
    want = [inf, -inf, inf, math.nan, math.nan, -inf, -inf]
    a, b, c = (np.array(column) for column in zip(*rows, strict=True))
    for mode in ("rn", "rz", "rm", "rp"):
        got = evaluate(f"fma.{mode}.f64 {{o0}}, {{0}}, {{1}}, {{2}};", a, b, c, out="float64")
        np.testing.assert_array_equal(got[: len(want)], want, mode)


def test_bf16_fma_and_zeros_as_on_an_h200() -> None:
    half = [np.full(32, bits, np.uint16) for bits in (0x4020, 0xD41E, 0x39FF)]
    got = evaluate("fma.rn.bf16 {o0}, {0}, {1}, {2};", *half, out="uint16")
    assert set(got.tolist()) == {0xD4C5}
    half = [np.full(32, bits, np.uint16) for bits in (0x2D5A, 0x8000, 0x8000)]
    got = evaluate("fma.rn.relu.f16 {o0}, {0}, {1}, {2};", *half, out="uint16")
    assert set(got.tolist()) == {0}
    x = np.full(32, 1.5, np.float32)
    got = evaluate("sub.rm.f32 {o0}, {0}, {0};", x, out="float32")
    assert np.signbit(got).all()
    assert not got.any()
    got = evaluate("fma.rm.f32 {o0}, {0}, {0}, {1};", x, -x * x, out="float32")
    assert np.signbit(got).all()
    assert not got.any()


def test_ftz_flushes_what_is_tiny_after_rounding() -> None:
    """2**-14 - x rounds to 2**-14 in both exponent ranges for x < 2**-26, else in one only."""
    a = np.array([-0.0002667, -0.0002, -0.0003254, -0.0002441406], np.float16)  # seen on an H200
    b = np.full(4, 2.0**-14, np.float16)
    got = evaluate("fma.rn.ftz.f16 {o0}, {0}, {1}, {1};", a, b, out="float16")
    np.testing.assert_array_equal(got, np.array([0, 2.0**-14, 0, 2.0**-14], np.float16))
    rng = np.random.default_rng(1)
    near = 1 + rng.integers(-6, 7, (2, 512)) * 2.0**-23
    x, y = (near * rng.choice([-1, 1], near.shape) * 2.0**-63).astype(np.float32)
    exact = x.astype(np.float64) * y * 2.0**40  # the same significands, nowhere near subnormals
    for mode, away in (("rn", None), ("rz", 0 * exact), ("rp", exact > 0), ("rm", exact < 0)):
        got = evaluate(f"mul.{mode}.ftz.f32 {{o0}}, {{0}}, {{1}};", x, y, out="float32")
        rounded = exact.astype(np.float32)
        if away is not None:
            inner = np.where(np.abs(rounded) > np.abs(exact), np.nextafter(rounded, 0), rounded)
            outer = np.where(inner == exact, inner, np.nextafter(inner, 2 * inner))
            rounded = np.where(away, outer, inner).astype(np.float32)
        want = np.where(np.abs(rounded) < 2.0**-86, 0, rounded * 2.0**-40)
        np.testing.assert_array_equal(got, want, mode)
