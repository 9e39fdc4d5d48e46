"""Stages of a loop whose tiles threads read, too, beside products that run by themselves."""

from __future__ import annotations

import numpy as np
import pytest
from shares import modes

import tilec
import tilec.language as tl
from tilec.examples.running import poisoned

D = 64


@tilec.kernel(grid=lambda c: (c.shape[0],))
def moments(x: tl.array, c: tl.array, sums: tl.array, STAGES: tl.const):
    """Of each batch of rows the products of its columns, and their sums."""
    batch = tl.program_id(0)
    products, columns = tl.zeros((D, D), tl.f32), tl.zeros((D,), tl.f32)
    for row in tl.range(0, x.shape[1], 64, stages=STAGES):
        tile = tl.load(x, (batch, row, 0), (64, D))
        products = tl.dot(tile.T, tile, products)
        columns += tl.sum(tile.to(tl.f32), axis=0)
    tl.store(c, (batch, 0, 0), products)
    tl.store(sums, (batch, 0), columns)


@pytest.mark.parametrize("stages", [2, 5])
@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a", "sm_120a"])
def test_they_happen(target: str, stages: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Blackwell the loop waits for its products at a ring of their own, which is no reason to
    leave the copies where they are."""
    monkeypatch.setenv("TILEC_TARGET", target)
    x = np.random.default_rng(0).standard_normal((7, 64 * (3 * stages - 1) + 16, D))
    x = x.astype(np.float16)
    c, sums = poisoned((7, D, D), np.float32), poisoned((7, D), np.float32)
    decisions = moments.compiled(x, c, sums, STAGES=stages).report["decisions"]
    assert [entry["stages"] for entry in decisions if "stages" in entry] == [stages]
    for mode in modes():
        moments.on(f"emulator:{mode}")(x, c, sums, STAGES=stages)
        wide = x.astype(np.float64)
        np.testing.assert_allclose(c, wide.transpose(0, 2, 1) @ wide, atol=1e-2)
        np.testing.assert_allclose(sums, wide.sum(1), atol=1e-3)
