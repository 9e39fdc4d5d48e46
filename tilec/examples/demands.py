"""Demands: what the author decides instead of the compiler. Each is met, or an error says why.

- `tl.range(..., stages=4)`: the loop's tiles wait in rings of four slots in shared memory.
- `tl.range(..., warp_specialize=True)`: some warps keep the rings full, the others compute.
- `kernel.demanding(num_warps=8, persistent=True)`, or the same in `@tilec.kernel(...)`: warps of a
  program; CTAs that stay and share the programs.
- `consumers="pingpong"` there: two sets of warps take a CTA's programs in turn, and what one does
  behind its last product runs under the products of the other.
- `cluster=2` there, or `cluster=(1, 2)`: neighbouring programs of the grid load together what
  they share. It takes tensor copies, so a GPU that has them, and arrays that they can read: a
  multiple of 16 bytes from row to row.

Demands go through constants here, whose None leaves the choice to the compiler.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

import tilec
import tilec.language as tl
from tilec.examples.running import compare, emulated_target, launch, poisoned
from tilec.hardware.target import Feature


@tilec.kernel(grid=lambda c, BM, BN: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)))
def matmul(
    a: tl.array,
    b: tl.array,
    c: tl.array,
    BM: tl.const = 64,
    BN: tl.const = 64,
    BK: tl.const = 64,
    STAGES: tl.const = None,
    WARP_SPECIALIZE: tl.const = None,
):
    """One BM x BN tile of c = a @ b per program."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK, stages=STAGES, warp_specialize=WARP_SPECIALIZE):
        acc = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(b, (k, n), (BK, BN)), acc)
    tl.store(c, (m, n), acc.to(c.dtype))


def main() -> None:
    """The compiler's choice and four demands, then one that cannot be met."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((136, 200)).astype(ml_dtypes.bfloat16)
    b = rng.standard_normal((200, 72)).astype(ml_dtypes.bfloat16)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    with emulated_target(Feature.WGMMA):
        for name, kernel, constants in (
            ("the compiler's choice", matmul, {}),
            ("two stages, a loading warp", matmul, {"STAGES": 2, "WARP_SPECIALIZE": True}),
            ("a CTA for each program", matmul.demanding(num_warps=4, persistent=False), {}),
            ("two share a tile of b", matmul.demanding(cluster=2), {}),
            ("in turn", matmul.demanding(num_warps=4, consumers="pingpong"), {}),
        ):
            c = poisoned((136, 72), ml_dtypes.bfloat16)
            launch(kernel, a, b, c, **constants)
            compare(name, c, expected, 1e-2)
        unaligned = np.zeros((136, 201), ml_dtypes.bfloat16)[:, :200]
        try:
            launch(matmul.demanding(cluster=2), unaligned, b, c)
        except tilec.CompileError as error:
            print(error)
        else:
            raise SystemExit("WRONG: rows of 402 bytes cannot be copied by tensor maps")


if __name__ == "__main__":
    main()
