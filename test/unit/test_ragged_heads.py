"""Attention whose heads are no whole steps of an instruction of warpgroups, in 192 rows."""

from __future__ import annotations

import numpy as np
import pytest
from checked_calls import assert_right, empty, normal

import tilec
import tilec.language as tl


@tilec.kernel(grid=lambda q, BM: tl.cdiv(q.shape[0], BM))
def attend(q: tl.array, k: tl.array, v: tl.array, o: tl.array, D: tl.const, BM: tl.const = 192):
    """o = softmax(q k^T / 8) v of 32 keys."""
    m = tl.program_id(0) * BM
    s = tl.dot(tl.load(q, (m, 0), (BM, D)), tl.load(k, (0, 0), (32, D)).T) * 0.125
    p = tl.exp(s - tl.max(s, 1)[:, None])
    p = (p / tl.sum(p, 1)[:, None]).to(v.dtype)
    tl.store(o, (m, 0), tl.dot(p, tl.load(v, (0, 0), (32, D))).to(o.dtype))


def test_they_are_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three warpgroups were taken for the rows, and refused for the 40 elements."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    q, k, v = normal(300, 40), normal(32, 40), normal(32, 40)
    scores = q.astype(float) @ k.T.astype(float) / 8
    weights = np.exp(scores - scores.max(1, keepdims=True))
    right = weights / weights.sum(1, keepdims=True) @ v.astype(float)
    assert_right(attend, [q, k, v, empty(300, 40), 40], {3: right})
