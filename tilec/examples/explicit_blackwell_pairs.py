"""A matrix product by pairs of CTAs: one instruction multiplies what both have in shared memory.

c = a @ b. A pair makes a tile of 2 BM rows: each CTA has its BM rows of a and of the accumulator,
and half of the columns of b, so that b is read once for both. Each fetches its own operands, whose
bytes arrive at a barrier of the first CTA; that one issues the products for both, and its commits
reach the barriers of both.
"""

from __future__ import annotations

import numpy as np

import tilec
import tilec.language as tl
from tilec.examples.running import compare, emulated_target, launch, poisoned
from tilec.hardware.target import Feature
from tilec.language import gpu

PANEL_BYTES = 128
BOTH = 3
"""A mask of the two CTAs of a cluster."""


@tilec.function
def store_part(acc, out, c_map, m, n, rows):
    """Hands a CTA's part of a tile to the copy engine."""
    gpu.tma_wait(pending=0, read=True)  # the tile before has left the buffer
    gpu.sync()
    out.store(acc.load(rows).to(out.dtype))
    gpu.fence("tcgen05_before")
    gpu.fence("async_shared")
    gpu.sync()
    gpu.tma_store(out, c_map, (m, n))
    gpu.tma_commit()


@tilec.kernel(
    grid=lambda c, BM, BN: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)),
    num_warps=4,
    persistent=True,
    cluster=(2, 1),
)
def pair_product(
    a: tl.array,
    b: tl.array,
    c: tl.array,
    BM: tl.const = 128,
    BN: tl.const = 256,
    BK: tl.const = 64,
    MMA: tl.const = "tcgen05.pair.m256n256k16.f32.f16.f16",
    MEMORY: tl.const = "(128,256):(1@lane,1@col)",
):
    """A CTA makes BM x BN of c; MMA is twice as high as BM and as wide as BN. MEMORY: the
    accumulator's lanes and columns, which differ for BM of 64."""
    halves = PANEL_BYTES // 2
    a_map = gpu.make_tensor_map(a, (BM, halves))
    b_map = gpu.make_tensor_map(b, (BK, halves))
    c_map = gpu.make_tensor_map(c, (BM, halves))
    left = gpu.alloc((BM, BK), a.dtype, gpu.swizzled((BM, BK), a.dtype))
    right = gpu.alloc((BK, BN // 2), b.dtype, gpu.swizzled((BK, BN // 2), b.dtype))
    out = gpu.alloc((BM, BN), c.dtype, gpu.swizzled((BM, BN), c.dtype))
    memory = gpu.tensor_layout(MEMORY)
    acc = gpu.alloc_tensor_memory((BM, BN), tl.f32, memory)
    loaded = gpu.barrier_init(count=1)
    done = gpu.barrier_init(count=1)
    gpu.fence("barrier_init")
    gpu.cluster_sync()

    rank = gpu.cluster_position(0)
    rows, columns = tl.cdiv(tl.num_programs(0), 2), tl.num_programs(1)
    steps = tl.cdiv(a.shape[1], BK)
    count = 0
    for tile in tl.range(gpu.cluster_id(), rows * columns, gpu.num_clusters()):
        m, n = (tile % rows * 2 + rank) * BM, tile // rows * BN
        for step in tl.range(steps):
            _, parity = gpu.ring_position(count, slots=1)
            k = step * BK
            if rank == 0:
                loaded.expect(0, bytes=2 * (left.bytes + right.bytes))
            gpu.tma_pair_load(a_map, left, loaded, 0, (m, k))
            gpu.tma_pair_load(b_map, right, loaded, 0, (k, n + rank * (BN // 2)))
            if rank == 0:
                loaded.wait(0, parity)  # so both have also read the tile before
                gpu.fence("tcgen05_after")
                gpu.tcgen05_mma(left, right, acc, use_acc=step > 0, instruction=MMA)
                gpu.tcgen05_multicast_commit(done, 0, BOTH)
            done.wait(0, parity)
            count = count + 1
        gpu.fence("tcgen05_after")
        store_part(acc, out, c_map, m, n, gpu.tensor_rows(memory, 4))
    gpu.tma_wait(pending=0)
    gpu.cluster_sync()  # neither ends while the other may still reach it


def main() -> None:
    """A product whose last pair of tiles is ragged."""
    rng = np.random.default_rng(0)
    with emulated_target(Feature.TCGEN05):
        a = rng.standard_normal((300, 136)).astype(np.float16)
        b = rng.standard_normal((136, 264)).astype(np.float16)
        c = poisoned((300, 264), np.float16)
        launch(pair_product, a, b, c)
        expected = a.astype(np.float64) @ b.astype(np.float64)
        compare("pair_product 300x264x136", c, expected, 1e-3)


if __name__ == "__main__":
    main()
