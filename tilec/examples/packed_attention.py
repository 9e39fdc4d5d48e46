"""Attention of sequences packed one behind the other, each to itself, causal.

`starts` says where sequences begin in the arrays. Scores may lose a slope times the distance
(ALiBi, arXiv:2108.12409), be bent softly below a cap, and be limited to a window of keys. Heads of
queries share heads of keys.
"""

from __future__ import annotations

import math
from itertools import pairwise

import ml_dtypes
import numpy as np

import tilec
import tilec.language as tl
from tilec.examples.running import compare, launch, poisoned
from tilec.ops.attention_kernel import LOG2_E


@tilec.kernel(
    grid=lambda q, starts, LONGEST, BM: (
        tl.cdiv(LONGEST, BM),
        q.shape[1],
        starts.shape[0] - 1,
    )
)
def packed_attention(
    q: tl.array,
    k: tl.array,
    v: tl.array,
    o: tl.array,
    starts: tl.array,
    slopes: tl.array,
    scale: tl.f32,
    LONGEST: tl.const,
    D: tl.const,
    WINDOW: tl.const = None,
    CAP: tl.const = None,
    BM: tl.const = 128,
    BN: tl.const = 128,
):
    """o of queries (tokens, heads, D); k, v (tokens, fewer heads, D); LONGEST of the sequences.

    A query sees itself and the WINDOW - 1 keys before it.
    """
    m, head, sequence = tl.program_id(0) * BM, tl.program_id(1), tl.program_id(2)
    of = head // (q.shape[1] // k.shape[1])
    start, end = (tl.load(starts, sequence + i, ()) for i in (0, 1))
    length = end - start
    if m < length:
        slope = tl.load(slopes, head, ())
        # Rows behind the end are the next sequence's, and outside of these.
        queries, results = (tl.window(x, (start, 0, 0), (length, None, None)) for x in (q, o))
        query = tl.load(queries, (m, head, 0), (BM, D), dims=(0, 2))
        rows = m + tl.arange(BM)[:, None]
        # Finite, so that rows that see nothing of a block subtract no infinities.
        highest, total = tl.full((BM,), -1e30, tl.f32), tl.zeros((BM,), tl.f32)
        acc = tl.zeros((BM, D), tl.f32)
        first = tl.maximum(0, m - WINDOW + 1) // BN * BN if WINDOW else 0
        for n in tl.range(first, tl.minimum(length, m + BM), BN):
            key, value = (tl.load(x, (start + n, of, 0), (BN, D), dims=(0, 2)) for x in (k, v))
            distance = rows - (n + tl.arange(BN)[None, :])
            score = tl.dot(query, key.T) * scale
            if CAP:
                score = CAP * tl.tanh(score / CAP, approx=True)
            score = (score - slope * distance.to(tl.f32)) * LOG2_E
            seen = (distance >= 0) & (distance < WINDOW) if WINDOW else distance >= 0
            score = tl.where(seen, score, -tl.inf)
            higher = tl.maximum(highest, tl.max(score, 1))
            weight = tl.exp2(score - higher[:, None], approx=True)
            shrink = tl.exp2(highest - higher, approx=True)
            total = total * shrink + tl.sum(weight, 1)
            acc = tl.dot(weight.to(value.dtype), value, acc * shrink[:, None])
            highest = higher
        tl.store(results, (m, head, 0), (acc / total[:, None]).to(o.dtype), dims=(0, 2))


def reference(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    starts: np.ndarray,
    slopes: np.ndarray,
    window: int | None = None,
    cap: float | None = None,
) -> np.ndarray:
    """Each sequence by itself, in float64."""
    o = np.empty(q.shape)
    q, k, v = (x.astype(np.float64).swapaxes(0, 1) for x in (q, k, v))
    k, v = (np.repeat(x, len(q) // len(x), axis=0) for x in (k, v))
    for start, end in pairwise(starts):
        score = q[:, start:end] @ k[:, start:end].swapaxes(1, 2) / math.sqrt(q.shape[2])
        score = cap * np.tanh(score / cap) if cap else score
        distance = np.arange(end - start)[:, None] - np.arange(end - start)
        weight = np.exp(score - slopes[:, None, None] * distance)
        weight *= (distance >= 0) & (distance < (window or np.inf))
        weight /= weight.sum(-1, keepdims=True)
        o[start:end] = (weight @ v[:, start:end]).swapaxes(0, 1)
    return o


def main() -> None:
    """Sequences without a token, with one, and with more than a tile; a window; a cap."""
    rng = np.random.default_rng(0)
    starts = np.array([0, 0, 70, 71, 168], np.int32)
    heads, width, dtype = 2, 32, ml_dtypes.bfloat16
    slopes = np.array([0.25, 0.0625], np.float32)
    for name, options, kv_heads in (("plain", {}, 2), ("bent", {"WINDOW": 20, "CAP": 3.0}, 1)):
        q = rng.standard_normal((168, heads, width)).astype(dtype)
        k, v = rng.standard_normal((2, 168, kv_heads, width)).astype(dtype)
        o = poisoned(q.shape, dtype)
        sizes = {"LONGEST": 97, "D": width, "BM": 64, "BN": 64}
        scale = 1 / math.sqrt(width)
        launch(packed_attention, q, k, v, o, starts, slopes, scale, **sizes, **options)
        lowered = {key.lower(): value for key, value in options.items()}
        expected = reference(q, k, v, starts, slopes, **lowered)
        compare(f"packed_attention {name}", o, expected, 1e-2)


if __name__ == "__main__":
    main()
