"""Kernels with `tl.dot` loops that become warp-specialised, and what the report says of them."""

from __future__ import annotations

from typing import Any

import tilec
import tilec.language as tl
from tilec.executable.kernel import CompiledKernel


def matmul_grid(c: Any, BM: int, BN: int) -> tuple[int, int]:
    """One program per tile of c."""
    return tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)


@tilec.kernel(grid=matmul_grid)
def demanded(
    a: tl.array, b: tl.array, c: tl.array,
    BM: tl.const = 64, BN: tl.const = 64, BK: tl.const = 64,
    STAGES: tl.const = None, WARP_SPECIALIZE: tl.const = None,
):  # fmt: skip
    """c = a @ b by a loop with demands."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK, stages=STAGES, warp_specialize=WARP_SPECIALIZE):
        acc = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(b, (k, n), (BK, BN)), acc)
    tl.store(c, (m, n), acc.to(c.dtype))


@tilec.kernel(grid=matmul_grid)
def activated(
    a: tl.array, b: tl.array, c: tl.array,
    BM: tl.const = 64, BN: tl.const = 64, BK: tl.const = 64, WARP_SPECIALIZE: tl.const = None,
):  # fmt: skip
    """c = max(a, 0)^2 @ b: elementwise work between a left operand's load and the product."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK, warp_specialize=WARP_SPECIALIZE):
        x = tl.maximum(tl.load(a, (m, k), (BM, BK)).to(tl.f32), 0.0)
        acc = tl.dot((x * x).to(a.dtype), tl.load(b, (k, n), (BK, BN)), acc)
    tl.store(c, (m, n), acc.to(c.dtype))


@tilec.kernel(grid=matmul_grid)
def activated_right(
    a: tl.array, b: tl.array, c: tl.array,
    BM: tl.const = 64, BN: tl.const = 64, BK: tl.const = 64, WARP_SPECIALIZE: tl.const = None,
):  # fmt: skip
    """c = a @ max(b, 0)^2: the same for a right operand."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK, warp_specialize=WARP_SPECIALIZE):
        x = tl.maximum(tl.load(b, (k, n), (BK, BN)).to(tl.f32), 0.0)
        acc = tl.dot(tl.load(a, (m, k), (BM, BK)), (x * x).to(b.dtype), acc)
    tl.store(c, (m, n), acc.to(c.dtype))


@tilec.kernel(grid=matmul_grid)
def gated(
    a: tl.array, b: tl.array, g: tl.array, c: tl.array,
    BM: tl.const = 64, BN: tl.const = 64, BK: tl.const = 64, WARP_SPECIALIZE: tl.const = None,
):  # fmt: skip
    """c = (a @ b) * (a @ g): two products share an operand."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc, gate = tl.zeros((BM, BN), tl.f32), tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK, warp_specialize=WARP_SPECIALIZE):
        x = tl.load(a, (m, k), (BM, BK))
        acc = tl.dot(x, tl.load(b, (k, n), (BK, BN)), acc)
        gate = tl.dot(x, tl.load(g, (k, n), (BK, BN)), gate)
    tl.store(c, (m, n), (acc * gate).to(c.dtype))


@tilec.kernel(grid=lambda c, BM, BN: (tl.cdiv(c.shape[1], BM), tl.cdiv(c.shape[2], BN), c.shape[0]))
def batched(
    a: tl.array, b: tl.array, c: tl.array,
    BM: tl.const = 64, BN: tl.const = 64, BK: tl.const = 64,
):  # fmt: skip
    """c[i] = a[i] @ b[i]."""
    m, n, i = tl.program_id(0) * BM, tl.program_id(1) * BN, tl.program_id(2)
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[2], BK):
        acc = tl.dot(tl.load(a, (i, m, k), (BM, BK)), tl.load(b, (i, k, n), (BK, BN)), acc)
    tl.store(c, (i, m, n), acc.to(c.dtype))


@tilec.kernel(grid=matmul_grid)
def in_while(
    a: tl.array, b: tl.array, c: tl.array,
    BM: tl.const = 64, BN: tl.const = 64, BK: tl.const = 64,
    STAGES: tl.const = None, WARP_SPECIALIZE: tl.const = None,
):  # fmt: skip
    """c = 2 (a @ b), counted twice by a while loop around the product's."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    times = 0
    while times < 2:
        for k in tl.range(0, a.shape[1], BK, stages=STAGES, warp_specialize=WARP_SPECIALIZE):
            acc = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(b, (k, n), (BK, BN)), acc)
        times += 1
    tl.store(c, (m, n), acc.to(c.dtype))


@tilec.kernel(grid=matmul_grid)
def two_loops(
    a: tl.array, b: tl.array, c: tl.array,
    BM: tl.const = 64, BN: tl.const = 64, BK: tl.const = 64,
    FIRST: tl.const = None, SECOND: tl.const = None,
):  # fmt: skip
    """c = a @ b + a @ b: two loops with demands of their own."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK, stages=FIRST):
        acc = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(b, (k, n), (BK, BN)), acc)
    for k in tl.range(0, a.shape[1], BK, stages=SECOND):
        acc = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(b, (k, n), (BK, BN)), acc)
    tl.store(c, (m, n), acc.to(c.dtype))


@tilec.kernel(grid=matmul_grid)
def gathered(
    a: tl.array, b: tl.array, start: tl.array, c: tl.array,
    BM: tl.const = 64, BN: tl.const = 64, BK: tl.const = 64, WARP_SPECIALIZE: tl.const = None,
):  # fmt: skip
    """c[m:] = a[m + s:] @ b with s = start[program_id(0)]: addresses depend on memory."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    first = m + tl.max(tl.load(start, (tl.program_id(0),), (1,)), 0)
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK, warp_specialize=WARP_SPECIALIZE):
        acc = tl.dot(tl.load(a, (first, k), (BM, BK)), tl.load(b, (k, n), (BK, BN)), acc)
    tl.store(c, (m, n), acc.to(c.dtype))


def decisions(kernel: CompiledKernel, about: str) -> list[str]:
    """What the compiler chose about a subject, "choice (reason)", in the program's order."""
    found = kernel.report["decisions"]
    return [f"{one['chosen']} ({one['why']})" for one in found if one["about"] == about]
