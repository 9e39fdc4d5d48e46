"""Kernels with loops of copies in every shape, and how the pipelining tests run them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from shares import modes

import tilec
import tilec.language as tl
from tilec.examples.running import poisoned
from tilec.executable.kernel import CompiledKernel
from tilec.runtime.emulator_device import EmulatorDevice

Check = Callable[[np.ndarray], None]


def run_everywhere(
    kernel: tilec.call.jit.Kernel,
    inputs: Sequence[Any],
    output: tuple[tuple[int, ...], Any],
    check: Check,
    grid: tuple[int, ...] = (1,),
    **constants: Any,
) -> CompiledKernel:
    """Compiles for NumPy arguments, runs in `modes()`, checks each poisoned result.

    `inputs`: the arguments; the output (shape, dtype) comes last. FindingsError for any finding.
    """
    compiled = kernel.compiled(*inputs, poisoned(*output), **constants)
    for mode in modes():
        device = EmulatorDevice(mode)
        result = poisoned(*output)
        device.launch(device.load(compiled), [*inputs, result], grid)
        check(result)
    return compiled


def near(expected: np.ndarray, tolerance: float) -> Check:
    """A check against a float64 reference; `tolerance` is relative to its largest value."""

    def check(found: np.ndarray) -> None:
        scale = float(np.max(np.abs(expected), initial=0.0)) or 1.0
        np.testing.assert_allclose(
            np.asarray(found, np.float64), expected, rtol=0, atol=tolerance * scale
        )

    return check


def decisions(compiled: CompiledKernel, about: str) -> list[dict[str, Any]]:
    """The entries of the decision report about one thing."""
    return [entry for entry in compiled.report["decisions"] if entry["about"] == about]


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a @ b in float64, exact for int8."""
    return a.astype(np.float64) @ b.astype(np.float64)


def accumulator_of(dtype):
    """The dtype in which products are summed (compile time)."""
    return tl.f64 if dtype == tl.f64 else tl.i32 if dtype == tl.i8 else tl.f32


@tilec.kernel(grid=lambda c, BM, BN: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)))
def gemm(
    a: tl.array,
    b: tl.array,
    c: tl.array,
    BM: tl.const,
    BN: tl.const,
    BK: tl.const,
    STAGES: tl.const = None,
    PRECISION: tl.const = "ieee",
):
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), accumulator_of(a.dtype))
    for k in tl.range(0, a.shape[1], BK, stages=STAGES):
        acc = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(b, (k, n), (BK, BN)), acc, PRECISION)
    tl.store(c, (m, n), acc.to(c.dtype))


@tilec.kernel
def part_of_k(
    a: tl.array,
    b: tl.array,
    low: tl.i32,
    high: tl.i32,
    c: tl.array,
    STEP: tl.const,
    STAGES: tl.const,
):
    """Sums tiles that start at low, low + STEP, ... below high; each reads 16 of k."""
    acc = tl.zeros((32, 32), tl.f32)
    for k in tl.range(low, high, STEP, stages=STAGES):
        acc = tl.dot(tl.load(a, (0, k), (32, 16)), tl.load(b, (k, 0), (16, 32)), acc)
    tl.store(c, (0, 0), acc)


@tilec.kernel
def several_products(x: tl.array, y: tl.array, c: tl.array, DOTS: tl.const, STAGES: tl.const):
    """c = sum over d < DOTS of x[d] @ y, y read once for all: DOTS + 1 copies in an iteration."""
    acc = tl.zeros((32, 32), tl.f32)
    for k in tl.range(0, y.shape[0], 16, stages=STAGES):
        right = tl.load(y, (k, 0), (16, 32))
        for d in tl.static_range(DOTS):
            acc = tl.dot(tl.load(x, (d * 32, k), (32, 16)), right, acc)
    tl.store(c, (0, 0), acc)


@tilec.kernel
def one_copy(x: tl.array, c: tl.array, STAGES: tl.const):
    """c = x^T x by 16 rows at a time: one load, used by both operands."""
    acc = tl.zeros((32, 32), tl.f32)
    for k in tl.range(0, x.shape[0], 16, stages=STAGES):
        tile = tl.load(x, (k, 0), (16, 32))
        acc = tl.dot(tile.T, tile, acc)
    tl.store(c, (0, 0), acc)


@tilec.kernel
def carried_beside(a: tl.array, b: tl.array, c: tl.array, STAGES: tl.const):
    """Carries a tile, a scalar and a count besides the accumulator."""
    acc = tl.zeros((32, 32), tl.f32)
    weight, count, largest = 1.0, 0, tl.full((32,), 0.0, tl.f32)
    for k in tl.range(0, a.shape[1], 16, stages=STAGES):
        part = tl.dot(tl.load(a, (0, k), (32, 16)), tl.load(b, (k, 0), (16, 32)))
        acc += part * weight
        largest = tl.maximum(largest, tl.max(tl.abs(part), 1))
        weight *= 0.5
        count += 1
    tl.store(c, (0, 0), acc + largest[:, None] + count)


