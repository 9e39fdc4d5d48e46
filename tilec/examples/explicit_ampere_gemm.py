"""The Ampere matrix product by hand: cp.async, a ring in shared memory, ldmatrix, mma.sync.

d = a @ bt^T with a (M, K) and bt (N, K) in bf16, both with stride 1 along K, and d (M, N) in f32:
`ampere_gemm` instruction for instruction, in `tilec.language.gpu`. Nothing here is the compiler's
choice: every layout, copy, wait and barrier of the PTX stands in this file.

`gemm` is the hand-written kernel this example answers: two slots, two barriers an iteration, the
slot that was just read filled again. `gemm_ahead` is what the passes make of the loop in
`ampere_gemm`: copies STAGES - 1 tiles ahead behind the first products, fragments one k-step ahead,
also into the next iteration, and one barrier an iteration for two orders (the next slot's data is
there, the slot of the iteration before is free).
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

import tilec
import tilec.language as tl
from tilec.examples.running import compare, launch, poisoned
from tilec.language import gpu

MMA = "mma.m16n8k16.f32.bf16.bf16"
WARPS = 4
K_STEP = 16


@tilec.kernel(
    grid=lambda d, BM, BN: (tl.cdiv(d.shape[1], BN), tl.cdiv(d.shape[0], BM)), num_warps=WARPS
)
def gemm(
    a: tl.array,
    bt: tl.array,
    d: tl.array,
    BM: tl.const = 64,
    BN: tl.const = 64,
):
    """One BM x BN tile of d per program, 16 of K at a time; each warp has BM / 4 rows."""
    m, n = tl.program_id(1) * BM, tl.program_id(0) * BN
    acc_layout = gpu.accumulator(MMA, (BM, BN), along_m=WARPS)
    a_layout = gpu.lhs_fragments(MMA, acc_layout)
    b_layout = gpu.rhs_fragments(MMA, acc_layout)

    a_ring = gpu.alloc((BM, K_STEP), tl.bf16, gpu.swizzled((BM, K_STEP), tl.bf16), slots=2)
    # (k, n), as the instruction wants it, of an array that is (n, k): dims says so to the copy.
    b_ring = gpu.alloc((K_STEP, BN), tl.bf16, gpu.swizzled((K_STEP, BN), tl.bf16, 0), slots=2)

    for s in tl.static_range(2):
        gpu.cp_async(a, a_ring.slot(s), (m, s * K_STEP))
        gpu.cp_async(bt, b_ring.slot(s), (n, s * K_STEP), dims=(1, 0))
        gpu.cp_async_commit()

    acc = gpu.zeros((BM, BN), tl.f32, acc_layout)
    for k in tl.range(0, a.shape[1], K_STEP):
        slot, _ = gpu.ring_position(k // K_STEP, slots=2)
        gpu.cp_async_wait(pending=1)
        gpu.sync()  # every thread's copies into this slot are there

        fragment_a = a_ring.slot(slot).load(a_layout)
        fragment_b = b_ring.slot(slot).load(b_layout)
        acc = gpu.mma(fragment_a, fragment_b, acc, MMA)

        gpu.sync()  # every thread has read this slot
        # Past K a copy reads nothing and writes zeros; the group counts all the same.
        gpu.cp_async(a, a_ring.slot(slot), (m, k + 2 * K_STEP))
        gpu.cp_async(bt, b_ring.slot(slot), (n, k + 2 * K_STEP), dims=(1, 0))
        gpu.cp_async_commit()
    gpu.cp_async_wait(pending=0)
    tl.store(d, (m, n), acc)


@tilec.kernel(
    grid=lambda d, BM, BN: (tl.cdiv(d.shape[0], BM), tl.cdiv(d.shape[1], BN)), num_warps=WARPS
)
def gemm_ahead(
    a: tl.array,
    bt: tl.array,
    d: tl.array,
    BM: tl.const = 128,
    BN: tl.const = 128,
    BK: tl.const = 32,
    STAGES: tl.const = 4,
):
    """One BM x BN tile of d per program, BK of K at a time, over 2 x 2 warps."""
    x, y = tl.program_id(0), tl.program_id(1)
    rows, columns = tl.num_programs(0), tl.num_programs(1)
    row, column = gpu.tile_order(x + y * rows, rows, columns)
    m, n = row * BM, column * BN
    size = a.shape[1]
    acc_layout = gpu.accumulator(MMA, (BM, BN), along_m=2, along_n=2)
    a_layout = gpu.lhs_fragments(MMA, acc_layout)
    b_layout = gpu.rhs_fragments(MMA, acc_layout)
    a_ring = gpu.alloc((BM, BK), tl.bf16, gpu.swizzled((BM, BK), tl.bf16), slots=STAGES)
    b_ring = gpu.alloc((BK, BN), tl.bf16, gpu.swizzled((BK, BN), tl.bf16, 0), slots=STAGES)

    for s in tl.static_range(STAGES - 1):
        gpu.cp_async(a, a_ring.slot(s), (m, s * BK), mask=s * BK < size)
        gpu.cp_async(bt, b_ring.slot(s), (n, s * BK), mask=s * BK < size, dims=(1, 0))
        gpu.cp_async_commit()

    acc = gpu.zeros((BM, BN), tl.f32, acc_layout)
    count = 0
    gpu.cp_async_wait(pending=STAGES - 2)
    gpu.sync()
    fragment_a = a_ring.slot(0).view((0, 0), (BM, K_STEP)).load(a_layout)
    fragment_b = b_ring.slot(0).view((0, 0), (K_STEP, BN)).load(b_layout)
    for k in tl.range(0, size, BK):
        for step in tl.static_range(0, BK, K_STEP):
            now_a, now_b = fragment_a, fragment_b
            # The next step's fragments fly while this one multiplies.
            slot, _ = gpu.ring_position(count, slots=STAGES)
            following = step + K_STEP
            if following == BK:
                slot, _ = gpu.ring_position(count + 1, slots=STAGES)
                following = 0
                gpu.cp_async_wait(pending=STAGES - 2)
                gpu.sync()
            fragment_a = a_ring.slot(slot).view((0, following), (BM, K_STEP)).load(a_layout)
            fragment_b = b_ring.slot(slot).view((following, 0), (K_STEP, BN)).load(b_layout)
            acc = gpu.mma(now_a, now_b, acc, MMA)
            if step == 0:
                ahead = k + (STAGES - 1) * BK
                fill, _ = gpu.ring_position(count + (STAGES - 1), slots=STAGES)
                gpu.cp_async(a, a_ring.slot(fill), (m, ahead), mask=ahead < size)
                gpu.cp_async(bt, b_ring.slot(fill), (n, ahead), mask=ahead < size, dims=(1, 0))
                gpu.cp_async_commit()
        count = count + 1
    gpu.cp_async_wait(pending=0)
    tl.store(d, (m, n), acc)


def main() -> None:
    """Both kernels, on sizes that fill their tiles and on sizes that do not."""
    rng = np.random.default_rng(0)
    for m, n, k in ((64, 64, 64), (72, 136, 200), (40, 24, 0)):
        a = rng.standard_normal((m, k)).astype(ml_dtypes.bfloat16)
        bt = rng.standard_normal((n, k)).astype(ml_dtypes.bfloat16)
        expected = a.astype(np.float64) @ bt.astype(np.float64).T
        for name, kernel in (("gemm", gemm), ("gemm_ahead", gemm_ahead)):
            d = poisoned((m, n), np.float32)
            launch(kernel, a, bt, d)
            compare(f"explicit {name} {m}x{n}x{k}", d, expected, 1e-5)


if __name__ == "__main__":
    main()
