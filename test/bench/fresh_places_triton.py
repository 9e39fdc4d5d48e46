"""Triton's kernels and candidates for `fresh_places`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import triton
import triton.language as tl
from fresh_case import Fresh
from fresh_rows_triton import launch, row_warps
from triton_peers import TritonLaunch


@triton.jit
def embed_tokens(tokens, words, places, weight, bias, y, P, D, eps, B: tl.constexpr):
    t = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, B)
    there = i < D
    token = tl.load(tokens + t).to(tl.int64)
    v = tl.load(words + token * D + i, there, other=0).to(tl.float32)
    v += tl.load(places + t % P * D + i, there, other=0).to(tl.float32)
    v = tl.where(there, v - tl.sum(v, 0) / D, 0.0)
    scale = tl.rsqrt(tl.sum(v * v, 0) / D + eps)
    w = tl.load(weight + i, there, other=0).to(tl.float32)
    b = tl.load(bias + i, there, other=0).to(tl.float32)
    tl.store(y + t * D + i, v * scale * w + b, there)


@triton.jit
def embedding_slope(tokens, dy, table, D, B: tl.constexpr):
    t = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * B + tl.arange(0, B)
    token = tl.load(tokens + t).to(tl.int64)
    v = tl.load(dy + t * D + i, i < D, other=0).to(tl.float32)
    tl.atomic_add(table + token * D + i, v, i < D, sem="relaxed")


@triton.jit
def edge_messages(a, b, sources, targets, y, E, D, R: tl.constexpr, B: tl.constexpr):
    e = tl.program_id(0) * R + tl.arange(0, R)
    i = tl.arange(0, B)[None, :]
    there = (e < E)[:, None] & (i < D)
    source = tl.load(sources + e, e < E, other=0).to(tl.int64)[:, None]
    target = tl.load(targets + e, e < E, other=0).to(tl.int64)[:, None]
    u = tl.load(a + source * D + i, there, other=0).to(tl.float32)
    v = tl.load(b + target * D + i, there, other=0).to(tl.float32)
    tl.store(y + e[:, None].to(tl.int64) * D + i, tl.maximum(u + v, 0.0), there)


@triton.jit
def take_along_rows(x, places, y, N, K, B: tl.constexpr):
    k, m = tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1).to(tl.int64)
    i = tl.load(places + m * K + k, k < K, other=0)
    tl.store(y + m * K + k, tl.load(x + m * N + i, k < K, other=0), k < K)


@triton.jit
def multiply_ell(columns, values, x, y, M, K: tl.constexpr, R: tl.constexpr):
    row = tl.program_id(0) * R + tl.arange(0, R)
    at = row[:, None] * K + tl.arange(0, K)[None, :]
    there = (row < M)[:, None]
    gathered = tl.load(x + tl.load(columns + at, there, other=0), there, other=0)
    tl.store(y + row, tl.sum(tl.load(values + at, there, other=0) * gathered, 1), row < M)


@triton.jit
def join_experts(x, slots, shares, y, D, TOP: tl.constexpr, B: tl.constexpr):
    t = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * B + tl.arange(0, B)
    total = tl.zeros([B], tl.float32)
    for k in tl.static_range(TOP):
        slot = tl.load(slots + t * TOP + k).to(tl.int64)
        row = tl.load(x + slot * D + i, i < D, other=0).to(tl.float32)
        total += tl.load(shares + t * TOP + k) * row
    tl.store(y + t * D + i, total, i < D)


@triton.jit
def pad_sequences(x, starts, y, T, D, R: tl.constexpr, B: tl.constexpr):
    t, b = tl.program_id(0) * R + tl.arange(0, R), tl.program_id(1).to(tl.int64)
    i = tl.arange(0, B)[None, :]
    first, end = tl.load(starts + b), tl.load(starts + b + 1)
    row = (first + t).to(tl.int64)
    v = tl.load(x + row[:, None] * D + i, (row < end)[:, None] & (i < D), other=0)
    tl.store(y + (b * T + t[:, None]) * D + i, v, (t < T)[:, None] & (i < D))


@triton.jit
def shuffle_pixels(x, y, H, W, SIDE: tl.constexpr, B: tl.constexpr):
    column = tl.program_id(0) * B + tl.arange(0, B)
    row, plane = tl.program_id(1), tl.program_id(2).to(tl.int64)
    part = row % SIDE * SIDE + column % SIDE
    at = ((plane * SIDE * SIDE + part) * H + row // SIDE) * W + column // SIDE
    there = column < W * SIDE
    tl.store(y + (plane * H * SIDE + row) * W * SIDE + column, tl.load(x + at, there), there)


@triton.jit
def double_planes(x, y, H, W, B: tl.constexpr):
    column = tl.program_id(0) * B + tl.arange(0, B)
    row, plane = tl.program_id(1), tl.program_id(2).to(tl.int64)
    there = column < 2 * W
    v = tl.load(x + (plane * H + row // 2) * W + column // 2, there)
    tl.store(y + (plane * 2 * H + row) * 2 * W + column, v, there)


@triton.jit
def halve_planes(x, y, H, W, B: tl.constexpr):
    """H, W: of y."""
    column = tl.program_id(0) * 2 * B + tl.arange(0, 2 * B)
    row, plane = tl.program_id(1), tl.program_id(2).to(tl.int64)
    at = x + (plane * 2 * H + 2 * row) * 2 * W + column
    v = tl.load(at, column < 2 * W, other=0).to(tl.float32)
    v += tl.load(at + 2 * W, column < 2 * W, other=0).to(tl.float32)
    mean = tl.sum(tl.reshape(v, [B, 2]), 1) * 0.25
    to = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + (plane * H + row) * W + to, mean, to < W)


@triton.jit
def sobel(x, y, H, W, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    n = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    across, down = tl.zeros([BM, BN], tl.float32), tl.zeros([BM, BN], tl.float32)
    for i in tl.static_range(3):
        for j in tl.static_range(3):
            if i != 1 or j != 1:
                row, column = m + i - 1, n + j - 1
                there = (row >= 0) & (row < H) & (column >= 0) & (column < W)
                v = tl.load(x + row * W + column, there, other=0).to(tl.float32)
                across += v * ((j - 1) * (2 - (i - 1) * (i - 1)))
                down += v * ((i - 1) * (2 - (j - 1) * (j - 1)))
    there = (m < H) & (n < W)
    tl.store(y + m * W + n, tl.sqrt(across * across + down * down), there)


@triton.jit
def filter_channels(x, weight, y, H, W, C, BW: tl.constexpr, BN: tl.constexpr):
    w = tl.program_id(0) * BW + tl.arange(0, BW)[:, None]
    h, blocks = tl.program_id(1), tl.cdiv(C, BN)
    c = tl.program_id(2) % blocks * BN + tl.arange(0, BN)[None, :]
    b = (tl.program_id(2) // blocks).to(tl.int64)
    total = tl.zeros([BW, BN], tl.float32)
    for i in tl.static_range(3):
        for j in tl.static_range(3):
            row, column = h + i - 1, w + j - 1
            there = (row >= 0) & (row < H) & (column >= 0) & (column < W) & (c < C)
            v = tl.load(x + ((b * H + row) * W + column) * C + c, there, other=0).to(tl.float32)
            f = tl.load(weight + (i * 3 + j) * C + c, c < C, other=0).to(tl.float32)
            total += v * f
    tl.store(y + ((b * H + h) * W + w) * C + c, total, (w < W) & (c < C))


@triton.jit
def density(x, points, y, M, N, sharp, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    a = tl.load(x + m, m < M, other=0)[:, None]
    b = tl.load(x + M + m, m < M, other=0)[:, None]
    c = tl.load(x + 2 * M + m, m < M, other=0)[:, None]
    total = tl.zeros([BM, BN], tl.float32)
    for first in range(0, N, BN):
        n = first + tl.arange(0, BN)
        u = tl.load(points + n, n < N, other=0)[None, :]
        v = tl.load(points + N + n, n < N, other=0)[None, :]
        w = tl.load(points + 2 * N + n, n < N, other=0)[None, :]
        square = (a - u) * (a - u) + (b - v) * (b - v) + (c - w) * (c - w)
        total += tl.where((n < N)[None, :], tl.exp(-sharp * square), 0.0)
    tl.store(y + m, tl.sum(total, 1), m < M)


def _embed(case: Fresh) -> Iterator[TritonLaunch]:
    (t, d), numbers = case.shapes["y"], (case.shapes["places"][0], case.shapes["y"][1])
    for warps in row_warps(d):
        tile = triton.next_power_of_2(d)
        yield launch(
            *(f"w{warps}", embed_tokens, (t,), case.shapes, *numbers, *case.scalars),
            **{"B": tile, "num_warps": warps},
        )


def _slope(case: Fresh) -> Iterator[TritonLaunch]:
    t, d = case.shapes["dy"]
    for tile, warps in ((64, 1), (128, 1), (256, 2), (512, 4), (1024, 4), (2048, 8)):
        if tile < 2 * d or tile == 64:
            grid = (t, triton.cdiv(d, tile))
            options = {"B": tile, "num_warps": warps}
            yield launch(f"B{tile} w{warps}", embedding_slope, grid, case.shapes, d, **options)


def _edges(case: Fresh) -> Iterator[TritonLaunch]:
    e, d = case.shapes["y"]
    tile = triton.next_power_of_2(d)
    for size, warps in ((512, 1), (512, 4), (1024, 4), (2048, 4), (4096, 4), (4096, 8)):
        r = max(1, size // tile)
        yield launch(
            *(f"R{r} w{warps}", edge_messages, (triton.cdiv(e, r),), case.shapes, e, d),
            **{"R": r, "B": tile, "num_warps": warps},
        )


def _along(case: Fresh) -> Iterator[TritonLaunch]:
    (m, n), k = case.shapes["x"], case.shapes["y"][1]
    for tile, warps in ((64, 1), (128, 2), (256, 4), (512, 4), (1024, 4), (2048, 8)):
        grid, options = (triton.cdiv(k, tile), m), {"B": tile, "num_warps": warps}
        if m < 65536:
            yield launch(f"B{tile} w{warps}", take_along_rows, grid, case.shapes, n, k, **options)


def _ell(case: Fresh) -> Iterator[TritonLaunch]:
    m, k = case.shapes["values"]
    for size, warps in ((256, 1), (512, 2), (1024, 4), (2048, 4), (2048, 8), (4096, 8)):
        r = size // k
        yield launch(
            *(f"R{r} w{warps}", multiply_ell, (triton.cdiv(m, r),), case.shapes, m),
            **{"K": k, "R": r, "num_warps": warps},
        )


def _experts(case: Fresh) -> Iterator[TritonLaunch]:
    (t, d), top = case.shapes["y"], dict(case.constants)["TOP"]
    for tile, warps in ((256, 1), (512, 2), (1024, 4), (2048, 4), (2048, 8), (8192, 8)):
        if tile < 2 * d:
            yield launch(
                *(f"B{tile} w{warps}", join_experts, (t, triton.cdiv(d, tile)), case.shapes, d),
                **{"TOP": top, "B": tile, "num_warps": warps},
            )


def _sequences(case: Fresh) -> Iterator[TritonLaunch]:
    b, t, d = case.shapes["y"]
    tile = triton.next_power_of_2(d)
    for size, warps in ((512, 1), (1024, 2), (1024, 4), (2048, 4), (4096, 4), (4096, 8)):
        r = max(1, size // tile)
        yield launch(
            *(f"R{r} w{warps}", pad_sequences, (triton.cdiv(t, r), b), case.shapes, t, d),
            **{"R": r, "B": tile, "num_warps": warps},
        )


KERNELS = {
    "shuffle_pixels": shuffle_pixels,
    "double_planes": double_planes,
    "halve_planes": halve_planes,
}


def _images(case: Fresh) -> Iterator[TritonLaunch]:
    (planes, height, width), of_y = case.shapes["y"], case.kernel == "halve_planes"
    h, w = (height, width) if of_y else case.shapes["x"][1:]
    constants = dict(case.constants)
    for tile, warps in ((128, 1), (128, 4), (256, 2), (256, 4), (512, 4), (1024, 4)):
        yield launch(
            f"B{tile} w{warps}",
            *(KERNELS[case.kernel], (triton.cdiv(width, tile), height, planes), case.shapes, h, w),
            **{"B": tile, "num_warps": warps} | constants,
        )


def _sobel(case: Fresh) -> Iterator[TritonLaunch]:
    h, w = case.shapes["x"]
    for bm, bn, warps in ((1, 512, 4), (2, 256, 4), (4, 128, 4), (4, 256, 8), (8, 128, 4),
                          (8, 128, 8), (16, 64, 4)):  # fmt: skip
        yield launch(
            f"{bm}x{bn} w{warps}",
            *(sobel, (triton.cdiv(h, bm), triton.cdiv(w, bn)), case.shapes, h, w),
            **{"BM": bm, "BN": bn, "num_warps": warps},
        )


def _channels(case: Fresh) -> Iterator[TritonLaunch]:
    b, h, w, c = case.shapes["x"]
    for bw, bn, warps in ((4, 64, 1), (4, 128, 2), (8, 64, 2), (8, 64, 4), (16, 64, 4), (8, 128, 4),
                          (16, 32, 4)):  # fmt: skip
        grid = (triton.cdiv(w, bw), h, b * triton.cdiv(c, bn))
        yield launch(
            *(f"{bw}x{bn} w{warps}", filter_channels, grid, case.shapes, h, w, c),
            **{"BW": bw, "BN": bn, "num_warps": warps},
        )


def _density(case: Fresh) -> Iterator[TritonLaunch]:
    m, n = case.shapes["x"][1], case.shapes["points"][1]
    for bm, bn, warps in ((32, 64, 4), (32, 128, 4), (64, 64, 4), (64, 64, 8), (16, 128, 4),
                          (64, 128, 8), (128, 64, 8)):  # fmt: skip
        yield launch(
            f"{bm}x{bn} w{warps}",
            *(density, (triton.cdiv(m, bm),), case.shapes, m, n, *case.scalars),
            **{"BM": bm, "BN": bn, "num_warps": warps},
        )


PLACE_CANDIDATES: dict[str, Callable[[Fresh], Iterator[TritonLaunch]]] = {
    "embed_tokens": _embed,
    "embedding_slope": _slope,
    "edge_messages": _edges,
    "take_along_rows": _along,
    "multiply_ell": _ell,
    "join_experts": _experts,
    "pad_sequences": _sequences,
    "shuffle_pixels": _images,
    "double_planes": _images,
    "halve_planes": _images,
    "sobel": _sobel,
    "filter_channels": _channels,
    "density": _density,
}
