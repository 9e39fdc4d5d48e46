"""Pipelined loops on the emulator: trip counts, stages, and shapes of loops."""

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
    outer_products,
    part_of_k,
    persistent,
    product,
    product_and_sum,
    row_sums,
    run_everywhere,
    running_product,
    several_products,
    store_between,
)
from shares import modes

from tilec.examples.running import poisoned
from tilec.messages.diagnostics import CompileError

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


@pytest.mark.share(2)
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


@pytest.mark.share(2)
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


def test_copies_of_single_elements_side_by_side_in_the_buffer() -> None:
    """The batch lies along the buffer's rows: two copies of a thread write neighbours."""
    a, b = draw(2, 16, 3, dtype=np.float32), draw(2, 3, 96, dtype=np.float32, seed=1)
    expected = near(np.matmul(a.astype(np.float64), b.astype(np.float64)), 2e-3)
    run_everywhere(outer_products, (a, b), ((2, 16, 96), np.float32), expected, STAGES=2)


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


@pytest.mark.share(3)
@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("lhs", ["rows", "columns"])
@pytest.mark.parametrize("rhs", ["rows", "columns"])
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


@pytest.mark.share(2)
@pytest.mark.parametrize("name", DTYPES)
def test_tiles_of_odd_sizes(name: str) -> None:
    """96x80x48 tiles on a ragged matrix."""
    inputs, output, precision, tolerance = DTYPES[name]
    a, b = draw_as(inputs, 100, 112), draw_as(inputs, 112, 96, seed=1)
    tiles = {"BM": 96, "BN": 80, "BK": 48, "PRECISION": precision}
    check = near(product(a, b), tolerance)
    run_everywhere(gemm, (a, b), ((100, 96), output), check, grid=(2, 2), **tiles)


@pytest.mark.parametrize("width", [0, 64, 128, 640, 328])
@pytest.mark.parametrize(("loads", "stages"), [(1, 2), (2, 3), (3, 4), (5, 2), (5, 6)])
def test_demanded_stages_of_loads_that_no_dot_reads(loads: int, stages: int, width: int) -> None:
    x, y = draw(8, 1024)[:, :width], draw(8, 1024, seed=1)[:, :width]
    expected = (x.astype(np.float64) * y.astype(np.float64) ** (loads - 1)).sum(1)
    shape = ((8,), np.float32)
    compiled = run_everywhere(
        row_sums, (x, y), shape, near(expected, 1e-5), LOADS=loads, STAGES=stages
    )
    copies = decisions(compiled, "asynchronous copy")
    assert len(copies) == loads
    assert {entry["why"] for entry in copies} == {"the author's demand; read back into registers"}
    assert decisions(compiled, "pipeline")[0]["stages"] == stages


def test_undemanded_loads_into_registers_stay_loads() -> None:
    x, y = draw(8, 256), draw(8, 256, seed=1)
    expected = (x.astype(np.float64) * y).sum(1)
    shape = ((8,), np.float32)
    compiled = run_everywhere(row_sums, (x, y), shape, near(expected, 1e-5), LOADS=2, STAGES=None)
    assert "cp.async" not in compiled.ptx
    assert compiled.shared_bytes == 0


@pytest.mark.parametrize("depth", [0, 16, 104])
@pytest.mark.parametrize("stages", [None, 2, 4])
def test_a_load_for_a_dot_and_for_registers(stages: int | None, depth: int) -> None:
    a, b = draw(32, 128)[:, :depth], draw(depth, 32, seed=1)
    expected = product(a, b) + a.astype(np.float64).sum(1)[:, None]
    compiled = run_everywhere(
        product_and_sum, (a, b), ((32, 32), np.float32), near(expected, EXACT), STAGES=stages
    )
    left = decisions(compiled, "asynchronous copy")[0]
    assert left["chosen"] == ("no" if stages is None else "cp.async of 16 bytes")


def test_a_loop_that_writes_what_it_reads_is_not_read_ahead() -> None:
    a, b = draw(16, 16), np.asarray(draw(16, 16, seed=1) / 4, HALF)
    block, blocks = a, [a]
    for _ in range(5):
        block = product(block, b).astype(np.float32).astype(HALF)
        blocks.append(block)
    expected = np.concatenate(blocks).astype(np.float64)
    compiled = run_everywhere(running_product, (a, b), ((96, 16), HALF), near(expected, 2e-3))
    (entry,) = decisions(compiled, "pipeline")
    assert entry["chosen"] == "no"
    assert entry["why"] == "'tile.store' in the loop writes an array that a copy reads"


