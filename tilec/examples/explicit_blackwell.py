"""The fifth generation of tensor cores by hand: tensor memory, tcgen05, and what waits for it.

Tensor memory has 128 lanes of 512 columns a CTA. A warp reaches the 32 lanes of its number, so four
warps have all of them; eight share the columns. Accumulators lie there, an lhs may, and one thread
issues the products. They run by themselves: `tcgen05_commit` lets an mbarrier know when all issued
so far are done, which frees their operands and completes their accumulators.

`round_trip` writes tensor memory and reads it back, `small_product` is one product with its
accumulator, and by choice its lhs, written by threads, `blocked_product` a product of matrices of
any size, one tile a CTA, `pipelined_product` the same for two tiles a CTA, one loading under the
other's products. (The kernels of Triton's Gluon tutorial "The 5th Generation TensorCore".)

Between threads that write tensor memory (or shared memory) and the thread that multiplies there are
three things: the fence of what was written, a sync, and `fence("tcgen05_after")`.
"""

from __future__ import annotations

import numpy as np

import tilec
import tilec.language as tl
from tilec.examples.running import compare, emulated_target, launch, poisoned
from tilec.hardware.target import Feature
from tilec.language import gpu

PANEL_BYTES = 128
"""What a row of a swizzled panel has, and a row of a copy's box at most."""


@tilec.kernel(grid=(1,), num_warps=4)
def round_trip(x: tl.array, y: tl.array, M: tl.const = 128, N: tl.const = 64, WARPS: tl.const = 4):
    """y = x, through tensor memory in blocks of 64 x 64, of which a view has a column."""
    memory = gpu.tensor_memory((M, N), (64, 64))
    rows = gpu.tensor_rows(gpu.tensor_memory((M, 64), (64, 64)), WARPS)
    coalesced = gpu.blocked((M, N), warps=WARPS, width=4)
    shared = gpu.alloc((M, N), x.dtype, gpu.padded((M, N), pad=4))
    there = gpu.alloc_tensor_memory((M, N), x.dtype, memory)

    shared.store(gpu.load(x, (0, 0), (M, N), coalesced))
    gpu.sync()
    for n in tl.static_range(0, N, 64):
        there.view((0, n), (M, 64)).store(shared.view((0, n), (M, 64)).load(rows))
    gpu.sync()
    for n in tl.static_range(0, N, 64):
        shared.view((0, n), (M, 64)).store(there.view((0, n), (M, 64)).load(rows))
    gpu.sync()
    tl.store(y, (0, 0), shared.load(coalesced))


@tilec.kernel(grid=(1,), num_warps=4)
def small_product(
    a: tl.array,
    b: tl.array,
    c: tl.array,
    d: tl.array,
    M: tl.const = 128,
    N: tl.const = 128,
    K: tl.const = 128,
    LHS_IN_TENSOR_MEMORY: tl.const = False,
    COMMIT: tl.const = True,
    WARPS: tl.const = 4,
):
    """d = a @ b + c, in blocks of at most 128 rows. COMMIT: by an op of its own."""
    halves, floats = PANEL_BYTES // 2, PANEL_BYTES // 4
    block = min(M, 128)
    a_shared = gpu.alloc((M, K), a.dtype, gpu.swizzled((M, K), a.dtype))
    b_shared = gpu.alloc((K, N), b.dtype, gpu.swizzled((K, N), b.dtype))
    c_shared = gpu.alloc((M, N), c.dtype, gpu.swizzled((M, N), c.dtype))
    memory = gpu.tensor_memory((M, N), (block, N))
    acc = gpu.alloc_tensor_memory((M, N), c.dtype, memory)
    loaded = gpu.barrier_init(count=1)
    done = gpu.barrier_init(count=1)
    gpu.fence("barrier_init")
    gpu.sync()

    loaded.expect(0, bytes=a_shared.bytes + b_shared.bytes + c_shared.bytes)
    gpu.tma_load(gpu.make_tensor_map(a, (M, halves)), a_shared, loaded, 0, (0, 0))
    gpu.tma_load(gpu.make_tensor_map(b, (K, halves)), b_shared, loaded, 0, (0, 0))
    gpu.tma_load(gpu.make_tensor_map(c, (M, floats)), c_shared, loaded, 0, (0, 0))
    loaded.wait(0, False)

    rows = gpu.tensor_rows(memory, WARPS)
    acc.store(c_shared.load(rows))
    if LHS_IN_TENSOR_MEMORY:
        packed = gpu.tensor_memory((M, K), (block, K), bits=16)
        lhs = gpu.alloc_tensor_memory((M, K), a.dtype, packed)
        lhs.store(a_shared.load(gpu.tensor_rows(packed, WARPS)))
    else:
        lhs = a_shared
    gpu.fence("tcgen05_before")
    gpu.sync()
    gpu.fence("tcgen05_after")

    if COMMIT:
        gpu.tcgen05_mma(lhs, b_shared, acc)
        gpu.tcgen05_commit(done)
    else:
        gpu.tcgen05_mma(lhs, b_shared, acc, barrier=done)
    done.wait(0, False)
    gpu.fence("tcgen05_after")

    c_shared.store(acc.load(rows))
    gpu.fence("async_shared")
    gpu.sync()
    gpu.tma_store(c_shared, gpu.make_tensor_map(d, (M, floats)), (0, 0))
    gpu.tma_commit()
    gpu.tma_wait(pending=0)


