"""Split-K: several programs share one tile of c, each sums a part of k and adds it by atomics.

For products whose c has fewer tiles than the GPU has multiprocessors while k is long: `SPLITS`
times as many programs. c must hold zeros (or what is to be added to). The order of the additions is
open, so the last bits of a float sum may differ from run to run.
"""

from __future__ import annotations

import numpy as np

import tilec
import tilec.language as tl
from tilec.examples.running import compare, launch


@tilec.kernel(
    grid=lambda c, BM, BN, SPLITS: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN), SPLITS)
)
def split_k(
    a: tl.array,
    b: tl.array,
    c: tl.array,
    BM: tl.const = 64,
    BN: tl.const = 64,
    BK: tl.const = 32,
    SPLITS: tl.const = 4,
):
    """c += a @ b: program (i, j, s) sums the s-th part of k, whole tiles of BK each."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    part = tl.cdiv(tl.cdiv(a.shape[1], BK), SPLITS) * BK
    low = tl.program_id(2) * part
    high = tl.minimum(low + part, a.shape[1])
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(low, high, BK):
        acc = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(b, (k, n), (BK, BN)), acc)
    rows, columns = m + tl.arange(BM), n + tl.arange(BN)
    tl.atomic_add(c, (rows[:, None], columns[None, :]), acc, order="relaxed")


def main() -> None:
    """Parts of equal length, of unequal length, and more programs than tiles of k."""
    rng = np.random.default_rng(0)
    for m, n, k, splits in ((64, 64, 256, 2), (40, 100, 200, 3), (64, 32, 72, 8)):
        a = rng.standard_normal((m, k)).astype(np.float16)
        b = rng.standard_normal((k, n)).astype(np.float16)
        c = rng.standard_normal((m, n), dtype=np.float32)
        expected = c + a.astype(np.float64) @ b.astype(np.float64)
        launch(split_k, a, b, c, SPLITS=splits)
        compare(f"split_k {m}x{n}x{k} by {splits}", c, expected, 1e-5)


if __name__ == "__main__":
    main()
