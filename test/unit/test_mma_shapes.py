"""Matrix instructions: each fragment, element by element, against the formulas of the PTX ISA.

The formulas are those of PTX ISA 9.0, "Matrix Fragments for mma.m16n8k16 with floating point type"
and its neighbours: g = lane / 4 ("groupID"), t = lane % 4 ("threadID_in_group"), i = the register's
element. They are written here from the text, not from the table under test.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product

import pytest
import tensor_layouts
from tensor_layouts import atoms_nv

from tilec.hardware.layout import Layout
from tilec.hardware.mma_instruction import MmaInstruction
from tilec.hardware.mma_shapes import (
    INSTRUCTIONS,
    SCALED_INSTRUCTIONS,
    find_instruction,
    select_instruction,
    select_scaled_fragments,
    select_scaled_instruction,
    select_tensor_instruction,
)
from tilec.hardware.target import TARGETS, Target, find_target

Formula = Callable[[int, int, int], tuple[int, int]]


def a_16bit(g: int, t: int, i: int) -> tuple[int, int]:
    """m16n8k16, .f16/.bf16: row g for i = 0, 1, 4, 5, else g + 8; the upper k half from i = 4."""
    return g + (8 if i in (2, 3, 6, 7) else 0), t * 2 + (i & 1) + (8 if i >= 4 else 0)


def b_16bit(g: int, t: int, i: int) -> tuple[int, int]:
    return t * 2 + (i & 1) + (8 if i >= 2 else 0), g


def a_tf32(g: int, t: int, i: int) -> tuple[int, int]:
    """m16n8k8, .tf32: a0 (g, t), a1 (g + 8, t), a2 (g, t + 4), a3 (g + 8, t + 4)."""
    return ((g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4))[i]


def b_tf32(g: int, t: int, i: int) -> tuple[int, int]:
    return ((t, g), (t + 4, g))[i]


def a_8bit(g: int, t: int, i: int) -> tuple[int, int]:
    """m16n8k32, 8-bit types: row g for 0 <= i < 4 and 8 <= i < 12; the upper k half from i = 8."""
    lower = 0 <= i < 4 or 8 <= i < 12
    return g if lower else g + 8, t * 4 + (i & 3) + (16 if i >= 8 else 0)


def b_8bit(g: int, t: int, i: int) -> tuple[int, int]:
    return t * 4 + (i & 3) + (16 if i >= 4 else 0), g


def accumulator(g: int, t: int, i: int) -> tuple[int, int]:
    """All m16n8: row g for i = 0, 1, else g + 8; column 2 t + (i & 1)."""
    return g if i < 2 else g + 8, t * 2 + (i & 1)


def a_f64(g: int, t: int, i: int) -> tuple[int, int]:
    """m8n8k4, .f64."""
    return g, t


def b_f64(g: int, t: int, i: int) -> tuple[int, int]:
    return t, g


def c_f64(g: int, t: int, i: int) -> tuple[int, int]:
    return g, t * 2 + i


FORMULAS: dict[tuple[int, int, int], tuple[Formula, Formula, Formula]] = {
    (16, 8, 16): (a_16bit, b_16bit, accumulator),
    (16, 8, 8): (a_tf32, b_tf32, accumulator),
    (16, 8, 32): (a_8bit, b_8bit, accumulator),
    (8, 8, 4): (a_f64, b_f64, c_f64),
}
SCALED = [row for row in SCALED_INSTRUCTIONS if row.pack == 2 or "e3m2" in row.name]
"""Of those with scales; the others are of the same words."""
TENSOR_CORE = [*(row for row in INSTRUCTIONS if row.acc_layout is not None), *SCALED]
each_instruction = pytest.mark.parametrize("row", TENSOR_CORE, ids=lambda row: row.name)


def fragments(row: MmaInstruction) -> list[tuple[Layout, tuple[int, int]]]:
    """The three fragments with the shapes they tile, of 4-bit numbers in bytes of two: those of
    m16n8k64 lie as m16n8k32 of 8 bits ("Matrix Fragments for mma.m16n8k64 with .e2m1 type")."""
    layouts = (row.lhs_layout, row.rhs_layout, row.acc_layout)
    shapes = ((row.m, row.depth), (row.depth, row.n), (row.m, row.n))
    return [(layout, shape) for layout, shape in zip(layouts, shapes, strict=True) if layout]


@each_instruction
def test_fragments_follow_the_isa(row: MmaInstruction) -> None:
    for (layout, _), formula in zip(fragments(row), FORMULAS[row.m, row.n, row.depth], strict=True):
        values = layout.value_coordinates(2)
        for lane, i in product(range(32), range(layout.num_values)):
            start = layout.thread_coordinates(lane, 2)
            found = (start[0] + values[i][0], start[1] + values[i][1])
            assert found == formula(lane // 4, lane % 4, i), (lane, i)


@each_instruction
def test_fragments_hold_each_element_once(row: MmaInstruction) -> None:
    for layout, (rows, columns) in fragments(row):
        values = layout.value_coordinates(2)
        starts = [layout.thread_coordinates(lane, 2) for lane in range(32)]
        held = sorted((s[0] + v[0], s[1] + v[1]) for s in starts for v in values)
        assert held == sorted(product(range(rows), range(columns)))


@each_instruction
def test_registers_are_as_many_as_the_instruction_takes(row: MmaInstruction) -> None:
    bits = {"f64": 64, "f32": 32, "i32": 32, "f16": 16, "bf16": 16}
    for (layout, (rows, columns)), element in zip(
        fragments(row), (row.lhs, row.rhs, row.acc), strict=True
    ):
        assert layout.num_values * 32 == rows * columns
        assert layout.num_values * bits.get(element, 8) % 32 == 0


ATOMS = {
    "mma.m16n8k16.f32.f16.f16": "SM80_16x8x16_F32F16F16F32_TN",
    "mma.m16n8k16.f16.f16.f16": "SM80_16x8x16_F16F16F16F16_TN",
    "mma.m16n8k16.f32.bf16.bf16": "SM80_16x8x16_F32BF16BF16F32_TN",
    "mma.m16n8k8.f32.tf32.tf32": "SM80_16x8x8_F32TF32TF32F32_TN",
    "mma.m16n8k32.s32.s8.s8": "SM80_16x8x32_S32S8S8S32_TN",
    "mma.m16n8k32.f32.e4m3.e5m2": "SM89_16x8x32_F32E4M3E5M2F32_TN",
    "mma.m8n8k4.f64.f64.f64": "SM80_8x8x4_F64F64F64F64_TN",
}
"""CuTe's name of some of the instructions."""


