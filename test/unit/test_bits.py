"""Functions of bits on the emulator, against Python's integers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from frontend_cases import build
from target_names import MAIN

import tilec
import tilec.language as tl
from tilec.messages.diagnostics import CompileError

DTYPES = ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8")
"""NumPy's names: the last digit counts bytes."""


def run(kernel: Any, *arguments: Any) -> None:
    """Launches one program on the emulator."""
    kernel.on("emulator")[1](*arguments)


def drawn(dtype: str, size: int, seed: int = 0) -> np.ndarray:
    """Bits at random, after masks and single bits."""
    bits, rng = 8 * int(dtype[1]), np.random.default_rng(seed)
    found = [0, 1, (1 << bits) - 1, 1 << (bits - 1), 6, (1 << bits // 2) - 1]
    found += [int.from_bytes(rng.bytes(bits // 8), "little") for _ in range(size - len(found))]
    return np.array(found, f"u{bits // 8}").view(dtype)


def numbers(x: np.ndarray) -> list[int]:
    """What the bits are without a sign."""
    return [int(n) for n in x.reshape(-1).view(f"u{x.itemsize}")]


@tilec.kernel
def counts(x: tl.array, y: tl.array, out: tl.array, high: tl.array):
    a, b = tl.load(x, 0, 37), tl.load(y, 0, 37)
    for row, tile in enumerate((tl.popc(a), tl.clz(a), tl.ffs(a))):
        tl.store(out, (row, 0), tile)
    tl.store(high, 0, tl.umulhi(a, b))


@pytest.mark.parametrize("number", range(len(DTYPES)), ids=DTYPES.__getitem__)
def test_counts_and_products(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", MAIN[number // 2 % len(MAIN)])
    x, y = drawn(DTYPES[number], 37), drawn(DTYPES[number], 37, 1)[::-1].copy()
    bits, out, high = 8 * x.itemsize, np.zeros((3, 37), "i4"), np.zeros_like(x)
    run(counts, x, y, out, high)
    assert out[0].tolist() == [bin(n).count("1") for n in numbers(x)]
    assert out[1].tolist() == [bits - n.bit_length() for n in numbers(x)]
    assert out[2].tolist() == [(n & -n).bit_length() for n in numbers(x)]
    products = zip(numbers(x), numbers(y), strict=True)
    assert numbers(high) == [a * b >> bits for a, b in products]


@tilec.kernel
def reversed_bits(x: tl.array, out: tl.array):
    tl.store(out, (0, 0), tl.brev(tl.load(x, (0, 0), (5, 7))).T)


@pytest.mark.parametrize("dtype", DTYPES[4:])
def test_reversed_bits(dtype: str) -> None:
    x, out = drawn(dtype, 35).reshape(5, 7), np.zeros((7, 5), dtype)
    run(reversed_bits, x, out)
    bits = 8 * x.itemsize
    assert numbers(out) == [int(f"{n:0{bits}b}"[::-1], 2) for n in numbers(x.T.copy())]


@tilec.kernel
def chosen_bytes(x: tl.array, y: tl.array, s: tl.array, out: tl.array):
    a, b = tl.load(x, (0, 0), (6, 10)), tl.load(y, (0, 0), (10, 6)).T
    selectors = tl.load(s, 0, 6)[:, None]
    tl.store(out, (0, 0, 0), tl.byte_perm(a, b, selectors), dims=(1, 2))
    tl.store(out, (1, 0, 0), tl.byte_perm(a, tl.load(y, (3, 2), ()), 0x0123), dims=(1, 2))


def byte_perm(x: int, y: int, selector: int) -> int:
    """PTX ISA 9.0, "prmt"."""
    found, source = 0, (y << 32 | x).to_bytes(8, "little")
    for place in range(4):
        choice = selector >> 4 * place & 15
        byte = source[choice & 7]
        found |= (255 * (byte >> 7) if choice & 8 else byte) << 8 * place
    return found


@pytest.mark.parametrize("target", MAIN)
def test_chosen_bytes(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Operands that lie in registers in other ways, selectors of another dtype."""
    monkeypatch.setenv("TILEC_TARGET", target)
    x, y = drawn("u4", 60).reshape(6, 10), drawn("u4", 60, 1).reshape(10, 6)
    s, out = drawn("i4", 6, 2)[::-1].copy(), np.zeros((2, 6, 10), np.uint32)
    s[:4] = 0x7531, 0x0246, 0xFEDC, 0x7BFF3210 - (1 << 31)
    run(chosen_bytes, x, y, s, out)
    for i, j in np.ndindex(6, 10):
        assert out[0, i, j] == byte_perm(int(x[i, j]), int(y[j, i]), int(s[i]))
        assert out[1, i, j] == byte_perm(int(x[i, j]), int(y[3, 2]), 0x0123)


@tilec.kernel
def of_scalars(x: tl.array, out: tl.array, n: tl.u64):
    tl.store(out, 0, tl.popc(n) + tl.clz(1) * tl.ffs(n))
    tl.store(out, 1, tl.brev(n).to(tl.i32))
    fullest = tl.reduce(tl.load(x, 0, 9), 0, lambda a, b: tl.where(tl.popc(a) > tl.popc(b), a, b))
    tl.store(out, 2, tl.popc(fullest))


def test_scalars_and_combinations() -> None:
    x, out, n = drawn("i4", 13)[4:], np.zeros(3, "i4"), 0xF0F0 << 32
    run(of_scalars, x, out, n)
    most = max(bin(number).count("1") for number in numbers(x))
    assert out.tolist() == [8 + 31 * 37, 0x0F0F0000, most]


MISTAKES = {
    "tl.popc(f)": "popc is not defined for f32",
    "tl.clz(n > 0)": "clz is not defined for i1",
    "tl.ffs(tl.program_id(0))": "ffs is not defined for index",
    "tl.brev(n.to(tl.i16))": "brev is not defined for i16",
    "tl.umulhi(n, n.to(tl.u32))": "i32 and u32 do not mix",
    "tl.byte_perm(n, n, n.to(tl.i64))": "the selector of byte_perm is not defined for i64",
    "tl.byte_perm(n.to(tl.u8), 1, 2)": "byte_perm is not defined for u8",
    "tl.reduce(tl.load(v, 0, 8), 0, lambda a, b: tl.brev(a))": (
        "'brev' is not possible in a combine function"
    ),
    "tl.reduce(tl.load(v, 0, 8), 0, lambda a, b: tl.byte_perm(a, b, 1))": (
        "'byte_perm' is not possible in a combine function"
    ),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes(text: str, tmp_path: Path) -> None:
    with pytest.raises(CompileError) as caught:
        build(f"def k(v, n, f):\n    {text}\n", tmp_path, ("v:i32[?]", "n:i32", "f:f32"))
    assert MISTAKES[text] in str(caught.value)
