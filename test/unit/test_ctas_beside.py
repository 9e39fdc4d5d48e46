"""CTAs that share a multiprocessor where threads compute operands for each other. Rings wrap."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.examples.running import poisoned

BF16 = ml_dtypes.bfloat16


@tilec.kernel(grid=lambda o: o.shape[0], num_warps=8)
def states(q: tl.array, b: tl.array, v: tl.array, o: tl.array):
    """h += q.T @ (v + b @ h), 16 rows at a time, all of which o has: a delta rule. Warps round h
    for each other."""
    i = tl.program_id(0)
    h = tl.zeros((128, 16), tl.f32)
    for t in tl.range(0, v.shape[1], 16):
        held = tl.dot(tl.load(b, (i, t, 0), (16, 128)), h.to(b.dtype))
        new = (tl.load(v, (i, t, 0), (16, 16)).to(tl.f32) + held).to(v.dtype)
        tl.store(o, (i, t, 0), new)
        h = tl.dot(tl.load(q, (i, t, 0), (16, 128)).T, new, h)


def drawn_states(rows: int) -> tuple[Any, ...]:
    """Arguments of `states`, and what comes of them."""
    rng = np.random.default_rng(rows)
    q, b = ((rng.standard_normal((2, rows, 128)) / 16).astype(BF16) for _ in range(2))
    v = rng.standard_normal((2, rows, 16)).astype(BF16)
    h, expected = np.zeros((2, 128, 16)), np.zeros((2, rows, 16))
    for t in range(0, rows, 16):
        part = slice(t, t + 16)
        held = b[:, part].astype(np.float64) @ h.astype(BF16).astype(np.float64)
        expected[:, part] = new = (v[:, part] + held).astype(BF16).astype(np.float64)
        h += q[:, part].astype(np.float64).swapaxes(1, 2) @ new
    return q, b, v, poisoned(v.shape, BF16), expected


def test_warpgroups_that_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """They share a multiprocessor with two CTAs like theirs."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    q, b, v, o, expected = drawn_states(200)
    there = states.on("emulator:check")
    there(q, b, v, o)
    np.testing.assert_allclose(o.astype(np.float64), expected, atol=4e-2)
    assert ".minnctapersm 3" in there.compiled(q, b, v, o).ptx
