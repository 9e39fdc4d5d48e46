"""Matrix products in Triton for Hopper: TMA descriptors, persistent programs, warp specialisation.

b is K x N, or with TRANSPOSED its transpose N x K; a is M x K, or with ACROSS its transpose. With
BATCH > 1 the matrices lie below each other in two-dimensional descriptors, and M, N, K must be
multiples of the tile.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _tile_of(number, tiles_m, tiles_n, GROUP: tl.constexpr):
    """Row and column of a tile, in groups of GROUP rows that walk along the columns."""
    in_group = GROUP * tiles_n
    first = number // in_group * GROUP
    rows = min(tiles_m - first, GROUP)
    return first + number % rows, (number % in_group) // rows


@triton.jit
def _places(number, tiles_m, tiles_n, M, N, K, BM: tl.constexpr, BN: tl.constexpr,
            GROUP: tl.constexpr, BATCH: tl.constexpr, TRANSPOSED: tl.constexpr):  # fmt: skip
    """First row of a (and of c), first column, first row of b's matrix."""
    if BATCH > 1:
        matrix = number // (tiles_m * tiles_n)
        m, n = _tile_of(number % (tiles_m * tiles_n), tiles_m, tiles_n, GROUP)
        b_row = matrix * (N if TRANSPOSED else K)
        return matrix * M + m * BM, n * BN, b_row
    else:
        m, n = _tile_of(number, tiles_m, tiles_n, GROUP)
        return m * BM, n * BN, 0


@triton.jit
def _load_a(a, row, k, ACROSS: tl.constexpr):
    if ACROSS:
        return a.load([k, row]).T
    else:
        return a.load([row, k])


@triton.jit
def _load_b(b, b_row, n, k, TRANSPOSED: tl.constexpr):
    if TRANSPOSED:
        return b.load([b_row + n, k]).T
    else:
        return b.load([b_row + k, n])


@triton.jit
def tiles(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
          GROUP: tl.constexpr, TRANSPOSED: tl.constexpr, ACC: tl.constexpr,
          OUT: tl.constexpr, PRECISION: tl.constexpr, ACROSS: tl.constexpr):  # fmt: skip
    """A program a tile; a, b, c are descriptors."""
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    pm, pn = _tile_of(tl.program_id(0), tiles_m, tiles_n, GROUP)
    m, n = pm * BM, pn * BN
    acc = tl.zeros((BM, BN), dtype=ACC)
    for i in tl.range(tl.cdiv(K, BK)):
        x = _load_a(a, m, i * BK, ACROSS)
        y = _load_b(b, 0, n, i * BK, TRANSPOSED)
        acc = tl.dot(x, y, acc, input_precision=PRECISION, out_dtype=ACC)
    c.store([m, n], acc.to(OUT))


