"""Matrix product: c = a @ b for f64, f32 (exact or tf32), f16, bf16, fp8 and int8.

Bounds need no care: a load gives zeros outside the array, a store drops what lies outside, so M, N
and K may be anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

import tilec
import tilec.language as tl
from tilec.examples.running import compare, launch, poisoned


def accumulator_of(dtype):
    """The dtype in which products of `dtype` are summed (compile time)."""
    return tl.f64 if dtype == tl.f64 else tl.i32 if dtype == tl.i8 else tl.f32


@tilec.kernel(grid=lambda c, BM, BN: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)))
def matmul(
    a: tl.array,
    b: tl.array,
    c: tl.array,
    BM: tl.const = tl.auto,
    BN: tl.const = tl.auto,
    BK: tl.const = tl.auto,
    PRECISION: tl.const = "ieee",
):
    """One BM x BN tile of c per program; PRECISION "tf32" puts f32 on tensor cores."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), accumulator_of(a.dtype))
    for k in tl.range(0, a.shape[1], BK):
        acc = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(b, (k, n), (BK, BN)), acc, PRECISION)
    tl.store(c, (m, n), acc.to(c.dtype))


@dataclass(frozen=True)
class Precision:
    """One way to multiply: input and output dtypes, tl.dot's precision, tolerated error."""

    inputs: Any
    output: Any
    dot: str
    tolerance: float


PRECISIONS = {
    "f64": Precision(np.float64, np.float64, "ieee", 1e-13),
    "f32": Precision(np.float32, np.float32, "ieee", 1e-5),
    "tf32": Precision(np.float32, np.float32, "tf32", 2e-3),
    "f16": Precision(np.float16, np.float16, "ieee", 2e-3),
    "bf16": Precision(ml_dtypes.bfloat16, ml_dtypes.bfloat16, "ieee", 1e-2),
    "fp8": Precision(ml_dtypes.float8_e4m3fn, np.float16, "ieee", 2e-3),
    "s8": Precision(np.int8, np.int32, "ieee", 0.0),
}
"""By name; the error is relative to the largest element of the result."""


def draw(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> np.ndarray:
    """Random values of an input dtype."""
    if dtype is np.int8:
        return rng.integers(-128, 128, shape, dtype=np.int8)
    return rng.standard_normal(shape).astype(dtype)


def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product in float64, which holds every product of int8 exactly."""
    return a.astype(np.float64) @ b.astype(np.float64)


def main() -> None:
    """Every dtype, on shapes that fill no tile."""
    rng = np.random.default_rng(0)
    for name, precision in PRECISIONS.items():
        for m, n, k in ((1, 1, 1), (97, 131, 53)):
            a = draw(rng, (m, k), precision.inputs)
            b = draw(rng, (k, n), precision.inputs)
            c = poisoned((m, n), precision.output)
            launch(matmul, a, b, c, PRECISION=precision.dot)
            compare(f"matmul {name} {m}x{n}x{k}", c, reference(a, b), precision.tolerance)


if __name__ == "__main__":
    main()
