"""Integer opcodes against formulas on Python integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from elementwise_ptx import evaluate, integers, same

NUMPY = {"u16": "uint16", "s16": "int16", "u32": "uint32", "s32": "int32", "u64": "uint64",
         "s64": "int64", "b16": "uint16", "b32": "uint32", "b64": "uint64"}  # fmt: skip
ARITHMETIC = ["u16", "s16", "u32", "s32", "u64", "s64"]


def expected(function: Callable[..., int], dtype: str, *values: np.ndarray) -> np.ndarray:
    """function on Python ints, reduced to the width of dtype."""
    kind = np.dtype(dtype)
    mask = (1 << 8 * kind.itemsize) - 1
    rows = zip(*(value.tolist() for value in values), strict=True)
    raw = [function(*row) & mask for row in rows]
    return np.array(raw, f"u{kind.itemsize}").view(kind)


def truncating_divide(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


BINARY = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul.lo": lambda a, b: a * b,
    "min": min,
    "max": max,
}


@pytest.mark.parametrize("kind", ARITHMETIC)
@pytest.mark.parametrize("opcode", BINARY)
def test_arithmetic_wraps_around(opcode: str, kind: str) -> None:
    a, b = integers(NUMPY[kind], seed=1), integers(NUMPY[kind], seed=2)
    got = evaluate(f"{opcode}.{kind} {{o0}}, {{0}}, {{1}};", a, b, out=NUMPY[kind])
    same(got, expected(BINARY[opcode], NUMPY[kind], a, b))


@pytest.mark.parametrize("kind", ARITHMETIC)
def test_division_truncates_and_remainder_follows_the_dividend(kind: str) -> None:
    a, b = integers(NUMPY[kind], seed=1), integers(NUMPY[kind], seed=2) >> 3
    b[b == 0] = 7
    body = f"div.{kind} {{o0}}, {{0}}, {{1}}; rem.{kind} {{o1}}, {{0}}, {{1}};"
    quotient, rest = evaluate(body, a, b, out=(NUMPY[kind], NUMPY[kind]))
    same(quotient, expected(truncating_divide, NUMPY[kind], a, b))
    same(rest, expected(lambda x, y: x - y * truncating_divide(x, y), NUMPY[kind], a, b))


@pytest.mark.parametrize("kind", ARITHMETIC)
def test_mul_hi_is_the_upper_half(kind: str) -> None:
    a, b = integers(NUMPY[kind], seed=3), integers(NUMPY[kind], seed=4)
    bits = a.dtype.itemsize * 8
    got = evaluate(f"mul.hi.{kind} {{o0}}, {{0}}, {{1}};", a, b, out=NUMPY[kind])
    same(got, expected(lambda x, y: (x * y) >> bits, NUMPY[kind], a, b))


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32"])
def test_mad_wide(kind: str) -> None:
    wide = (
        NUMPY[kind].replace("16", "64").replace("32", "64")
        if "32" in kind
        else (NUMPY[kind].replace("16", "32"))
    )
    a, b, c = integers(NUMPY[kind], seed=3), integers(NUMPY[kind], seed=4), integers(wide, seed=5)
    got = evaluate(f"mad.wide.{kind} {{o0}}, {{0}}, {{1}}, {{2}};", a, b, c, out=wide)
    same(got, expected(lambda x, y, z: x * y + z, wide, a, b, c))


@pytest.mark.parametrize("kind", ["b16", "b32", "b64"])
def test_logic(kind: str) -> None:
    a, b = integers(NUMPY[kind], seed=3), integers(NUMPY[kind], seed=4)
    body = (
        f"and.{kind} {{o0}}, {{0}}, {{1}}; or.{kind} {{o1}}, {{0}}, {{1}}; "
        f"xor.{kind} {{o2}}, {{0}}, {{1}}; not.{kind} {{o3}}, {{0}};"
    )
    results = evaluate(body, a, b, out=(NUMPY[kind],) * 4)
    for got, want in zip(results, (a & b, a | b, a ^ b, ~a), strict=True):
        same(got, want)


@pytest.mark.parametrize("kind", ["b16", "b32", "b64"])
def test_shift_amounts_are_clamped(kind: str) -> None:
    a = integers(NUMPY[kind], seed=3)
    bits = a.dtype.itemsize * 8
    amount = (np.arange(a.size) % (bits + 9)).astype(np.uint32)
    signed = kind.replace("b", "s")
    body = (
        f"shl.{kind} {{o0}}, {{0}}, {{1}}; shr.{kind.replace('b', 'u')} {{o1}}, {{0}}, {{1}}; "
        f"shr.{signed} {{o2}}, {{0}}, {{1}}; shl.{kind} {{o3}}, {{0}}, 3;"
    )
    names = NUMPY[kind], NUMPY[kind], NUMPY[signed], NUMPY[kind]
    left, right, arithmetic, literal = evaluate(body, a, amount, out=names)
    same(left, expected(lambda x, n: x << n, NUMPY[kind], a, amount))
    same(right, expected(lambda x, n: x >> n, NUMPY[kind], a, amount))
    same(arithmetic, expected(lambda x, n: x >> n, NUMPY[signed], a.view(NUMPY[signed]), amount))
    same(literal, expected(lambda x: x << 3, NUMPY[kind], a))


@pytest.mark.parametrize(("direction", "mode"), [("l", "wrap"), ("l", "clamp"), ("r", "wrap"),
                                                  ("r", "clamp")])  # fmt: skip
def test_funnel_shift(direction: str, mode: str) -> None:
    low, high = integers("uint32", seed=1), integers("uint32", seed=2)
    amount = (np.arange(low.size) % 70).astype(np.uint32)

    def formula(lo: int, hi: int, n: int) -> int:
        count = n & 31 if mode == "wrap" else min(n, 32)
        both = hi << 32 | lo
        return (both << count) >> 32 if direction == "l" else both >> count

    body = f"shf.{direction}.{mode}.b32 {{o0}}, {{0}}, {{1}}, {{2}};"
    got = evaluate(body, low, high, amount, out="uint32")
    same(got, expected(formula, "uint32", low, high, amount))


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_bfe(kind: str) -> None:
    a = integers(NUMPY[kind], seed=1, size=2048)
    bits = a.dtype.itemsize * 8
    rng = np.random.default_rng(0)
    position = rng.integers(0, bits + 6, a.size, dtype=np.uint32)
    length = rng.integers(0, bits + 6, a.size, dtype=np.uint32)

    def formula(x: int, pos: int, count: int) -> int:
        top = bits - 1
        signed = kind.startswith("s") and count > 0
        sign = x >> min(pos + count - 1, top) & 1 if signed else 0
        result = 0
        for i in range(bits):
            inside = i < count and pos + i <= top
            result |= ((x >> (pos + i) & 1) if inside else sign) << i
        return result

    got = evaluate(f"bfe.{kind} {{o0}}, {{0}}, {{1}}, {{2}};", a, position, length, out=NUMPY[kind])
    same(got, expected(formula, NUMPY[kind], a, position, length))


@pytest.mark.parametrize("kind", ["b32", "b64"])
def test_bfi(kind: str) -> None:
    a, b = integers(NUMPY[kind], seed=1, size=1024), integers(NUMPY[kind], seed=2, size=1024)
    bits = a.dtype.itemsize * 8
    rng = np.random.default_rng(0)
    position = rng.integers(0, bits + 6, a.size, dtype=np.uint32)
    length = rng.integers(0, bits + 6, a.size, dtype=np.uint32)

    def formula(x: int, y: int, pos: int, count: int) -> int:
        for i in range(count):
            if pos + i < bits:
                y = y & ~(1 << (pos + i)) | (x >> i & 1) << (pos + i)
        return y

    got = evaluate(
        f"bfi.{kind} {{o0}}, {{0}}, {{1}}, {{2}}, {{3}};", a, b, position, length, out=NUMPY[kind]
    )
    same(got, expected(formula, NUMPY[kind], a, b, position, length))


def permute(a: int, b: int, picks: list[tuple[int, bool]]) -> int:
    source = (b << 32 | a).to_bytes(8, "little")
    result = []
    for pick, sign in picks:
        byte = source[pick]
        result.append((0xFF if byte & 0x80 else 0) if sign else byte)
    return int.from_bytes(bytes(result), "little")


def test_prmt_default_mode() -> None:
    a, b, s = (integers("uint32", seed=i, size=1024) for i in range(3))
    got = evaluate("prmt.b32 {o0}, {0}, {1}, {2};", a, b, s, out="uint32")

    def formula(x: int, y: int, sel: int) -> int:
        nibbles = [sel >> 4 * i & 15 for i in range(4)]
        return permute(x, y, [(n & 7, n > 7) for n in nibbles])

    same(got, expected(formula, "uint32", a, b, s))


@pytest.mark.parametrize(
    ("mode", "rows"),
    [
        ("f4e", ["3210", "4321", "5432", "6543"]),
        ("b4e", ["5670", "6701", "7012", "0123"]),
        ("rc8", ["0000", "1111", "2222", "3333"]),
        ("ecl", ["3210", "3211", "3222", "3333"]),
        ("ecr", ["0000", "1110", "2210", "3210"]),
        ("rc16", ["1010", "3232", "1010", "3232"]),
    ],
)
def test_prmt_modes(mode: str, rows: list[str]) -> None:
    """Rows are the PTX ISA's table, byte 3 first."""
    a, b, s = (integers("uint32", seed=i) for i in range(3))
    got = evaluate(f"prmt.b32.{mode} {{o0}}, {{0}}, {{1}}, {{2}};", a, b, s, out="uint32")

    def formula(x: int, y: int, sel: int) -> int:
        return permute(x, y, [(int(d), False) for d in rows[sel & 3][::-1]])

    same(got, expected(formula, "uint32", a, b, s))


