"""Pipelined loops on the emulator in all modes: trip counts, stages, and shapes of loops."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from pipelined_kernels import (
    attention,
    batched,
    carried_beside,
    decisions,
    gemm,
    near,
    one_copy,
    part_of_k,
    persistent,
    product,
    run_everywhere,
    several_products,
)

HALF = np.float16
EXACT = 1e-6


def draw(*shape: int, dtype: type = HALF, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("stages", [1, 2, 3, 4, 5, 6])
def test_every_trip_count_with_every_number_of_stages(stages: int) -> None:
    """0, 1, fewer than the stages, equal, more, and a last tile that K does not fill."""
    for depth in sorted({0, 8, 16, 16 * (stages - 1), 16 * stages, 16 * stages + 40}):
        a, b = draw(32, 256)[:, :depth], draw(depth, 32, seed=1)
        tiles = {"BM": 32, "BN": 32, "BK": 16, "STAGES": stages}
        compiled = run_everywhere(
            gemm, (a, b), ((32, 32), np.float32), near(product(a, b), EXACT), **tiles
        )
    (entry,) = decisions(compiled, "pipeline")
    assert entry["stages"] == stages
    assert entry["why"] == "the author's demand"


def test_undemanded_stages_are_chosen_by_shared_memory() -> None:
    a, b = draw(64, 128), draw(128, 64, seed=1)
    shape = ((64, 64), np.float32)
    compiled = run_everywhere(gemm, (a, b), shape, near(product(a, b), EXACT), BM=64, BN=64, BK=32)
    (entry,) = decisions(compiled, "pipeline")
    assert entry["stages"] == 4
    assert entry["stage_bytes"] == 2 * 64 * 32 * 2
    assert compiled.shared_bytes == 4 * entry["stage_bytes"]


@pytest.mark.parametrize("stages", [1, 2, 3, 5])
@pytest.mark.parametrize(
    ("low", "high", "step"),
    [
        (0, 64, 16),  # ends before the array does: a copy past `high` must not be used
        (16, 80, 16),
        (3, 50, 16),  # neither bound divides: unaligned loads, no asynchronous copy
        (16, 72, 24),  # a step that is no multiple of the tile
        (32, 32, 16),
        (48, 16, 16),  # an empty range
        (80, 200, 16),  # runs past the array: zeros
    ],
)
def test_a_range_inside_k(low: int, high: int, step: int, stages: int) -> None:
    a, b = draw(32, 96), draw(96, 32, seed=1)
    expected = np.zeros((32, 32))
    for k in range(low, high, step):
        expected += product(a[:, k : k + 16], b[k : k + 16])
    run_everywhere(
        part_of_k,
        (a, b, low, high),
        ((32, 32), np.float32),
        near(expected, EXACT),
        STEP=step,
        STAGES=stages if low % 8 == 0 else None,
    )


@pytest.mark.parametrize("stages", [2, 4])
@pytest.mark.parametrize("dots", [1, 2, 4])
def test_any_number_of_copies_an_iteration(dots: int, stages: int) -> None:
    x, y = draw(32 * dots, 72), draw(72, 32, seed=1)
    expected = sum(product(x[32 * d : 32 * d + 32], y) for d in range(dots))
    shape = ((32, 32), np.float32)
    compiled = run_everywhere(
        several_products, (x, y), shape, near(expected, EXACT), DOTS=dots, STAGES=stages
    )
    copies = decisions(compiled, "asynchronous copy")
    assert [c["chosen"] for c in copies] == ["cp.async of 16 bytes"] * (dots + 1)


@pytest.mark.parametrize("stages", [None, 2, 3])
def test_one_load_for_both_operands(stages: int | None) -> None:
    x = draw(88, 32)
    run_everywhere(
        one_copy, (x,), ((32, 32), np.float32), near(product(x.T, x), EXACT), STAGES=stages
    )


@pytest.mark.parametrize("depth", [0, 16, 32, 104])
@pytest.mark.parametrize("stages", [2, 4])
def test_values_carried_beside_the_accumulator(stages: int, depth: int) -> None:
    a, b = draw(32, 128)[:, :depth], draw(depth, 32, seed=1)
    expected, largest, weight, count = np.zeros((32, 32)), np.zeros(32), 1.0, 0
    for k in range(0, depth, 16):
        part = product(a[:, k : k + 16], b[k : k + 16])
        expected += part * weight
        largest = np.maximum(largest, np.abs(part).max(1))
        weight, count = weight / 2, count + 1
    expected += largest[:, None] + count
    run_everywhere(
        carried_beside, (a, b), ((32, 32), np.float32), near(expected, EXACT), STAGES=stages
    )


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
@pytest.mark.parametrize("depth", [0, 16, 80])
def test_a_pipelined_loop_in_a_loop(depth: int, stages: int) -> None:
    """The next tile's prologue overwrites slots the last iterations read."""
    a, b = draw(70, 128)[:, :depth], draw(depth, 96, seed=1)[:, :90]
    run_everywhere(
        persistent,
        (a, b),
        ((70, 90), np.float32),
        near(product(a, b), EXACT),
        grid=(2,),
        STAGES=stages,
    )


