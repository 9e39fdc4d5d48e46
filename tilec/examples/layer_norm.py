"""Layer normalisation of each row, scaled and shifted per column."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilec
import tilec.language as tl
from tilec.examples.running import compare, launch, poisoned
from tilec.examples.softmax import row_tile


@tilec.kernel(grid=lambda x: x.shape[0])
def layer_norm(
    x: tl.array, weight: tl.array, bias: tl.array, y: tl.array, eps: tl.f32, N: tl.const = 1024
):
    """y = (x - mean) / sqrt(variance + eps) * weight + bias, rows of at most N elements."""
    row = tl.program_id(0)
    columns = x.shape[1]
    v = tl.load(x, (row, 0), N).to(tl.f32)
    mean = tl.sum(v) / columns
    centred = tl.where(tl.arange(N) < columns, v - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred) / columns + eps)
    w, b = tl.load(weight, 0, N).to(tl.f32), tl.load(bias, 0, N).to(tl.f32)
    tl.store(y, (row, 0), (centred * scale * w + b).to(y.dtype))


def layer_norm_rows(x: Any, weight: Any, bias: Any, y: Any, eps: float = 1e-5) -> None:
    """Normalises each row of `x` into `y`, with a tile as long as a row."""
    layer_norm(x, weight, bias, y, eps, N=row_tile(x.shape[1]))


def reference(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, eps: float) -> np.ndarray:
    """The normalised rows in float64."""
    wide = x.astype(np.float64)
    centred = wide - wide.mean(axis=1, keepdims=True)
    variance = (centred * centred).mean(axis=1, keepdims=True)
    return centred / np.sqrt(variance + eps) * weight + bias


def main() -> None:
    """Rows that fill a tile and rows that do not."""
    rng = np.random.default_rng(0)
    for rows, columns in ((2, 3), (5, 1000), (3, 1024), (2, 9001)):
        x = rng.standard_normal((rows, columns), dtype=np.float32) + 3
        weight, bias = rng.standard_normal((2, columns), dtype=np.float32)
        y = poisoned(x.shape, np.float32)
        launch(layer_norm_rows, x, weight, bias, y)
        compare(f"layer_norm {rows}x{columns}", y, reference(x, weight, bias, 1e-5), 1e-5)


if __name__ == "__main__":
    main()
