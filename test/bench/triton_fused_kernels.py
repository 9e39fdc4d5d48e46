"""The products of `fused_kernels` in Triton: descriptors, a program a tile or persistent."""

from __future__ import annotations

import triton
import triton.language as tl
from triton_product_kernels import _tile_of


@triton.jit
def converted(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
              GROUP: tl.constexpr, RELU: tl.constexpr, PROGRAMS: tl.constexpr):  # fmt: skip
    """c = relu(a) @ b with RELU, else c = a.to(bf16) @ b; PROGRAMS programs walk over all tiles."""
    tiles_m, tiles_n, steps = tl.cdiv(M, BM), tl.cdiv(N, BN), tl.cdiv(K, BK)
    for number in tl.range(tl.program_id(0), tiles_m * tiles_n, PROGRAMS):
        pm, pn = _tile_of(number, tiles_m, tiles_n, GROUP)
        m, n = pm * BM, pn * BN
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for i in range(steps):
            x = a.load([m, i * BK])
            if RELU:
                x = tl.maximum(x, 0.0)
            acc = tl.dot(x.to(tl.bfloat16), b.load([i * BK, n]), acc)
        c.store([m, n], acc.to(tl.bfloat16))


@triton.jit
def gated(a, b, g, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
          GROUP: tl.constexpr, PROGRAMS: tl.constexpr):  # fmt: skip
    """c = silu(a @ g) * (a @ b)."""
    tiles_m, tiles_n, steps = tl.cdiv(M, BM), tl.cdiv(N, BN), tl.cdiv(K, BK)
    for number in tl.range(tl.program_id(0), tiles_m * tiles_n, PROGRAMS):
        pm, pn = _tile_of(number, tiles_m, tiles_n, GROUP)
        m, n = pm * BM, pn * BN
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        gate = tl.zeros((BM, BN), dtype=tl.float32)
        for i in range(steps):
            x = a.load([m, i * BK])
            acc = tl.dot(x, b.load([i * BK, n]), acc)
            gate = tl.dot(x, g.load([i * BK, n]), gate)
        c.store([m, n], (gate / (1 + tl.exp(-gate)) * acc).to(tl.bfloat16))


@triton.jit
def grouped(a, b, ends, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
            GROUPS: tl.constexpr):  # fmt: skip
    """Rows of a up to each of `ends` times a matrix of their own; those of b lie below each other.
    A program a tile, `c` a pointer, because a group may end inside a tile."""
    tile = tl.program_id(0)
    n = tl.program_id(1) * BN
    group, m, stop, start, before = 0, 0, 0, 0, 0
    for i in range(GROUPS):
        end = tl.load(ends + i)
        count = tl.cdiv(end - start, BM)
        here = (tile >= before) & (tile < before + count)
        group = tl.where(here, i, group)
        m = tl.where(here, start + (tile - before) * BM, m)
        stop = tl.where(here, end, stop)
        start, before = end, before + count
    if m < stop:
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for i in tl.range(tl.cdiv(K, BK)):
            acc = tl.dot(a.load([m, i * BK]), b.load([group * K + i * BK, n]), acc)
        rows, columns = m + tl.arange(0, BM), n + tl.arange(0, BN)
        at = c + rows[:, None].to(tl.int64) * N + columns[None, :]
        tl.store(at, acc.to(tl.bfloat16), mask=(rows[:, None] < stop) & (columns[None, :] < N))
