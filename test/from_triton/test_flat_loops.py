"""Loops over the steps of all tiles of a program (`flat_loops.py`): two loops again, and right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from target_names import MAIN
from test_tiles_in_turn import check, product

import tilec.triton
from tilec.triton.plan import Plan, plan_kernel
from tilec.triton.reader import read_kernel

KERNELS = Path(__file__).parent / "kernels"
SPELLINGS = [
    "flat_product",
    "flat_product_by_remainder",
    "flat_product_counted_behind",
    "flat_product_counted_down",
    "flat_product_in_steps",
    "flat_product_of_pointers",
]
PROGRAMS = 3
"""flat_product's number of multiprocessors."""


@pytest.fixture(params=MAIN)
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Compiles for this target."""
    monkeypatch.setenv("TILEC_TARGET", request.param)
    return request.param


def text_of(name: str, *changes: tuple[str, str]) -> str:
    """A kernel's text, each change made once."""
    text = (KERNELS / f"{name}.ttir").read_text()
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


def run(text: str, sizes: tuple[int, int, int]) -> Any:
    """Runs a product in check mode, against NumPy."""
    kernel = tilec.triton.kernel(text, "k.ttir").on("emulator:check")
    arguments, wanted = product(*sizes)
    kernel[PROGRAMS](*arguments)
    check(arguments[2], wanted)
    return kernel.report(*arguments, grid=PROGRAMS)


@pytest.mark.parametrize("name", SPELLINGS)
def test_products(target: str, name: str) -> None:
    """Of ten steps of 16 tiles, two programs with one more than the third; one step; several tiles
    of two steps with ragged ends."""
    for sizes in ((97, 200, 300), (33, 65, 20), (130, 70, 40)):
        report = run(text_of(name), sizes)
        assert "gather or scatter" not in report
        assert "loop: two in one: nested" in report


def test_descriptors_of_each_tile(target: str) -> None:
    """Which the first step of a tile makes, and the flat loop carries: eight tiles of a batch."""
    batch, m, n, k = 2, 48, 80, 112
    draw = np.random.default_rng(71).standard_normal
    a, b = draw((batch, m, k)).astype(np.float16), draw((batch, k, n)).astype(np.float16)
    out = np.full((batch, m, n), np.nan, np.float16)
    kernel = tilec.triton.kernel(text_of("flat_product_of_descriptors"), "k.ttir")
    kernel.on("emulator:check")[PROGRAMS](a, b, out, batch, m, n, k)
    np.testing.assert_allclose(
        out, a.astype(np.float64) @ b.astype(np.float64), atol=0.05, rtol=0.01
    )


@pytest.mark.parametrize("name", SPELLINGS)
def test_of_no_steps_nothing_is_stored(name: str) -> None:
    kernel = tilec.triton.kernel(text_of(name), "k.ttir").on("emulator:check")
    arguments, _ = product(40, 70, 1)
    arguments[5] = 0
    kernel[PROGRAMS](*arguments)
    assert np.isnan(arguments[2]).all()


def plan_of(text: str, nonnegative: frozenset[str] | None = None) -> Plan:
    return plan_kernel(read_kernel(text, "k.ttir"), nonnegative)


def notes_of(text: str, nonnegative: frozenset[str] | None = None) -> list[str]:
    """What is said of the loops."""
    return [note for _, note in plan_of(text, nonnegative).function.notes]


WIDE = (
    ("%3 = arith.muli %k_tiles_7, %2 : i32", """%k64 = arith.extsi %k_tiles_7 : i32 to i64
    %t64 = arith.extsi %2 : i32 to i64
    %z64 = arith.constant 0 : i64
    %o64 = arith.constant 1 : i64
    %3 = arith.muli %t64, %k64 : i64"""),
    ("scf.for %_ = %c0_i32 to %3 step %c1_i32", "scf.for %_ = %z64 to %3 step %o64"),
    ("tensor<32x64xf32>)  : i32 {", "tensor<32x64xf32>)  : i64 {"),
)  # fmt: skip


def test_a_counter_narrower_than_the_loops_variable() -> None:
    text = text_of("flat_product", *WIDE)
    assert notes_of(text) == ["two in one: nested"]
    run(text, (97, 200, 300))


LOADED = "%w = tt.load %a_ptr : !tt.ptr<f16>\n      %wi = arith.fptosi %w : f16 to i32\n      "
TWICE = (
    "%twice = tt.dot %a_38, %b_42, %accumulator_43 : "
    "tensor<32x32xf16> * tensor<32x64xf16> -> tensor<32x64xf32>\n        "
)
STORED = "      tt.store %c_ptr, %w : !tt.ptr<f16>\n"
READ = "    %f = arith.sitofp %accumulator#1 : i32 to f16\n    tt.store %c_ptr, %f : !tt.ptr<f16>\n"
LOADS = ("%ki_12 = arith.subi", f"{LOADED}%ki_12 = arith.subi")
STAYS = {
    "its bound is no product of its counter's period": [
        ("%3 = arith.muli %k_tiles_7, %2", "%3 = arith.addi %k_tiles_7, %2")
    ],
    "what its counter comes to is read behind it": [("    tt.return", f"{READ}    tt.return")],
    "memory is accessed in the wrong order around": [
        ("      scf.yield %5#0, %ki", f"{STORED}      scf.yield %5#0, %ki"),
        LOADS,
    ],
    "needs no last place has": [
        ("%8 = arith.truncf %accumulator_43", f"{TWICE}%8 = arith.truncf %twice")
    ],
    "needs no first place has": [
        LOADS,
        ("arith.addi %tile_id_8, %c3_i32", "arith.addi %tile_id_8, %wi"),
    ],
    "needs the ends of a round alone have": [
        ("%offs_k = arith.muli %ki_15", "%offs_k = arith.muli %ki_9")
    ],
    "how 5 goes on, no argument tells": [
        LOADS,
        ("scf.yield %tile_id_8, %pid_m,", "scf.yield %wi, %pid_m,"),
    ],
    "what it carries as accumulator_11 no last place has": [
        ("%7 = arith.select %6, %cst", f"{TWICE}%7 = arith.select %6, %twice")
    ],
}


@pytest.mark.parametrize("why", STAYS)
def test_what_stays_flat(why: str) -> None:
    (note,) = notes_of(text_of("flat_product", *STAYS[why]))
    assert note.startswith("two in one, and stays so (")
    assert why in note


def test_what_comes_from_the_last_place_alone() -> None:
    """The next iteration of the same round would have no such value."""
    more = "%on = arith.addi %4, %c0_i32 : i32\n      scf.yield %2, %on, %3"
    (note,) = notes_of(text_of("flat_product_counted_behind", ("scf.yield %2, %4, %3", more)))
    assert "what it carries as tile_10 comes from the last place alone" in note


def test_a_loop_that_stores_elsewhere_is_not_spoken_of() -> None:
    text = text_of("flat_product").replace("arith.cmpi eq, %ki_15, %ki_12", "arith.cmpi eq, %M, %N")
    assert notes_of(text) == []


def test_two_counts_that_may_be_negative() -> None:
    text = text_of("flat_product")
    (note,) = notes_of(text, frozenset())
    assert "both of the counts whose product its bound is may be negative" in note
    assert notes_of(text, frozenset({"K"})) == ["two in one: nested"]