@triton.jit
def persistent(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
               GROUP: tl.constexpr, TRANSPOSED: tl.constexpr, ACC: tl.constexpr,
               OUT: tl.constexpr, PRECISION: tl.constexpr, BATCH: tl.constexpr,
               PROGRAMS: tl.constexpr, HALVES: tl.constexpr):  # fmt: skip
    """PROGRAMS programs walk over all tiles; HALVES stores each tile in two parts."""
    tiles_m, tiles_n, steps = tl.cdiv(M, BM), tl.cdiv(N, BN), tl.cdiv(K, BK)
    stored = tl.program_id(0) - PROGRAMS
    for number in tl.range(tl.program_id(0), tiles_m * tiles_n * BATCH, PROGRAMS, flatten=True):
        m, n, b_row = _places(number, tiles_m, tiles_n, M, N, K, BM, BN, GROUP, BATCH, TRANSPOSED)
        acc = tl.zeros((BM, BN), dtype=ACC)
        for i in range(steps):
            x = a.load([m, i * BK])
            y = _load_b(b, b_row, n, i * BK, TRANSPOSED)
            acc = tl.dot(x, y, acc, input_precision=PRECISION, out_dtype=ACC)
        stored += PROGRAMS
        m, n, _ = _places(stored, tiles_m, tiles_n, M, N, K, BM, BN, GROUP, BATCH, TRANSPOSED)
        if HALVES:
            left, right = tl.split(tl.permute(tl.reshape(acc, (BM, 2, BN // 2)), (0, 2, 1)))
            c.store([m, n], left.to(OUT))
            c.store([m, n + BN // 2], right.to(OUT))
        else:
            c.store([m, n], acc.to(OUT))


@triton.jit
def specialized(a_pointer, b_pointer, c_pointer, M, N, K, BM: tl.constexpr, BN: tl.constexpr,
                BK: tl.constexpr, GROUP: tl.constexpr, TRANSPOSED: tl.constexpr,
                ACC: tl.constexpr, OUT: tl.constexpr, PRECISION: tl.constexpr,
                BATCH: tl.constexpr, PROGRAMS: tl.constexpr):  # fmt: skip
    """Warp-specialised: the one form that Triton 3.6 specialises on Hopper, with 4 warps."""
    tiles_m, tiles_n, steps = tl.cdiv(M, BM), tl.cdiv(N, BN), tl.cdiv(K, BK)
    a = tl.make_tensor_descriptor(a_pointer, [M * BATCH, K], [K, 1], [BM, BK])
    if TRANSPOSED:
        b = tl.make_tensor_descriptor(b_pointer, [N * BATCH, K], [K, 1], [BN, BK])
    else:
        b = tl.make_tensor_descriptor(b_pointer, [K * BATCH, N], [N, 1], [BK, BN])
    c = tl.make_tensor_descriptor(c_pointer, [M * BATCH, N], [N, 1], [BM, BN])
    stored = tl.program_id(0) - PROGRAMS
    count = tiles_m * tiles_n * BATCH
    for number in tl.range(tl.program_id(0), count, PROGRAMS, flatten=False, warp_specialize=True):
        m, n, b_row = _places(number, tiles_m, tiles_n, M, N, K, BM, BN, GROUP, BATCH, TRANSPOSED)
        acc = tl.zeros((BM, BN), dtype=ACC)
        for i in range(steps):
            x = a.load([m, i * BK])
            y = _load_b(b, b_row, n, i * BK, TRANSPOSED)
            acc = tl.dot(x, y, acc, input_precision=PRECISION, out_dtype=ACC)
        stored += PROGRAMS
        m, n, _ = _places(stored, tiles_m, tiles_n, M, N, K, BM, BN, GROUP, BATCH, TRANSPOSED)
        c.store([m, n], acc.to(OUT))


@triton.jit
def masked(a, b, c, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm,
           matrix_a, matrix_b, matrix_c, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
           GROUP: tl.constexpr, ACC: tl.constexpr, PRECISION: tl.constexpr,
           EVEN: tl.constexpr):  # fmt: skip
    """The tutorial's pointer kernel, for any K where not EVEN; `matrix_a` and so on: elements from
    one matrix of a batch to the next."""
    matrix = tl.program_id(1).to(tl.int64)
    a, b, c = a + matrix * matrix_a, b + matrix * matrix_b, c + matrix * matrix_c
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    pm, pn = _tile_of(tl.program_id(0), tiles_m, tiles_n, GROUP)
    m = (pm * BM + tl.arange(0, BM)) % M
    n = (pn * BN + tl.arange(0, BN)) % N
    k = tl.arange(0, BK)
    at_a = a + m[:, None] * stride_am + k[None, :] * stride_ak
    at_b = b + k[:, None] * stride_bk + n[None, :] * stride_bn
    acc = tl.zeros((BM, BN), dtype=ACC)
    for i in range(tl.cdiv(K, BK)):
        if EVEN:
            x, y = tl.load(at_a), tl.load(at_b)
        else:
            x = tl.load(at_a, mask=k[None, :] < K - i * BK, other=0.0)
            y = tl.load(at_b, mask=k[:, None] < K - i * BK, other=0.0)
        acc = tl.dot(x, y, acc, input_precision=PRECISION, out_dtype=ACC)
        at_a += BK * stride_ak
        at_b += BK * stride_bk
    m = pm * BM + tl.arange(0, BM)
    n = pn * BN + tl.arange(0, BN)
    at_c = c + m[:, None] * stride_cm + n[None, :]
    tl.store(at_c, acc.to(c.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))
