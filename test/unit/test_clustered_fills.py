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
def centered(a: tl.array, b: tl.array, c: tl.array, BM: tl.const = 64, BN: tl.const = 64):
    """c = a @ b^T - sums of b's rows, as products of integers with a zero point have it."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc, rows = tl.zeros((BM, BN), tl.i32), tl.zeros((BN,), tl.i32)
    for k in tl.range(0, a.shape[1], 64):
        right = tl.load(b, (n, k), (BN, 64))
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
    c = poisoned((64, 128), np.int32)
    ptx = centered.compiled(a, b, c).ptx
    assert "cp.async.cg" in ptx
    assert "multicast::cluster" in ptx
    centered.on(f"emulator:{mode}")(a, b, c)
    left, right = a.astype(np.int64), b.astype(np.int64)
    np.testing.assert_array_equal(c, left @ right.T - right.sum(1))


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("sizes", [(2, 7, 9, 40), (3, 9, 10, 64)])
def test_gathers_beside_a_shared_tile(
    sizes: tuple[int, ...], target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pixels of a convolution by cp.async, its weights by copies that a cluster shares."""
    monkeypatch.setenv("TILEC_TARGET", target)
    x, w = normal(*sizes), normal(3, 3, sizes[3], 72, seed=1)
    expected = reference(x, w, 1, 1)
    kernel, tiles = convolve.demanding(cluster=2), {"PAD": 1, "BM": 64, "BN": 64, "BK": 32}
    y = empty(*expected.shape, dtype=np.float16)
    ptx = kernel.compiled(x, w, y, **tiles).ptx
    assert "cp.async.cg" in ptx
    assert "multicast::cluster" in ptx
    assert_right(kernel, [x, w, y], {2: expected}, 1e-3, **tiles)