@tilec.kernel(
    grid=lambda c, BM, BN: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)), num_warps=4
)
def blocked_product(
    a: tl.array,
    b: tl.array,
    c: tl.array,
    BM: tl.const = 128,
    BN: tl.const = 128,
    BK: tl.const = 128,
    TRANSPOSED: tl.const = False,
    WARPS: tl.const = 4,
):
    """c = a @ b, or a @ b.T where TRANSPOSED: b is then (N, K) and multiplied as a view."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    halves = PANEL_BYTES // 2
    b_shape = (BN, BK) if TRANSPOSED else (BK, BN)
    a_map = gpu.make_tensor_map(a, (BM, halves))
    b_map = gpu.make_tensor_map(b, (b_shape[0], halves))
    c_map = gpu.make_tensor_map(c, (BM, halves))
    a_shared = gpu.alloc((BM, BK), a.dtype, gpu.swizzled((BM, BK), a.dtype))
    b_shared = gpu.alloc(b_shape, b.dtype, gpu.swizzled(b_shape, b.dtype))
    memory = gpu.tensor_memory((BM, BN))
    acc = gpu.alloc_tensor_memory((BM, BN), tl.f32, memory)
    loaded = gpu.barrier_init(count=1)
    done = gpu.barrier_init(count=1)
    gpu.fence("barrier_init")
    gpu.sync()

    rhs = b_shared.permute((1, 0)) if TRANSPOSED else b_shared
    for step in tl.range(tl.cdiv(a.shape[1], BK)):
        k = step * BK
        _, parity = gpu.ring_position(step, slots=1)
        loaded.expect(0, bytes=a_shared.bytes + b_shared.bytes)
        gpu.tma_load(a_map, a_shared, loaded, 0, (m, k))
        gpu.tma_load(b_map, b_shared, loaded, 0, (n, k) if TRANSPOSED else (k, n))
        loaded.wait(0, parity)
        gpu.tcgen05_mma(a_shared, rhs, acc, use_acc=step > 0, barrier=done)
        done.wait(0, parity)

    gpu.fence("tcgen05_after")
    out = gpu.alloc((BM, BN), c.dtype, gpu.swizzled((BM, BN), c.dtype))
    store_tile(acc, out, c_map, m, n, gpu.tensor_rows(memory, WARPS))
    gpu.tma_wait(pending=0)


@tilec.function
def store_tile(acc, out, c_map, m, n, rows):
    """Writes an accumulator to the array at (m, n), through a buffer that nobody reads."""
    out.store(acc.load(rows).to(out.dtype))
    gpu.fence("async_shared")
    gpu.sync()
    gpu.tma_store(out, c_map, (m, n))
    gpu.tma_commit()


@tilec.function
def load_upper(a_map, b_map, upper, right, loaded, slot, m, n, k):
    """Starts the copies of the upper tile's operands: a slot of each ring."""
    loaded.expect(slot, bytes=upper.bytes + right.bytes)
    gpu.tma_load(a_map, upper.slot(slot), loaded, slot, (m, k))
    gpu.tma_load(b_map, right.slot(slot), loaded, slot, (k, n))


@tilec.function
def load_lower(a_map, lower, loaded, slot, m, k):
    """Starts the copy of the lower tile's left operand; the right one is the upper tile's."""
    loaded.expect(slot, bytes=lower.bytes)
    gpu.tma_load(a_map, lower.slot(slot), loaded, slot, (m, k))


@tilec.function
def multiply(left, right, acc, loaded, done, slot, parity, use_acc):
    """One step of a tile: its operands are awaited, its products committed."""
    loaded.wait(slot, parity)
    gpu.tcgen05_mma(left.slot(slot), right.slot(slot), acc, use_acc, barrier=done, slot=slot)


