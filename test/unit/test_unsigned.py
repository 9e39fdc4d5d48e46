"""Unsigned integers on the emulator against NumPy: what has a sign elsewhere, and what mixes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from frontend_cases import build

import tilec
import tilec.language as tl
from tilec.language import gpu
from tilec.messages.diagnostics import CompileError
from tilec.runtime.errors import ArgumentError
from tilec.runtime.manifest import checked_kernel

BITS = (8, 16, 32, 64)
ON_TARGETS = [(8, "sm_80"), (16, "sm_90a"), (32, "sm_100a"), (64, "sm_90a")]
"""Every width, every target."""


def run(kernel: Any, *arguments: Any, **named: Any) -> None:
    """Launches one program on the emulator."""
    kernel.on("emulator")[1](*arguments, **named)


def drawn(bits: int, size: int, seed: int = 0, low: int = 0) -> np.ndarray:
    """Numbers of all magnitudes, the edges of signed and unsigned ones first."""
    most, rng = (1 << bits) - 1, np.random.default_rng(seed)
    found = [low, most, most >> 1, (most >> 1) + 1, most - 1, low + 1]
    found += [
        max(low, int(rng.integers(1 << 32)) * int(rng.integers(1 << 32)) >> int(s))
        for s in rng.integers(64 - bits, 64, size - len(found))
    ]
    return np.array([n & most for n in found], f"u{bits // 8}")


# --- operators

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "a + b": operator.add,
    "a - b": operator.sub,
    "a * b": operator.mul,
    "a // b": operator.floordiv,
    "a % b": operator.mod,
    "a & b": operator.and_,
    "a ^ b": operator.xor,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "a // 8": lambda a, b: a // 8,
    "a % 8": lambda a, b: a % 8,
    "a // 7": lambda a, b: a // 7,
    "7 % b": lambda a, b: 7 % b,
    "a << 3": lambda a, b: a << 3,
    "a >> (b % 8)": lambda a, b: a >> b % 8,
    "1 << (b % 8)": lambda a, b: np.ones_like(a) << b % 8,
    "-a": lambda a, b: 0 - a,
    "~a": lambda a, b: ~a,
    "abs": lambda a, b: a,
    "a ** 3": lambda a, b: a * a * a,
    "cdiv": lambda a, b: a // b + (a % b != 0),
    "a < b": operator.lt,
    "a <= b": operator.le,
    "a > b": operator.gt,
    "a >= b": operator.ge,
    "a == b": operator.eq,
    "clamp": lambda a, b: np.clip(a, 5, 200),
}


@tilec.kernel
def operators(x: tl.array, y: tl.array, out: tl.array):
    a, b = tl.load(x, 0, 61), tl.load(y, 0, 61, padding=1)
    found = (
        *(a + b, a - b, a * b, a // b, a % b, a & b, a ^ b),
        *(tl.maximum(a, b), tl.minimum(a, b), a // 8, a % 8, a // 7, 7 % b),
        *(a << 3, a >> (b % 8), 1 << (b % 8), -a, ~a, tl.abs(a), a**3, tl.cdiv(a, b)),
        *(a < b, a <= b, a > b, a >= b, a == b, tl.clamp(a, 5, 200)),
    )
    for row, tile in enumerate(found):
        tl.store(out, (row, 0), tile.to(out.dtype))


@pytest.mark.parametrize(("bits", "target"), ON_TARGETS)
def test_operators(bits: int, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    a, b = drawn(bits, 61), drawn(bits, 61, 1, low=1)[::-1].copy()
    b[7:10] = a[7:10] | 1
    out = np.zeros((len(OPERATORS), 61), a.dtype)
    run(operators, a, b, out)
    with np.errstate(over="ignore"):
        for found, (name, reference) in zip(out, OPERATORS.items(), strict=True):
            np.testing.assert_array_equal(found, reference(a, b).astype(a.dtype), name)
    run(operators, a[:0], b[:0], out)  # a padding of 1 divides
    assert (out[3] == 0).all()


# --- casts

INTEGERS = [f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)]
FLOATS = {
    np.dtype("f2"): 11,
    np.dtype(ml_dtypes.bfloat16): 8,
    np.dtype("f4"): 24,
    np.dtype("f8"): 53,
}
"""With the bits of a mantissa, the leading one included."""


@tilec.kernel
def cast_to(x: tl.array, out: tl.array):
    tl.store(out, 0, tl.load(x, 0, 45).to(out.dtype))


def rounded(number: int, bits: int) -> float:
    """A number with so many leading bits, to nearest even."""
    shift = max(number.bit_length() - bits, 0)
    kept, rest = divmod(number, 1 << shift)
    half = (1 << shift) >> 1
    kept += shift > 0 and (rest > half or (rest == half and kept & 1))
    return float(kept << shift)


@pytest.mark.parametrize("bits", BITS)
def test_casts_between_integers_are_cs(bits: int) -> None:
    """What is cut off is cut off, what is added follows the source's sign."""
    x = drawn(bits, 45)
    for other in INTEGERS:
        if other == x.dtype.str[1:]:
            continue
        out = np.zeros(45, other)
        run(cast_to, x, out)
        np.testing.assert_array_equal(out, x.astype(other))
        if other[0] == "i":
            signed, out = x.view(f"i{bits // 8}").astype(other), np.zeros_like(x)
            run(cast_to, signed, out)
            np.testing.assert_array_equal(out, signed.astype(x.dtype))
    truths = np.zeros(45, bool)
    run(cast_to, x, truths)
    np.testing.assert_array_equal(truths, x != 0)


