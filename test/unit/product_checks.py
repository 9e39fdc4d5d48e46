"""What tests of `tilec.ops.matmul` share: random operands, and how near float64 results must be."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

BF16, E4M3, E5M2 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
EPSILON = {
    np.float64: 2.0**-52,
    np.float32: 2.0**-23,
    np.float16: 2.0**-10,
    BF16: 2.0**-7,
    E4M3: 2.0**-3,
    E5M2: 2.0**-2,
}
"""Distance of two neighbours, relative: a result is rounded to half of it."""


def draw(rng: np.random.Generator, shape: Any, dtype: Any) -> np.ndarray:
    if dtype is np.int8:
        return rng.integers(-128, 128, shape, dtype=np.int8)
    return rng.standard_normal(shape).astype(dtype)


def wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64)


def check(found: np.ndarray, expected: np.ndarray, dtype: Any, extra: float = 0.0) -> None:
    """Every element within one rounding of `dtype` and `extra`, relative to the largest value."""
    assert found.dtype == np.dtype(dtype)
    assert found.shape == expected.shape
    if np.issubdtype(found.dtype, np.integer):
        limits = np.iinfo(found.dtype)
        expected = np.clip(np.rint(expected), limits.min, limits.max)
        assert np.max(np.abs(wide(found) - expected), initial=0) <= extra
        return
    scale = np.max(np.abs(expected), initial=0.0)
    bound = EPSILON[dtype] * np.maximum(np.abs(expected), 2.0**-6) / 2 + (1e-6 + extra) * scale
    assert (np.abs(wide(found) - expected) <= bound).all()
