"""Operands that registers read where products do: rings wrap, ends are ragged."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hopper_kernels import decisions

import tilec
import tilec.language as tl
from tilec.examples.running import poisoned

BF16 = ml_dtypes.bfloat16


@tilec.kernel(grid=lambda o: o.shape[0])
def reflections(k: tl.array, w: tl.array, o: tl.array):
    """o = k - k @ h, 64 rows at a time, and h += o.T @ w: registers want of k what a product takes
    as it is."""
    i = tl.program_id(0)
    h = tl.zeros((128, 128), tl.f32)
    for t in tl.range(0, k.shape[1], 64):
        rows = tl.load(k, (i, t, 0), (64, 128))
        new = (rows.to(tl.f32) - tl.dot(rows, h.to(k.dtype))).to(k.dtype)
        tl.store(o, (i, t, 0), new)
        h = tl.dot(new.T, tl.load(w, (i, t, 0), (64, 128)), h)


@pytest.mark.parametrize("rows", [40, 64 * 7 + 24])
def test_registers_read_what_products_do(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tensor copy brings both, in a ring."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    rng = np.random.default_rng(rows)
    k, w = ((rng.standard_normal((3, rows, 128)) / 16).astype(BF16) for _ in range(2))
    o, expected, h = poisoned(k.shape, BF16), np.zeros(k.shape), np.zeros((3, 128, 128))
    for t in range(0, rows, 64):
        part = slice(t, t + 64)
        one = k[:, part].astype(np.float64)
        new = (one - one @ h.astype(BF16).astype(np.float64)).astype(BF16).astype(np.float64)
        expected[:, part] = new
        h += new.swapaxes(1, 2) @ w[:, part].astype(np.float64)
    there = reflections.on("emulator:check")
    there(k, w, o)
    np.testing.assert_allclose(o.astype(np.float64), expected, atol=4e-3)
    compiled = there.compiled(k, w, o)
    assert decisions(compiled, "warp specialisation")[0].startswith("1 loading warp")
    assert decisions(compiled, "asynchronous copy")[0].startswith("by its product's buffer")
