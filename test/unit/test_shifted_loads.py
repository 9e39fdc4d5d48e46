"""Tiles that begin beside an aligned place, made of the aligned vectors around it (align-loads)."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.examples.running import poisoned

TARGETS = ["sm_80", "sm_90a", "sm_100a"]


@tilec.kernel(grid=lambda y, BM, BN: (tl.cdiv(y.shape[0], BM), tl.cdiv(y.shape[1], BN)))
def crosses(x: tl.array, y: tl.array, RADIUS: tl.const, BM: tl.const = 8, BN: tl.const = 64):
    """y: the sum of the neighbours of x in four directions; 1 around x."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    around = tl.zeros((BM, BN), tl.f32)
    for d in tl.static_range(1, RADIUS + 1):
        for at in ((m - d, n), (m + d, n), (m, n - d), (m, n + d)):
            around += tl.load(x, at, (BM, BN), padding=1).to(tl.f32)
    centre = tl.load(x, (m, n), (BM, BN)).to(tl.f32)
    tl.store(y, (m, n), (around - centre).to(y.dtype))


@tilec.kernel(grid=lambda y, B: tl.cdiv(y.shape[0], B))
def moved(x: tl.array, y: tl.array, BY: tl.const, B: tl.const = 256):
    """y[i] = x[i + BY], 0 outside."""
    i = tl.program_id(0) * B
    tl.store(y, i, tl.load(x, i + BY, B))


@tilec.kernel(grid=lambda x, B: tl.cdiv(x.shape[0], B))
def halved_differences(x: tl.array, y: tl.array, STEPS: tl.const, B: tl.const = 512):
    """y: of every STEPS tiles the sum of what lies 5 behind less what lies 6 in front."""
    first = tl.program_id(0) * (STEPS * B)
    total = tl.zeros((B,), tl.f32)
    for k in tl.range(STEPS):
        at = first + k * B
        total += tl.load(x, at + 5, B) - tl.load(x, at - 6, B)
    tl.store(y, tl.program_id(0) * B, total)


@tilec.kernel(grid=lambda x: 1)
def shifted_in_place(x: tl.array, B: tl.const = 128):
    """x[i] += x[i + 1]: nobody may read more of x than it says."""
    i = tl.program_id(0) * B
    tl.store(x, i, tl.load(x, i, B) + tl.load(x, i + 1, B))


def expected_crosses(x: np.ndarray, radius: int) -> np.ndarray:
    rows, columns = x.shape
    wide = np.pad(x.astype(np.float64), radius, constant_values=1)
    total = -x.astype(np.float64)
    for d in range(1, radius + 1):
        for m, n in ((-d, 0), (d, 0), (0, -d), (0, d)):
            total += wide[radius + m :, radius + n :][:rows, :columns]
    return total


