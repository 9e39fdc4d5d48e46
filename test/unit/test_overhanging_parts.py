"""Tiles whose rows and columns are no powers of two, taken apart and put together in registers."""

from __future__ import annotations

import numpy as np
import pytest

import tilec
import tilec.language as tl


@tilec.kernel(grid=lambda x: x.shape[0])
def turn_pairs(x: tl.array, y: tl.array, H: tl.const, HALF: tl.const):
    """y: (-b, a) of each pair (a, b) of neighbours in the rows of x (programs, H, 2 HALF)."""
    n = tl.program_id(0)
    pairs = tl.reshape(tl.load(x, (n, 0, 0), (H, 2 * HALF)), (H, HALF, 2))
    first, second = tl.split(pairs, 2, 2)
    tl.store(y, (n, 0, 0), tl.reshape(tl.cat((-second, first), 2), (H, 2 * HALF)))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("sizes", [(19, 48), (34, 128), (33, 64), (3, 7), (2, 48), (1, 12), (7, 1)])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_pairs_of_overhanging_tiles(
    sizes: tuple[int, int], dtype: type, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    heads, half = sizes
    x = np.random.default_rng(heads).standard_normal((2, heads, 2 * half)).astype(dtype)
    y = np.full_like(x, np.nan)
    kernel = turn_pairs.on("emulator")
    kernel.check(x, y, heads, half)
    assert (y[..., 0::2] == -x[..., 1::2]).all()
    assert (y[..., 1::2] == x[..., 0::2]).all()
    ptx = kernel.compiled(x, y, heads, half).ptx
    assert "ld.shared" not in ptx
    assert "bar.sync" not in ptx


@tilec.kernel(grid=lambda x: x.shape[0])
def sum_groups(x: tl.array, y: tl.array, R: tl.const, N: tl.const, G: tl.const):
    """y: the sums of G neighbours in the rows of x (programs, R, N G)."""
    n = tl.program_id(0)
    groups = tl.reshape(tl.load(x, (n, 0, 0), (R, N * G)), (R, N, G))
    tl.store(y, (n, 0, 0), tl.sum(groups, 2))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("sizes", [(5, 3, 16), (3, 12, 8), (1, 5, 4), (9, 2, 6), (17, 1, 32)])
def test_groups_of_overhanging_rows(
    sizes: tuple[int, int, int], target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lies past the edge is summed nowhere."""
    monkeypatch.setenv("TILEC_TARGET", target)
    rows, count, each = sizes
    x = np.random.default_rng(rows).standard_normal((2, rows, count * each)).astype(np.float32)
    y = np.full((2, rows, count), np.nan, np.float32)
    sum_groups.on("emulator").check(x, y, rows, count, each)
    wanted = x.reshape(2, rows, count, each).sum(3)
    np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-5)