@pytest.mark.parametrize("keys", [16, 50, 96])
@pytest.mark.parametrize("stages", [None, 2, 3])
def test_two_dots_in_an_iteration(stages: int | None, keys: int) -> None:
    q, k, v = draw(32, 32) / 4, draw(keys, 32, seed=1), draw(keys, 32, seed=2)
    scores = product(q, k.T)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    expected = weights / weights.sum(1, keepdims=True) @ v.astype(np.float64)
    run_everywhere(
        attention, (q, k, v), ((32, 32), np.float32), near(expected, 2e-3), STAGES=stages
    )


@pytest.mark.parametrize("stages", [1, 3])
def test_batched_dots(stages: int) -> None:
    a, b = draw(2, 32, 72), draw(2, 72, 32, seed=1)
    expected = np.matmul(a.astype(np.float64), b.astype(np.float64))
    run_everywhere(batched, (a, b), ((2, 32, 32), np.float32), near(expected, EXACT), STAGES=stages)


DTYPES = {
    "f64": (np.float64, np.float64, "ieee", 1e-13),
    "f32": (np.float32, np.float32, "ieee", EXACT),
    "tf32": (np.float32, np.float32, "tf32", 2e-3),
    "f16": (np.float16, np.float32, "ieee", EXACT),
    "bf16": (ml_dtypes.bfloat16, np.float32, "ieee", EXACT),
    "f8": (ml_dtypes.float8_e4m3fn, np.float32, "ieee", EXACT),
    "s8": (np.int8, np.int32, "ieee", 0.0),
}
"""Inputs, output, precision and tolerated error by name."""


def draw_as(dtype: type, *shape: int, seed: int = 0) -> np.ndarray:
    if dtype is np.int8:
        return np.random.default_rng(seed).integers(-128, 128, shape, dtype=np.int8)
    return draw(*shape, dtype=dtype, seed=seed)


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize(
    ("lhs", "rhs"),
    [("rows", "rows"), ("columns", "rows"), ("rows", "columns"), ("columns", "columns")],
)
def test_every_dtype_in_every_order(name: str, lhs: str, rhs: str) -> None:
    """Operands with stride 1 along either dimension."""
    inputs, output, precision, tolerance = DTYPES[name]
    a, b = draw_as(inputs, 64, 160), draw_as(inputs, 160, 64, seed=1)
    expected = product(a, b)
    a = a if lhs == "rows" else np.ascontiguousarray(a.T).T
    b = b if rhs == "rows" else np.ascontiguousarray(b.T).T
    compiled = run_everywhere(
        gemm,
        (a, b),
        ((64, 64), output),
        near(expected, tolerance),
        BM=64,
        BN=64,
        BK=32,
        STAGES=None,
        PRECISION=precision,
    )
    copies = [entry["chosen"] for entry in decisions(compiled, "asynchronous copy")]
    # sm_80 has no fp8 matrix instruction: the loads are widened in registers.
    assert len(copies) == (0 if name == "f8" else 2)
    assert all(copy.startswith("cp.async of") for copy in copies)


@pytest.mark.parametrize("name", DTYPES)
def test_tiles_of_odd_sizes(name: str) -> None:
    """96x80x48 tiles on a ragged matrix."""
    inputs, output, precision, tolerance = DTYPES[name]
    a, b = draw_as(inputs, 100, 112), draw_as(inputs, 112, 96, seed=1)
    tiles = {"BM": 96, "BN": 80, "BK": 48, "PRECISION": precision}
    check = near(product(a, b), tolerance)
    run_everywhere(gemm, (a, b), ((100, 96), output), check, grid=(2, 2), **tiles)
