"""Triton's kernels and candidates for `fresh_rows`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import triton
import triton.language as tl
from fresh_case import Fresh
from triton.language.extra import libdevice
from triton_peers import TritonLaunch


@triton.jit
def layer_norm_slope(dy, x, weight, means, scales, dx, N, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, B)
    there = i < N
    scale, mean = tl.load(scales + row), tl.load(means + row)
    normal = (tl.load(x + row * N + i, there, other=0).to(tl.float32) - mean) * scale
    normal = tl.where(there, normal, 0.0)
    slope = tl.load(dy + row * N + i, there, other=0).to(tl.float32)
    slope = slope * tl.load(weight + i, there, other=0).to(tl.float32)
    middle, along = tl.sum(slope, 0) / N, tl.sum(slope * normal, 0) / N
    tl.store(dx + row * N + i, (slope - middle - normal * along) * scale, there)


@triton.jit
def log_softmax(x, y, N, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, B)
    v = tl.load(x + row * N + i, i < N, other=-float("inf")).to(tl.float32)
    v = v - tl.max(v, 0)
    tl.store(y + row * N + i, v - tl.log(tl.sum(tl.exp(v), 0)), i < N)


@triton.jit
def geglu(x, y, N, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * B + tl.arange(0, B)
    a = tl.load(x + row * 2 * N + i, i < N, other=0).to(tl.float32)
    b = tl.load(x + row * 2 * N + N + i, i < N, other=0).to(tl.float32)
    tl.store(y + row * N + i, 0.5 * a * (1 + tl.erf(a * 0.70710678)) * b, i < N)


@triton.jit
def scaled_branch(x, h, gamma, weight, bias, y, N, eps, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, B)
    there = i < N
    v = tl.load(h + row * N + i, there, other=0).to(tl.float32)
    mean = tl.sum(v, 0) / N
    v = tl.where(there, v - mean, 0.0)
    scale = tl.rsqrt(tl.sum(v * v, 0) / N + eps)
    g = tl.load(gamma + i, there, other=0).to(tl.float32)
    w = tl.load(weight + i, there, other=0).to(tl.float32)
    b = tl.load(bias + i, there, other=0).to(tl.float32)
    a = tl.load(x + row * N + i, there, other=0).to(tl.float32)
    tl.store(y + row * N + i, a + g * (v * scale * w + b), there)


@triton.jit
def unit_rows(x, y, M, N, eps, R: tl.constexpr, B: tl.constexpr):
    row = tl.program_id(0) * R + tl.arange(0, R)[:, None]
    i = tl.arange(0, B)[None, :]
    there = (row < M) & (i < N)
    at = row.to(tl.int64) * N + i
    v = tl.load(x + at, there, other=0).to(tl.float32)
    length = tl.sqrt(tl.sum(v * v, 1))[:, None]
    tl.store(y + at, v / tl.maximum(length, eps), there)


@triton.jit
def row_entropy(x, y, N, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, B)
    v = tl.load(x + row * N + i, i < N, other=-float("inf")).to(tl.float32)
    v = v - tl.max(v, 0)
    e = tl.exp(v)
    total = tl.sum(e, 0)
    tl.store(y + row, tl.log(total) - tl.sum(tl.where(e > 0, e * v, 0.0), 0) / total)


@triton.jit
def margin_loss(x, labels, y, N, margin, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, B)
    label = tl.load(labels + row)
    v = tl.load(x + row * N + i, i < N, other=-float("inf")).to(tl.float32)
    at = tl.load(x + row * N + label).to(tl.float32)
    losses = tl.where(i == label, 0.0, tl.maximum(v - at + margin, 0.0))
    tl.store(y + row, tl.sum(losses, 0) / N)


@triton.jit
def long_cross_entropy(x, labels, y, N, smoothing, squared, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    highest = tl.full([B], -float("inf"), tl.float32)
    total = tl.zeros([B], tl.float32)
    plain = tl.zeros([B], tl.float32)
    for start in range(0, N, B):
        i = start + tl.arange(0, B)
        z = tl.load(x + row * N + i, i < N, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(highest, z)
        shift = tl.where(higher == -float("inf"), 0.0, higher)
        total = total * tl.exp(highest - shift) + tl.exp(z - shift)
        plain += tl.where(i < N, z, 0.0)
        highest = higher
    most = tl.max(highest, 0)
    whole = most + tl.log(tl.sum(total * tl.exp(highest - most), 0))
    at = tl.load(x + row * N + tl.load(labels + row)).to(tl.float32)
    wanted = (1 - smoothing) * at + smoothing * tl.sum(plain, 0) / N
    tl.store(y + row, whole - wanted + squared * whole * whole)


@triton.jit
def cosine_of_rows(x, z, y, M, N, R: tl.constexpr, B: tl.constexpr):
    row = tl.program_id(0) * R + tl.arange(0, R)
    i = tl.arange(0, B)[None, :]
    there = (row[:, None] < M) & (i < N)
    at = row[:, None].to(tl.int64) * N + i
    a = tl.load(x + at, there, other=0).to(tl.float32)
    b = tl.load(z + at, there, other=0).to(tl.float32)
    found = tl.sum(a * b, 1) * tl.rsqrt(tl.sum(a * a, 1) * tl.sum(b * b, 1))
    tl.store(y + row, found, row < M)


@triton.jit
def sample_rows(x, noise, y, N, heat, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, B)
    v = tl.load(x + row * N + i, i < N, other=-float("inf")).to(tl.float32) / heat
    v += tl.load(noise + row * N + i, i < N, other=0)
    tl.store(y + row, tl.argmax(v, 0))


@triton.jit
def capped_causal_softmax(x, y, N, cap, B: tl.constexpr):
    row, b = tl.program_id(0), tl.program_id(1)
    i = tl.arange(0, B)
    at = (b.to(tl.int64) * N + row) * N + i
    v = tl.load(x + at, i <= row, other=0).to(tl.float32)
    v = tl.where(i <= row, cap * libdevice.tanh(v / cap), -float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + at, e / tl.sum(e, 0), i < N)


@triton.jit
def instance_norm(x, y, N, eps, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, B)
    v = tl.load(x + row * N + i, i < N, other=0).to(tl.float32)
    mean, square = tl.sum(v, 0) / N, tl.sum(v * v, 0) / N
    tl.store(y + row * N + i, (v - mean) * tl.rsqrt(square - mean * mean + eps), i < N)


@triton.jit
def _follow(a, x, b, z):
    return a * b, x * b + z


@triton.jit
def discounted_returns(rewards, ends, y, N, discount, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, B)
    reward = tl.load(rewards + row * N + i, i < N, other=0)
    keep = tl.where(tl.load(ends + row * N + i, i < N, other=1) != 0, 0.0, discount)
    _, found = tl.associative_scan((keep, reward), 0, _follow, reverse=True)
    tl.store(y + row * N + i, found, i < N)


@triton.jit
def _larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def running_max(x, y, N, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, B)
    v = tl.load(x + row * N + i, i < N, other=0).to(tl.float32)
    tl.store(y + row * N + i, tl.associative_scan(v, 0, _larger), i < N)


@triton.jit
def count_before(mask, y, N, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, B)
    kept = (tl.load(mask + row * N + i, i < N, other=0) != 0).to(tl.int32)
    tl.store(y + row * N + i, tl.cumsum(kept, 0) - kept, i < N)


def launch(
    label: str, kernel: Any, grid: tuple[int, ...], names: Any, *numbers: Any, **options: Any
) -> TritonLaunch:
    """A candidate on the arrays `names`, then `numbers`."""
    return TritonLaunch(
        label, kernel, grid, lambda t: (*(t[name] for name in names), *numbers), options
    )


def row_warps(columns: int) -> tuple[int, ...]:
    """Numbers of warps worth trying for a row."""
    if columns <= 1024:
        return 1, 2, 4, 8
    return (2, 4, 8, 16) if columns <= 8192 else (4, 8, 16, 32)


def _whole(case: Fresh) -> Iterator[TritonLaunch]:
    """A row a program."""
    shapes = case.shapes
    n, rows = shapes[next(iter(shapes))][-1], shapes[next(iter(shapes))][0]
    grid = (rows,) if case.kernel != "capped_causal_softmax" else (n, rows)
    for warps in row_warps(n):
        tile = triton.next_power_of_2(n)
        kernel = globals()[case.kernel]
        numbers = (n, *case.scalars)
        yield launch(f"w{warps}", kernel, grid, shapes, *numbers, B=tile, num_warps=warps)


def _several(case: Fresh) -> Iterator[TritonLaunch]:
    """R rows a program."""
    rows, n = case.shapes["x"]
    tile = triton.next_power_of_2(n)
    for size, warps in ((512, 1), (1024, 1), (1024, 2), (2048, 4), (4096, 4), (4096, 8), (8192, 8)):
        r = size // tile
        if r:
            grid, kernel = (triton.cdiv(rows, r),), globals()[case.kernel]
            numbers = (rows, n, *case.scalars)
            yield launch(
                f"R{r} w{warps}", kernel, grid, case.shapes, *numbers, R=r, B=tile, num_warps=warps
            )
    if tile > 512:
        grid, kernel = (rows,), globals()[case.kernel]
        for warps in (1, 2, 4):
            yield launch(
                *(f"R1 w{warps}", kernel, grid, case.shapes, rows, n, *case.scalars),
                **{"R": 1, "B": tile, "num_warps": warps},
            )


def _geglu(case: Fresh) -> Iterator[TritonLaunch]:
    rows, n = case.shapes["y"]
    for tile, warps in ((512, 4), (1024, 4), (2048, 4), (2048, 8), (4096, 8)):
        if tile < 2 * n or tile == 512:
            grid = (rows, triton.cdiv(n, tile))
            yield launch(f"B{tile} w{warps}", geglu, grid, "xy", n, B=tile, num_warps=warps)


def _long(case: Fresh) -> Iterator[TritonLaunch]:
    rows, n = case.shapes["x"]
    for tile, warps in ((1024, 4), (2048, 4), (2048, 8), (4096, 8), (8192, 8), (8192, 16)):
        yield launch(
            *(f"B{tile} w{warps}", long_cross_entropy, (rows,), case.shapes, n, *case.scalars),
            **{"B": tile, "num_warps": warps},
        )


ROW_CANDIDATES: dict[str, Callable[[Fresh], Iterator[TritonLaunch]]] = {
    **dict.fromkeys(
        (
            *("layer_norm_slope", "log_softmax", "scaled_branch", "row_entropy", "margin_loss"),
            *("sample_rows", "capped_causal_softmax", "instance_norm", "discounted_returns"),
            *("running_max", "count_before"),
        ),
        _whole,
    ),
    "unit_rows": _several,
    "cosine_of_rows": _several,
    "geglu": _geglu,
    "long_cross_entropy": _long,
}
