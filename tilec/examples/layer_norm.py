"""Layer normalisation of each row, scaled and shifted per column, and its gradients.

The gradients of weight and bias are sums over all rows: `rms_norm.py` says how they are made.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tilec
import tilec.language as tl
from tilec.examples.rms_norm import sum_columns
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


@tilec.kernel(grid=lambda partial: partial.shape[0])
def layer_norm_gradients(
    dy: tl.array,
    x: tl.array,
    weight: tl.array,
    dx: tl.array,
    partial: tl.array,
    eps: tl.f32,
    N: tl.const,
    R: tl.const = tl.auto,
):
    """dx, and in partial[p] what the rows of program p add to the gradients of weight and bias."""
    program, columns = tl.program_id(0), x.shape[1]
    w = tl.load(weight, 0, N).to(tl.f32)
    dweight, dbias = tl.zeros((R, N), tl.f32), tl.zeros((R, N), tl.f32)
    for row in tl.range(program * R, x.shape[0], tl.num_programs(0) * R):
        v = tl.load(x, (row, 0), (R, N)).to(tl.f32)
        mean = tl.sum(v, 1, keepdims=True) / columns
        centred = tl.where(tl.arange(N)[None, :] < columns, v - mean, 0.0)
        scale = tl.rsqrt(tl.sum(centred * centred, 1, keepdims=True) / columns + eps)
        normal = centred * scale
        grad = tl.load(dy, (row, 0), (R, N)).to(tl.f32)
        dweight += grad * normal
        dbias += grad
        dnormal = grad * w[None, :]
        along = tl.sum(dnormal * normal, 1, keepdims=True) / columns
        level = tl.sum(dnormal, 1, keepdims=True) / columns
        tl.store(dx, (row, 0), ((dnormal - level - normal * along) * scale).to(dx.dtype))
    tl.store(partial, (program, 0, 0), tl.sum(dweight, 0))
    tl.store(partial, (program, 1, 0), tl.sum(dbias, 0))


def layer_norm_rows(x: Any, weight: Any, bias: Any, y: Any, eps: float = 1e-5) -> None:
    """Normalises each row of `x` into `y`, with a tile as long as a row."""
    layer_norm(x, weight, bias, y, eps, N=row_tile(x.shape[1]))


def reference(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, eps: float) -> np.ndarray:
    """The normalised rows in float64."""
    wide = x.astype(np.float64)
    centred = wide - wide.mean(axis=1, keepdims=True)
    variance = (centred * centred).mean(axis=1, keepdims=True)
    return centred / np.sqrt(variance + eps) * weight + bias


def gradients(
    dy: np.ndarray, x: np.ndarray, weight: np.ndarray, eps: float
) -> tuple[np.ndarray, np.ndarray]:
    """dx, and those of weight and bias, in float64."""
    wide = x.astype(np.float64)
    centred = wide - wide.mean(1, keepdims=True)
    scale = 1 / np.sqrt((centred**2).mean(1, keepdims=True) + eps)
    normal, dnormal = centred * scale, dy.astype(np.float64) * weight
    dx = dnormal - dnormal.mean(1, keepdims=True)
    dx = (dx - normal * (dnormal * normal).mean(1, keepdims=True)) * scale
    return dx, np.stack([(dy * normal).sum(0), dy.sum(0, dtype=np.float64)])


def main() -> None:
    """Rows that fill a tile and rows that do not; of gradients more rows than programs."""
    rng = np.random.default_rng(0)
    for rows, columns in ((2, 3), (5, 1000), (3, 1024), (2, 9001)):
        x = rng.standard_normal((rows, columns), dtype=np.float32) + 3
        weight, bias = rng.standard_normal((2, columns), dtype=np.float32)
        y = poisoned(x.shape, np.float32)
        launch(layer_norm_rows, x, weight, bias, y)
        compare(f"layer_norm {rows}x{columns}", y, reference(x, weight, bias, 1e-5), 1e-5)
    x, dy = rng.standard_normal((2, 13, 200), dtype=np.float32)
    weight = rng.standard_normal(200, dtype=np.float32)
    dx, partial, sums = (poisoned(shape, np.float32) for shape in (x.shape, (4, 2, 200), (2, 200)))
    launch(layer_norm_gradients, dy, x, weight, dx, partial, 1e-5, N=row_tile(200))
    launch(sum_columns, partial.reshape(4, -1), sums.reshape(-1))
    for name, found, expected in zip(
        ("dx", "sums"), (dx, sums), gradients(dy, x, weight, 1e-5), strict=True
    ):
        compare(f"layer_norm {name}", found, expected, 5e-6)


if __name__ == "__main__":
    main()