@tilec.kernel
def persistent(a: tl.array, b: tl.array, c: tl.array, STAGES: tl.const):
    """A pipelined loop in a loop over output tiles."""
    columns = tl.cdiv(c.shape[1], 32)
    tiles = tl.cdiv(c.shape[0], 32) * columns
    for t in tl.range(tl.program_id(0), tiles, tl.num_programs(0)):
        m, n = t // columns * 32, t % columns * 32
        acc = tl.zeros((32, 32), tl.f32)
        for k in tl.range(0, a.shape[1], 32, stages=STAGES):
            acc = tl.dot(tl.load(a, (m, k), (32, 32)), tl.load(b, (k, n), (32, 32)), acc)
        tl.store(c, (m, n), acc)


@tilec.kernel
def attention(q: tl.array, k: tl.array, v: tl.array, o: tl.array, STAGES: tl.const):
    """softmax(q k^T) v over 32 rows of q, 16 keys at a time: two dots in an iteration."""
    queries = tl.load(q, (0, 0), (32, 32))
    acc = tl.zeros((32, 32), tl.f32)
    highest, total = tl.full((32,), -1e30, tl.f32), tl.zeros((32,), tl.f32)
    keys = k.shape[0]
    for j in tl.range(0, keys, 16, stages=STAGES):
        scores = tl.dot(queries, tl.load(k, (j, 0), (16, 32)).T)
        scores = tl.where((j + tl.arange(0, 16))[None, :] < keys, scores, -1e30)
        higher = tl.maximum(highest, tl.max(scores, 1))
        weights = tl.exp(scores - higher[:, None])
        shrink = tl.exp(highest - higher)
        total = total * shrink + tl.sum(weights, 1)
        acc = tl.dot(weights.to(v.dtype), tl.load(v, (j, 0), (16, 32)), acc * shrink[:, None])
        highest = higher
    tl.store(o, (0, 0), acc / total[:, None])


@tilec.kernel
def batched(a: tl.array, b: tl.array, c: tl.array, STAGES: tl.const):
    """Two products at once: a leading batch dimension."""
    acc = tl.zeros((2, 32, 32), tl.f32)
    for k in tl.range(0, a.shape[2], 16, stages=STAGES):
        left, right = tl.load(a, (0, 0, k), (2, 32, 16)), tl.load(b, (0, k, 0), (2, 16, 32))
        acc = tl.dot(left, right, acc)
    tl.store(c, (0, 0, 0), acc)


@tilec.kernel
def outer_products(a: tl.array, b: tl.array, c: tl.array, STAGES: tl.const):
    """Batched, one k at a time: the rows of b are no power of two, and there is one of each."""
    acc = tl.zeros((2, 16, 96), tl.f32)
    for k in tl.range(0, a.shape[2], stages=STAGES):
        left, right = tl.load(a, (0, 0, k), (2, 16, 1)), tl.load(b, (0, k, 0), (2, 1, 96))
        acc = tl.dot(left, right, acc, "tf32")
    tl.store(c, (0, 0, 0), acc)


@tilec.kernel
def row_sums(x: tl.array, y: tl.array, o: tl.array, LOADS: tl.const, STAGES: tl.const):
    """o[i] = sum over j of x[i, j] * y[i, j]^2 ...: loads that no dot reads."""
    total = tl.zeros((8,), tl.f32)
    for j in tl.range(0, x.shape[1], 64, stages=STAGES):
        product = tl.load(x, (0, j), (8, 64)).to(tl.f32)
        for _ in tl.static_range(LOADS - 1):
            product *= tl.load(y, (0, j), (8, 64)).to(tl.f32)
        total += tl.sum(product, 1)
    tl.store(o, 0, total)


@tilec.kernel
def product_and_sum(a: tl.array, b: tl.array, c: tl.array, STAGES: tl.const):
    """c = a @ b + the sum of a's rows: a load that a dot and a reduction read."""
    acc, total = tl.zeros((32, 32), tl.f32), tl.zeros((32,), tl.f32)
    for k in tl.range(0, a.shape[1], 16, stages=STAGES):
        left = tl.load(a, (0, k), (32, 16))
        acc = tl.dot(left, tl.load(b, (k, 0), (16, 32)), acc)
        total += tl.sum(left.to(tl.f32), 1)
    tl.store(c, (0, 0), acc + total[:, None])


@tilec.kernel
def running_product(a: tl.array, b: tl.array, c: tl.array, STAGES: tl.const = None):
    """Row block i + 1 of c is block i times b: each load reads what the last store wrote."""
    tl.store(c, (0, 0), tl.load(a, (0, 0), (16, 16)))
    for i in tl.range(0, c.shape[0] - 16, 16, stages=STAGES):
        step = tl.dot(tl.load(c, (i, 0), (16, 16)), tl.load(b, (0, 0), (16, 16)))
        tl.store(c, (i + 16, 0), step.to(c.dtype))


@tilec.kernel
def store_between(a: tl.array, b: tl.array, c: tl.array):
    """Loads, overwrites what it loaded, multiplies: the copy must not slip behind the store."""
    acc = tl.zeros((32, 32), tl.f32)
    for k in tl.range(0, a.shape[1], 16):
        left = tl.load(a, (0, k), (32, 16))
        tl.store(a, (0, k), tl.zeros((32, 16), tl.f16))
        acc = tl.dot(left, tl.load(b, (k, 0), (16, 32)), acc)
    tl.store(c, (0, 0), acc)
