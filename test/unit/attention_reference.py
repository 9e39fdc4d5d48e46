"""Attention and its gradients in float64, of one batch and all its heads; what dropout keeps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def attended(
    q: Any,
    k: Any,
    v: Any,
    do: Any = None,
    *,
    causal: bool = False,
    window: int | None = None,
    cap: float | None = None,
    sinks: Any = None,
    kept: Any = None,
    dropout: float = 0.0,
    ahead: int = 0,
) -> list[Any]:
    """out, logs and, where `do` is given, dq, dk, dv, dsinks of q (heads, length, elements), k, v
    (fewer heads, keys, elements). `ahead`: the position of the first query. `kept`: a mask of
    weights. Zeros of a query that sees no key."""
    shared, scale = q.shape[0] // k.shape[0], 1 / math.sqrt(q.shape[2])
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    key, value = (np.repeat(x, shared, 0) for x in (k, v))
    score = q @ np.swapaxes(key, -1, -2) * scale
    slope = np.ones_like(score)
    if cap is not None:
        slope = 1 - np.tanh(score / cap) ** 2
        score = cap * np.tanh(score / cap)
    i, j = ahead + np.arange(q.shape[1])[:, None], np.arange(k.shape[1])[None]
    seen = (j <= i) & (j > i - (window or np.inf)) if causal else np.full((1, 1), True)
    weight = np.where(seen, np.exp(score), 0)
    sink = 0.0 if sinks is None else np.exp(sinks.astype(np.float64))[:, None, None]
    total = weight.sum(-1, keepdims=True) + sink
    safe = np.where(total == 0, 1, total)
    weight = weight / safe
    left = weight if kept is None else np.where(kept, weight / (1 - dropout), 0)
    out = left @ value
    with np.errstate(divide="ignore"):
        found = [out, np.log2(total)[..., 0]]
    if do is None:
        return found
    do = do.astype(np.float64)
    delta = (out * do).sum(-1, keepdims=True)
    dweight = do @ np.swapaxes(value, -1, -2)
    dweight = dweight if kept is None else np.where(kept, dweight / (1 - dropout), 0)
    dscore = weight * (dweight - delta) * slope * scale
    by_head = np.swapaxes(dscore, -1, -2) @ q, np.swapaxes(left, -1, -2) @ do
    dk, dv = (x.reshape(len(k), shared, *x.shape[1:]).sum(1) for x in by_head)
    return [*found, dscore @ key, dk, dv, -(delta * sink / safe).sum((1, 2))]


def kept_weights(seed: int, heads: int, length: int, keys: int, dropout: float) -> Any:
    """(heads, length, keys): what dropout keeps of one batch, by Philox 4x32-10 (SC 2011)."""
    number = np.arange(heads * length * keys, dtype=np.uint64).reshape(heads, length, keys)
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    a, b, c, d = number & low, number >> shift, number * 0, number * 0
    key = [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
    for _ in range(10):
        first, second = a * np.uint64(0xD2511F53), c * np.uint64(0xCD9E8D57)
        a, b = (second >> shift) ^ b ^ np.uint64(key[0]), second & low
        c, d = (first >> shift) ^ d ^ np.uint64(key[1]), first & low
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return (a >> np.uint64(8)).astype(np.float64) * 2.0**-24 >= dropout


def error(found: Any, right: Any) -> float:
    """The largest, of the largest element, which counts as 0.1 where all are less; NaN where
    anything was not written."""
    return float(abs(found.astype(np.float64) - right).max() / max(abs(right).max(), 0.1))
