"""Rings of a cluster in whose slots cp.async brings one tile, and a shared tensor copy another."""

from __future__ import annotations

import numpy as np
import pytest
from checked_calls import assert_right, empty, normal

import tilec
import tilec.language as tl
from tilec.examples.convolution import convolve, reference
from tilec.examples.running import poisoned


@tilec.kernel(
    cluster=(1, 2), grid=lambda c, BM, BN: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN))
)
def centered(
    a: tl.array, b: tl.array, at: tl.array, c: tl.array, BM: tl.const = 64, BN: tl.const = 64
):
    """c = a @ b[at]^T - sums of b's rows, as products of integers with a zero point have it."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc, rows = tl.zeros((BM, BN), tl.i32), tl.zeros((BN,), tl.i32)
    numbers = tl.load(at, n, BN)[:, None]
    for k in tl.range(0, a.shape[1], 64):
        right = tl.gather(b, (numbers, k + tl.arange(64)))
        acc = tl.dot(tl.load(a, (m, k), (BM, 64)), right.T, acc)
        rows += tl.sum(right.to(tl.i32), axis=1)
    tl.store(c, (m, n), acc - rows[None, :])


@pytest.mark.parametrize("mode", ["check", "late"])
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_a_copy_is_ordered_behind_the_one_that_it_overwrites(
    target: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of warpgroup products one relaxed arrival says that they have read; it orders no copies."""
    monkeypatch.setenv("TILEC_TARGET", target)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-99, 99, (rows, 1024)).astype(np.int8) for rows in (64, 128))
    at, c = rng.integers(0, 128, 128).astype(np.int32), poisoned((64, 128), np.int32)
    ptx = centered.compiled(a, b, at, c).ptx
    assert "cp.async.cg" in ptx
    assert "multicast::cluster" in ptx
    centered.on(f"emulator:{mode}")(a, b, at, c)
    left, right = a.astype(np.int64), b[at].astype(np.int64)
    np.testing.assert_array_equal(c, left @ right.T - right.sum(1))


@tilec.kernel(cluster=2, grid=lambda c, BM, BN: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)))
def picked(
    x: tl.array, rows: tl.array, w: tl.array, c: tl.array, BM: tl.const = 64, BN: tl.const = 64
):
    """c = x[rows] @ w."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    row = tl.load(rows, m, BM)[:, None]
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, x.shape[1], 32):
        left = tl.gather(x, (row, k + tl.arange(32)[None, :]))
        acc = tl.dot(left, tl.load(w, (k, n), (32, BN)), acc)
    tl.store(c, (m, n), acc.to(c.dtype))


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("sizes", [(130, 72, 648), (300, 104, 576)])
def test_gathers_beside_a_shared_tile(
    sizes: tuple[int, ...], target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows by cp.async, the other operand by copies that a cluster shares."""
    monkeypatch.setenv("TILEC_TARGET", target)
    m, n, k = sizes
    x, w, c = normal(50, k), normal(k, n, seed=1), empty(m, n, dtype=np.float16)
    rows = np.random.default_rng(2).integers(0, 50, m, dtype=np.int32)
    ptx = picked.compiled(x, rows, w, c).ptx
    assert "cp.async.cg" in ptx
    assert "multicast::cluster" in ptx
    expected = x[rows].astype(np.float64) @ w.astype(np.float64)
    assert_right(picked, [x, rows, w, c], {3: expected}, 1e-3)


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("sizes", [(2, 7, 9, 40), (3, 9, 10, 64)])
def test_counted_rows_beside_a_shared_tile(
    sizes: tuple[int, ...], target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pixels of a convolution by copies in im2col mode, its weights by copies that a cluster
    shares."""
    monkeypatch.setenv("TILEC_TARGET", target)
    x, w = normal(*sizes), normal(3, 3, sizes[3], 72, seed=1)
    expected = reference(x, w, 1, 1)
    kernel, tiles = convolve.demanding(cluster=2), {"PAD": 1, "BM": 64, "BN": 64, "BK": 32}
    y = empty(*expected.shape, dtype=np.float16)
    ptx = kernel.compiled(x, w, y, **tiles).ptx
    assert "im2col" in ptx
    assert "multicast::cluster" in ptx
    assert_right(kernel, [x, w, y], {2: expected}, 1e-3, **tiles)