@tilec.kernel(
    grid=lambda c, BM, BN: (tl.cdiv(c.shape[0], 2 * BM), tl.cdiv(c.shape[1], BN)), num_warps=4
)
def pipelined_product(
    a: tl.array,
    b: tl.array,
    c: tl.array,
    BM: tl.const = 128,
    BN: tl.const = 128,
    BK: tl.const = 64,
    WARPS: tl.const = 4,
):
    """c = a @ b, an upper and a lower tile a CTA, operands in rings of two slots. K is not 0."""
    m, n = tl.program_id(0) * (2 * BM), tl.program_id(1) * BN
    halves = PANEL_BYTES // 2
    a_map = gpu.make_tensor_map(a, (BM, halves))
    b_map = gpu.make_tensor_map(b, (BK, halves))
    c_map = gpu.make_tensor_map(c, (BM, halves))
    a_layout = gpu.swizzled((BM, BK), a.dtype)
    upper = gpu.alloc((BM, BK), a.dtype, a_layout, slots=2)
    lower = gpu.alloc((BM, BK), a.dtype, a_layout, slots=2)
    right = gpu.alloc((BK, BN), b.dtype, gpu.swizzled((BK, BN), b.dtype), slots=2)
    memory = gpu.tensor_memory((BM, BN))
    upper_acc = gpu.alloc_tensor_memory((BM, BN), tl.f32, memory)
    lower_acc = gpu.alloc_tensor_memory((BM, BN), tl.f32, memory)
    upper_loaded = gpu.barrier_init(count=1, slots=2)
    lower_loaded = gpu.barrier_init(count=1, slots=2)
    upper_done = gpu.barrier_init(count=1, slots=2)
    lower_done = gpu.barrier_init(count=1, slots=2)
    gpu.fence("barrier_init")
    gpu.sync()

    steps = tl.cdiv(a.shape[1], BK)
    for step in tl.range(min(steps, 2)):
        load_upper(a_map, b_map, upper, right, upper_loaded, step, m, n, step * BK)
        load_lower(a_map, lower, lower_loaded, step, m + BM, step * BK)

    for step in tl.range(steps):
        slot, parity = gpu.ring_position(step, slots=2)
        multiply(upper, right, upper_acc, upper_loaded, upper_done, slot, parity, step > 0)
        multiply(lower, right, lower_acc, lower_loaded, lower_done, slot, parity, step > 0)
        if step + 2 < steps:
            k = (step + 2) * BK
            upper_done.wait(slot, parity)  # under the lower tile's product
            upper_loaded.expect(slot, bytes=upper.bytes + right.bytes)
            gpu.tma_load(a_map, upper.slot(slot), upper_loaded, slot, (m, k))
            lower_done.wait(slot, parity)  # both have read the right operand
            gpu.tma_load(b_map, right.slot(slot), upper_loaded, slot, (k, n))
            load_lower(a_map, lower, lower_loaded, slot, m + BM, k)

    last, parity = gpu.ring_position(steps - 1, slots=2)
    out = gpu.alloc((BM, BN), c.dtype, gpu.swizzled((BM, BN), c.dtype))
    rows = gpu.tensor_rows(memory, WARPS)
    upper_done.wait(last, parity)
    gpu.fence("tcgen05_after")
    store_tile(upper_acc, out, c_map, m, n, rows)
    lower_done.wait(last, parity)
    gpu.fence("tcgen05_after")
    gpu.tma_wait(pending=0, read=True)  # the upper tile has left the buffer
    gpu.sync()
    store_tile(lower_acc, out, c_map, m + BM, n, rows)
    gpu.tma_wait(pending=0)


def main() -> None:
    """Each kernel once; the products in sizes that do not fill the tiles."""
    rng = np.random.default_rng(0)
    with emulated_target(Feature.TCGEN05):
        x = rng.standard_normal((256, 64)).astype(np.float32)
        y = poisoned(x.shape, x.dtype)
        launch(round_trip, x, y, M=256)
        compare("round_trip 256x64", y, x, 0.0)

        a, b, c = (rng.standard_normal((128, 128)) for _ in range(3))
        expected = a.astype(np.float16).astype(np.float64) @ b.astype(np.float16) + c
        d = poisoned(c.shape, np.float32)
        launch(small_product, *(v.astype(np.float16) for v in (a, b)), c.astype(np.float32), d)
        compare("small_product 128x128x128", d, expected, 1e-5)

        a = rng.standard_normal((208, 304)).astype(np.float16)
        b = rng.standard_normal((304, 416)).astype(np.float16)
        expected = a.astype(np.float64) @ b.astype(np.float64)
        for kernel in (blocked_product, pipelined_product):
            c = poisoned((208, 416), np.float16)
            launch(kernel, a, b, c, BM=64, BN=64, BK=64)
            compare(f"{kernel.name} 208x416x304", c, expected, 1e-3)


if __name__ == "__main__":
    main()
