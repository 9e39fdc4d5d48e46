"""Triton's kernels and candidates for `fresh_updates`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import triton
import triton.language as tl
from fresh_case import Fresh
from fresh_rows_triton import launch, row_warps
from triton.language.extra import libdevice
from triton_peers import TritonLaunch


@triton.jit
def nesterov(p, g, v, copy, n, rate, momentum, decay, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    weight = tl.load(p + i, i < n, other=0)
    slope = tl.load(g + i, i < n, other=0).to(tl.float32) + decay * weight
    speed = momentum * tl.load(v + i, i < n, other=0) + slope
    weight = weight - rate * (slope + momentum * speed)
    tl.store(v + i, speed, i < n)
    tl.store(p + i, weight, i < n)
    tl.store(copy + i, weight, i < n)


@triton.jit
def adagrad(p, g, squares, n, rate, eps, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    slope = tl.load(g + i, i < n, other=0).to(tl.float32)
    square = tl.load(squares + i, i < n, other=0) + slope * slope
    tl.store(squares + i, square, i < n)
    weight = tl.load(p + i, i < n, other=0).to(tl.float32)
    tl.store(p + i, weight - rate * slope / (tl.sqrt(square) + eps), i < n)


@triton.jit
def moving_average(average, x, n, share, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(average + i, i < n, other=0)
    new = tl.load(x + i, i < n, other=0).to(tl.float32)
    tl.store(average + i, v + share * (new - v), i < n)


@triton.jit
def mish_slope(x, dy, dx, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, i < n, other=0).to(tl.float32)
    inner = libdevice.tanh(tl.where(v > 20, v, tl.log(1 + tl.exp(v))))
    slope = inner + v * tl.sigmoid(v) * (1 - inner * inner)
    tl.store(dx + i, tl.load(dy + i, i < n, other=0).to(tl.float32) * slope, i < n)


@triton.jit
def smooth_l1_sums(x, z, y, n, beta, B: tl.constexpr):
    program = tl.program_id(0)
    total = tl.zeros([B], tl.float32)
    for start in range(program * B, n, tl.num_programs(0) * B):
        i = start + tl.arange(0, B)
        a = tl.load(x + i, i < n, other=0).to(tl.float32)
        d = tl.abs(a - tl.load(z + i, i < n, other=0).to(tl.float32))
        total += tl.where(d < beta, 0.5 * d * d / beta, d - 0.5 * beta)
    tl.store(y + program, tl.sum(total, 0))


@triton.jit
def token_shift(x, share, y, T, C, B: tl.constexpr):
    t, b = tl.program_id(0), tl.program_id(1)
    i = tl.arange(0, B)
    at = (b.to(tl.int64) * T + t) * C + i
    now = tl.load(x + at, i < C, other=0).to(tl.float32)
    before = tl.load(x + at - C, (i < C) & (t > 0), other=0).to(tl.float32)
    mixed = now + tl.load(share + i, i < C, other=0).to(tl.float32) * (before - now)
    tl.store(y + at, mixed, i < C)


@triton.jit
def dequantise_groups(x, scales, y, N, GROUP: tl.constexpr, K: tl.constexpr):
    n, row = tl.program_id(0) * K + tl.arange(0, K), tl.program_id(1).to(tl.int64)
    i = n[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    there = (n < N)[:, None]
    v = tl.load(x + row * N * GROUP + i, there, other=0).to(tl.float32)
    scale = tl.load(scales + row * N + n, n < N, other=0).to(tl.float32)[:, None]
    tl.store(y + row * N * GROUP + i, v * scale, there)


@triton.jit
def quantise_groups(x, y, scales, COUNT, GROUP: tl.constexpr, K: tl.constexpr):
    n = tl.program_id(0) * K + tl.arange(0, K)
    i = n[:, None].to(tl.int64) * GROUP + tl.arange(0, GROUP)[None, :]
    there = (n < COUNT)[:, None]
    v = tl.load(x + i, there, other=0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(v), 1), 1e-6) / 127
    tl.store(scales + n, scale, n < COUNT)
    q = libdevice.rint(v / scale[:, None])
    tl.store(y + i, tl.minimum(tl.maximum(q, -127), 127).to(tl.int8), there)


@triton.jit
def affine_planes(x, scale, shift, y, C, SPACE, B: tl.constexpr):
    plane = tl.program_id(1)
    c = plane % C
    i = tl.program_id(0) * B + tl.arange(0, B)
    at = plane.to(tl.int64) * SPACE + i
    v = tl.load(x + at, i < SPACE, other=0).to(tl.float32)
    v = v * tl.load(scale + c) + tl.load(shift + c)
    tl.store(y + at, tl.maximum(v, 0.0), i < SPACE)


@triton.jit
def fake_quantise(x, scale, zero, y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    a = tl.load(scale + n, n < N, other=1)[None, :]
    z = tl.load(zero + n, n < N, other=0)[None, :]
    there = (m < M) & (n < N)[None, :]
    at = m.to(tl.int64) * N + n[None, :]
    v = libdevice.rint(tl.load(x + at, there, other=0).to(tl.float32) / a) + z
    tl.store(y + at, (tl.minimum(tl.maximum(v, 0.0), 255.0) - z) * a, there)


@triton.jit
def multiply_complex(a, b, c, n, B: tl.constexpr):
    i = tl.program_id(0) * 2 * B + tl.arange(0, 2 * B)
    x, u = tl.split(tl.reshape(tl.load(a + i, i < 2 * n, other=0), [B, 2]))
    y, v = tl.split(tl.reshape(tl.load(b + i, i < 2 * n, other=0), [B, 2]))
    found = tl.reshape(tl.join(x * y - u * v, x * v + u * y), [2 * B])
    tl.store(c + i, found, i < 2 * n)


@triton.jit
def column_norms(x, y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros([BM, BN], tl.float32)
    for first in range(0, M, BM):
        m = first + tl.arange(0, BM)[:, None]
        there = (m < M) & (n < N)[None, :]
        v = tl.load(x + m.to(tl.int64) * N + n[None, :], there, other=0).to(tl.float32)
        total += v * v
    tl.store(y + n, tl.sqrt(tl.sum(total, 0)), n < N)


FLAT = ((512, 4), (1024, 4), (1024, 8), (2048, 4), (2048, 8), (4096, 8))


def _flat(case: Fresh) -> Iterator[TritonLaunch]:
    n = case.shapes[next(iter(case.shapes))][0]
    for tile, warps in FLAT:
        programs = case.shapes["y"][0] if "sums" in case.kernel else triton.cdiv(n, tile)
        numbers = (n, *case.scalars)
        yield launch(
            *(f"B{tile} w{warps}", globals()[case.kernel], (programs,), case.shapes, *numbers),
            **{"B": tile, "num_warps": warps},
        )


def _shift(case: Fresh) -> Iterator[TritonLaunch]:
    b, t, c = case.shapes["x"]
    for warps in row_warps(c):
        tile = triton.next_power_of_2(c)
        yield launch(f"w{warps}", token_shift, (t, b), case.shapes, t, c, B=tile, num_warps=warps)


def _dequantise(case: Fresh) -> Iterator[TritonLaunch]:
    (rows, n), group = case.shapes["scales"], dict(case.constants)["GROUP"]
    for size, warps in ((512, 2), (1024, 2), (1024, 4), (2048, 4), (4096, 4), (4096, 8)):
        k = size // group
        yield launch(
            *(f"K{k} w{warps}", dequantise_groups, (triton.cdiv(n, k), rows), case.shapes, n),
            **{"GROUP": group, "K": k, "num_warps": warps},
        )


def _quantise(case: Fresh) -> Iterator[TritonLaunch]:
    (rows, n), group = case.shapes["scales"], dict(case.constants)["GROUP"]
    for size, warps in ((512, 1), (1024, 2), (1024, 4), (2048, 4), (4096, 4), (4096, 8)):
        k = size // group
        yield launch(
            *(f"K{k} w{warps}", quantise_groups, (triton.cdiv(n * rows, k),), case.shapes),
            *(n * rows,),
            **{"GROUP": group, "K": k, "num_warps": warps},
        )


def _planes(case: Fresh) -> Iterator[TritonLaunch]:
    b, c, space = case.shapes["x"]
    if b * c > 65535:
        return
    for tile, warps in ((256, 2), (512, 4), (1024, 4), (2048, 4), (2048, 8), (4096, 8)):
        grid = (triton.cdiv(space, tile), b * c)
        numbers = (c, space)
        yield launch(
            f"B{tile} w{warps}", affine_planes, grid, case.shapes, *numbers, B=tile, num_warps=warps
        )


def _fake(case: Fresh) -> Iterator[TritonLaunch]:
    m, n = case.shapes["x"]
    for bm, bn, warps in ((1, 1024, 4), (4, 256, 4), (8, 128, 4), (8, 256, 8), (16, 64, 4)):
        yield launch(
            f"{bm}x{bn} w{warps}",
            *(fake_quantise, (triton.cdiv(m, bm), triton.cdiv(n, bn)), case.shapes, m, n),
            **{"BM": bm, "BN": bn, "num_warps": warps},
        )


def _columns(case: Fresh) -> Iterator[TritonLaunch]:
    m, n = case.shapes["x"]
    for bm, bn, warps in ((16, 64, 4), (32, 64, 4), (64, 32, 4), (64, 64, 8), (128, 32, 8),
                          (128, 16, 4), (32, 128, 8)):  # fmt: skip
        yield launch(
            f"{bm}x{bn} w{warps}",
            *(column_norms, (triton.cdiv(n, bn),), case.shapes, m, n),
            **{"BM": bm, "BN": bn, "num_warps": warps},
        )


UPDATE_CANDIDATES: dict[str, Callable[[Fresh], Iterator[TritonLaunch]]] = {
    **dict.fromkeys(
        ("nesterov", "adagrad", "moving_average", "mish_slope", "smooth_l1_sums"), _flat
    ),
    "multiply_complex": _flat,
    "token_shift": _shift,
    "dequantise_groups": _dequantise,
    "quantise_groups": _quantise,
    "affine_planes": _planes,
    "fake_quantise": _fake,
    "column_norms": _columns,
}
