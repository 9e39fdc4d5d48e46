"""Loops behind each other whose tiles different roles read (Blackwell): rings are not shared."""

from __future__ import annotations

import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.examples.running import poisoned


@tilec.kernel(grid=lambda c: (tl.cdiv(c.shape[0], 64),))
def in_two_loops(a: tl.array, b: tl.array, c: tl.array):
    """c = a @ b; the first loop's sum begins at zero, the second's goes on with it."""
    m, half = tl.program_id(0) * 64, a.shape[1] // 64 * 32
    acc = tl.zeros((64, 64), tl.f32)
    for k in tl.range(0, half, 32):
        acc = tl.dot(tl.load(a, (m, k), (64, 32)), tl.load(b, (k, 0), (32, 64)), acc)
    for k in tl.range(half, a.shape[1], 32):
        acc = tl.dot(tl.load(a, (m, k), (64, 32)), tl.load(b, (k, 0), (32, 64)), acc)
    tl.store(c, (m, 0), acc)


@pytest.mark.parametrize("mode", ["check", "late"])
@pytest.mark.parametrize("depth", [400, 560])
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_a_sum_in_two_loops(
    target: str, depth: int, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A multiply role runs the first loop alone. With one ring for both it did not see the turns
    of the second, took an old phase for the one it waits for, and the CTA hung."""
    monkeypatch.setenv("TILEC_TARGET", target)
    rng = np.random.default_rng(depth)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((640, depth), (depth, 64)))
    c = poisoned((640, 64), np.float32)
    in_two_loops.on(f"emulator:{mode}")(a, b, c)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), atol=1e-2)
