"""Stages of loops in which threads read more than the products do: tiles, too, and guards."""

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


@tilec.kernel(grid=lambda c: (tl.cdiv(c.shape[0], 64),))
def kept(a: tl.array, b: tl.array, keep: tl.array, c: tl.array, STAGES: tl.const):
    """a @ b of the blocks of k that an array keeps."""
    m = tl.program_id(0) * 64
    acc = tl.zeros((64, 64), tl.f32)
    for k in tl.range(0, a.shape[1], 32, stages=STAGES):
        if tl.load(keep, (k // 32,), ()) != 0:
            acc = tl.dot(tl.load(a, (m, k), (64, 32)), tl.load(b, (k, 0), (32, 64)), acc)
    tl.store(c, (m, 0), acc)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a", "sm_120a"])
def test_what_an_array_guards_has_stages(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number that decides is wanted where copies are issued, so it is not copied itself."""
    monkeypatch.setenv("TILEC_TARGET", target)
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((400, 720), (720, 64)))
    keep = rng.integers(0, 2, 23).astype(np.int32)
    c = poisoned((400, 64), np.float32)
    decisions = kept.compiled(a, b, keep, c, STAGES=3).report["decisions"]
    assert [entry["stages"] for entry in decisions if "stages" in entry] == [3]
    for mode in modes():
        kept.on(f"emulator:{mode}")(a, b, keep, c, STAGES=3)
        chosen = a.astype(np.float64) * np.repeat(keep, 32)[:720]
        np.testing.assert_allclose(c, chosen @ b.astype(np.float64), atol=1e-2)


@tilec.kernel(grid=(1,))
def attended(q: tl.array, x: tl.array, c: tl.array, STAGES: tl.const):
    """(q @ x^T) @ x, and the sums of x's columns, which threads read."""
    left, columns = tl.load(q, (0, 0), (64, D)), tl.zeros((D,), tl.f32)
    acc = tl.zeros((64, D), tl.f32)
    for row in tl.range(0, x.shape[0], 64, stages=STAGES):
        tile = tl.load(x, (row, 0), (64, D))
        acc = tl.dot(tl.dot(left, tile.T).to(x.dtype), tile, acc)
        columns += tl.sum(tile.to(tl.f32), axis=0)
    tl.store(c, (0, 0), acc + columns[None, :])


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_products_that_would_rotate(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A product that is awaited in the next iteration would still read the slot that is filled."""
    monkeypatch.setenv("TILEC_TARGET", target)
    rng = np.random.default_rng(2)
    q, x = (0.3 * rng.standard_normal((rows, D)) for rows in (64, 600))
    q, x, c = q.astype(np.float16), x.astype(np.float16), poisoned((64, D), np.float32)
    for stages in (2, 3):
        attended.on("emulator:check")(q, x, c, STAGES=stages)
        scores = (q.astype(np.float64) @ x.T).astype(np.float16).astype(np.float64)
        np.testing.assert_allclose(c, scores @ x + x.astype(np.float64).sum(0), atol=2e-2)
