"""Matrices times vectors that no copy engine brings (`tilec.ops.vector_kernel`)."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.costs.dot_work import Memory
from tilec.costs.machine import usual_machine
from tilec.hardware.target import find_target
from tilec.ops.product_facts import product_of
from tilec.ops.tile_choice import choose_tiles
from tilec.ops.vector_choice import vector_tile

H200 = usual_machine(find_target("sm_90a"))
ANYWHERE, ACROSS, LINES = Memory(1, 2), Memory(0, 2), Memory(1, 128)


def drawn(shape: tuple[int, ...], dtype: Any, rng: np.random.Generator, *, turned: bool) -> Any:
    values = rng.standard_normal(shape) * (20 if dtype is np.int8 else 1)
    made = values.astype(np.float32).astype(dtype)
    return np.ascontiguousarray(made.swapaxes(-1, -2)).swapaxes(-1, -2) if turned else made


@pytest.mark.parametrize("turned", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(np.float16, 2e-3), (ml_dtypes.bfloat16, 1e-2), (ml_dtypes.float8_e4m3fn, 1e-2), (np.int8, 0)],
)
@pytest.mark.parametrize("shape", [(78, 1, 223), (1, 37, 331), (5, 1, 3), (2, 3, 1, 1, 67)])
def test_a_matrix_times_a_vector(
    shape: tuple[int, ...], dtype: Any, tolerance: float, turned: bool
) -> None:
    *lead, m, n, k = shape
    rng = np.random.default_rng(7)
    a = drawn((*lead, m, k), dtype, rng, turned=turned)
    b = drawn((*lead, k, n), dtype, rng, turned=turned)
    out = np.int32 if dtype is np.int8 else np.float32
    c = np.full((*lead, m, n), 77, out)
    tilec.ops.matmul(a, b, c)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    assert np.abs(c - expected).max() <= tolerance * np.abs(expected).max()


def test_it_has_the_whole_epilogue_of_products() -> None:
    rng = np.random.default_rng(8)
    for m, n in ((45, 1), (1, 45)):
        a, b = (drawn(s, np.float16, rng, turned=False) for s in ((m, 101), (101, n)))
        bias, residual = (rng.standard_normal(s).astype(np.float16) for s in ((n,), (m, n)))
        rows, columns = (rng.random(s, np.float32) for s in ((m,), (n,)))
        scales: dict[str, Any] = {"row_scale": rows, "column_scale": columns, "scale": 0.5}
        found = tilec.ops.matmul(a, b, bias=bias, residual=residual, activation="relu", **scales)
        x = a.astype(np.float64) @ b.astype(np.float64) * 0.5 * rows[:, None] * columns
        expected = np.maximum(x + bias, 0) + residual
        assert np.abs(found - expected).max() < 2e-2
        assert "a matrix times a vector" in tilec.ops.matmul_report(a, b, bias=bias)


def chosen(m: int, n: int, k: int, a: Memory, b: Memory) -> Any:
    return choose_tiles(m, n, k, 1, tl.bf16, "ieee", H200, 64, a, b, 4, True)


def test_what_the_copy_engine_brings_stays_with_tensor_cores() -> None:
    """1 x 8192 x 8192 is read as fast as DRAM allows."""
    assert not chosen(1, 8192, 8192, LINES, Memory(0, 128)).is_vector
    assert chosen(34, 1, 629, ANYWHERE, ANYWHERE).is_vector
    assert not chosen(34, 2, 629, ANYWHERE, ANYWHERE).is_vector


def test_few_rows_of_a_long_k_are_summed_in_parts() -> None:
    assert not chosen(2, 1, 99999, ANYWHERE, ANYWHERE).is_vector
    assert chosen(20000, 1, 99999, ANYWHERE, ANYWHERE).is_vector


def test_rows_share_a_program_where_one_each_took_several_rounds() -> None:
    for m, rows in ((100, 1), (16 * 132, 1), (16 * 132 + 1, 4)):
        product = product_of(m, 1, 999, 1, tl.bf16, "ieee", ANYWHERE, ANYWHERE, ANYWHERE)
        assert vector_tile(product, H200) == (rows, 1024 // rows)
    across = product_of(100, 1, 333, 1, tl.bf16, "ieee", ACROSS, ANYWHERE, ANYWHERE)
    assert vector_tile(across, H200) == (8, 256)
    longer = product_of(3001, 1, 777, 1, tl.bf16, "ieee", ACROSS, ANYWHERE, ANYWHERE)
    assert vector_tile(longer, H200) == (8, 256)
    more = product_of(9001, 1, 2049, 1, tl.bf16, "ieee", ACROSS, ANYWHERE, ANYWHERE)
    assert vector_tile(more, H200) == (32, 32)
