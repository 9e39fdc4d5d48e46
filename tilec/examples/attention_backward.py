"""Attention backward: the gradients of q, k and v from that of the output (arXiv:2307.08691).

Scores are computed again, block by block, from what the forward pass keeps of each query: the
base-2 logarithm of its sum of weights. The kernels are in `tilec/ops/gradient_kernels.py`: one
holds keys and walks over the queries that see them, one holds queries and walks over the keys.
`tilec.ops.attention_gradients` launches them.
"""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from tilec.examples.running import compare, launch, poisoned
from tilec.ops.gradient_kernels import key_gradients, query_gradients


def reference(q: Any, k: Any, v: Any, do: Any, causal: bool, scale: float) -> list[np.ndarray]:
    """o, logs, dq, dk, dv in float64."""
    shared_by = q.shape[1] // k.shape[1]
    q, do = q.astype(np.float64), do.astype(np.float64)
    k, v = (np.repeat(x.astype(np.float64), shared_by, axis=1) for x in (k, v))
    score = q @ np.swapaxes(k, -1, -2) * scale
    if causal:
        score[..., np.triu(np.ones(score.shape[-2:], bool), 1)] = -np.inf
    total = np.exp(score).sum(-1, keepdims=True)
    weight = np.exp(score) / total
    o = weight @ v
    dscore = weight * (do @ np.swapaxes(v, -1, -2) - (o * do).sum(-1, keepdims=True))
    by_head = np.swapaxes(dscore, -1, -2) @ q * scale, np.swapaxes(weight, -1, -2) @ do
    dk, dv = (x.reshape(len(x), -1, shared_by, *x.shape[2:]).sum(2) for x in by_head)
    return [o, np.log2(total)[..., 0], dscore @ k * scale, dk, dv]


def main() -> None:
    """Two heads of queries that share keys, lengths that fill no tile, causal and not."""
    rng = np.random.default_rng(0)
    heads, kv_heads, width = 2, 1, 12
    scale, tiles = 1 / math.sqrt(width), {"D": 16, "SHARED": heads // kv_heads, "BM": 64, "BN": 64}
    for length, causal in ((40, False), (75, True)):
        q, do = rng.standard_normal((2, 1, heads, length, width)).astype(ml_dtypes.bfloat16)
        k, v = rng.standard_normal((2, 1, kv_heads, length, width)).astype(ml_dtypes.bfloat16)
        o, logs, *expected = reference(q, k, v, do, causal, scale)
        logs, delta = logs.astype(np.float32), poisoned(logs.shape, np.float32)
        dq, dk, dv = (poisoned(x.shape, x.dtype) for x in (q, k, v))
        how, o = {"CAUSAL": causal, **tiles}, o.astype(q.dtype)
        launch(query_gradients, q, k, v, o, do, logs, delta, dq, scale, **how)
        launch(key_gradients, q, k, v, do, logs, delta, dk, dv, scale, **how)
        for name, found, right in zip(("dq", "dk", "dv"), (dq, dk, dv), expected, strict=True):
            compare(f"{name}{' causal' if causal else ''}", found, right, 1e-2)


if __name__ == "__main__":
    main()
