"""Loops whose loads run ahead, unrolled: any number of iterations, from any row, on the
emulator in its check mode against NumPy."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.call import jit
from tilec.passes.demands.kernels import MANY


@tilec.kernel(grid=lambda x: x.shape[0], device="emulator:check")
def walk(x: tl.array, first: tl.array, y: tl.array, STEP: tl.const, WIDTH: tl.const):
    """y[p, i] = h, which becomes h / 2 + x[p, i] - max(x[p, i], 0), i from first[p] in steps."""
    program = tl.program_id(0)
    h = tl.zeros(WIDTH, tl.f32)
    for i in tl.range(tl.load(first, program, ()), x.shape[1], STEP):
        row = tl.load(x, (program, i, 0), WIDTH)
        h = 0.5 * h + row - tl.max(row)
        tl.store(y, (program, i, 0), h)


def expected(x: np.ndarray, first: np.ndarray, step: int) -> np.ndarray:
    y = np.full(x.shape, np.nan)
    for program, start in enumerate(first):
        h = np.zeros(x.shape[2])
        for i in range(start, x.shape[1], step):
            row = x[program, i].astype(float)
            h = 0.5 * h + row - max(row.max(), 0)
            y[program, i] = h
    return y


def told(kernel: tilec.CompiledKernel) -> list[str]:
    return [d["chosen"] for d in kernel.report["decisions"] if d["about"] == "loads"]


@pytest.mark.parametrize(
    ("width", "ahead"), [(64, ["8 iterations ahead"]), (512, ["2 iterations ahead"])]
)
@pytest.mark.parametrize("step", [1, 3])
def test_any_number_of_iterations(step: int, width: int, ahead: list[str]) -> None:
    """From none to two whole turns and some; programs begin at rows of their own, one at the end.
    Of 512 elements each of two warps has half, and they wait for each other; rows end
    inside a tile."""
    rng = np.random.default_rng(step)
    kernel = walk.demanding(num_warps=2)
    for length in (1, 8 * step, 19):
        x = rng.standard_normal((3, length, width - 14), dtype=np.float32)
        first = np.array([0, min(2, length), length], np.int32)
        y = np.full_like(x, np.nan)
        kernel(x, first, y, STEP=step, WIDTH=width)
        np.testing.assert_allclose(y, expected(x, first, step), rtol=0, atol=1e-5)
    compiled = kernel.compiled(x, first, y, STEP=step, WIDTH=width)
    assert told(compiled) == ahead


@tilec.kernel(grid=1, device="emulator:check")
def shift_down(x: tl.array):
    """x[i + 1] = x[i] + 1, row after row."""
    for i in tl.range(x.shape[0] - 1):
        tl.store(x, (i + 1, 0), tl.load(x, (i, 0), 32) + 1)


def test_what_an_iteration_writes_the_next_one_reads() -> None:
    x = np.zeros((7, 32), np.float32)
    shift_down(x)
    np.testing.assert_array_equal(x, np.arange(7)[:, None] + np.zeros(32))
    assert not told(shift_down.compiled(x))


@tilec.kernel(grid=lambda y: y.shape[0], device="emulator:check")
def sum_bags(table: tl.array, rows: tl.array, y: tl.array, B: tl.const):
    """y[n]: the sum of the rows of `table` that rows[n] numbers."""
    n = tl.program_id(0)
    total = tl.zeros(B, tl.f32)
    for k in tl.range(rows.shape[1]):
        total += tl.load(table, (tl.load(rows, (n, k), ()), 0), B).to(tl.f32)
    tl.store(y, (n, 0), total)


@pytest.mark.parametrize(
    ("kind", "width", "loads"),
    [(np.float32, 60, "8 iterations ahead"), (np.float16, 61, "4 iterations at once")],
)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 7, 8, 9, 23])
def test_rows_by_numbers_that_the_loop_loads(
    count: int, kind: type, width: int, loads: str
) -> None:
    """Elements that come one by one are loaded with those of other iterations, and not carried."""
    rng = np.random.default_rng(count)
    table = rng.standard_normal((11, width)).astype(kind)
    rows = rng.integers(0, 11, (3, count)).astype(np.int32)
    y = np.full((3, width), np.nan, np.float32)
    sum_bags(table, rows, y, B=64)
    np.testing.assert_allclose(y, table.astype(float)[rows].sum(1), rtol=0, atol=1e-5)
    assert told(sum_bags.compiled(table, rows, y, B=64)) == [loads]


@tilec.kernel(grid=lambda y, B: (tl.cdiv(y.shape[1], B), y.shape[0]), device="emulator:check")
def multiply_sparse(
    starts: tl.array, columns: tl.array, values: tl.array, x: tl.array, y: tl.array, B: tl.const
):
    """y: the rows of a sparse matrix times x."""
    n, row = tl.program_id(0) * B, tl.program_id(1)
    total = tl.zeros((B,), tl.f32)
    for i in tl.range(tl.load(starts, row, ()), tl.load(starts, row + 1, ())):
        at = tl.load(columns, i, ())
        total += tl.load(values, i, ()) * tl.load(x, (at, n), B).to(tl.f32)
    tl.store(y, (row, n), total.to(y.dtype))


@pytest.mark.parametrize("width", [32, 81])
def test_rows_of_sparse_matrices(width: int) -> None:
    """From none to some elements a row, of which a turn loads four: programs along the second axis
    of the grid, or along two."""
    rng = np.random.default_rng(width)
    lengths = np.array([3, 0, 1, 2, 4, 5, 11, 8, 7, 13])
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    columns = rng.integers(0, 20, starts[-1]).astype(np.int32)
    values = rng.standard_normal(starts[-1], dtype=np.float32)
    x = rng.standard_normal((20, width)).astype(np.float16)
    y = np.full((len(lengths), width), np.nan, np.float16)
    given = (starts, columns, values, x, y)
    multiply_sparse(*given, B=32)
    parts = values[:, None] * x[columns].astype(float)
    expected = [parts[first:end].sum(0) for first, end in pairwise(starts)]
    np.testing.assert_allclose(y.astype(float), np.array(expected), atol=1e-2)
    assert told(multiply_sparse.compiled(*given, B=32)) == ["4 iterations at once"]


@tilec.kernel(grid=lambda x: x.shape[0])
def sums(x: tl.array, y: tl.array, N: tl.const):
    """y[i] = sum of row i."""
    row = tl.program_id(0)
    total = tl.zeros(N, tl.f32)
    for start in tl.range(0, x.shape[1], N):
        total += tl.load(x, (row, start), N).to(tl.f32)
    tl.store(y, row, tl.sum(total))


@pytest.mark.parametrize(
    ("dtype", "tile", "rows", "expected"),
    [
        ("f16", 1024, 16 * 132, ["8 iterations ahead"]),
        ("f16", 1024, None, ["8 iterations ahead"]),
        ("f16", 1024, 100000, ["2 iterations at once"]),
        ("f32", 1024, 100000, ["8 iterations ahead"]),
        ("f32", 2048, 16 * 132, []),
        ("f32", 2048, 100000, ["2 iterations at once"]),
    ],
)
def test_sums_of_many_programs_load_two_iterations_at_once(
    dtype: str, tile: int, rows: int | None, expected: list[str]
) -> None:
    """They hide the latency for each other; few programs need all they can have under way."""
    specs, sizes = [f"x:{dtype}[?,?:8;?:8,1]", "y:f32[?]"], {"x": (rows, 8192), "y": (rows,)}
    given = None if rows is None else sizes
    kernel = sums.compile(specs, {"N": tile}, target="sm_90a", sizes=given)
    assert told(kernel) == expected


def test_sums_of_many_programs_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of no, one and several turns, and what is left."""
    monkeypatch.setattr(jit, "better_suited", lambda kernel, *_: kernel.suits[1] and MANY + 1)
    rng = np.random.default_rng()
    for columns in (0, 40, 64, 130, 193, 500):
        x = rng.standard_normal((5, columns), dtype=np.float32)
        y = np.full(5, np.nan, np.float32)
        kernel = sums.on("emulator:check")
        kernel(x, y, N=64)
        np.testing.assert_allclose(y, x.sum(1, dtype=np.float64), rtol=0, atol=1e-4)
    assert told(kernel.compiled(x, y, N=64)) == ["2 iterations at once"]


