"""Two ways to load the next tiles while the current ones multiply: prefetch and double buffering.

c = a @ b^T in exact f32, a (M, K) and b (N, K) column by column (stride 1 along M and N).

- `prefetch` carries the next tiles in registers from one iteration to the next: their loads are
  issued before the product, and nothing waits for them until it is done. The author writes the
  order down.
- `double_buffered` asks for it: `stages=2` makes two buffers of each operand in shared memory, and
  the copy into one (cp.async, past the registers) flies while the other is read. There is one
  barrier an iteration instead of two, and no register holds a tile in flight. More stages are a
  larger number.

In both, fragments come from shared memory one step of k ahead of the multiplications.
"""

from __future__ import annotations

import numpy as np

import tilec
import tilec.language as tl
from tilec.examples.running import compare, launch, poisoned


def tiles_of_c(c, BM, BN):
    """One program per BM x BN tile of c."""
    return tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)


@tilec.kernel(grid=tiles_of_c)
def prefetch(
    a: tl.array,
    b: tl.array,
    c: tl.array,
    BM: tl.const = 128,
    BN: tl.const = 128,
    BK: tl.const = 8,
):
    """The next tiles wait in registers. What lies past K loads as zeros and is never multiplied."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    left, right = tl.load(a, (m, 0), (BM, BK)), tl.load(b, (n, 0), (BN, BK))
    for k in tl.range(0, a.shape[1], BK):
        next_left = tl.load(a, (m, k + BK), (BM, BK))
        next_right = tl.load(b, (n, k + BK), (BN, BK))
        acc = tl.dot(left, right.T, acc)
        left, right = next_left, next_right
    tl.store(c, (m, n), acc)


@tilec.kernel(grid=tiles_of_c)
def double_buffered(
    a: tl.array,
    b: tl.array,
    c: tl.array,
    BM: tl.const = 128,
    BN: tl.const = 128,
    BK: tl.const = 8,
    STAGES: tl.const = 2,
):
    """The next tiles wait in the other half of a ring in shared memory."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK, stages=STAGES):
        acc = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(b, (n, k), (BN, BK)).T, acc)
    tl.store(c, (m, n), acc)


def main() -> None:
    """Both, with a K that is no multiple of a tile, and a ring of four."""
    rng = np.random.default_rng(0)
    a = np.asfortranarray(rng.standard_normal((132, 44), dtype=np.float32))
    b = np.asfortranarray(rng.standard_normal((72, 44), dtype=np.float32))
    expected = a.astype(np.float64) @ b.astype(np.float64).T
    for name, kernel, constants in (
        ("prefetch", prefetch, {}),
        ("double_buffered", double_buffered, {}),
        ("double_buffered, 4 stages", double_buffered, {"STAGES": 4}),
    ):
        c = poisoned((132, 72), np.float32)
        launch(kernel, a, b, c, **constants)
        compare(name, c, expected, 1e-5)


if __name__ == "__main__":
    main()
