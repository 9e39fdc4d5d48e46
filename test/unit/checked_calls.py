"""Runs kernels in check mode, by turns in late mode, beside what they should give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from unittest import mock

import numpy as np
from shares import modes

import tilec.language as tl
from tilec.call.jit import Kernel
from tilec.runtime import emulator_device

CTAS = 2
"""That stay, where a kernel's CTAs do: three programs each are six."""


def assert_right(
    kernel: Kernel[...],
    arguments: Sequence[Any],
    expected: Mapping[int, np.ndarray],
    tolerance: float = 4e-3,
    **constants: Any,
) -> None:
    """Arguments at places of `expected` hold that in the end, up to a part of its largest element;
    all arrays are copied."""
    for mode in modes():
        given = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        with mock.patch.object(emulator_device, "RESIDENT_CTAS", CTAS):
            kernel.on(f"emulator:{mode}")(*given, **constants)
        for place, right in expected.items():
            error = np.abs(given[place].astype(float) - right).max(initial=0)
            assert error <= tolerance * np.abs(right).max(initial=0), (mode, place, error)


def normal(*sizes: int, seed: int = 0, dtype: Any = np.float16) -> np.ndarray:
    """Random numbers of variance 1."""
    return np.random.default_rng(seed).standard_normal(sizes).astype(dtype)


def empty(*sizes: int, dtype: Any = np.float32) -> np.ndarray:
    """NaN, or a number that no result is."""
    return np.full(sizes, np.nan if np.dtype(dtype).kind != "i" else -77777, dtype)


def matmul_grid(c: Any, BM: int, BN: int) -> tuple[int, int]:
    """One program per tile of c."""
    return tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)