def test_many_sums_of_rows_by_number_load_two_at_once() -> None:
    """Also where a thread has several vectors of a row, which come out of L2."""
    specs = ["table:bf16[?,?:8;?:8,1]", "rows:i32[?,?;?,1]", "y:f32[?,?:8;?:8,1]"]
    sizes = {"table": (2000, 320), "rows": (30000, 3), "y": (30000, 320)}
    about = {"target": "sm_90a", "sizes": sizes, "at_most": True}
    assert told(sum_bags.compile(specs, {"B": 320}, **about)) == ["2 iterations at once"]
    sizes["rows"], sizes["y"] = (300, 3), (300, 320)
    assert told(sum_bags.compile(specs, {"B": 320}, **about)) == ["8 iterations ahead"]


@tilec.kernel(grid=lambda y: y.shape[0], device="emulator:check")
def sum_runs(starts: tl.array, values: tl.array, y: tl.array, B: tl.const):
    """Sums of runs of values, each of which ends where the next begins."""
    row = tl.program_id(0)
    first, end = tl.load(starts, row, ()), tl.load(starts, row + 1, ())
    acc = tl.zeros((B,), tl.f32)
    for at in tl.range(first, end, B):
        acc += tl.where(at + tl.arange(B) < end, tl.load(values, at, B), 0.0)
    tl.store(y, row, tl.sum(acc))


def test_short_steps_of_runs_come_four_at_once() -> None:
    """Runs of none to a dozen steps, from anywhere."""
    rng = np.random.default_rng(7)
    counts = rng.integers(0, 400, 60)
    counts[:5] = 0, 1, 31, 128, 129
    starts = np.concatenate([[3], 3 + counts.cumsum()]).astype(np.int32)
    values, y = rng.random(starts[-1], dtype=np.float32), np.full(60, np.nan, np.float32)
    sum_runs(starts, values, y, B=32)
    padded = np.concatenate([values, [0]]).astype(np.float64)
    expected = np.add.reduceat(padded, starts[:-1]) * (counts > 0)
    np.testing.assert_allclose(y, expected, rtol=1e-5)
    assert told(sum_runs.compiled(starts, values, y, B=32)) == ["4 iterations at once"]
    assert not told(sum_runs.compiled(starts, values, y, B=256))
