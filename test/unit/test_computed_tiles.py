"""Tiles that only arithmetic or gathers make, and shifted loads, on the emulator against NumPy:
sizes drawn at random, and no more code than threads that share the work need."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import numpy as np
import pytest
from emulated import random_layout, seed_of

import tilec
import tilec.language as tl
from tilec.hardware.layout import Layout, copies, covers
from tilec.passes.layouts.maps import spread_out


def run(kernel: tilec.call.jit.Kernel, programs: int, *arguments: object, **named: object) -> None:
    """Launches it on the emulator, which looks for races."""
    kernel.on("emulator:check")[programs](*arguments, **named)


def drawn(name: str, low: int, high: int) -> int:
    """A size for a test."""
    return random.Random(seed_of(name)).randint(low, high)


@tilec.kernel(num_warps=4)
def midpoints(out: tl.array, N: tl.const):
    x = (tl.arange(N).to(tl.f32) + 0.5) * (1.0 / N)
    tl.store(out, tl.program_id(0), tl.sum(4.0 / (1.0 + x * x)))


@pytest.mark.parametrize("size", [1024, drawn("few", 3, 127), drawn("many", 130, 1500)])
def test_midpoint_sum(size: int) -> None:
    out = np.zeros(1, np.float32)
    run(midpoints, 1, out, N=size)
    x = (np.arange(size) + 0.5) / size
    np.testing.assert_allclose(out[0], (4 / (1 + x * x)).sum(), rtol=1e-5)


def test_midpoint_sum_is_little_code() -> None:
    ptx = midpoints.compile(["out:f32[?]"], {"N": 1024}, target="sm_90a").ptx
    assert ptx.count("div.") == 8  # 1024 elements, 128 threads
    assert len(ptx.splitlines()) < 400


@tilec.kernel(num_warps=2)
def monte_carlo(out: tl.array, seed: tl.i32, N: tl.const, R: tl.const):
    inside = tl.zeros((N,), tl.i32)
    for r in tl.range(0, R):
        bits = tl.philox(seed, r.to(tl.i32) * N + tl.arange(N), rounds=3)
        x, y = (bits[0] & 1023) - 512, (bits[1] & 1023) - 512
        inside += (x * x + y * y < 512 * 512).to(tl.i32)
    tl.store(out, 0, tl.sum(inside))


@tilec.kernel(num_warps=1)
def random_bits(out: tl.array, seed: tl.i32, N: tl.const):
    bits = tl.philox(seed, tl.arange(N), rounds=3)
    tl.store(out, (0, 0), bits[0][None, :])
    tl.store(out, (1, 0), bits[1][None, :])


def test_monte_carlo() -> None:
    size, rounds = drawn("darts", 65, 200), 2
    out, bits = np.zeros(1, np.int32), np.zeros((2, size * rounds), np.int32)
    run(monte_carlo, 1, out, 17, N=size, R=rounds)
    run(random_bits, 1, bits, 17, N=size * rounds)
    x, y = (bits & 1023) - 512
    assert out[0] == np.count_nonzero(x * x + y * y < 512 * 512)


@tilec.kernel(num_warps=2)
def row_times_vector(
    starts: tl.array, columns: tl.array, values: tl.array, v: tl.array, out: tl.array, W: tl.const
):
    row = tl.program_id(0)
    at = tl.load(starts, row, ()) + tl.arange(W)
    inside = at < tl.load(starts, row + 1, ())
    x = tl.gather(v, tl.gather(columns, at, mask=inside), mask=inside)
    tl.store(out, row, tl.sum(tl.gather(values, at, mask=inside) * x))


def test_sparse_rows() -> None:
    rng = np.random.default_rng(seed_of("sparse"))
    lengths = rng.integers(0, 90, 3)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    columns = rng.integers(0, 50, starts[-1]).astype(np.int32)
    values, v = rng.random(starts[-1], np.float32), rng.random(50, np.float32)
    out = np.zeros(3, np.float32)
    run(row_times_vector, 3, starts, columns, values, v, out, W=90)
    rows = [slice(*pair) for pair in pairwise(starts)]
    expected = [(values[row] * v[columns[row]]).sum() for row in rows]
    np.testing.assert_allclose(out, expected, rtol=1e-5)


@tilec.kernel(num_warps=2)
def longest_path(weights: tl.array, out: tl.array, N: tl.const):
    i = tl.arange(N)
    best = tl.zeros((N,), tl.f32)
    for k in tl.range(0, weights.shape[0]):
        before = tl.where(i > 0, tl.take(best, tl.maximum(i - 1, 0), 0), 0.0)
        best = tl.maximum(best, before) + tl.gather(weights, (k, i))
    tl.store(out, 0, tl.max(best))


def test_dynamic_programming() -> None:
    size = drawn("path", 70, 150)
    weights = np.random.default_rng(size).standard_normal((3, size), np.float32)
    out = np.zeros(1, np.float32)
    run(longest_path, 1, weights, out, N=size)
    best = np.zeros(size, np.float32)
    for row in weights:
        best = np.maximum(best, np.concatenate([[np.float32(0)], best[:-1]])) + row
    assert out[0] == best.max()


def merge(m1, s1, n1, m2, s2, n2):
    n = n1 + n2
    step, part = m2 - m1, n2 / tl.maximum(n, 1.0)
    return m1 + step * part, s1 + s2 + step * step * n1 * part, n


@tilec.kernel(num_warps=4)
def variance(x: tl.array, out: tl.array, M: tl.const, N: tl.const):
    rows, columns = tl.arange(M)[:, None], tl.arange(N)[None, :]
    state = tl.gather(x, rows * N + columns), tl.zeros((M, N), tl.f32), tl.full((M, N), 1.0, tl.f32)
    state = tl.reduce(tl.reduce(state, 1, merge), 0, merge)
    tl.store(out, 0, state[1] / state[2])


def test_welford() -> None:
    rows, columns = drawn("rows", 4, 9), drawn("columns", 33, 70)
    x = np.random.default_rng(rows).standard_normal(rows * columns, np.float32)
    out = np.zeros(1, np.float32)
    run(variance, 1, x, out, M=rows, N=columns)
    np.testing.assert_allclose(out[0], x.var(), rtol=1e-4)


@tilec.kernel(num_warps=2)
def row_norms(out: tl.array, M: tl.const, N: tl.const):
    y = tl.arange(M)[:, None].to(tl.f32)
    x = tl.arange(N)[None, :].to(tl.f32)
    sums = tl.sum(tl.sqrt(x * x + y * y), axis=1)
    tl.store(out, (0, 0), sums[None, :])
    tl.store(out, (1, 0), tl.exp(sums - tl.max(sums))[None, :])


@pytest.mark.parametrize("rows", [64, drawn("norms", 3, 40)])
def test_rows_and_softmax_of_computed_tiles(rows: int) -> None:
    columns = drawn("across", 20, 70)
    out = np.zeros((2, rows), np.float32)
    run(row_norms, 1, out, M=rows, N=columns)
    sums = np.hypot(np.arange(columns), np.arange(rows)[:, None]).sum(axis=1)
    np.testing.assert_allclose(out[0], sums, rtol=1e-5)
    np.testing.assert_allclose(out[1], np.exp(sums - sums.max()), rtol=1e-3, atol=1e-30)


@tilec.kernel(num_warps=2)
def laplacian(x: tl.array, out: tl.array, N: tl.const):
    m, n = tl.program_id(0) * 2, 0
    around = tl.load(x, (m - 1, n), (2, N)) + tl.load(x, (m + 1, n), (2, N))
    around += tl.load(x, (m, n - 1), (2, N)) + tl.load(x, (m, n + 1), (2, N))
    tl.store(out, (m, n), around - 4.0 * tl.load(x, (m, n), (2, N)))


def test_shifted_loads() -> None:
    columns = 4 * drawn("stencil", 20, 40)
    x = np.random.default_rng(columns).standard_normal((5, columns), np.float32)
    out = np.zeros_like(x)
    run(laplacian, 3, x, out, N=columns)
    wide = np.pad(x, 1)
    around = wide[:-2, 1:-1] + wide[2:, 1:-1] + (wide[1:-1, :-2] + wide[1:-1, 2:])
    np.testing.assert_allclose(out, around - 4 * x, rtol=1e-5, atol=1e-5)


def test_a_new_axis_is_spread_over_copies() -> None:
    rng = random.Random(seed_of("spread"))
    for number in range(60):
        shape = tuple(rng.randint(1, 20) for _ in range(number % 3))
        scalar = Layout((copies(rng.choice([32, 128, 384])),), ())
        layout = random_layout(rng, shape, rng.choice([1, 4])) if shape else scalar
        axis, size = rng.randint(0, len(shape)), rng.randint(1, 300)
        found = spread_out(layout, axis, size)
        assert found.slice(axis) == layout
        assert covers(found, (*shape[:axis], size, *shape[axis:]))
        spare = math.prod(m.size & -m.size for m in layout.threads if not m.stride)
        assert found.num_values <= layout.num_values * 2 * -(-size // spare)