@pytest.mark.parametrize("name", ATOMS)
def test_fragments_are_cute_s(name: str) -> None:
    """CuTe counts elements column by column of A (m, k), B (n, k) and C (m, n)."""
    row, atom = find_instruction(name), getattr(atoms_nv, ATOMS[name])
    cute = (atom.a_layout, atom.b_layout, atom.c_layout)
    for (layout, (rows, columns)), theirs, swapped in zip(
        fragments(row), cute, (False, True, False), strict=True
    ):
        assert tensor_layouts.size(theirs) == rows * columns
        values = layout.value_coordinates(2)
        for lane, i in product(range(32), range(layout.num_values)):
            start = layout.thread_coordinates(lane, 2)
            at, across = start[0] + values[i][0], start[1] + values[i][1]
            if swapped:
                at, across = across, at
            height = columns if swapped else rows
            assert theirs(lane, i) == at + across * height, (lane, i)


def test_names_are_unique() -> None:
    names = [row.name for row in (*INSTRUCTIONS, *SCALED_INSTRUCTIONS)]
    assert len(set(names)) == len(names)


def test_an_unknown_name_is_an_error_that_lists_the_known() -> None:
    with pytest.raises(ValueError, match=re.escape("unknown instruction 'mma'; known: mma.m16")):
        find_instruction("mma")


def test_a_fragment_that_leaves_a_hole_is_refused() -> None:
    row = find_instruction("mma.m16n8k16.f32.f16.f16")
    fields = {name: getattr(row, name) for name in row.__dataclass_fields__}
    with pytest.raises(ValueError, match="does not tile"):
        MmaInstruction(**{**fields, "lhs_layout": row.rhs_layout})


@pytest.mark.parametrize("target", TARGETS.values(), ids=lambda target: target.name)
def test_only_what_the_target_has_is_chosen(target) -> None:
    for row in INSTRUCTIONS:
        chosen = select_instruction(target, row.lhs, row.rhs, row.acc, tf32=row.tf32)
        has = row.feature is None or target.supports(row.feature)
        assert (chosen is not None) == has
        if chosen is not None:
            assert (chosen.lhs, chosen.rhs, chosen.acc, chosen.tf32) == (
                row.lhs,
                row.rhs,
                row.acc,
                row.tf32,
            )


