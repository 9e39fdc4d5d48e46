"""Elementwise sum of two vectors."""

from __future__ import annotations

import numpy as np

import tilec
import tilec.language as tl
from tilec.examples.running import compare, launch, poisoned


@tilec.kernel(grid=lambda z, B: tl.cdiv(z.shape[0], B))
def vector_add(x: tl.array, y: tl.array, z: tl.array, B: tl.const = 1024):
    """z = x + y, B elements per program."""
    i = tl.program_id(0) * B
    tl.store(z, i, (tl.load(x, i, B) + tl.load(y, i, B)).to(z.dtype))


def reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The sum in float64."""
    return np.asarray(x, np.float64) + np.asarray(y, np.float64)


def main() -> None:
    """Adds vectors of lengths that fill no tile."""
    rng = np.random.default_rng(0)
    for size in (1, 1023, 4097):
        x, y = rng.standard_normal((2, size), dtype=np.float32)
        z = poisoned((size,), np.float32)
        launch(vector_add, x, y, z)
        compare(f"vector_add {size}", z, reference(x, y), 1e-6)


if __name__ == "__main__":
    main()