def widths(kernel: str) -> set[str]:
    """Bytes of the loads from global memory, as PTX says."""
    return set(re.findall(r"ld\.global[a-z0-9:_.]*?((?:\.v[24])?\.b\d+)", kernel))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("dtype", "shape", "radius", "width"),
    [
        (np.float16, (13, 72), 3, ".v2.b32"),
        (np.float32, (9, 68), 2, ".v4.b32"),
        (ml_dtypes.bfloat16, (17, 200), 1, ".v2.b32"),
        (np.int8, (11, 144), 2, ".b32"),
    ],
)
def test_neighbours_in_rows(
    target: str,
    dtype: type,
    shape: tuple[int, int],
    radius: int,
    width: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    rng = np.random.default_rng(shape)
    x = rng.integers(-4, 5, shape).astype(dtype)
    y = poisoned(shape, np.float32)
    assert widths(crosses.compiled(x, y, RADIUS=radius).ptx) == {width}
    crosses.check(x, y, RADIUS=radius)
    np.testing.assert_array_equal(y, expected_crosses(x, radius))


@pytest.mark.parametrize(
    ("by", "size"), [(-17, 1000), (-1, 1001), (2, 1001), (4, 1000), (7, 999), (303, 1000)]
)
def test_any_distance_and_size(by: int, size: int) -> None:
    x = np.random.default_rng(size + by).standard_normal(size).astype(np.float16)
    y = poisoned((size,), np.float16)
    moved.check(x, y, BY=by)
    outside = np.zeros(abs(by), np.float16)
    wide = np.concatenate([outside, x, outside])
    np.testing.assert_array_equal(y, wide[abs(by) + by :][:size])


def test_in_a_loop() -> None:
    size, steps = 512 * 7 + 36, 3
    x = np.random.default_rng(1).integers(-99, 99, size).astype(np.float32)
    y = poisoned((512 * -(-size // 512),), np.float32)
    kernel = halved_differences.compiled(x, y, STEPS=steps)
    assert widths(kernel.ptx) == {".v4.b32"}
    halved_differences.check(x, y, STEPS=steps)
    wide = np.concatenate([np.zeros(6), x, np.zeros(512 * steps)])
    ends = np.arange(0, -(-size // (512 * steps)) * 512 * steps, 512).reshape(-1, steps)
    for number, places in enumerate(ends):
        total = sum(wide[at + 11 : at + 523] - wide[at : at + 512] for at in places)
        np.testing.assert_array_equal(y[512 * number : 512 * (number + 1)], total)


def test_what_the_kernel_writes_is_read_as_written() -> None:
    x = np.arange(132, dtype=np.float32) ** 2
    assert widths(shifted_in_place.compiled(x).ptx) == {".b32", ".v4.b32"}
    before = x.copy()
    shifted_in_place.check(x)
    np.testing.assert_array_equal(x[:128], before[:128] + before[1:129])


@tilec.kernel(grid=lambda y, BM, BN: (tl.cdiv(y.shape[0], BM), tl.cdiv(y.shape[1], BN)))
def filtered(x: tl.array, w: tl.array, y: tl.array, TAPS: tl.const, BM: tl.const, BN: tl.const):
    """y[i]: the sum of w[k] x[i - k], for each column."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), tl.f32)
    for k in tl.static_range(TAPS):
        total += tl.load(w, k, ()).to(tl.f32) * tl.load(x, (m - k, n), (BM, BN)).to(tl.f32)
    tl.store(y, (m, n), total.to(y.dtype))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_rows_that_taps_share_are_loaded_once(
    dtype: type, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread has four rows one behind the other: of four taps it loads seven."""
    monkeypatch.setenv("TILEC_TARGET", target)
    rng = np.random.default_rng(4)
    x, w = (rng.standard_normal(s).astype(dtype) for s in ((70, 136), (4,)))
    y, vector = poisoned(x.shape, dtype), 16 // np.dtype(dtype).itemsize
    kernel = filtered.demanding(num_warps=1).on("emulator:check")
    sizes = {"TAPS": 4, "BM": 16, "BN": 8 * vector}
    kernel(x, w, y, **sizes)
    wide = np.pad(x.astype(float), ((3, 0), (0, 0)))
    expected = sum(w.astype(float)[k] * wide[3 - k : 73 - k] for k in range(4))
    np.testing.assert_allclose(y.astype(float), expected, atol=4e-2 if vector == 8 else 1e-5)
    ptx = kernel.compiled(x, w, y, **sizes).ptx
    assert len(re.findall(r"ld\.global[a-z_.:0-9]*\.v4", ptx)) == 4 + 3


@tilec.kernel(grid=1, device="emulator:check")
def passed_down(x: tl.array, y: tl.array):
    """x[2 : 18] = x[: 16] + 1, then y = x[1 : 17]: a row that was loaded is another by then."""
    first = tl.load(x, (0, 0), (16, 32))
    tl.store(x, (2, 0), first + 1)
    tl.store(y, (0, 0), tl.load(x, (1, 0), (16, 32)))


def test_rows_that_were_written_are_loaded_again() -> None:
    x = np.random.default_rng(5).standard_normal((18, 32)).astype(np.float32)
    y, expected = poisoned((16, 32), np.float32), x.copy()
    expected[2:18] = x[:16] + 1
    passed_down.demanding(num_warps=1)(x, y)
    np.testing.assert_array_equal(x, expected)
    np.testing.assert_array_equal(y, expected[1:17])