def test_a_store_behind_a_load_does_not_overtake_it() -> None:
    for mode in modes():
        a, b, c = draw(32, 64), draw(64, 32, seed=1), poisoned((32, 32), np.float32)
        expected = product(a, b)
        store_between.on(f"emulator:{mode}")[1](a, b, c)
        near(expected, EXACT)(c)
        assert not a.any()


def unaligned(*shape: int, seed: int = 0) -> np.ndarray:
    """An array whose first element lies 2 bytes behind a multiple of 16."""
    size = int(np.prod(shape))
    return draw(size + 8, seed=seed)[1 : size + 1].reshape(shape)


def test_unaligned_arrays_are_loaded_plainly_and_the_report_says_why() -> None:
    a, b = unaligned(32, 64), draw(64, 32, seed=1)
    shape = ((32, 32), np.float32)
    compiled = run_everywhere(gemm, (a, b), shape, near(product(a, b), EXACT), BM=32, BN=32, BK=16)
    left, right = decisions(compiled, "asynchronous copy")
    assert left["chosen"] == "no"
    assert left["why"] == (
        "only 2 bytes are provably aligned: the pointer's alignment is not known"
    )
    assert right["chosen"] == "cp.async of 16 bytes"


@pytest.mark.parametrize(("pitch", "bytes_"), [(67, 4), (68, 16)])
def test_copies_are_as_wide_as_the_alignment(pitch: int, bytes_: int) -> None:
    """The launcher knows multiples of 16 bytes or nothing; one f32 can be copied all the same."""
    a, b = draw(32, 60, dtype=np.float32), draw(60, pitch, dtype=np.float32, seed=1)[:, :32]
    tiles = {"BM": 32, "BN": 32, "BK": 16}
    compiled = run_everywhere(
        gemm, (a, b), ((32, 32), np.float32), near(product(a, b), 1e-5), **tiles
    )
    left, right = decisions(compiled, "asynchronous copy")
    assert right["chosen"] == f"cp.async of {bytes_} bytes"
    # FMA units read columns of a, so its rows are transposed on the way.
    assert (left["chosen"], left["why"]) == ("cp.async of 4 bytes", "only fills buffers")


@pytest.mark.parametrize(("m", "n", "k"), [(64, 65, 49), (65, 64, 63), (63, 31, 65), (7, 5, 3)])
def test_rows_that_end_inside_a_vector(m: int, n: int, k: int) -> None:
    """Tiles at the end copy bytes, others whole vectors; what follows a row must not be read."""

    def in_nan(rows: int, columns: int, seed: int) -> np.ndarray:
        around = np.full((rows + 1, -(-columns // 8) * 8), np.nan, HALF)
        around[:rows, :columns] = draw(rows, columns, seed=seed)
        return around[:rows, :columns]

    a, b = in_nan(m, k, 0), in_nan(k, n, 1)
    tiles = {"BM": 32, "BN": 32, "BK": 16, "STAGES": 3}
    check, grid = near(product(a, b), EXACT), (-(-m // 32), -(-n // 32))
    compiled = run_everywhere(gemm, (a, b), ((m, n), np.float32), check, grid, **tiles)
    copies = [entry["chosen"] for entry in decisions(compiled, "asynchronous copy")]
    assert copies == ["cp.async of 16 bytes"] * 2


def test_an_impossible_demand_names_the_loads_that_stand_in_its_way() -> None:
    a, b, c = unaligned(32, 64), unaligned(64, 32, seed=1), poisoned((32, 32), np.float32)
    with pytest.raises(CompileError) as caught:
        gemm.on("emulator").compiled(a, b, c, BM=32, BN=32, BK=16, STAGES=4)
    text = str(caught.value)
    assert "stages=4 was asked for, but the loop holds no asynchronous copy of its own" in text
    assert text.count("is no asynchronous copy: only 2 bytes are provably aligned") == 2
    assert "for k in tl.range(0, a.shape[1], BK, stages=STAGES)" in text


def test_more_stages_than_shared_memory() -> None:
    a, b, c = draw(128, 64), draw(64, 128, seed=1), poisoned((128, 128), np.float32)
    with pytest.raises(CompileError, match="needs 786432 bytes of shared memory, sm_80 has 166912"):
        gemm.on("emulator").compiled(a, b, c, BM=128, BN=128, BK=64, STAGES=24)
