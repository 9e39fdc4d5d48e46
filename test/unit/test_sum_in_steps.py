"""Sums of tiles that registers do not hold, on the emulator against NumPy, and what stays whole."""

from __future__ import annotations

import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.call.jit import Kernel

RNG = np.random.default_rng(29)


@tilec.kernel(grid=lambda x: x.shape[0])
def gradients_of_scale(
    x: tl.array, dy: tl.array, means: tl.array, dw: tl.array, db: tl.array, R: tl.const, C: tl.const
):
    """Of each channel: sums of dy (x - mean), of dy, and of its rows that count."""
    p = tl.program_id(0)
    a, d = tl.load(x, (p, 0, 0), (R, C)).to(tl.f32), tl.load(dy, (p, 0, 0), (R, C)).to(tl.f32)
    scaled = (a - tl.load(means, 0, R)[:, None]) * d
    tl.store(dw, p, tl.sum(tl.sum(scaled, 1), 0))
    tl.store(db, (p, 0), tl.sum(tl.where(tl.arange(R)[:, None] < 37, d, 0.0), 0))


@tilec.kernel(grid=lambda x: x.shape[0])
def columns_of_integers(x: tl.array, y: tl.array, R: tl.const, C: tl.const):
    """Sums of columns, of which every third row counts for its number."""
    p = tl.program_id(0)
    row = tl.arange(R)[:, None]
    v = tl.load(x, (p, 0, 0), (R, C))
    tl.store(y, (p, 0), tl.sum(tl.where(row % 3 == 1, v * row, v), 0))


@tilec.kernel(grid=lambda x: x.shape[0])
def centred(x: tl.array, y: tl.array, R: tl.const, C: tl.const):
    """Reads again what it has added up."""
    p = tl.program_id(0)
    v = tl.load(x, (p, 0, 0), (R, C))
    tl.store(y, (p, 0, 0), v - tl.sum(v, 0)[None, :])


@tilec.kernel(grid=lambda x: x.shape[0])
def sums_about_sums(x: tl.array, y: tl.array, R: tl.const, C: tl.const):
    """The second sum needs the first."""
    p = tl.program_id(0)
    v = tl.load(x, (p, 0, 0), (R, C))
    apart = v - tl.sum(v, 0)[None, :]
    tl.store(y, (p, 0), tl.sum(apart * apart, 0))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
def test_two_sums_in_one_loop(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows and columns end inside of a stripe, and of the tile."""
    monkeypatch.setenv("TILEC_TARGET", target)
    x, dy = (RNG.integers(-3, 4, (2, 45, 3001)).astype(np.float16) for _ in range(2))
    means = RNG.integers(-3, 4, 45).astype(np.float32)
    dw, db = np.full(2, np.nan, np.float32), np.full((2, 4096), np.nan, np.float32)
    kernel = gradients_of_scale.on("emulator:check")
    kernel(x, dy, means, dw, db, R=64, C=4096)
    scaled = (x.astype(np.float64) - means[:, None]) * dy
    np.testing.assert_array_equal(dw, scaled.sum((1, 2)))
    np.testing.assert_array_equal(db[:, :3001], dy[:, :37].astype(np.float64).sum(1))
    np.testing.assert_array_equal(db[:, 3001:], 0)
    assert "sums: in 16 steps" in str(kernel.report(x, dy, means, dw, db, R=64, C=4096))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_columns(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    x, y = RNG.integers(-99, 99, (2, 117, 1000)).astype(np.int32), np.full((2, 1000), -7, np.int32)
    kernel = columns_of_integers.on("emulator:check")
    kernel(x, y, R=128, C=1024)
    row = np.arange(117, dtype=np.int32)[:, None]
    np.testing.assert_array_equal(y, np.where(row % 3 == 1, x * row, x).sum(1, dtype=np.int32))
    assert "sums: in 16 steps" in str(kernel.report(x, y, R=128, C=1024))


@pytest.mark.parametrize(
    ("kernel", "rows", "steps"),
    [
        (columns_of_integers, 128, 1),
        (columns_of_integers, 32, 0),
        (centred, 128, 0),
        (sums_about_sums, 128, 0),
    ],
)
def test_what_fits_or_is_read_again_stays_whole(kernel: Kernel, rows: int, steps: int) -> None:
    y = "i32[?,?,?:4;?:4,?:4,1]" if kernel is centred else "i32[?,?:4;?:4,1]"
    specs = ["x:i32[?,?,?:4;?:4,?:4,1]", f"y:{y}"]
    compiled = kernel.compile(specs, {"R": rows, "C": 1024}, target="sm_90a")
    decisions = compiled.report["decisions"]
    assert sum(decision["about"] == "sums" for decision in decisions) == steps
