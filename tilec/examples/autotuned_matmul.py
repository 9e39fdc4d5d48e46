"""Autotuning: the matrix product of matmul.py, which measures its tile sizes where there is a GPU.

The first call for shapes, dtypes and layouts of a new class compiles and times the candidates that
a model finds best; the winner is kept in a file, and later programs find it there. On the emulator
the model alone chooses. `tilec.ops.matmul(a, b, tune=True)` is this for every layout and epilogue.
"""

from __future__ import annotations

import numpy as np

import tilec
import tilec.language as tl
from tilec.examples.running import compare, launch


@tilec.autotune(
    search=[
        {"BM": [64, 128], "BN": [64, 128, 256], "BK": [32, 64], "num_warps": [4, 8]},
        {"BM": [16, 32], "BN": [64, 128], "BK": [64, 128], "STAGES": [None, 4]},
    ],
    where=lambda BM, BN: BM * BN <= 128 * 256,
)
@tilec.kernel(grid=lambda c, BM, BN: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)))
def matmul(
    a: tl.array,
    b: tl.array,
    c: tl.array,
    BM: tl.const = tl.auto,
    BN: tl.const = tl.auto,
    BK: tl.const = tl.auto,
    STAGES: tl.const = None,
):
    """One BM x BN tile of c per program."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK, stages=STAGES):
        acc = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(b, (k, n), (BK, BN)), acc)
    tl.store(c, (m, n), acc.to(c.dtype))


def main() -> None:
    """Two products of one size class, the second of which finds what the first has chosen."""
    rng = np.random.default_rng(0)
    for m, n, k in ((97, 131, 53), (101, 129, 55)):
        a = rng.standard_normal((m, k)).astype(np.float16)
        b = rng.standard_normal((k, n)).astype(np.float16)
        c = np.full((m, n), np.nan, np.float16)
        launch(matmul, a, b, c)
        compare(f"autotuned matmul {m}x{n}x{k}", c, a.astype(float) @ b.astype(float), 2e-3)


if __name__ == "__main__":
    main()
