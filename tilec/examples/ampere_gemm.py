"""The Ampere matrix product: bf16 through cp.async, a ring in shared memory, and mma.sync.

d = a @ bt^T with a (M, K) and bt (N, K) in bf16, both with stride 1 along K, and d (M, N) in f32.

By hand this is a kernel of fragment arithmetic, commits, waits that are counted down in a tail,
and exact sizes. Here the loop is the program, and `stages` is the ring's length:

- both loads become cp.async of 16 bytes into swizzled buffers, `STAGES - 1` tiles ahead;
- `.T` costs nothing: the copy writes the tile as it lies, ldmatrix reads the fragments;
- one wait and one barrier an iteration, no drained tail: copies past K are masked off and count as
  empty groups;
- M, N and K may be anything, a copy fills with zeros what lies outside.

`HAND_WRITTEN` is the tile usually chosen for a first hand-written version; `WIDE` feeds the tensor
cores four times as many products per element copied.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

import tilec
import tilec.language as tl
from tilec.examples.running import compare, launch, poisoned


@tilec.kernel(grid=lambda d, BM, BN: (tl.cdiv(d.shape[0], BM), tl.cdiv(d.shape[1], BN)))
def ampere_gemm(
    a: tl.array,
    bt: tl.array,
    d: tl.array,
    BM: tl.const = 128,
    BN: tl.const = 128,
    BK: tl.const = 32,
    STAGES: tl.const = 4,
):
    """One BM x BN tile of d per program."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK, stages=STAGES):
        acc = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(bt, (n, k), (BN, BK)).T, acc)
    tl.store(d, (m, n), acc)


HAND_WRITTEN = {"BM": 64, "BN": 64, "BK": 16, "STAGES": 2}
WIDE = {"BM": 128, "BN": 128, "BK": 32, "STAGES": 4}


def main() -> None:
    """Both tiles, on sizes that fill them and on sizes that do not."""
    rng = np.random.default_rng(0)
    for m, n, k in ((64, 64, 64), (72, 136, 88)):
        a = rng.standard_normal((m, k)).astype(ml_dtypes.bfloat16)
        bt = rng.standard_normal((n, k)).astype(ml_dtypes.bfloat16)
        expected = a.astype(np.float64) @ bt.astype(np.float64).T
        for name, tiles in (("hand-written tile", HAND_WRITTEN), ("wide tile", WIDE)):
            d = poisoned((m, n), np.float32)
            launch(ampere_gemm, a, bt, d, **tiles)
            compare(f"ampere_gemm {m}x{n}x{k}, {name}", d, expected, 1e-5)


if __name__ == "__main__":
    main()
