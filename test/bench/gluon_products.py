"""A matrix product in Gluon, as a Hopper expert writes it: one warp that issues TMA copies into a
ring of stages, two warpgroups that each multiply half the rows of a tile, free of each other."""
# ruff: noqa: RUF005 - Gluon has no starred lists

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)


@gluon.jit
def _tile_of(number, tiles_m, tiles_n, GROUP: gl.constexpr):
    in_group = GROUP * tiles_n
    first = number // in_group * GROUP
    rows = min(tiles_m - first, GROUP)
    return first + number % rows, (number % in_group) // rows


@gluon.jit
def _copy(a, b, ring_a, ring_b, full, free, tiles_m, tiles_n, steps, BM: gl.constexpr,
          BN: gl.constexpr, BK: gl.constexpr, GROUP: gl.constexpr,
          STAGES: gl.constexpr, TRANSPOSED: gl.constexpr):  # fmt: skip
    """The role of the warp that issues copies."""
    step = 0
    for number in range(gl.program_id(0), tiles_m * tiles_n, gl.num_programs(0)):
        m, n = _tile_of(number, tiles_m, tiles_n, GROUP)
        for k in range(steps):
            slot = step % STAGES
            mbarrier.wait(free.index(slot), ((step // STAGES) & 1) ^ 1)
            arrived = full.index(slot)
            mbarrier.expect(arrived, a.block_type.nbytes + b.block_type.nbytes)
            tma.async_copy_global_to_shared(a, [m * BM, k * BK], arrived, ring_a.index(slot))
            if TRANSPOSED:
                tma.async_copy_global_to_shared(b, [n * BN, k * BK], arrived, ring_b.index(slot))
            else:
                tma.async_copy_global_to_shared(b, [k * BK, n * BN], arrived, ring_b.index(slot))
            step += 1


@gluon.jit
def _b_of(ring_b, slot, TRANSPOSED: gl.constexpr):
    if TRANSPOSED:
        return ring_b.index(slot).permute((1, 0))
    else:
        return ring_b.index(slot)


@gluon.jit
def _multiply(c, ring_a, ring_b, out, full, free, tiles_m, tiles_n, steps, HALF: gl.constexpr,
              BM: gl.constexpr, BN: gl.constexpr, GROUP: gl.constexpr, STAGES: gl.constexpr,
              TRANSPOSED: gl.constexpr, LAYOUT: gl.constexpr):  # fmt: skip
    """The role of a warpgroup: rows HALF * BM / 2 and on of every tile, one wgmma in flight."""
    ROWS: gl.constexpr = BM // 2
    step = 0
    for number in range(gl.program_id(0), tiles_m * tiles_n, gl.num_programs(0)):
        m, n = _tile_of(number, tiles_m, tiles_n, GROUP)
        acc = gl.zeros((ROWS, BN), dtype=gl.float32, layout=LAYOUT)
        slot = step % STAGES
        mbarrier.wait(full.index(slot), (step // STAGES) & 1)
        x = ring_a.index(slot).slice(HALF * ROWS, ROWS, dim=0)
        y = _b_of(ring_b, slot, TRANSPOSED)
        running = warpgroup_mma(x, y, acc, use_acc=False, is_async=True)
        running = warpgroup_mma_wait(num_outstanding=1, deps=(running,))
        step += 1
        for _ in range(1, steps):
            slot = step % STAGES
            mbarrier.wait(full.index(slot), (step // STAGES) & 1)
            x = ring_a.index(slot).slice(HALF * ROWS, ROWS, dim=0)
            y = _b_of(ring_b, slot, TRANSPOSED)
            running = warpgroup_mma(x, y, running, is_async=True)
            running = warpgroup_mma_wait(num_outstanding=1, deps=(running,))
            mbarrier.arrive(free.index((step - 1) % STAGES), count=1)
            step += 1
        acc = warpgroup_mma_wait(num_outstanding=0, deps=(running,))
        mbarrier.arrive(free.index((step - 1) % STAGES), count=1)
        tma.store_wait(0)
        out.store(acc.to(c.dtype))
        fence_async_shared()
        gl.thread_barrier()
        tma.async_copy_shared_to_global(c, [m * BM + HALF * ROWS, n * BN], out)
    tma.store_wait(0)


@gluon.jit
def product(a, b, c, M, N, K, GROUP: gl.constexpr, STAGES: gl.constexpr,
            TRANSPOSED: gl.constexpr, LAYOUT: gl.constexpr):  # fmt: skip
    """c = a @ b; the descriptors' blocks say the tile, c's is one warpgroup's half of it."""
    BM: gl.constexpr = a.block_type.shape[0]
    BN: gl.constexpr = c.block_type.shape[1]
    BK: gl.constexpr = a.block_type.shape[1]
    ring_a = gl.allocate_shared_memory(a.dtype, [STAGES] + a.block_type.shape, a.layout)
    ring_b = gl.allocate_shared_memory(b.dtype, [STAGES] + b.block_type.shape, b.layout)
    out = gl.allocate_shared_memory(c.dtype, [2] + c.block_type.shape, c.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    free = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for slot in gl.static_range(STAGES):
        mbarrier.init(full.index(slot), count=1)
        mbarrier.init(free.index(slot), count=2)
    tiles_m = gl.cdiv(M, BM)
    tiles_n = gl.cdiv(N, BN)
    steps = gl.cdiv(K, BK)
    gl.warp_specialize([
        (_multiply, (c, ring_a, ring_b, out.index(0), full, free, tiles_m, tiles_n, steps, 0,
                     BM, BN, GROUP, STAGES, TRANSPOSED, LAYOUT)),
        (_multiply, (c, ring_a, ring_b, out.index(1), full, free, tiles_m, tiles_n, steps, 1,
                     BM, BN, GROUP, STAGES, TRANSPOSED, LAYOUT)),
        (_copy, (a, b, ring_a, ring_b, full, free, tiles_m, tiles_n, steps, BM, BN, BK, GROUP,
                 STAGES, TRANSPOSED)),
    ], [4, 1], [240, 24])  # fmt: skip
