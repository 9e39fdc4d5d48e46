"""Coordinates against bounds: what many elements of a thread ask is answered by their distances
(lower_to_nvvm/bounds.py)."""

from __future__ import annotations

import numpy as np
import pytest

import tilec
import tilec.language as tl

COMPARISONS = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal
}  # fmt: skip


@tilec.kernel(grid=lambda x, B: (tl.cdiv(x.shape[0], B), x.shape[1]))
def marked(x: tl.array, n: int, KIND: tl.const, TURNED: tl.const, B: tl.const = 512):
    """x[i, k]: whether i compares with n + k, or n + k with i."""
    first, k = tl.program_id(0) * B, tl.program_id(1)
    i, end = first + tl.arange(B), n + k
    if KIND == "<":
        is_so = end < i if TURNED else i < end
    elif KIND == "<=":
        is_so = end <= i if TURNED else i <= end
    elif KIND == ">":
        is_so = end > i if TURNED else i > end
    else:
        is_so = end >= i if TURNED else i >= end
    tl.store(x, (first, k), is_so.to(tl.i8), dims=(0,))


@pytest.mark.parametrize("kind", COMPARISONS)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("n", [0, 37, 512, 990, 2000])
def test_comparisons(kind: str, turned: bool, n: int) -> None:
    x = np.full((1024, 3), -1, np.int8)
    marked.demanding(num_warps=1).check(x, n, KIND=kind, TURNED=turned)
    sides = np.arange(1024)[:, None], n + np.arange(3)[None, :]
    np.testing.assert_array_equal(x, COMPARISONS[kind](*(sides[::-1] if turned else sides)))


@tilec.kernel(grid=lambda x, B: tl.cdiv(x.shape[0], B))
def in_between(x: tl.array, y: tl.array, B: tl.const = 1024):
    """y: 1 in the first half of x, but for its first third."""
    first = tl.program_id(0) * B
    i = first + tl.arange(B)
    is_so = (i < x.shape[0] // 2) & (x.shape[0] // 3 <= i)
    tl.store(y, first, is_so.to(tl.i8))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
@pytest.mark.parametrize("size", [1, 1023, 1024, 1030, 3000])
def test_parts_of_arrays(target: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    x, y = np.zeros(size, np.float32), np.full(size, -1, np.int8)
    kernel = in_between.demanding(num_warps=1)
    kernel.check(x, y)
    at = np.arange(size)
    np.testing.assert_array_equal(y, (at < size // 2) & (size // 3 <= at))
