"""Cross-entropy of logits over a large vocabulary, and their gradient, one program a row.

The first pass over a row keeps the highest logit so far and the sum of the exponentials below it;
no row need fit a tile. The second writes the gradient, softmax - one-hot, where the logits were,
so that nothing of their size is ever allocated. Where logits stay, `row_losses` reads them once and
keeps a number a row, from which `loss_gradients` makes the gradient when each loss's own is known.
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
    IGNORED: tl.const = -100,
    B: tl.const = tl.auto,
):
    """losses = -sum(wanted * log(softmax(logits))), and logits become their gradient; rows whose
    label is IGNORED have none.

    wanted: 1 - smoothing at the label, and smoothing spread evenly over all. The loss of a label
    that is no class is NaN.
    """
    row, classes = tl.program_id(0), logits.shape[1]
    label = tl.load(labels, row, ())
    if label == IGNORED:
        tl.store(losses, row, 0.0)
        for start in tl.range(0, classes, B):
            tl.store(logits, (row, start), tl.zeros((B,), logits.dtype))
    else:
        log_total, plain = log_sum_exp(logits, row, B)
        at_label = tl.load(logits, (row, label), (), padding=tl.nan).to(tl.f32)
        wanted = (1 - smoothing) * at_label + smoothing * plain / classes
        tl.store(losses, row, log_total - wanted)
        for start in tl.range(0, classes, B):
            slope = slopes_of(logits, row, start, label, log_total, smoothing, B)
            tl.store(logits, (row, start), slope.to(logits.dtype))


@tilec.function
def slopes_of(logits, row, start, label, log_total, smoothing, B):
    """The gradient of a row's loss from `start` on: softmax(logits) - wanted."""
    z = tl.load(logits, (row, start), B).to(tl.f32)
    one_hot = tl.where(start + tl.arange(B) == label, 1 - smoothing, 0.0)
    return tl.exp(z - log_total, approx=True) - one_hot - smoothing / logits.shape[1]


@tilec.kernel(grid=lambda logits: logits.shape[0])
def row_losses(
    logits: tl.array,
    labels: tl.array,
    losses: tl.array,
    totals: tl.array,
    smoothing: tl.f32,
    IGNORED: tl.const = -100,
    B: tl.const = tl.auto,
):
    """losses as of `cross_entropy`, and for `loss_gradients` totals = log(sum(exp(logits)))."""
    row = tl.program_id(0)
    label = tl.load(labels, row, ())
    log_total, plain = log_sum_exp(logits, row, B)
    at_label = tl.load(logits, (row, label), (), padding=tl.nan).to(tl.f32)
    wanted = (1 - smoothing) * at_label + smoothing * plain / logits.shape[1]
    tl.store(totals, row, log_total)
    tl.store(losses, row, tl.where(label == IGNORED, 0.0, log_total - wanted))


@tilec.kernel(grid=lambda slopes, B: slopes.shape[0] * tl.cdiv(slopes.shape[1], B))
def loss_gradients(
    logits: tl.array,
    labels: tl.array,
    totals: tl.array,
    factors: tl.array,
    slopes: tl.array,
    smoothing: tl.f32,
    IGNORED: tl.const = -100,
    B: tl.const = tl.auto,
):
    """slopes = the gradient of sum(losses * factors)."""
    blocks = tl.cdiv(slopes.shape[1], B)
    row, start = tl.program_id(0) // blocks, tl.program_id(0) % blocks * B
    label, log_total = tl.load(labels, row, ()), tl.load(totals, row, ())
    slope = slopes_of(logits, row, start, label, log_total, smoothing, B)
    scaled = tl.where(label == IGNORED, 0.0, slope * tl.load(factors, row, ()).to(tl.f32))
    tl.store(slopes, (row, start), scaled.to(slopes.dtype))


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
        slopes, totals = poisoned(z.shape, dtype), poisoned((4,), np.float32)
        factors = rng.random(4, dtype=np.float32)
        z = logits.astype(dtype)
        launch(row_losses, z, labels, found, totals, smoothing, B=256)
        compare(f"losses of logits that stay {name}", found, losses, 1e-5)
        launch(loss_gradients, z, labels, totals, factors, slopes, smoothing, B=256)
        compare(f"their gradient {name}", slopes, gradient * factors[:, None], tolerance)


if __name__ == "__main__":
    main()
