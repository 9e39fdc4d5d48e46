"""Attention forward, softmax(q k^T scale) v, by `tilec.ops.attention`.

Its kernel is `tilec/ops/attention_kernel.py`: a program holds queries and walks over blocks of
keys; scores never reach memory. Sequences may have any length, heads up to 256 elements.
"""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np

import tilec
from tilec.examples.running import compare, launch, poisoned


def reference(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool, scale: float
) -> np.ndarray:
    """Attention in float64."""
    q, k, v = (array.astype(np.float64) for array in (q, k, v))
    score = q @ np.swapaxes(k, -1, -2) * scale
    if causal:
        rows, columns = score.shape[-2:]
        score[..., np.arange(columns) > np.arange(rows)[:, None]] = -np.inf
    weight = np.exp(score - score.max(-1, keepdims=True))
    return weight / weight.sum(-1, keepdims=True) @ v


TOLERANCE = {np.float16: 1e-3, ml_dtypes.bfloat16: 8e-3}
"""Error relative to the largest element: weights are rounded to the dtype before the product."""

CASES = (
    (np.float16, 150, 64, False),
    (np.float16, 150, 64, True),
    (ml_dtypes.bfloat16, 97, 40, True),
)
"""dtype, length, elements of a head, causal."""


def main() -> None:
    """Lengths and heads that fill no tile, causal and not."""
    rng = np.random.default_rng(0)
    for dtype, length, width, causal in CASES:
        q, k, v = (rng.standard_normal((1, 1, length, width)).astype(dtype) for _ in "qkv")
        o = poisoned(q.shape, dtype)
        launch(tilec.ops.attention, q, k, v, o, causal=causal)
        expected = reference(q, k, v, causal, 1 / math.sqrt(width))
        name = f"{np.dtype(dtype).name} {length}x{width}{' causal' if causal else ''}"
        compare(f"attention {name}", o, expected, TOLERANCE[dtype])


if __name__ == "__main__":
    main()
