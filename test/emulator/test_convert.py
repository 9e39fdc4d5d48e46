"""cvt against rational arithmetic and ml_dtypes."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from elementwise_ptx import evaluate, floats, integers, same
from hypothesis import given, settings
from hypothesis import strategies as st

BF16 = np.dtype(ml_dtypes.bfloat16)
NUMPY = {"u8": "uint8", "s8": "int8", "u16": "uint16", "s16": "int16", "u32": "uint32",
         "s32": "int32", "u64": "uint64", "s64": "int64", "f16": "float16", "f32": "float32",
         "f64": "float64"}  # fmt: skip
INTEGERS = ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"]


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("to", INTEGERS)
def test_integer_to_integer(to: str, source: str) -> None:
    a = integers(NUMPY[source], seed=1)
    got = evaluate(f"cvt.{to}.{source} {{o0}}, {{0}};", a, out=NUMPY[to])
    same(got, a.astype(NUMPY[to]))
    if to != source:
        got = evaluate(f"cvt.sat.{to}.{source} {{o0}}, {{0}};", a, out=NUMPY[to])
        limits = np.iinfo(NUMPY[to])
        want = [min(max(x, int(limits.min)), int(limits.max)) for x in a.tolist()]
        same(got, np.array(want, NUMPY[to]))


@pytest.mark.parametrize("mode", ["rni", "rzi", "rmi", "rpi"])
@pytest.mark.parametrize("to", ["s8", "u16", "s32", "u32", "s64", "u64"])
@pytest.mark.parametrize("source", ["f16", "f32", "f64"])
def test_float_to_integer(source: str, to: str, mode: str) -> None:
    a = floats(NUMPY[source], seed=1)
    a[40:60] = np.arange(20) / 2 - 5
    got = evaluate(f"cvt.{mode}.{to}.{source} {{o0}}, {{0}};", a, out=NUMPY[to])
    limits = np.iinfo(NUMPY[to])
    rounded = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}[mode]

    def formula(x: float) -> int:
        if np.isnan(x):
            top = 1 << (limits.bits - 1)
            return (top if to[0] == "u" else -top) if "64" in to + source else 0
        if np.isinf(x):
            return int(limits.max if x > 0 else limits.min)
        return min(max(int(rounded(x)), int(limits.min)), int(limits.max))

    same(got, np.array([formula(float(x)) for x in a], NUMPY[to]))


def nearest(value: Fraction, dtype: np.dtype, mode: str) -> float:
    """The value of dtype that `mode` rounds to, by trying the neighbours of a guess."""
    guess = np.array(float(value)).astype(dtype)
    around = {float(guess)}
    for direction in (np.inf, -np.inf):
        around.add(float(np.nextafter(guess, dtype.type(direction))))
    finite = [x for x in around if np.isfinite(x)]
    if mode == "rz":
        mode = "rm" if value > 0 else "rp"
    if mode == "rm":
        return max(x for x in finite if Fraction(x) <= value)
    if mode == "rp":
        return min(x for x in finite if Fraction(x) >= value)
    bits = f"u{dtype.itemsize}"
    return min(
        finite,
        key=lambda x: (abs(Fraction(x) - value), int(np.array(x).astype(dtype).view(bits)) & 1),
    )


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("source", ["s32", "u32", "s64", "u64"])
@pytest.mark.parametrize("to", ["f16", "f32", "f64"])
def test_integer_to_float(to: str, source: str, mode: str) -> None:
    a = integers(NUMPY[source], seed=2)
    if to == "f16":
        a = a % 60000
    got = evaluate(f"cvt.{mode}.{to}.{source} {{o0}}, {{0}};", a, out=NUMPY[to])
    dtype = np.dtype(NUMPY[to])
    want = [nearest(Fraction(x), dtype, mode) for x in a.tolist()]
    same(got, np.array(want, dtype))


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize(("to", "source"), [("f16", "f32"), ("f32", "f64"), ("f16", "f64")])
def test_float_to_narrower_float(to: str, source: str, mode: str) -> None:
    rng = np.random.default_rng(0)
    a = (rng.standard_normal(256) * 2.0 ** rng.integers(-12, 10, 256)).astype(NUMPY[source])
    got = evaluate(f"cvt.{mode}.{to}.{source} {{o0}}, {{0}};", a, out=NUMPY[to])
    dtype = np.dtype(NUMPY[to])
    want = [nearest(Fraction(float(x)), dtype, mode) for x in a]
    same(got, np.array(want, dtype))


def test_widening_and_integral_rounding() -> None:
    a = floats("float16", seed=1)
    same(evaluate("cvt.f32.f16 {o0}, {0};", a, out="float32"), a.astype(np.float32))
    b = floats("float32", seed=2)
    b[30:50] = np.arange(20) / 2 - 5
    for mode, function in (
        ("rni", np.rint),
        ("rzi", np.trunc),
        ("rmi", np.floor),
        ("rpi", np.ceil),
    ):
        same(evaluate(f"cvt.{mode}.f32.f32 {{o0}}, {{0}};", b, out="float32"), function(b))


def test_bf16_conversions() -> None:
    a = floats("float32", seed=1)
    low, high = a, np.roll(a, 7)
    body = "cvt.rn.bf16.f32 {o0}, {0}; cvt.rn.bf16x2.f32 {o1}, {1}, {0};"
    one, two = evaluate(body, low, high, out=("uint16", "uint32"))
    same(one.view(BF16), low.astype(BF16))
    same(two.view(BF16).reshape(-1, 2)[:, 0].copy(), low.astype(BF16))
    same(two.view(BF16).reshape(-1, 2)[:, 1].copy(), high.astype(BF16))
    back = evaluate("cvt.f32.bf16 {o0}, {0};", one, out="float32")
    same(back, one.view(BF16).astype(np.float32))


def test_f16x2_relu_and_satfinite() -> None:
    a = floats("float32", seed=1)
    got = evaluate("cvt.rn.relu.f16x2.f32 {o0}, {0}, {1};", a, -a, out="uint32")
    pair = got.view(np.float16).reshape(-1, 2)
    half = a.astype(np.float16)
    same(pair[:, 1].copy(), np.where(half <= 0, np.float16(0), half))
    same(pair[:, 0].copy(), np.where(-half <= 0, np.float16(0), -half))


@pytest.mark.parametrize("kind", ["e4m3x2", "e5m2x2"])
def test_fp8_conversions(kind: str) -> None:
    dtype = np.dtype(ml_dtypes.float8_e4m3fn if kind == "e4m3x2" else ml_dtypes.float8_e5m2)
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(256) * 2.0 ** rng.integers(-12, 12, 256) for _ in range(2))
    a, b = a.astype(np.float32), b.astype(np.float32)
    a[:3] = np.inf, -np.inf, np.nan
    got = evaluate(f"cvt.rn.satfinite.{kind}.f32 {{o0}}, {{0}}, {{1}};", a, b, out="uint16")
    pair = got.view(dtype).reshape(-1, 2)
    largest = np.float32(ml_dtypes.finfo(dtype).max)
    for position, values in ((1, a), (0, b)):
        want = np.where(np.isnan(values), values, np.clip(values, -largest, largest)).astype(dtype)
        same(pair[:, position].copy(), want)
    assert got[2] >> 8 == 0x7F  # NaN
    wide = evaluate(f"cvt.rn.f16x2.{kind} {{o0}}, {{0}};", got, out="uint32")
    same(wide.view(np.float16), got.view(dtype).astype(np.float16))


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_tf32_rounds_ties_away(bits: int) -> None:
    a = np.full(32, bits, np.uint32)
    got = int(evaluate("cvt.rna.tf32.f32 {o0}, {0};", a, out="uint32")[0])
    value = float(a.view(np.float32)[0])
    if not np.isfinite(value):
        return
    assert got & 0x1FFF == 0
    below = bits & ~0x1FFF
    step = 0x2000 if bits - below >= 0x1000 else 0
    assert got == below + step


def test_pack_saturates() -> None:
    a, b = integers("int32", seed=1) >> 14, integers("int32", seed=2) >> 16
    got = evaluate("cvt.pack.sat.s16.s32 {o0}, {0}, {1};", a, b, out="uint32")
    want = np.stack([np.clip(b, -32768, 32767), np.clip(a, -32768, 32767)], 1).astype(np.int16)
    same(got, want.view(np.uint32)[:, 0])


def bits(dtype: str, *values: int) -> np.ndarray:
    """32 floats whose bits are `values`, repeated."""
    return np.resize(np.array(values, f"u{np.dtype(dtype).itemsize}"), 32).view(dtype)


@pytest.mark.parametrize("mode", ["rni", "rzi", "rmi", "rpi"])
@pytest.mark.parametrize("to", INTEGERS)
def test_nan_of_f64_converts_to_the_top_bit(to: str, mode: str) -> None:
    """Values from an H200."""
    a = bits("float64", 0x7FF8000000000000, 0xFFF61A136B8F1498)
    got = evaluate(f"cvt.{mode}.{to}.f64 {{o0}}, {{0}};", a, out=NUMPY[to])
    width = np.dtype(NUMPY[to]).itemsize
    same(got.view(f"u{width}"), np.full(32, 1 << (8 * width - 1), f"u{width}"))


def test_directed_bf16_of_64_bit_integers() -> None:
    """Values from an H200: no rounding in between."""
    a = np.full(32, 0xFFFFFFFFFFFFFFD9, np.uint64)
    for mode in ("rz", "rm"):
        got = evaluate(f"cvt.{mode}.bf16.u64 {{o0}}, {{0}};", a, out="bfloat16")
        assert set(got.view(np.uint16).tolist()) == {0x5F7F}
        signed = np.full(32, 0x7FFFFFFFFFFFFFFE, np.int64)
        got = evaluate(f"cvt.{mode}.bf16.s64 {{o0}}, {{0}};", signed, out="bfloat16")
        assert set(got.view(np.uint16).tolist()) == {0x5EFF}
    above_tie = np.full(32, (1 << 62) + (1 << 54) + 1, np.int64)
    got = evaluate("cvt.rn.bf16.s64 {o0}, {0};", -above_tie, out="bfloat16")
    assert set(got.astype(np.float64).tolist()) == {-float((1 << 62) + (1 << 55))}


def test_relu_makes_every_zero_positive() -> None:
    """Values from an H200: -0, and what rounds to it, become +0."""
    a = bits("float32", 0xAFBA94E3, 0x80000000, 0x80400000, 0xAA3639F5)
    for to in ("float16", "bfloat16"):
        kind = "f16" if to == "float16" else "bf16"
        got = evaluate(f"cvt.rn.relu.{kind}.f32 {{o0}}, {{0}};", a, out=to)
        assert not got.view(np.uint16).any()
        got = evaluate(f"cvt.rz.relu.{kind}x2.f32 {{o0}}, {{0}}, {{1}};", a, a, out="uint32")
        assert not got.any()
    got = evaluate("cvt.rn.relu.tf32.f32 {o0}, {0};", bits("float32", 1 << 31), out="uint32")
    assert not got.any()
    b = bits("float32", 0x40AAAE2D)
    for kind, want in (("e4m3", 0x4B), ("e5m2", 0x45)):
        body = f"cvt.rn.satfinite.relu.{kind}x2.f32 {{o0}}, {{0}}, {{1}};"
        got = evaluate(body, bits("float32", 1 << 31), b, out="uint16")
        assert set(got.tolist()) == {want}
        body = f"cvt.rn.relu.f16x2.{kind}x2 {{o0}}, {{0}};"
        assert not evaluate(body, np.full(32, 0x8080, np.uint16), out="uint32").any()


def test_tf32_satfinite() -> None:
    """Values from an H200."""
    a = bits("float32", 0x7F800000, 0xFF7FFFFF, 0xFF800000, 0x3F800000)
    got = evaluate("cvt.rna.satfinite.tf32.f32 {o0}, {0};", a, out="uint32")
    want = [0x7F7FE000, 0xFF7FE000, 0xFF7FE000, 0x3F800000]
    same(got, np.resize(np.array(want, np.uint32), 32))
