"""Scans of rows that are spread over clusters (`rows/scanned_stripes.py`), on the emulator."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from shares import modes

import tilec
import tilec.language as tl
from tilec.examples.running import poisoned

BF16 = ml_dtypes.bfloat16
LONG = 65536
"""Elements of a row that four CTAs share."""


@pytest.fixture(autouse=True)
def on_hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    """A target with clusters."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")


@tilec.kernel(grid=lambda x: x.shape[0])
def run_on(x: tl.array, y: tl.array, totals: tl.array, N: tl.const, REVERSE: tl.const):
    """Running sums of each row, and its sum."""
    row = tl.program_id(0)
    v = tl.load(x, (row, 0), N).to(tl.f32)
    tl.store(y, (row, 0), tl.cumsum(v, 0, reverse=REVERSE).to(y.dtype))
    tl.store(totals, row, tl.sum(v))


@tilec.function
def later(number, start, other_number, other_start):
    """Sums that begin anew where there is a start: the order matters."""
    kept = tl.where(other_start != 0, 0.0, number)
    return kept + other_number, start | other_start


@tilec.kernel(grid=lambda x: x.shape[0])
def run_on_in_parts(x: tl.array, starts: tl.array, y: tl.array, N: tl.const):
    """Running sums that begin anew at starts."""
    row = tl.program_id(0)
    v, flags = tl.load(x, (row, 0), N), tl.load(starts, (row, 0), N)
    found, _ = tl.associative_scan((v, flags), 0, later)
    tl.store(y, (row, 0), found)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("columns", "dtype", "error"), [(LONG, np.float32, 1e-5), (40961, BF16, 1e-2), (9, BF16, 1e-2)]
)
def test_running_sums(columns: int, dtype: Any, error: float, reverse: bool) -> None:
    """Whole stripes, a row that ends in the middle of one, and one that leaves all but the first
    empty."""
    x = np.random.default_rng([columns, reverse]).standard_normal((2, columns)).astype(dtype)
    order = slice(None, None, -1 if reverse else 1)
    wide = x.astype(np.float64)
    expected = np.cumsum(wide[:, order], 1)[:, order]
    for mode in modes():
        y, totals = poisoned(x.shape, dtype), poisoned((2,), np.float32)
        run_on.on(f"emulator:{mode}")(x, y, totals, N=LONG, REVERSE=reverse)
        bound = error * max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(y.astype(np.float64), expected, rtol=error, atol=bound)
        np.testing.assert_allclose(totals, wide.sum(1), rtol=1e-5, atol=1e-3)
    assert run_on.compiled(x, y, totals, N=LONG, REVERSE=reverse).stripes == 4


def test_a_scan_whose_order_matters() -> None:
    """A start in the middle of a stripe, none in the next, one at the first element of the last."""
    rng = np.random.default_rng(7)
    x = rng.integers(-9, 9, (2, LONG)).astype(np.float32)
    starts = np.zeros((2, LONG), np.int32)
    starts[0, [5, 20000, 49152]] = 1
    starts[1, rng.integers(0, LONG, 40)] = 1
    y = poisoned(x.shape, np.float32)
    run_on_in_parts.on("emulator:check")(x, starts, y, N=LONG)
    for row in range(2):
        edges = [0, *np.flatnonzero(starts[row]), LONG]
        parts = [np.cumsum(x[row, a:b]) for a, b in pairwise(edges)]
        np.testing.assert_array_equal(y[row], np.concatenate(parts))
    assert run_on_in_parts.compiled(x, starts, y, N=LONG).stripes == 4
