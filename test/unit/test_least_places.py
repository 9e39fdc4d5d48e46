"""Places of extremes (argmax, argmin): a thread counts from its first, by constants."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.examples.running import poisoned

TARGETS = ["sm_80", "sm_90a", "sm_100a"]


@tilec.kernel(grid=lambda x, BM: tl.cdiv(x.shape[0], BM))
def extremes(
    x: tl.array, least: tl.array, first: tl.array, last: tl.array, N: tl.const, BM: tl.const = 4
):
    """The least of each row of at most N elements, where it is first, and where the greatest is."""
    row = tl.program_id(0) * BM
    v = tl.load(x, (row, 0), (BM, N), padding=0)
    found, at = tl.min(v, 1, return_indices=True)
    tl.store(least, row, found.to(tl.f32))
    tl.store(first, row, at)
    tl.store(last, row, tl.argmax(v, 1))


@tilec.kernel(grid=1)
def along_columns(x: tl.array, places: tl.array, M: tl.const, N: tl.const):
    """Where the least of each column is."""
    tl.store(places, 0, tl.argmin(tl.load(x, (0, 0), (M, N)), 0))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize(
    ("dtype", "columns"),
    [
        (np.float32, 2048),
        (np.float32, 256),
        (np.float32, 300),
        (np.float16, 96),
        (ml_dtypes.bfloat16, 72),
        (np.int32, 40),
    ],
)
def test_first_of_equal_ones(
    target: str, warps: int, dtype: type, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    rng = np.random.default_rng(columns)
    x = rng.integers(-3, 4, (11, columns)).astype(dtype)  # each many times
    x[3], x[4, 5:] = 2, x[4, 5]
    least = poisoned((11,), np.float32)
    first, last = np.full((2, 11), -1, np.int32)
    extremes.demanding(num_warps=warps).check(x, least, first, last, N=columns)
    wide = x.astype(np.float64)
    np.testing.assert_array_equal(least, wide.min(1))
    np.testing.assert_array_equal(first, wide.argmin(1))
    np.testing.assert_array_equal(last, wide.argmax(1))


@pytest.mark.parametrize("columns", [256, 2048])
@pytest.mark.parametrize("where", [(0,), (255,), (17, 3, 200), tuple(range(256))])
def test_first_nan(where: tuple[int, ...], columns: int) -> None:
    x = np.random.default_rng(1).standard_normal((4, columns)).astype(np.float32)
    x[1, list(where)] = np.nan
    x[2, :9], x[2, 9:] = np.inf, -np.inf
    least = poisoned((4,), np.float32)
    first, last = np.full((2, 4), -1, np.int32)
    extremes.demanding(num_warps=1).check(x, least, first, last, N=columns)
    np.testing.assert_array_equal(first, x.argmin(1))
    np.testing.assert_array_equal(last, x.argmax(1))


@pytest.mark.parametrize(("rows", "columns", "warps"), [(64, 32, 1), (48, 64, 4), (128, 8, 2)])
def test_columns(rows: int, columns: int, warps: int) -> None:
    x = np.random.default_rng(rows).integers(-9, 9, (rows, columns)).astype(np.float32)
    places = np.full(columns, -1, np.int32)
    along_columns.demanding(num_warps=warps).check(x, places, M=rows, N=columns)
    np.testing.assert_array_equal(places, x.argmin(0))


@pytest.mark.parametrize(("columns", "places"), [(2048, 64), (1024, 0)])
def test_many_places_are_constants(columns: int, places: int) -> None:
    """Of 32 lanes with 64 elements of a row each; 32 stay in registers."""
    x = np.zeros((4, columns), np.float32)
    least, found = np.zeros(4, np.float32), np.zeros((2, 4), np.int32)
    kernel = extremes.demanding(num_warps=1)
    ptx = kernel.compiled(x, least, *found, N=columns, BM=1).ptx
    chosen = re.findall(r"selp\.b32 \s*%r\d+, (\d+), %r\d+, %p\d+", ptx)
    assert len(set(chosen)) == places