@pytest.mark.parametrize(("bits", "target"), [*ON_TARGETS, (32, "sm_80"), (64, "sm_80")])
def test_casts_to_floats_round_once(
    bits: int, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    x = drawn(bits, 45)
    ties = [0x80800001, 0x81800000, 0x81800001, (0x1010001 << 38) + 1, 0x8000008000000001]
    x[6:11] = [n >> max(0, n.bit_length() - bits) for n in ties]
    for dtype, mantissa in FLOATS.items():
        out = np.zeros(45, dtype)
        run(cast_to, x, out)
        with np.errstate(over="ignore"):
            expected = np.array([rounded(int(n), mantissa) for n in x]).astype(dtype)
        np.testing.assert_array_equal(out, expected, str(dtype))


@pytest.mark.parametrize(("bits", "target"), [(8, "sm_80"), (64, "sm_90a")])
@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
def test_casts_to_8_bits_saturate(
    dtype: Any, bits: int, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    x, most = drawn(bits, 45), float(ml_dtypes.finfo(dtype).max)
    x[6:45] = np.random.default_rng(0).integers(0, 1 << min(bits, 9), 39)
    eighth, back = np.zeros(45, dtype), np.zeros_like(x)
    run(cast_to, x, eighth)
    expected = np.minimum(x.astype(float), most).astype(dtype)
    np.testing.assert_array_equal(eighth.astype(float), expected.astype(float))
    run(cast_to, eighth, back)
    fits = eighth.astype(float) < 1 << bits
    np.testing.assert_array_equal(back[fits], eighth[fits].astype(float).astype(x.dtype))


@pytest.mark.parametrize("bits", BITS)
def test_casts_from_floats_truncate(bits: int) -> None:
    rng = np.random.default_rng(bits)
    for dtype, mantissa in FLOATS.items():
        most = min(float(np.nextafter(np.float64(2) ** bits, 0)), float(ml_dtypes.finfo(dtype).max))
        numbers = rng.uniform(0, 1, 45) * 2.0 ** rng.uniform(0, np.log2(most) - 0.01, 45)
        edges = [0.0, 0.99, 1.5, 2.0 ** (bits - 1), 2.0**bits - 2.0 ** max(bits - mantissa, 0)]
        numbers[: len(edges)] = [min(n, most) for n in edges]
        x, out = numbers.astype(dtype), np.zeros(45, f"u{bits // 8}")
        run(cast_to, x, out)
        expected = np.array([int(float(n)) for n in x]).astype(out.dtype)
        np.testing.assert_array_equal(out, expected, str(dtype))


def test_bits_keep_their_places_in_bitcasts() -> None:
    @tilec.kernel
    def bits_of(x: tl.array, out: tl.array):
        tl.store(out, 0, tl.bitcast(tl.bitcast(tl.load(x, 0, 9), tl.u32) >> 1, tl.f32))

    x, out = np.random.default_rng(0).standard_normal(9, np.float32), np.zeros(9, np.float32)
    run(bits_of, x, out)
    np.testing.assert_array_equal(out.view("u4"), x.view("u4") >> 1)


# --- reductions, atomics, indices


@tilec.kernel
def reductions(x: tl.array, out: tl.array, sums: tl.array, places: tl.array):
    t = tl.load(x, (0, 0), (5, 48))
    tl.store(out, (0, 0), tl.max(t, 1))
    tl.store(out, (1, 0), tl.min(t, 1))
    tl.store(out, (2, 0), tl.reduce(t, 1, lambda a, b: tl.where(a >> 1 > b >> 1, a, b)))
    tl.store(sums, (0, 0), tl.sum(t, 1))
    tl.store(sums, (1, 0), tl.cumsum(t, 1).max(1))
    tl.store(places, (0, 0), tl.argmax(t, 1))
    tl.store(places, (1, 0), tl.argmin(t, 1))
    tl.store(places, (2, 0), tl.histogram(t.reshape(-1), 5))
    tl.store(places, (3, 0), tl.take(tl.argmax(t, 1), (tl.arange(5) * 3 % 5).to(x.dtype), 0))


@pytest.mark.parametrize(("bits", "target"), [(8, "sm_90a"), (32, "sm_100a"), (64, "sm_80")])
def test_reductions(bits: int, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    x = drawn(bits, 5 * 48).reshape(5, 48)
    x[1:, 7] = x[1:, 30] = 0
    x[2, 9:12] = np.iinfo(x.dtype).max
    wide = np.promote_types(x.dtype, np.uint32)
    out, sums, places = np.zeros((3, 5), x.dtype), np.zeros((2, 5), wide), np.zeros((4, 5), "i4")
    run(reductions, x, out, sums, places)
    np.testing.assert_array_equal(out[:2], [x.max(1), x.min(1)])
    np.testing.assert_array_equal(out[2] >> 1, x.max(1) >> 1)
    np.testing.assert_array_equal(sums[0], x.sum(1, dtype=wide))
    np.testing.assert_array_equal(sums[1], x.cumsum(1, dtype=wide).max(1))
    np.testing.assert_array_equal(places[:2], [x.argmax(1), x.argmin(1)])
    np.testing.assert_array_equal(places[2], [np.count_nonzero(x == n) for n in range(5)])
    np.testing.assert_array_equal(places[3], x.argmax(1)[np.arange(5) * 3 % 5])


@tilec.kernel
def bytes_as_positions(x: tl.array, table: tl.array, counts: tl.array, out: tl.array):
    t = tl.load(x, 0, 250)
    tl.store(counts, 0, tl.histogram(t, 250))
    tl.store(out, 0, tl.take(tl.load(table, 0, 256), t, 0))


def test_bytes_reach_further_than_signed_ones() -> None:
    x, table = drawn(8, 250), np.random.default_rng(0).integers(0, 1 << 20, 256).astype("i4")
    counts, out = np.zeros(250, "i4"), np.zeros(250, "i4")
    run(bytes_as_positions, x, table, counts, out)
    np.testing.assert_array_equal(counts, np.bincount(x, minlength=256)[:250])
    np.testing.assert_array_equal(out, table[x])


@tilec.kernel
def atomics(at: tl.array, x: tl.array, out: tl.array, old: tl.array):
    i, t = tl.load(at, 0, 50), tl.load(x, 0, 50)
    tl.atomic_max(out, (0, i), t)
    tl.atomic_min(out, (1, i), t)
    tl.atomic_add(out, (2, i), t)
    tl.atomic_xor(out, (3, i), t)
    tl.store(old, 0, tl.atomic_cas(out, (4, 6), t.max(), t.min()))


@pytest.mark.parametrize(("bits", "target"), [(32, "sm_80"), (64, "sm_100a"), (32, "sm_90a")])
def test_atomics(bits: int, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    x, most = drawn(bits, 50), (1 << bits) - 1
    at = np.random.default_rng(1).integers(0, 7, 50).astype("u1")
    out = np.zeros((5, 7), x.dtype)
    out[0], out[1], out[4] = 3, most >> 1, x.max()
    expected, old = out.copy(), np.zeros(1, x.dtype)
    run(atomics, at, x, out, old)
    for row, ufunc in enumerate((np.maximum, np.minimum, np.add, np.bitwise_xor)):
        with np.errstate(over="ignore"):
            ufunc.at(expected[row], at, x)
    expected[4, 6] = x.min()
    np.testing.assert_array_equal(out, expected)
    assert old[0] == x.max()


@tilec.kernel
def indexed(table: tl.array, at: tl.array, out: tl.array, n: tl.u32, far: tl.u64):
    tl.store(out, (0, 0), tl.gather(table, tl.load(at, 0, 20), other=-1))
    tl.store(out, (1, 0), tl.load(table, n, 20, padding=-2))
    total = tl.zeros(20, tl.i32)
    for i in tl.range(n % 16):
        total += tl.load(table, i, 20)
    tl.store(out, (2, 0), total)
    tl.store(out, (3, 0), tl.load(table, far >> 60, 20))
    tl.store(out, (4, 0), tl.load(table, tl.load(at, 5, 1).max(), 20, padding=-3))


@pytest.mark.parametrize("bits", BITS)
def test_indices_are_numbers_without_sign(bits: int) -> None:
    """What i8 and i32 would have as negative, or cut off, is far behind the array."""
    table = np.arange(200, dtype=np.int32) + 1000
    at = np.concatenate([drawn(bits, 18, low=3), np.arange(2).astype(f"u{bits // 8}")])
    out = np.zeros((5, 20), np.int32)
    run(indexed, table, at, out, n=0xFFFFFFF7, far=0xB << 60)
    padded = np.concatenate([table, np.full(100, -1, np.int32)])
    np.testing.assert_array_equal(out[0], padded[np.minimum(at, 250).astype(int)])
    assert (out[1] == -2).all()
    np.testing.assert_array_equal(out[2], sum(table[i : i + 20] for i in range(7)))
    np.testing.assert_array_equal(out[3], table[11:31])
    np.testing.assert_array_equal(out[4], table[at[5] : at[5] + 20])


# --- scalars


@tilec.kernel(grid=lambda n: n // 2**30)
def scalars(out: tl.array, n: tl.u32, m: tl.u64):
    big, smaller = n, m
    while smaller > big:
        smaller = smaller // n
    value = n
    limit = 0xF0000000
    if n > 0x7FFFFFFF:
        value = n // 3
        limit = n
    tl.store(out, 0, m // 5)
    tl.store(out, 1, smaller)
    tl.store(out, 2, value.to(tl.u64))
    tl.store(out, 3, (n + 2).to(tl.u64))
    tl.store(out, 5, (limit + 2).to(tl.u64))
    tl.store(out, 4, tl.where(tl.num_programs(0) == 3, m, 7))
    if tl.program_id(0) == 2:
        tl.print(n, m, "is", n.to(tl.u8), n.to(tl.i32))


def test_scalars(capfd: pytest.CaptureFixture[str]) -> None:
    out = np.zeros(6, np.uint64)
    n, m = 0xFFFFFFFE, 2**64 - 3
    scalars.on("emulator")(out, n, m)
    printed = capfd.readouterr().out
    smaller = m
    while smaller > n:
        smaller //= n
    assert out.tolist() == [m // 5, smaller, n // 3, 0, m, 0]
    assert printed == f"(2, 0, 0) {n} {m} is {n & 255} -2\n"


def test_scalars_out_of_range_are_refused() -> None:
    out = np.zeros(5, np.uint64)
    for n, m in ((-1, 0), (1 << 32, 0), (0, -1), (0, 1 << 64)):
        with pytest.raises(ArgumentError, match="is not in the range of ui"):
            scalars.on("emulator")(out, n, m)


@tilec.kernel
def filled(out: tl.array, C: tl.const):
    tl.store(out, 0, C)


def test_constants_have_all_64_bits() -> None:
    out, most = np.zeros(1, np.uint64), 2**64 - 1
    run(filled, out, C=most)
    assert out[0] == most
    assert filled.compile(["out:u64[?]"], {"C": most}, target="sm_80").constants == {"C": most}
    with pytest.raises(CompileError, match="constant 'C' is the constant 18446744073709551616"):
        run(filled, out, C=most + 1)


# --- rules

SPECS = ("b:u8[?]", "u:u32[?]", "w:u64[?]", "q:i32[?]", "n:u32", "i:i32")
HEADER = "def k(b, u, w, q, n, i):\n    "
MISTAKES = {
    "tl.load(u, 0, 8) + tl.load(q, 0, 8)": "u32 and i32 do not mix: neither has all numbers of",
    "tl.load(u, 0, 8) < i": "u32 and i32 do not mix",
    "tl.load(u, 0, 8) + tl.program_id(0)": "u32 and index do not mix",
    "tl.maximum(tl.load(w, 0, 8), i)": "u64 and i32 do not mix",
    "tl.where(i > 0, n, i)": "u32 and i32 do not mix",
    "tl.load(u, 0, 8) + (-1)": "the constant -1 does not fit u32",
    "tl.load(b, 0, 8) * 256": "the constant 256 does not fit u8",
    "tl.load(u, 0, 8) == 2**32": "the constant 4294967296 does not fit u32",
    "tl.load(u, 0, 8, padding=-1)": "padding: the constant -1 does not fit u32",
    "tl.store(u, 0, tl.load(q, 0, 8))": "'u' holds u32, found a tile (8,) of i32",
    "tl.load(u, 0, 8) >> 32": "shift amount 32 is not in 0..31, the bits of u32",
    "tl.dot(tl.zeros((16, 32), tl.u8), tl.zeros((32, 16), tl.u8))": "dot is not defined for u8",
    "tl.assume(n, min=3)": "of u32 assume needs a max from 0 to 2147483647",
    "tl.assume(n, multiple_of=3)": "of u32 assume needs a max",
    "tl.assume(n, min=-3, max=5)": "and no negative min",
    "tl.assume(n.to(tl.u8), max=128)": "of u8 assume needs a max from 0 to 127",
    "gpu.alloc((8, 8), tl.u8, gpu.padded((8, 8)))": "a buffer has no unsigned elements here",
    "gpu.buffer_store(gpu.alloc((8,), tl.i32, gpu.padded((8,))), gpu.load(u, 0, (8,), L))": (
        "value has no unsigned elements here, found u32"
    ),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes(text: str, tmp_path: Path) -> None:
    demand = "@tilec.kernel(num_warps=4)\n" if "gpu." in text else ""
    layout = "L = gpu.blocked((8,), 4)\n    " if "gpu." in text else ""
    with pytest.raises(CompileError) as caught:
        build(f"{demand}{HEADER}{layout}{text}\n", tmp_path, SPECS)
    assert MISTAKES[text] in str(caught.value)


@tilec.kernel
def mixed(b: tl.array, h: tl.array, q: tl.array, out: tl.array, n: tl.u16):
    tl.store(out, (0, 0), (tl.load(b, 0, 30) - tl.load(q, 0, 30)).to(tl.i64))
    tl.store(out, (1, 0), (tl.load(h, 0, 30) * tl.load(b, 0, 30)).to(tl.i64))
    tl.store(out, (2, 0), (tl.program_id(0) - n) + tl.zeros(30, tl.i64))
    tl.store(out, (3, 0), (tl.load(q, 0, 30) << tl.load(b, 0, 30) % 9).to(tl.i64))
    tl.store(out, (4, 0), tl.cast(tl.load(h, 0, 30) / 3 < 1, tl.i64))


def test_a_wider_signed_one_has_both() -> None:
    b, h, q = drawn(8, 30), drawn(16, 30), drawn(32, 30).view("i4")
    out = np.zeros((5, 30), np.int64)
    run(mixed, b, h, q, out, 65535)
    with np.errstate(over="ignore"):
        expected = [b - q, h * b, np.full(30, -65535), q << b % 9, h < 3]
    np.testing.assert_array_equal(out, expected)


@tilec.kernel(num_warps=1)
def exchanged(x: tl.array, out: tl.array):
    t = gpu.load(x, 0, (64,), gpu.blocked((64,), 1))
    other = gpu.convert_layout(t, gpu.blocked((64,), 1, width=2))
    tl.store(out, 0, other // 3 + tl.max(other) % 7)


def test_a_tile_in_another_layout_keeps_its_dtype() -> None:
    x, out = drawn(32, 64), np.zeros(64, np.uint32)
    run(exchanged, x, out)
    np.testing.assert_array_equal(out, x // 3 + x.max() % 7)


@tilec.kernel(num_warps=1)
def combined(x: tl.array, out: tl.array):
    buffer = gpu.alloc((64,), tl.i32, gpu.padded((64,)))
    t = gpu.load(x, 0, (64,), gpu.blocked((64,), 1))
    gpu.buffer_store(buffer, tl.bitcast(t, tl.i32))
    gpu.fence("async_shared")
    gpu.sync()
    gpu.tma_store(buffer, gpu.make_tensor_map(out, (64,), swizzle="none"), (0,), combine="max")
    gpu.tma_commit()
    gpu.tma_wait(0)


def test_the_copy_engine_combines_what_has_no_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tensor map has the array's dtype, in an artefact, too."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    x, out = drawn(32, 64), drawn(32, 64, 1)[::-1].copy()
    expected = np.maximum(x, out)
    run(combined, x, out)
    np.testing.assert_array_equal(out, expected)
    kernel = combined.compile(["x:u32[?]", "out:u32[?]"], target="sm_90a")
    assert [m.dtype for m in kernel.tensor_maps] == ["ui32"]
    assert checked_kernel(kernel.to_json(), kernel.ptx) == kernel
