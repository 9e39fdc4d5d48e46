"""Six steps from a naive to a fast exact f32 matrix product, each a choice of tile and option.

Written by hand in PTX, each step is another kernel: other index arithmetic, other barriers. In the
tile language two bodies serve all six; a step is a row of `STEPS`: tile sizes, warps and stages.

1. naive: a program computes 128 rows of one column of c, a thread per element. Neighbouring threads
   read neighbouring rows of a, far apart in memory.
2. coalesced: 128 columns of one row instead. Neighbouring threads read neighbouring elements of b.
3. shared memory: a 32x32 tile, 1024 threads with one element each. `tl.dot` stages both operands in
   shared memory, where 32 threads read what one loaded.
4. 1-D tiling: a 64x64 tile on 512 threads: eight elements a thread, so that each element read from
   shared memory is multiplied more than once.
5. 2-D tiling: a 128x128 tile on 256 threads: 8x8 elements a thread, sixteen reads for 64 products.
6. vectorised: 16 of k at a time, copied 16 bytes at once past the registers by cp.async, two tiles
   ahead of their use: `stages=3`. (Where arrays are aligned, all steps use vectors.)

How threads share a tile is the compiler's choice in every step: `report` shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

import tilec
import tilec.language as tl
from tilec.call.jit import Kernel
from tilec.examples.running import compare, launch, poisoned


def tiles_of_c(c, BM, BN):
    """One program per BM x BN tile of c."""
    return tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)


def from_global(a: tl.array, b: tl.array, c: tl.array, BM: tl.const, BN: tl.const):
    """Multiplies what it just loaded: a column of a's tile by a row of b's, one k after another."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1]):
        acc += tl.load(a, (m, k), (BM, 1)) * tl.load(b, (k, n), (1, BN))
    tl.store(c, (m, n), acc)


def from_shared(
    a: tl.array,
    b: tl.array,
    c: tl.array,
    BM: tl.const,
    BN: tl.const,
    BK: tl.const,
    STAGES: tl.const,
):
    """Multiplies tiles that all threads of a program share, BK of k at a time."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK, stages=STAGES):
        acc = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(b, (k, n), (BK, BN)), acc)
    tl.store(c, (m, n), acc)


@dataclass(frozen=True)
class Step:
    """One step: its kernel and the constants that make it."""

    name: str
    kernel: Kernel[...]
    constants: Mapping[str, int]


def _step(name: str, body, warps: int, **constants: int) -> Step:
    return Step(name, tilec.kernel(grid=tiles_of_c, num_warps=warps)(body), constants)


STEPS = (
    _step("naive", from_global, 4, BM=128, BN=1),
    _step("coalesced", from_global, 4, BM=1, BN=128),
    _step("shared memory", from_shared, 32, BM=32, BN=32, BK=32, STAGES=1),
    _step("1-D tiling", from_shared, 16, BM=64, BN=64, BK=8, STAGES=1),
    _step("2-D tiling", from_shared, 8, BM=128, BN=128, BK=8, STAGES=1),
    _step("vectorised", from_shared, 8, BM=128, BN=128, BK=16, STAGES=3),
)
"""In order of speed."""


def main() -> None:
    """Every step on a product that fills no tile."""
    rng = np.random.default_rng(0)
    m, n, k = 68, 132, 36
    a = rng.standard_normal((m, k), dtype=np.float32)
    b = rng.standard_normal((k, n), dtype=np.float32)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    for step in STEPS:
        c = poisoned((m, n), np.float32)
        launch(step.kernel, a, b, c, **step.constants)
        compare(f"sgemm, {step.name}", c, expected, 1e-5)


if __name__ == "__main__":
    main()
