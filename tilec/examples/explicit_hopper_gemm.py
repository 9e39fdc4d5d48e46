"""The Hopper matrix product by hand: TMA, a ring, wgmma, warp roles, a persistent loop.

c = a @ b with a (M, K), b (K, N) and c (M, N) in bf16, each with stride 1 along its last dimension.

Three warpgroups. One warp of the third drives the copy engine into a ring of SLOTS tile pairs; the
two others multiply, each 64 rows of the tile, and hand the result to the copy engine, which writes
it while the next tile is multiplied. A slot of the ring is full when the bytes announced have
arrived, and free again when both warpgroups have released it. Either side counts its turns, from
tile to tile.

Every CTA walks the tiles `cta_id, cta_id + num_ctas, ...` in grouped order. What lies outside an
array is zero on the way in and left out on the way out, so M, N and K may be anything that keeps
rows multiples of 16 bytes.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

import tilec
import tilec.language as tl
from tilec.examples.running import compare, emulated_target, launch, poisoned
from tilec.hardware.target import Feature
from tilec.language import gpu

WARPGROUPS = 2


@tilec.function
def load_tile(a_map, b_map, a_slots, b_slots, ring, m, n, steps, count):
    """Copies the operands of the tile at (m, n), slot by slot; gives the count of turns taken."""
    depth = a_slots.shape[2]
    for step in tl.range(steps):
        slot = ring.acquire(count)
        ring.announce(slot, bytes=a_slots.bytes + b_slots.bytes)
        k = step * depth
        gpu.tma_load(a_map, a_slots.slot(slot), ring, slot, (m, k), cache="evict_first")
        gpu.tma_load(b_map, b_slots.slot(slot), ring, slot, (k, n), cache="evict_last")
        count = count + 1
    return count


@tilec.function
def multiply_tile(a_slots, b_slots, ring, acc, steps, count, INSTRUCTION):
    """Multiplies what the ring brings, one group of products in flight; gives product and count."""
    acc = gpu.wgmma_fence(acc)
    for step in tl.range(steps):
        slot = ring.wait(count)
        acc = gpu.wgmma(a_slots.slot(slot), b_slots.slot(slot), acc, INSTRUCTION)
        acc = gpu.wgmma_wait(acc, pending=1)
        if step > 0:  # the products before these have read it
            ring.release(ring.slot(count - 1), by="warpgroup")
        count = count + 1
    product = gpu.wgmma_wait(acc, pending=0)
    if steps > 0:  # a loop that ran zero times has no slot to release
        ring.release(ring.slot(count - 1), by="warpgroup")
    return product, count


@tilec.function
def store_tile(product, out, c_map, m, n):
    """Hands a tile to the copy engine, which writes it while the next is multiplied."""
    gpu.tma_wait(pending=0, read=True)  # the tile before has left the buffer
    gpu.sync(barrier=1)
    out.store(product.to(out.dtype))
    gpu.fence("async_shared")
    gpu.sync(barrier=1)
    gpu.tma_store(out, c_map, (m, n))
    gpu.tma_commit()


@tilec.kernel(
    grid=lambda c, BM, BN: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)),
    num_warps=4 * WARPGROUPS + 4,
)
def hopper_gemm(
    a: tl.array,
    b: tl.array,
    c: tl.array,
    BM: tl.const = 128,
    BN: tl.const = 256,
    BK: tl.const = 64,
    SLOTS: tl.const = 3,
    INSTRUCTION: tl.const = "wgmma.m64n256k16.f32.bf16.bf16",
):
    """BM x BN tiles of c, BK of K at a time; INSTRUCTION is as wide as BN."""
    tl.static_assert(SLOTS > 1, "a slot is released when the products of the next one are issued")
    rows, columns = tl.num_programs(0), tl.num_programs(1)
    steps = tl.cdiv(a.shape[1], BK)

    # A copy moves one panel of 128 bytes; a buffer is as many of them as it is wide.
    a_map = gpu.make_tensor_map(a, (BM, 64))
    b_map = gpu.make_tensor_map(b, (BK, 64))
    c_map = gpu.make_tensor_map(c, (BM, 64))
    a_slots = gpu.alloc((BM, BK), tl.bf16, gpu.swizzled((BM, BK), tl.bf16), slots=SLOTS)
    b_slots = gpu.alloc((BK, BN), tl.bf16, gpu.swizzled((BK, BN), tl.bf16), slots=SLOTS)
    out = gpu.alloc((BM, BN), tl.bf16, gpu.swizzled((BM, BN), tl.bf16))
    ring = gpu.make_ring(SLOTS, fills=1, releases=WARPGROUPS)
    # All of that may have run under the end of the launch before; now the arrays are ready.
    gpu.griddepcontrol("launch_dependents")
    gpu.griddepcontrol("wait")

    with gpu.role("load", first_warp=4 * WARPGROUPS, warps=4, registers=40):
        count = 0
        for tile in tl.range(gpu.cta_id(), rows * columns, gpu.num_ctas()):
            row, column = gpu.tile_order(tile, rows, columns)
            m, n = row * BM, column * BN
            count = load_tile(a_map, b_map, a_slots, b_slots, ring, m, n, steps, count)

    with gpu.role("multiply", first_warp=0, warps=4 * WARPGROUPS, registers=232):
        count = 0
        layout = gpu.accumulator(INSTRUCTION, (BM, BN), along_m=WARPGROUPS)
        for tile in tl.range(gpu.cta_id(), rows * columns, gpu.num_ctas()):
            row, column = gpu.tile_order(tile, rows, columns)
            zeros = gpu.zeros((BM, BN), tl.f32, layout)
            product, count = multiply_tile(a_slots, b_slots, ring, zeros, steps, count, INSTRUCTION)
            store_tile(product, out, c_map, row * BM, column * BN)
        gpu.tma_wait(pending=0, read=True)  # shared memory outlives the last store


def main() -> None:
    """Sizes that fill the tiles, sizes that do not, and no K at all."""
    rng = np.random.default_rng(0)
    with emulated_target(Feature.WGMMA):
        for m, n, k in ((128, 256, 64), (200, 264, 200), (72, 24, 0)):
            a = rng.standard_normal((m, k)).astype(ml_dtypes.bfloat16)
            b = rng.standard_normal((k, n)).astype(ml_dtypes.bfloat16)
            expected = a.astype(np.float64) @ b.astype(np.float64)
            c = poisoned((m, n), np.float32).astype(ml_dtypes.bfloat16)
            launch(hopper_gemm, a, b, c)
            compare(f"hopper_gemm {m}x{n}x{k}", c, expected, 1e-2)


if __name__ == "__main__":
    main()
