"""Operand layouts of a dot: multiplied register by register, they give the matrix product."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilec.hardware.fragments import (
    accumulator_layout,
    fragment_mismatch,
    instruction_registers,
    operand_layouts,
)
from tilec.hardware.layout import Layout, covers, parse_layout
from tilec.hardware.mma_instruction import MmaInstruction
from tilec.hardware.mma_shapes import INSTRUCTIONS, find_instruction

TENSOR_CORE = [row for row in INSTRUCTIONS if row.acc_layout is not None]


def gather(layout: Layout, tile: np.ndarray) -> np.ndarray:
    """(thread, register) -> element; zero for phantoms."""
    values = np.array(layout.value_coordinates(tile.ndim)).reshape(-1, tile.ndim)
    held = np.zeros((layout.num_threads, layout.num_values))
    for thread in range(layout.num_threads):
        at = values + np.array(layout.thread_coordinates(thread, tile.ndim))
        inside = (at < tile.shape).all(axis=1)
        held[thread, inside] = tile[tuple(at[inside].T)]
    return held


def scatter(layout: Layout, held: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The tile that threads hold; NaN where nobody does; every copy must agree."""
    tile = np.full(shape, np.nan)
    values = np.array(layout.value_coordinates(len(shape))).reshape(-1, len(shape))
    for thread in range(layout.num_threads):
        at = values + np.array(layout.thread_coordinates(thread, len(shape)))
        for register in np.flatnonzero((at < shape).all(axis=1)):
            place = tuple(at[register])
            assert np.isnan(tile[place]) or tile[place] == held[thread, register]
            tile[place] = held[thread, register]
    return tile


def instruction_product(row: MmaInstruction, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """One warp's instruction on (lane, register) fragments, by its own fragment layouts."""
    assert row.lhs_layout is not None
    assert row.rhs_layout is not None
    assert row.acc_layout is not None
    lhs = scatter(row.lhs_layout, a, (row.m, row.k))
    rhs = scatter(row.rhs_layout, b, (row.k, row.n))
    return gather(row.acc_layout, lhs @ rhs)


def multiply(
    row: MmaInstruction, lhs: Layout, rhs: Layout, acc: Layout, a: np.ndarray, b: np.ndarray
) -> np.ndarray:
    """a @ b as the warps compute it: each instruction on the registers the layouts name."""
    rank, batch = a.ndim, a.ndim - 2
    held_a, held_b = gather(lhs, a), gather(rhs, b)
    held_c = np.zeros((acc.num_threads, acc.num_values))
    of_a = instruction_registers(lhs, row.lhs_layout, rank)
    of_b = instruction_registers(rhs, row.rhs_layout, rank)
    of_c = instruction_registers(acc, row.acc_layout, rank)
    for warp in range(acc.num_threads // 32):
        lanes = slice(warp * 32, warp * 32 + 32)
        for at, registers in of_c.items():
            for other, left in of_a.items():
                if other[:-1] != at[:-1]:
                    continue
                right = of_b[(*at[:batch], other[-1], at[-1])]
                held_c[lanes, list(registers)] += instruction_product(
                    row, held_a[lanes][:, list(left)], held_b[lanes][:, list(right)]
                )
    return scatter(acc, held_c, (*a.shape[:-1], b.shape[-1]))


@pytest.mark.parametrize("row", TENSOR_CORE, ids=lambda row: row.name)
@settings(max_examples=6)
@given(data=st.data())
def test_warps_compute_the_matrix_product(row: MmaInstruction, data: st.DataObject) -> None:
    batch = data.draw(st.lists(st.integers(1, 2), max_size=1))
    m, n = data.draw(st.integers(1, 50)), data.draw(st.integers(1, 40))
    k_step = row.k * data.draw(st.integers(1, 2))
    warps_m, warps_n = data.draw(st.sampled_from([(1, 1), (2, 1), (1, 2), (2, 2), (4, 1)]))
    acc = accumulator_layout(row, (*batch, m, n), warps_m, warps_n)
    rank = len(batch) + 2
    layouts = operand_layouts(row, acc, rank, k_step)
    assert acc.num_threads == 32 * warps_m * warps_n
    assert covers(acc, (*batch, m, n))
    assert covers(layouts.lhs, (*batch, m, k_step))
    assert covers(layouts.rhs, (*batch, k_step, n))
    assert fragment_mismatch(row, layouts.lhs, layouts.rhs, acc, rank) is None
    rng = np.random.default_rng(prod((m, n, k_step)))
    a = rng.integers(-4, 5, (*batch, m, k_step)).astype(float)
    b = rng.integers(-4, 5, (*batch, k_step, n)).astype(float)
    found = multiply(row, layouts.lhs, layouts.rhs, acc, a, b)
    np.testing.assert_array_equal(found, a @ b)


@settings(max_examples=20)
@given(data=st.data())
def test_fma_operands_are_what_each_accumulator_needs(data: st.DataObject) -> None:
    """Without fragments any layout will do: each thread holds its own rows and columns."""
    row = find_instruction("fma.f32")
    text = data.draw(
        st.sampled_from(
            [
                "T(8,4):(4@1,4@0) V(4,4):(1@1,1@0)",
                "T(8,4,2):(1@1,1@0,4@0) V(2,3):(8@0,8@1)",
                "T(32):(1@1) V(5):(1@0)",
            ]
        )
    )
    acc, k_step = parse_layout(text), data.draw(st.integers(1, 4))
    first = data.draw(st.booleans())
    layouts = operand_layouts(row, acc, 2, k_step, lhs_k_first=first, rhs_k_first=not first)
    assert fragment_mismatch(row, layouts.lhs, layouts.rhs, acc, 2) is None
    for thread in range(acc.num_threads):
        rows = {at[0] for at in elements(acc, thread)}
        columns = {at[1] for at in elements(acc, thread)}
        assert elements(layouts.lhs, thread) == set(product(rows, range(k_step)))
        assert elements(layouts.rhs, thread) == set(product(range(k_step), columns))


def elements(layout: Layout, thread: int) -> set[tuple[int, int]]:
    """The coordinates a thread holds."""
    x, y = layout.thread_coordinates(thread, 2)
    return {(x + i, y + j) for i, j in layout.value_coordinates(2)}


def test_an_fma_has_no_accumulator_of_its_own() -> None:
    with pytest.raises(ValueError, match="choose a blocked layout"):
        accumulator_layout(find_instruction("fma.f32"), (16, 16), 1, 1)


def test_registers_that_are_no_whole_fragments_are_refused() -> None:
    row = find_instruction("mma.m16n8k16.f32.f16.f16")
    with pytest.raises(ValueError, match="does not hold whole fragments"):
        instruction_registers(parse_layout("T(32):(1@0) V(2):(1@1)"), row.acc_layout, 2)


def test_swapped_warps_are_a_mismatch() -> None:
    row = find_instruction("mma.m16n8k16.f32.f16.f16")
    acc = accumulator_layout(row, (64, 64), 2, 1)
    other = accumulator_layout(row, (64, 64), 1, 2)
    right, wrong = operand_layouts(row, acc, 2, 16), operand_layouts(row, other, 2, 16)
    assert fragment_mismatch(row, right.lhs, right.rhs, acc, 2) is None
    assert fragment_mismatch(row, wrong.lhs, wrong.rhs, acc, 2) is not None
    assert fragment_mismatch(row, right.lhs, wrong.rhs, acc, 2) is not None
