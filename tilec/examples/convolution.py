"""Two-dimensional convolution as a product, of images whose channels lie together (NHWC).

Rows of the product are the pixels of the result, columns its channels; k runs over the window and
the channels of the image, in one loop. The rows of the left operand are gathered where the window
lies: nothing is unfolded in memory, and what lies outside an image counts as zeros.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

import tilec
import tilec.language as tl
from tilec.examples.running import compare, launch, poisoned


@tilec.kernel(
    grid=lambda y, BM, BN: (
        tl.cdiv(y.shape[0] * y.shape[1] * y.shape[2], BM),
        tl.cdiv(y.shape[3], BN),
    )
)
def convolve(
    x: tl.array,
    w: tl.array,
    y: tl.array,
    STRIDE: tl.const = 1,
    PAD: tl.const = 0,
    BM: tl.const = tl.auto,
    BN: tl.const = tl.auto,
    BK: tl.const = tl.auto,
):
    """y[i, p, q] = sum of x[i, p STRIDE - PAD + r, q STRIDE - PAD + s] @ w[r, s] over r, s.

    x (images, height, width, channels), w (rows, columns, channels, filters), y like x.
    """
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    height, width = y.shape[1], y.shape[2]
    pixel = m + tl.arange(BM)[:, None]
    image, p, q = pixel // width // height, pixel // width % height, pixel % width
    acc = tl.zeros((BM, BN), tl.f32)
    blocks = tl.cdiv(x.shape[3], BK)
    for step in tl.range(0, w.shape[0] * w.shape[1] * blocks):
        r, s, k = step // blocks // w.shape[1], step // blocks % w.shape[1], step % blocks * BK
        at = (image, p * STRIDE - PAD + r, q * STRIDE - PAD + s)
        rows = tl.gather(x, (*at, k + tl.arange(BK)[None, :]))
        acc = tl.dot(rows, tl.load(w, (r, s, k, n), (BK, BN)), acc)
    tl.scatter(y, (image, p, q, n + tl.arange(BN)[None, :]), acc.to(y.dtype))


def reference(x: np.ndarray, w: np.ndarray, stride: int, pad: int) -> np.ndarray:
    """The convolution in float64."""
    x = np.pad(x.astype(np.float64), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    rows, columns = w.shape[:2]
    height, width = ((x.shape[1 + i] - w.shape[i]) // stride + 1 for i in (0, 1))
    y = np.zeros((len(x), height, width, w.shape[3]))
    for r, s in np.ndindex(rows, columns):
        window = x[:, r : r + height * stride : stride, s : s + width * stride : stride]
        y += window[:, :height, :width] @ w[r, s].astype(np.float64)
    return y


def main() -> None:
    """Windows inside and at the edge, steps of one and two, channels that fill no tile."""
    rng = np.random.default_rng(0)
    for dtype, sizes, window, filters, stride, pad, tolerance in (
        (np.float16, (2, 7, 9, 40), (3, 3), 24, 1, 1, 1e-3),
        (ml_dtypes.bfloat16, (1, 11, 8, 24), (5, 2), 72, 2, 2, 8e-3),
    ):
        x = rng.standard_normal(sizes).astype(dtype)
        w = rng.standard_normal((*window, sizes[3], filters)).astype(dtype)
        expected = reference(x, w, stride, pad)
        y = poisoned(expected.shape, dtype)
        launch(convolve, x, w, y, STRIDE=stride, PAD=pad, BM=64, BN=64, BK=32)
        compare(f"convolution {window[0]}x{window[1]} by {stride}", y, expected, tolerance)


if __name__ == "__main__":
    main()
