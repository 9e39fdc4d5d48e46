"""Cross-entropy of logits over a large vocabulary, and their gradient, one program a row.

The first pass over a row keeps the highest logit so far and the sum of the exponentials below it;
no row need fit a tile. The second writes the gradient, softmax - one-hot, where the logits were,
so that nothing of their size is ever allocated, or beside them. A loss's own gradient comes later,
and multiplies its row.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

import tilec
import tilec.language as tl
from tilec.examples.running import compare, launch, poisoned


@tilec.function
def log_sum_exp(logits, row, B):
    """log(sum(exp(row))), and the sum of the row. Sums are tiles, added up behind the loop."""
    highest, total, plain = -tl.inf, tl.zeros((B,), tl.f32), tl.zeros((B,), tl.f32)
    for start in tl.range(0, logits.shape[1], B):
        z = tl.load(logits, (row, start), B, padding=-tl.inf).to(tl.f32)
        higher = tl.maximum(highest, tl.max(z))
        shrink = tl.exp(highest - higher, approx=True)
        total = total * shrink + tl.exp(z - higher, approx=True)
        plain += tl.where(z > -tl.inf, z, 0.0)
        highest = higher
    return highest + tl.log(tl.sum(total)), tl.sum(plain)


@tilec.kernel(grid=lambda logits: logits.shape[0])
def cross_entropy(
    logits: tl.array,
    labels: tl.array,
    losses: tl.array,
    smoothing: tl.f32,
    slopes: tl.array | None = None,
    IGNORED: tl.const = -100,
    B: tl.const = tl.auto,
):
    """losses = -sum(wanted * log(softmax(logits))); rows whose label is IGNORED have none.

    wanted: 1 - smoothing at the label, and smoothing spread evenly over all. `slopes` gets the
    gradient of logits; `logits` become it where there is none. The loss of a label that is no class
    is NaN.
    """
    out = logits if slopes is None else slopes
    row, classes = tl.program_id(0), logits.shape[1]
    label = tl.load(labels, row, ())
    if label == IGNORED:
        tl.store(losses, row, 0.0)
        for start in tl.range(0, classes, B):
            tl.store(out, (row, start), tl.zeros((B,), out.dtype))
    else:
        log_total, plain = log_sum_exp(logits, row, B)
        at_label = tl.load(logits, (row, label), (), padding=tl.nan).to(tl.f32)
        wanted = (1 - smoothing) * at_label + smoothing * plain / classes
        tl.store(losses, row, log_total - wanted)
        for start in tl.range(0, classes, B):
            z = tl.load(logits, (row, start), B).to(tl.f32)
            one_hot = tl.where(start + tl.arange(B) == label, 1 - smoothing, 0.0)
            slope = tl.exp(z - log_total, approx=True) - one_hot - smoothing / classes
            tl.store(out, (row, start), slope.to(out.dtype))


@tilec.kernel(grid=lambda slopes, B: slopes.shape[0] * tl.cdiv(slopes.shape[1], B))
def scale_rows(slopes: tl.array, factors: tl.array, out: tl.array, B: tl.const = tl.auto):
    """out = slopes * factors[:, None], computed in f32."""
    blocks = tl.cdiv(slopes.shape[1], B)
    row, start = tl.program_id(0) // blocks, tl.program_id(0) % blocks * B
    scaled = tl.load(slopes, (row, start), B).to(tl.f32) * tl.load(factors, row, ()).to(tl.f32)
    tl.store(out, (row, start), scaled.to(out.dtype))


def reference(
    logits: np.ndarray, labels: np.ndarray, smoothing: float
) -> tuple[np.ndarray, np.ndarray]:
    """Losses and gradient in float64."""
    z = logits.astype(np.float64)
    log_softmax = z - np.log(np.exp(z).sum(1, keepdims=True))
    wanted = np.full_like(z, smoothing / z.shape[1])
    counts = labels >= 0
    wanted[counts, labels[counts]] += 1 - smoothing
    losses, gradient = -(wanted * log_softmax).sum(1), np.exp(log_softmax) - wanted
    return np.where(counts, losses, 0), np.where(counts[:, None], gradient, 0)


def main() -> None:
    """Rows of several tiles, a label that is ignored, with and without smoothing."""
    rng = np.random.default_rng(0)
    logits = 4 * rng.standard_normal((4, 777), dtype=np.float32)
    labels = np.array([776, -100, 0, 300])
    for dtype, smoothing, tolerance in (
        (np.float32, 0.0, 2e-6),
        (ml_dtypes.bfloat16, 0.1, 8e-3),
    ):
        z = logits.astype(dtype)
        losses, gradient = reference(z, labels, smoothing)
        found = poisoned((4,), np.float32)
        launch(cross_entropy, z, labels, found, smoothing, B=256)
        name = np.dtype(dtype).name
        compare(f"losses {name}", found, losses, 1e-5)
        compare(f"gradient {name}", z, gradient, tolerance)
        slopes, factors = poisoned(z.shape, dtype), rng.random(4, dtype=np.float32)
        launch(cross_entropy, logits.astype(dtype), labels, found, smoothing, slopes, B=256)
        compare(f"gradient beside them {name}", slopes, gradient, tolerance)
        launch(scale_rows, slopes, factors, z)
        compare(f"scaled {name}", z, gradient * factors[:, None], tolerance)


if __name__ == "__main__":
    main()
