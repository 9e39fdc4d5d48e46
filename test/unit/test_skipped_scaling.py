"""Attention where queries' highest scores stay, creep up and leap, each in other warps and other
blocks: sums that a warp leaves as they are, and highest scores that are behind."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilec.ops

QUERIES, KEYS, WIDTH = 200, 700, 64
BLOCK = 64
"""Of keys, at most: scores differ from block to block of so many."""


def growing(kind: str) -> np.ndarray:
    """What is added to the scores of each query, in base 2, by blocks of keys."""
    blocks = np.arange(-(-KEYS // BLOCK))
    rows = np.arange(QUERIES)[:, None]
    return {
        "stays": -1.0 * blocks + 0 * rows,
        "creeps": 3.0 * blocks + 0 * rows,  # behind by 3, 6, then caught up with
        "leaps": 20.0 * (blocks >= rows % 11),  # once, each query elsewhere
        "some": np.where(rows % 16 == 5, 5.0 * blocks, 0.0),  # one row of a warp's sixteen
    }[kind]


@pytest.mark.parametrize("kind", ["stays", "creeps", "leaps", "some"])
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_maxima(kind: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    monkeypatch.setenv("TILEC_DEVICE", "emulator:check")
    rng, to = np.random.default_rng(7), {"bf16": ml_dtypes.bfloat16, "f16": np.float16}[dtype]
    added = growing(kind)
    count = added.shape[1]
    q, k, v = (rng.standard_normal((n, WIDTH)) / 2 for n in (QUERIES, KEYS, KEYS))
    # A dimension a block carries what is added, one of its own for each.
    q[:, :count], k[:, :count] = added, np.arange(KEYS)[:, None] // BLOCK == np.arange(count)
    q, k, v = (x.astype(to) for x in (q, k, v))
    logs = np.full((1, 1, QUERIES), np.nan, np.float32)
    options = {"scale": float(np.log(2)), "device": "emulator:check"}
    found = tilec.ops.attention(q[None, None], k[None, None], v[None, None], logs=logs, **options)
    scores = q.astype(float) @ k.astype(float).T
    weights = np.exp2(scores - scores.max(1, keepdims=True))
    total = weights.sum(1, keepdims=True)
    expected = weights / total @ v.astype(float)
    error = np.linalg.norm(found[0, 0].astype(float) - expected) / np.linalg.norm(expected)
    assert error < {"bf16": 3e-3, "f16": 5e-4}[dtype]
    np.testing.assert_allclose(
        logs[0, 0], (np.log2(total) + scores.max(1, keepdims=True))[:, 0], rtol=1e-5, atol=1e-3
    )