@pytest.mark.parametrize("table", [0x80, 0xFE, 0x96, 0xE8, 0x1B, 0xC0])
def test_lop3_looks_up_every_bit(table: int) -> None:
    a, b, c = (integers("uint32", seed=i) for i in range(3))
    got = evaluate(f"lop3.b32 {{o0}}, {{0}}, {{1}}, {{2}}, {table};", a, b, c, out="uint32")

    def formula(x: int, y: int, z: int) -> int:
        bits = ((x >> i & 1) << 2 | (y >> i & 1) << 1 | (z >> i & 1) for i in range(32))
        return sum((table >> row & 1) << i for i, row in enumerate(bits))

    same(got, expected(formula, "uint32", a, b, c))


@pytest.mark.parametrize("kind", ["b32", "b64"])
def test_bit_counting(kind: str) -> None:
    a = integers(NUMPY[kind], size=512) >> np.arange(512).astype(NUMPY[kind]) % 64
    bits = a.dtype.itemsize * 8
    body = f"popc.{kind} {{o0}}, {{0}}; clz.{kind} {{o1}}, {{0}}; brev.{kind} {{o2}}, {{0}};"
    ones, leading, turned = evaluate(body, a, out=("uint32", "uint32", NUMPY[kind]))
    same(ones, expected(lambda x: x.bit_count(), "uint32", a))
    same(leading, expected(lambda x: bits - x.bit_length(), "uint32", a))
    same(turned, expected(lambda x: int(f"{x:0{bits}b}"[::-1], 2), NUMPY[kind], a))


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_bfind(kind: str) -> None:
    a = integers(NUMPY[kind], size=512) >> np.arange(512).astype(NUMPY[kind]) % 64
    got = evaluate(f"bfind.{kind} {{o0}}, {{0}};", a, out="uint32")
    same(got, expected(lambda x: (x if x >= 0 else ~x).bit_length() - 1, "uint32", a))


