"""A step of Adam for all arrays of a model in one launch, as torch's fused optimizer makes it.

The arrays come in lists of any length, and have any sizes: programs share all elements, so that one
long array is not the work of one program, nor a thousand short ones a thousand launches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

import tilec
import tilec.language as tl
from tilec.examples.running import compare, launch


@tilec.kernel(grid=lambda params, B: tl.parts(params, B))
def adam(
    params: tl.flat_arrays,
    grads: tl.flat_arrays,
    means: tl.flat_arrays,
    squares: tl.flat_arrays,
    rate: float,
    share1: float,
    share2: float,
    eps: float,
    left1: float,
    left2: float,
    B: tl.const = tl.auto,
):
    """params -= rate * m / (sqrt(v) + eps), where m and v are what `means` and `squares` are after
    this step, divided by left1 = 1 - beta1**step and left2 = 1 - beta2**step.

    share1 = 1 - beta1 and share2 = 1 - beta2: as numbers of 32 bits they are exact to 24 of them,
    which what is left of 1 would not be.
    """
    which, start = tl.part(params, B)
    g = tl.load(grads[which], start, B).to(tl.f32)
    m = tl.load(means[which], start, B)
    v = tl.load(squares[which], start, B)
    p = tl.load(params[which], start, B).to(tl.f32)
    m += share1 * (g - m)
    v += share2 * (g * g - v)
    p -= (rate / left1) * m / (tl.sqrt(v / left2) + eps)
    tl.store(means[which], start, m)
    tl.store(squares[which], start, v)
    tl.store(params[which], start, p.to(params.dtype))


def main() -> None:
    """300 arrays of ragged sizes, some of two dimensions or three; a step of f32, one of bf16."""
    rng = np.random.default_rng(0)
    shapes = [(int(n),) for n in rng.integers(1, 40, 297)] + [(7, 11), (2500,), (3, 1, 5)]
    beta1, beta2, rate, eps, step = 0.9, 0.99, 1e-2, 1e-8, 2
    left1, left2 = 1 - beta1**step, 1 - beta2**step
    for dtype, tolerance in ((np.float32, 1e-6), (ml_dtypes.bfloat16, 8e-3)):
        params, grads = (drawn(rng, shapes, dtype) for _ in range(2))
        means = drawn(rng, shapes, np.float32)
        squares = [abs(x) for x in drawn(rng, shapes, np.float32)]
        p, g, m, v = (whole(xs).astype(np.float64) for xs in (params, grads, means, squares))
        numbers = (rate, 1 - beta1, 1 - beta2, eps, left1, left2)
        launch(adam, params, grads, means, squares, *numbers)
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g * g
        p = p - rate * m / left1 / (np.sqrt(v / left2) + eps)
        for name, found, expected in (("params", params, p), ("m", means, m), ("v", squares, v)):
            compare(f"adam {np.dtype(dtype)} {name}", whole(found), expected, tolerance)


def drawn(
    rng: np.random.Generator, shapes: Sequence[tuple[int, ...]], dtype: Any
) -> list[np.ndarray]:
    """An array of each shape."""
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def whole(arrays: list[np.ndarray]) -> np.ndarray:
    """All elements in a row."""
    return np.concatenate([array.ravel() for array in arrays])


if __name__ == "__main__":
    main()
