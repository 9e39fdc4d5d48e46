"""Attention forward, softmax(q k^T scale) v, by online softmax (arXiv:2205.14135, 2307.08691).

A program holds BM queries and walks over the keys BN at a time; scores never reach memory. The loop
over blocks that every query sees has no mask; only the last blocks, those on the diagonal of causal
attention among them, do. Sequences may have any length, heads up to D elements.
"""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

import tilec
import tilec.language as tl
from tilec.examples.running import compare, launch, poisoned

LOG2_E = 1.4426950408889634


def attend(state, query, key, value, scale, visible):
    """The state after one more block of keys and values; `visible` is a mask, or None for all.

    state: per query the highest score so far, the sum of weights, the weighted sum of values. The
    scores are base-2 logarithms of the weights, because the hardware's exponential is 2^x.
    """
    highest, total, acc = state
    score = tl.dot(query, key.T)
    if visible is not None:
        score = tl.where(visible, score, -tl.inf)
    higher = tl.maximum(highest, tl.max(score, 1) * scale)
    weight = tl.exp2(score * scale - higher[:, None], approx=True)
    shrink = tl.exp2(highest - higher, approx=True)
    total = total * shrink + tl.sum(weight, 1)
    acc = tl.dot(weight.to(value.dtype), value, acc * shrink[:, None])
    return higher, total, acc


@tilec.kernel(grid=lambda q, BM: (tl.cdiv(q.shape[2], BM), q.shape[1], q.shape[0]))
def attention(
    q: tl.array,
    k: tl.array,
    v: tl.array,
    o: tl.array,
    scale: tl.f32,
    D: tl.const,
    CAUSAL: tl.const = False,
    BM: tl.const = tl.auto,
    BN: tl.const = tl.auto,
    STAGES: tl.const = None,
    WARP_SPECIALIZE: tl.const = None,
):
    """o = softmax(q k^T scale) v; arrays are (batch, heads, length, elements of a head <= D).

    CAUSAL: query i sees keys 0 to i. STAGES, WARP_SPECIALIZE: demands of the unmasked loop.
    """
    batch, head, m = tl.program_id(2), tl.program_id(1), tl.program_id(0) * BM
    keys = k.shape[2]
    factor = scale * LOG2_E
    query = tl.load(q, (batch, head, m, 0), (BM, D))
    state = (tl.full((BM,), -tl.inf, tl.f32), tl.zeros((BM,), tl.f32), tl.zeros((BM, D), tl.f32))
    end, seen, bound = keys, keys, keys
    if CAUSAL:
        end, seen = tl.minimum(keys, m + BM), tl.minimum(keys, m + 1)
        bound = tl.minimum(keys, m + 1 + tl.arange(BM))[:, None]
    whole = seen // BN * BN
    for n in tl.range(0, whole, BN, stages=STAGES, warp_specialize=WARP_SPECIALIZE):
        key = tl.load(k, (batch, head, n, 0), (BN, D))
        value = tl.load(v, (batch, head, n, 0), (BN, D))
        state = attend(state, query, key, value, factor, None)
    for n in tl.range(whole, end, BN):
        key = tl.load(k, (batch, head, n, 0), (BN, D))
        value = tl.load(v, (batch, head, n, 0), (BN, D))
        visible = n + tl.arange(BN)[None, :] < bound
        state = attend(state, query, key, value, factor, visible)
    _, total, acc = state
    tl.store(o, (batch, head, m, 0), (acc / total[:, None]).to(o.dtype))


def attention_heads(
    q: Any, k: Any, v: Any, o: Any, causal: bool = False, scale: float | None = None
) -> None:
    """Attention of every head of `q` (batch, heads, length, elements) into `o`.

    `scale`: of the scores, 1 / sqrt(elements) if not given; it must be positive.
    """
    width = q.shape[3]
    scale = 1 / math.sqrt(width) if scale is None else scale
    attention(q, k, v, o, scale, D=max(16, 1 << (width - 1).bit_length()), CAUSAL=causal)


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
        launch(attention_heads, q, k, v, o, causal=causal)
        expected = reference(q, k, v, causal, 1 / math.sqrt(width))
        name = f"{np.dtype(dtype).name} {length}x{width}{' causal' if causal else ''}"
        compare(f"attention {name}", o, expected, TOLERANCE[dtype])


if __name__ == "__main__":
    main()
