"""Counters that loops carry as coordinates: their tiles are copied ahead like any others."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.examples.running import poisoned

TARGETS = ["sm_80", "sm_90a", "sm_100a", "sm_120a"]
GRID = {"grid": lambda c, BM: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BM))}


@tilec.kernel(**GRID)
def carried(a: tl.array, b: tl.array, c: tl.array, groups: tl.array, BM: tl.const = 64):
    """Counts up beside a loop, down through a nest, and in i32 and index."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BM
    acc = tl.zeros((BM, BM), tl.f32)
    k, back, sum_of_parts = 0, tl.cdiv(a.shape[1], 32) * 32, 0
    for _ in tl.range(tl.cdiv(a.shape[1], 32)):
        acc = tl.dot(tl.load(a, (m, k), (BM, 32)), tl.load(b, (k, n), (32, BM)), acc)
        k += 32
    for g in tl.range(groups.shape[0]):
        for _ in tl.range(2):
            back -= 32
            acc = tl.dot(tl.load(a, (m, back), (BM, 32)), tl.load(b, (back, n), (32, BM)), acc)
            sum_of_parts += g
    tl.store(c, (m, n), acc + sum_of_parts)


@tilec.kernel(**GRID)
def strides(a: tl.array, b: tl.array, c: tl.array, groups: tl.array, BM: tl.const = 64):
    """Goes on by one or two blocks, as memory says."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BM
    acc = tl.zeros((BM, BM), tl.f32)
    k = 0
    for i in tl.range(groups.shape[0]):
        acc = tl.dot(tl.load(a, (m, k), (BM, 32)), tl.load(b, (k, n), (32, BM)), acc)
        k += 32 if tl.load(groups, i, ()) > 0 else 64
    tl.store(c, (m, n), acc + k)


@tilec.kernel(**GRID)
def until(a: tl.array, b: tl.array, c: tl.array, groups: tl.array, BM: tl.const = 64):
    """Ends where the sum says so."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BM
    acc = tl.zeros((BM, BM), tl.f32)
    k = 0
    while tl.max(tl.abs(acc)) < 60.0 and k < a.shape[1]:
        acc = tl.dot(tl.load(a, (m, k), (BM, 32)), tl.load(b, (k, n), (32, BM)), acc)
        k += 32
    tl.store(c, (m, n), acc + k)


def expected(kernel: object, a: np.ndarray, b: np.ndarray, groups: np.ndarray) -> np.ndarray:
    def block(k: int, rows: slice = slice(None), columns: slice = slice(None)) -> np.ndarray:
        return a[rows, k : k + 32].astype(np.float32) @ b[k : k + 32, columns].astype(np.float32)

    if kernel is carried:
        whole = sum(block(k) for k in range(0, a.shape[1], 32))
        last = -(-a.shape[1] // 32) * 32
        again = [block(last - 32 * n) for n in range(1, 2 * len(groups) + 1)]
        return whole + sum(again) + 2 * sum(range(len(groups)))
    if kernel is strides:
        steps = [0, *np.cumsum(np.where(groups > 0, 32, 64))]
        return sum(block(k) for k in steps[:-1]) + steps[-1]
    c = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for m in range(0, a.shape[0], 64):
        for n in range(0, b.shape[1], 64):
            rows, columns = slice(m, m + 64), slice(n, n + 64)
            part, k = c[rows, columns], 0
            while np.abs(part).max() < 60 and k < a.shape[1]:
                part, k = part + block(k, rows, columns), k + 32
            c[rows, columns] = part + k
    return c


@pytest.mark.parametrize("kernel", [carried, strides, until])
@pytest.mark.parametrize("target", TARGETS)
def test_sums(kernel: tilec.Kernel, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more blocks than any ring has slots, ragged at all ends."""
    monkeypatch.setenv("TILEC_TARGET", target)
    rng = np.random.default_rng(7)
    a, b = (
        rng.integers(-3, 4, size).astype(ml_dtypes.bfloat16) for size in ((70, 456), (456, 104))
    )
    groups = rng.integers(0, 2, 7).astype(np.int32)
    c = poisoned((70, 104), np.float32)
    kernel.check(a, b, c, groups)
    np.testing.assert_array_equal(c, expected(kernel, a, b, groups))


SPECS = ["a:bf16[?,?:8;?:8,1]", "b:bf16[?,?:8;?:8,1]", "c:f32[?,?:4;?:4,1]", "groups:i32[?]"]


@pytest.mark.parametrize("kernel", [carried, strides, until])
def test_tensor_copies_bring_all_tiles(kernel: tilec.Kernel) -> None:
    """And a warp of their own, but where the sum says when it ends."""
    compiled = kernel.compile(SPECS, target="sm_90a")
    assert "cp.async.bulk.tensor" in compiled.ptx
    assert "ld.global.b16" not in compiled.ptx
    roles = [d for d in compiled.report["decisions"] if d["about"] == "warp specialisation"]
    assert [d["chosen"].startswith("1 loading warp") for d in roles] == [kernel is not until]


@tilec.kernel(grid=lambda y: y.shape[0])
def counters(y: tl.array, n: tl.i64, STEP: tl.const):
    """Integers of several widths, which wrap."""
    row = tl.program_id(0)
    at, up, wide, byte, tile, seen = row * 3, 0, n, row.to(tl.i8), tl.arange(2), 0
    for _ in tl.range(row - 1, row + 36, STEP):
        seen += at
        at += 7
        up -= STEP
        wide = n + wide
        byte += 100
        tile += 2**30
    tl.store(y, (row, 0), at.to(tl.i64))
    tl.store(y, (row, 1), up.to(tl.i64))
    tl.store(y, (row, 2), wide)
    tl.store(y, (row, 3), byte.to(tl.i64))
    tl.store(y, (row, 6), seen.to(tl.i64))
    tl.store(y, (row, 4), tile.to(tl.i64)[None, :])


@pytest.mark.parametrize("step", [1, 3, 8, 64])
def test_counters_behind_their_loop(step: int) -> None:
    for n in (0, 5, -11):
        y = np.zeros((3, 7), np.int64)
        counters.check(y, n, STEP=step)
        trips = len(range(0, 37, step))
        for row in range(3):
            byte = np.int64(row + 100 * trips).astype(np.int8)
            tile = (np.arange(2) + trips * 2**30).astype(np.int32)
            seen = sum(row * 3 + 7 * i for i in range(trips))
            last = row * 3 + 7 * trips
            assert [*y[row]] == [last, -step * trips, n + n * trips, byte, *tile, seen]
