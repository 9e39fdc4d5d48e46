"""Sums over pairs that come back to both places take one exchange of each element."""

from __future__ import annotations

import re

import numpy as np
import pytest
from shares import modes

import tilec
import tilec.language as tl


@tilec.kernel(grid=lambda x, o: x.shape[0])
def sorted_pairs(x: tl.array, o: tl.array):
    """Sorts neighbours 8 apart, and their places with them, as sorts in Triton's language do."""
    row = tl.program_id(0)
    y = tl.reshape(tl.load(x, (row, 0), (1, 256)), (16, 2, 8))
    ids = tl.reshape(tl.arange(256), (16, 2, 8))
    bit = tl.reshape(tl.arange(2), (1, 2, 1))
    left = tl.broadcast_to(tl.sum(y * (1 - bit), axis=1, keepdims=True), (16, 2, 8))
    right = tl.broadcast_to(tl.sum(y * bit, axis=1, keepdims=True), (16, 2, 8))
    first = tl.broadcast_to(tl.sum(ids * (1 - bit), axis=1, keepdims=True), (16, 2, 8))
    second = tl.broadcast_to(tl.sum(ids * bit, axis=1, keepdims=True), (16, 2, 8))
    swap = left > right
    taken = tl.where((bit == 0) ^ swap, first, second)
    tl.store(o, (row, 0), tl.reshape(taken, (1, 256)))


@tilec.kernel(grid=1)
def weighed(x: tl.array, w: tl.array, o: tl.array, N: tl.const):
    """What `N` elements that are 16 apart come to with weights, in all of their places."""
    product = tl.load(x, (0,), (64,)) * tl.load(w, (0,), (64,))
    total = tl.sum(tl.reshape(product, (4 // N, N, 16)), axis=1, keepdims=True)
    tl.store(o, (0,), tl.reshape(tl.broadcast_to(total, (4 // N, N, 16)), (64,)))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
def test_pairs_are_sorted(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", target)
    x = np.random.default_rng(2).standard_normal((5, 256)).astype(np.float32)
    pairs = x.reshape(5, 16, 2, 8)
    order = pairs.argsort(axis=2, kind="stable")
    expected = np.arange(256).reshape(1, 16, 2, 8).repeat(5, axis=0)
    expected = np.take_along_axis(expected, order, axis=2).reshape(5, 256)
    for mode in modes():
        o = np.zeros((5, 256), np.int32)
        run = sorted_pairs.on(f"emulator:{mode}")
        run(x, o)
        assert (o == expected).all()
    ptx = run.compiled(x, o).ptx
    once = 2 * (256 // 32)  # each element, and its place
    assert once <= len(re.findall(r"shfl\.sync", ptx)) < 2 * once


@pytest.mark.parametrize("n", [2, 4])
def test_all_places_hold_the_same_sum(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """None contracts its own product to an fma: not of a pair, nor in a butterfly's first step."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    rng = np.random.default_rng(3)
    x, w = (rng.standard_normal(64).astype(np.float32) for _ in range(2))
    o = np.zeros(64, np.float32)
    run = weighed.on("emulator")
    run(x, w, o, N=n)
    places = o.reshape(4 // n, n, 16)
    assert (places == places[:, :1]).all()
    assert np.abs(places[:, 0] - (x * w).reshape(4 // n, n, 16).sum(axis=1)).max() < 1e-6
    assert "shfl.sync" in run.compiled(x, w, o, N=n).ptx