@pytest.mark.parametrize("target", TARGETS.values(), ids=lambda target: target.name)
def test_scales_are_read_where_the_target_has_it(target: Target) -> None:
    """By mma.sync on 12.x, by tcgen05.mma on 10.x and 11.x, never by both."""
    major, _ = target.compute_capability
    for row in SCALED_INSTRUCTIONS:
        found = select_scaled_fragments(target, *row.formats, row.scale, row.scale_block)
        assert found == (row if major == 12 else None)
        wide = select_scaled_instruction(target, 64, *row.formats, row.scale, row.scale_block)
        padded = {"e3m2", "e2m3"} & set(row.formats)
        assert (wide is not None) == (major in (10, 11) and not padded)
    for format_, scale, block in (("e2m1", "i8", 16), ("e4m3", "i8", 16), ("bf16", "i8", 32)):
        assert select_scaled_fragments(target, format_, format_, scale, block) is None


def test_exact_f32_runs_on_fma_units_and_tf32_on_tensor_cores() -> None:
    target = next(iter(TARGETS.values()))
    exact = select_instruction(target, "f32", "f32", "f32", tf32=False)
    rounded = select_instruction(target, "f32", "f32", "f32", tf32=True)
    assert exact is not None
    assert exact.name == "fma.f32"
    assert rounded is not None
    assert rounded.name == "mma.m16n8k8.f32.tf32.tf32"


def test_there_is_no_instruction_for_types_nobody_multiplies() -> None:
    target = next(iter(TARGETS.values()))
    assert select_instruction(target, "i16", "i16", "i32", tf32=False) is None


@pytest.mark.parametrize(
    ("m", "n", "lhs", "wide"),
    [(128, 256, "f16", True), (128, 24, "f16", False), (64, 24, "f16", True),
     (64, 264, "f16", False), (32, 64, "f16", False), (64, 40, "i8", False), (64, 48, "i8", True)],
)  # fmt: skip
def test_instructions_of_tensor_memory(m: int, n: int, lhs: str, wide: bool) -> None:
    """M of 64 takes N by 8, M of 128 by 16; integers by 16 from 32 on."""
    acc = "i32" if lhs == "i8" else "f32"
    blackwell, hopper = find_target("sm_100a"), find_target("sm_90a")
    found = select_tensor_instruction(blackwell, m, n, lhs, lhs, acc, tf32=False)
    assert (found is not None) == wide
    assert select_tensor_instruction(hopper, m, n, lhs, lhs, acc, tf32=False) is None
    if found is not None:
        assert found.is_tensor
        assert find_instruction(found.name) == found


@pytest.mark.parametrize("n", [8, 64, 256])
def test_paired_rows(n: int) -> None:
    """The instruction's registers, its rows in another order: the same for lhs and accumulator."""
    plain, paired = (find_instruction(f"wgmma.m64n{n}k8.f32.tf32.tf32{x}") for x in ("", ".paired"))
    rows: dict[int, int] = {}
    for name in ("lhs_layout", "acc_layout"):
        before, after = (getattr(row, name) for row in (plain, paired))
        for thread in range(128):
            first, second = (one.thread_coordinates(thread, 2) for one in (before, after))
            assert first[1] == second[1]
            for at, there in zip(
                before.value_coordinates(2), after.value_coordinates(2), strict=True
            ):
                assert at[1] == there[1]
                assert there[0] == (at[0] != 0)
                row = rows.setdefault(first[0] + at[0], second[0] + there[0])
                assert row == second[0] + there[0]
    assert sorted(rows) == sorted(rows.values()) == list(range(64))


def test_paired_rows_lie_in_different_banks() -> None:
    """8 bytes of each of 16 lanes, of a tile whose rows along m are swizzled by 128 bytes."""
    layout = find_instruction("wgmma.m64n8k8.f32.tf32.tf32.paired").lhs_layout
    assert layout is not None
    for first, (_, step) in product(range(0, 128, 16), ((0, 0), (0, 4))):
        words = []
        for thread in range(first, first + 16):
            m, k = layout.thread_coordinates(thread, 2)
            at = m // 32 * 8 * 128 + (k + step) * 128 + m % 32 * 4
            words.append((at ^ (at >> 7 & 7) << 4) // 8 % 16)
        assert sorted(words) == list(range(16))
