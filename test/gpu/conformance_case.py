"""One kernel to run on a GPU and on the emulator: its launch, its inputs, and how to compare."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

DTYPES = {
    "u8": np.dtype(np.uint8), "s8": np.dtype(np.int8), "u16": np.dtype(np.uint16),
    "s16": np.dtype(np.int16), "u32": np.dtype(np.uint32), "s32": np.dtype(np.int32),
    "u64": np.dtype(np.uint64), "s64": np.dtype(np.int64), "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16), "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64), "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2),
}  # fmt: skip


@dataclass(frozen=True)
class Rule:
    """How close two arrays must be; with no number set, equal bit for bit, any NaN any NaN.

    dtype: the elements, as a key of DTYPES; ulp: units in the last place of the emulator's value;
    relative: of the element; scaled: of the largest finite magnitude in the array; absolute: added
    to them; unordered: the multiset counts (what colliding atomics returned).
    """

    dtype: str
    ulp: float = 0
    relative: float = 0
    scaled: float = 0
    absolute: float = 0
    unordered: bool = False

    def differing(self, got: np.ndarray, want: np.ndarray) -> np.ndarray:
        """Indices of the elements of `got` (GPU) that do not match `want` (emulator)."""
        dtype = DTYPES[self.dtype]
        a, b = (np.ascontiguousarray(x).reshape(-1).view(dtype) for x in (got, want))
        if self.unordered:
            a, b = np.sort(a), np.sort(b)
        bits = f"u{dtype.itemsize}"
        equal = a.view(bits) == b.view(bits)
        if self.dtype[0] in "us":
            return np.flatnonzero(~equal)
        with np.errstate(all="ignore"):
            x, y = a.astype(np.float64), b.astype(np.float64)
            equal |= np.isnan(x) & np.isnan(y)
            if self.ulp or self.relative or self.scaled or self.absolute:
                equal |= (x == y) | (np.abs(x - y) <= self._allowed(b, y))
        return np.flatnonzero(~equal)

    def _allowed(self, want: np.ndarray, wide: np.ndarray) -> np.ndarray:
        size = np.abs(wide)
        finite = size[np.isfinite(size)]
        allowed = self.absolute + self.relative * size
        allowed = allowed + self.scaled * (finite.max() if finite.size else 0)
        if self.ulp:
            info = ml_dtypes.finfo(want.dtype)
            exponent = np.floor(np.log2(np.maximum(size, float(info.smallest_normal))))
            allowed = allowed + self.ulp * np.exp2(exponent) * float(info.eps)
        return allowed


@dataclass
class Launch:
    """A kernel and its arguments. `rules` maps positions of array arguments to how they compare.

    Arrays without a rule are compared bit for bit as bytes: a kernel must leave its inputs alone.
    """

    text: str
    arguments: list[Any]
    entry: str = "kernel"
    grid: Any = 1
    block: Any = 128
    rules: dict[int, Rule] = field(default_factory=dict)
    shared_bytes: int = 0
    cluster: Any = 1


@dataclass(frozen=True)
class Case:
    """`make(seed)` draws the inputs. `family` is the row of the summary it counts in."""

    name: str
    family: str
    make: Callable[[int], Launch]


def draw(kind: str, size: int, rng: np.random.Generator) -> np.ndarray:
    """`size` values of a kind: a key of DTYPES (every bit pattern is likely), or a range.

    "f32[a,b]" is uniform in a..b, "u32<n" an integer below n, "f16n" normally distributed, "f16i"
    a small integer. "f32e" has products, and with "f32b" quotients, around the smallest normal
    number, "f32t" is one of few multiples of it. "f16x2" draws pairs in uint32. Floats of a bare
    key are random bits, normal numbers of many magnitudes, and special values in equal parts.
    """
    if kind.endswith("x2") or "x2" in kind:
        return draw(kind.replace("x2", ""), 2 * size, rng).view(np.uint32)
    name = re.match(r"[a-z]+\d+(m\d)?", kind)[0]  # type: ignore[index]
    dtype, rest = DTYPES[name], kind[len(name) :]
    if rest.startswith("["):
        low, high = (float(x) for x in rest[1:-1].split(","))
        return rng.uniform(low, high, size).astype(dtype)
    if rest.startswith("<"):
        return rng.integers(0, int(rest[1:]), size).astype(dtype)
    if rest == "n":
        return rng.standard_normal(size).astype(dtype)
    if rest == "i":
        return rng.integers(-3, 4, size).astype(dtype)
    if rest in ("e", "b", "t"):
        return draw_tiny(rest, dtype, size, rng)
    raw = rng.integers(0, 256, size * dtype.itemsize, dtype=np.uint8).view(dtype).copy()
    where = rng.integers(0, 3, size)
    if name[0] in "us":
        limits = np.iinfo(dtype)
        special = np.array([0, 1, 2, 31, limits.max, limits.min, limits.max - 1], dtype)
        small = (rng.integers(-40, 40, size)).astype(dtype)
        return np.choose(where, [raw, small, rng.choice(special, size)]).astype(dtype)
    info = ml_dtypes.finfo(dtype)
    tiny, largest = float(info.smallest_normal), float(info.max)
    parts = [0.0, -0.0, np.inf, -np.inf, np.nan, tiny, -tiny / 2, tiny * 0.75, 1.0, -1.0, 0.5, 1.5,
             2.5, -2.5, largest, -largest, 255.5, 65504.0, 65520.0, 448.0, 464.0, 2147483648.0,
             -2147483648.0, 1e10, 9.3e18, 1.9e19]  # fmt: skip
    with np.errstate(all="ignore"):
        special = np.array(parts).astype(dtype)
        spread = 2.0 ** rng.uniform(np.log2(tiny) / 2, np.log2(largest) / 2, size)
        wide = np.where(rng.random(size) < 0.5, rng.standard_normal(size) * 4, spread)
        wide = (wide * rng.choice([-1.0, 1.0], size)).astype(dtype)
    chosen = raw.copy()
    chosen[where == 1] = wide[where == 1]
    chosen[where == 2] = rng.choice(special, int((where == 2).sum()))
    return chosen


def draw_tiny(rest: str, dtype: np.dtype, size: int, rng: np.random.Generator) -> np.ndarray:
    tiny, step = (float(getattr(ml_dtypes.finfo(dtype), x)) for x in ("smallest_normal", "eps"))
    if rest == "t":
        return (tiny * rng.choice([0.0, 1.0, -1.0, 2.0, -2.0], size)).astype(dtype)
    near = (1 + step * rng.integers(-6, 7, size)) * rng.choice([-1.0, 1.0], size)
    return (near * (tiny**0.5 if rest == "e" else tiny**-0.5)).astype(dtype)


def raw(values: np.ndarray) -> np.ndarray:
    """The same bits as unsigned integers, which is how kernels load them."""
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")


def seeded(name: str, seed: int) -> np.random.Generator:
    """Random numbers of their own for every case and seed."""
    return np.random.default_rng([seed, zlib.crc32(name.encode())])
