"""The loops of PTX, and what passes/BLACKWELL.md says of tilec's code beside Triton's."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from blackwell_code import (
    ASSEMBLED,
    BY_MACHINE,
    CASES,
    PRODUCT,
    SHOWN,
    SYNC,
    TENSOR_COPY,
    Case,
    loaded,
    machine_rows,
    rows,
    tilec_code,
)
from machine_loops import machine_loops
from ptx_loops import find_loops

from tilec.compile.assembler import locate_tool

PAGE = Path(__file__).resolve().parent.parent.parent / "passes" / "BLACKWELL.md"
KERNEL = """
.visible .entry k(
    .param .u32 n
)
{{
    .reg .pred %p<2>;
{}
    ret;
}}
"""
NESTED = """
    bra.uni $L__BB0_2;
$L__BB0_1:                              // the end of both loops
    add.s32 %r1, %r1, 1;
    @%p1 bra $L__BB0_2;
    @%p2 bra $L__BB0_3;
    bra.uni $L__BB0_4;
$L__BB0_3:
    mul.lo.s32 %r2, %r2, 3;
$L__BB0_2:
    {
    again:
    mbarrier.try_wait.parity.shared::cta.b64 complete, [%r1], %r2;
    @!complete bra again;
    }
    sub.s32 %r3, %r3, 1;
    bra.uni $L__BB0_1;
$L__BB0_4:
    xor.b32 %r4, %r4, 1;
"""
TABLE = """
    $L_brx_0: .branchtargets
        $L__BB0_1,
        $L__BB0_2;
$L__BB0_1:
    add.s32 %r1, %r1, 1;
    brx.idx %r1, $L_brx_0;
$L__BB0_2:
    xor.b32 %r4, %r4, 1;
"""
PRODUCTS = [case for case in CASES if len(case.products) == 1]


def by_name(case: Case) -> str:
    return case.name


def test_loops_are_found_in_any_order_of_blocks() -> None:
    (loop,) = find_loops(KERNEL.format(NESTED))
    assert loop.innermost
    assert {name.partition("+")[0] for name in loop.blocks} == {f"$L__BB0_{i}" for i in (1, 2, 3)}
    assert (loop.count("mbarrier"), loop.count("add"), loop.count("mul"), loop.count("xor")) == (
        1,
        1,
        1,
        0,
    )


def test_tables_of_branches_make_loops() -> None:
    (loop,) = find_loops(KERNEL.format(TABLE))
    assert loop.blocks == {"$L__BB0_1"}


def test_a_loop_inside_another_is_the_innermost() -> None:
    inner = "$L__BB0_2:\n    sub.s32 %r3, %r3, 1;\n    @%p1 bra $L__BB0_2;\n"
    text = f"$L__BB0_1:\n    add.s32 %r1, %r1, 1;\n{inner}    @%p2 bra $L__BB0_1;\n"
    outer, nested = find_loops(KERNEL.format(text))
    assert (outer.depth, outer.innermost, outer.count("add|sub")) == (1, False, 2)
    assert (nested.depth, nested.innermost, nested.count("add|sub")) == (2, True, 1)


def test_code_without_loops() -> None:
    assert find_loops(KERNEL.format("    @%p1 bra $L__BB0_1;\n$L__BB0_1:")) == []


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_a_step_has_the_fewest_products_and_copies(case: Case) -> None:
    code = tilec_code(case)
    assert code.per_step(PRODUCT) == case.fewest_products
    assert str(code.per_step(TENSOR_COPY)) == loaded(case, code)


@pytest.mark.parametrize("case", PRODUCTS, ids=by_name)
def test_products_never_wait_for_all_threads(case: Case) -> None:
    code = tilec_code(case)
    assert code.per_step(SYNC) == 0
    assert code.overlaps


@pytest.mark.parametrize("case", [CASES[0], CASES[-1]], ids=by_name)
def test_nothing_is_spilled(case: Case) -> None:
    assert tilec_code(case).assembly.spills == 0


def test_barriers_are_made_before_anybody_uses_them() -> None:
    for case in (CASES[0], CASES[-1]):
        made, fence, rest = tilec_code(case).ptx.partition("fence.mbarrier_init")
        assert fence
        assert "mbarrier.init" in made
        assert "mbarrier.init" not in rest
        assert "bar.sync" not in made


def test_the_page_has_the_table() -> None:
    """But for what ptxas decides: another release may take other registers."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    head = next(line for line in cells if line[2:] == list(SHOWN))
    columns = [name for name in SHOWN if name not in ASSEMBLED]
    shown = [0, 1, *map(head.index, columns)]
    expected = rows(columns)
    begin = cells.index(head) + 2
    assert [[row[i] for i in shown] for row in cells[begin : begin + len(expected)]] == expected


MACHINE = """
.text.k:
        /*0000*/                   BRX R2 -0x20   (*"BRANCH_TARGETS .L_x_1,.L_x_4"*);
.L_x_1:
        /*0010*/                   UMOV UR4, 0x1 ;
.L_x_2:
        /*0020*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R2 ;
        /*0030*/              @!P0 BRA `(.L_x_3) ;
.L_x_5:
        /*0040*/                   NOP ;
        /*0050*/                   UTCHMMA gdesc[UR4], gdesc[UR6], tmem[UR8], UP1 ;
        /*0060*/                   BRA.U !UP1, `(.L_x_1) ;
        /*0070*/                   EXIT ;
.L_x_4:
        /*0080*/              @!P1 BRA `(.L_x_4) ;
        /*0090*/                   EXIT ;
.L_x_3:
        /*00a0*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R2 ;
        /*00b0*/              @!P0 BRA `(.L_x_3) ;
        /*00c0*/                   BRA `(.L_x_5) ;
"""


def test_loops_of_machine_code_are_counted_without_what_is_tried_again() -> None:
    main, other = machine_loops(MACHINE)
    assert [line.split()[0] for line in main.instructions] == [
        *("UMOV", "SYNCS.PHASECHK.TRANS64.TRYWAIT", "@!P0", "UTCHMMA", "BRA.U"),
    ]
    assert main.innermost
    assert other.instructions == ("@!P1 BRA `(.L_x_4)",)


@pytest.mark.skipif(locate_tool("nvdisasm") is None, reason="no nvdisasm, which prints SASS")
def test_a_step_of_a_product_is_no_longer_than_triton_s() -> None:
    tilec, *tritons = machine_rows("128x128x64 nt")
    steps = [int(row[2].split(" + ")[0]) for row in (tilec, *tritons)]
    assert steps[0] <= min(steps[1:])
    assert tilec[2 + list(BY_MACHINE).index("elections")] == "0 + 0"