def test_sad_dp4a_dp2a() -> None:
    a, b, c = (integers("int32", seed=i) for i in range(3))
    body = (
        "sad.s32 {o0}, {0}, {1}, {2}; dp4a.s32.u32 {o1}, {0}, {1}, {2}; "
        "dp2a.hi.s32.s32 {o2}, {0}, {1}, {2};"
    )
    sad, dp4a, dp2a = evaluate(body, a, b, c, out=("int32",) * 3)
    same(sad, expected(lambda x, y, z: z + abs(x - y), "int32", a, b, c))
    left = a.view(np.int8).reshape(-1, 4).astype(int)
    right = b.view(np.uint8).reshape(-1, 4).astype(int)
    same(dp4a, (c + (left * right).sum(1)).astype(np.int32))
    halves = a.view(np.int16).reshape(-1, 2).astype(int)
    bytes_ = b.view(np.int8).reshape(-1, 4)[:, 2:].astype(int)
    same(dp2a, (c + (halves * bytes_).sum(1)).astype(np.int32))


def test_carry_chains_add_128_bits() -> None:
    values = [integers("uint64", seed=i) for i in range(4)]
    body = "add.cc.u64 {o0}, {0}, {2}; addc.u64 {o1}, {1}, {3};"
    low, high = evaluate(body, *values, out=("uint64", "uint64"))
    a0, a1, b0, b1 = (v.astype(object) for v in values)
    total = a0 + (a1 << 64) + b0 + (b1 << 64)
    same(low, expected(lambda t: t, "uint64", total))
    same(high, expected(lambda t: t >> 64, "uint64", total))
    body = "sub.cc.u64 {o0}, {0}, {2}; subc.u64 {o1}, {1}, {3};"
    low, high = evaluate(body, *values, out=("uint64", "uint64"))
    total = a0 + (a1 << 64) - b0 - (b1 << 64)
    same(high, expected(lambda t: t >> 64, "uint64", total))


def test_saturating_add_and_packed_halves() -> None:
    a, b = integers("int32", seed=1), integers("int32", seed=2)
    body = "add.sat.s32 {o0}, {0}, {1}; add.u16x2 {o1}, {0}, {1}; max.s16x2 {o2}, {0}, {1};"
    added, halves, largest = evaluate(body, a, b, out=("int32", "uint32", "uint32"))
    same(added, np.clip(a.astype(np.int64) + b, -(2**31), 2**31 - 1).astype(np.int32))
    same(halves, (a.view(np.uint16) + b.view(np.uint16)).view(np.uint32))
    same(largest, np.maximum(a.view(np.int16), b.view(np.int16)).view(np.uint32))
