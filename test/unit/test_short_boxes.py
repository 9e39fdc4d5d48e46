"""Rows of numbers beside products, whose panels of 64 bytes no box of the copy engine fills."""

from __future__ import annotations

import numpy as np
import pytest
from shares import modes

import tilec
import tilec.language as tl


@tilec.kernel(grid=lambda x, BM: (tl.cdiv(x.shape[1], BM), x.shape[0]))
def decayed(
    q: tl.array, k: tl.array, x: tl.array, g: tl.array, y: tl.array,
    D: tl.const, BM: tl.const, BN: tl.const,
):  # fmt: skip
    """y = (q k^T exp(g_i - g_j)) x, of keys that are not later."""
    m, h = tl.program_id(0) * BM, tl.program_id(1)
    query = tl.load(q, (h, m, 0), (1, BM, D)).reshape((BM, D))
    mine = tl.load(g, (h, m), (1, BM)).reshape((BM, 1))
    acc = tl.zeros((BM, D), tl.f32)
    for n in tl.range(0, tl.minimum(m + BM, x.shape[1]), BN):
        key = tl.load(k, (h, n, 0), (1, BN, D)).reshape((BN, D))
        theirs = tl.load(g, (h, n), (1, BN)).reshape((1, BN))
        s = tl.dot(query, key.T) * tl.exp(tl.minimum(mine - theirs, 0.0))
        s = tl.where(m + tl.arange(BM)[:, None] >= n + tl.arange(BN)[None, :], s, 0.0)
        acc = tl.dot(s.to(x.dtype), tl.load(x, (h, n, 0), (1, BN, D)).reshape((BN, D)), acc)
    tl.store(y, (h, m, 0), acc[None].to(y.dtype))


@pytest.mark.parametrize("columns", [112, 96, 80])
def test_a_row_of_seven_panels(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first is the row that `tl.auto` chose, which was an error at the user's line."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    rng = np.random.default_rng(columns)
    q, k, x = ((rng.standard_normal((2, 200, 128)) * 0.3).astype(np.float16) for _ in range(3))
    g = -np.cumsum(rng.random((2, 200)), 1).astype(np.float32) * np.float32(0.02)
    wide = [a.astype(np.float64) for a in (q, k, x)]
    scores = wide[0] @ wide[1].transpose(0, 2, 1)
    right = np.tril(scores * np.exp(np.minimum(g[:, :, None] - g[:, None], 0))) @ wide[2]
    for mode in modes():
        y = np.full(right.shape, np.nan, np.float16)
        decayed.on(f"emulator:{mode}")(q, k, x, g, y, D=128, BM=64, BN=columns)
        np.testing.assert_allclose(y, right, rtol=4e-3, atol=4e-3)
