"""Scalars in loops whose trips a launch knows (`program_numbers.py`): whether they go below 0."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from target_names import MAIN

import tilec.triton
from tilec.triton.kernel import TritonKernel
from tilec.triton.program_numbers import MOST_PROGRAMS, never_negative

RNG = np.random.default_rng(61)


@pytest.fixture(params=MAIN)
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Compiles for this target."""
    monkeypatch.setenv("TILEC_TARGET", request.param)
    return request.param


def emulated(text: str) -> TritonKernel:
    """A kernel to run in check mode."""
    return tilec.triton.kernel(text, "k.ttir").on("emulator:check")


def down(at: str = "arith.minsi %e, %cap") -> str:
    """Tiles of 16 from `min(first - step * t, cap)` on, for each trip t of a program's loop."""
    numbers = [f"%{name}: i32" for name in ("first", "step", "trips", "cap", "n")]
    return f"""
module {{
  tt.func public @down(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>, {", ".join(numbers)}) {{
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c16 = arith.constant 16 : i32
    %pid = tt.get_program_id x : i32
    %mine = arith.subi %trips, %pid : i32
    %far = arith.muli %pid, %c16 : i32
    %top = arith.subi %first, %far : i32
    %i = tt.make_range {{end = 16 : i32, start = 0 : i32}} : tensor<16xi32>
    scf.for %t = %c0 to %mine step %c1 : i32 {{
      %d = arith.muli %t, %step : i32
      %e = arith.subi %top, %d : i32
      %at = {at} : i32
      %s = tt.splat %at : i32 -> tensor<16xi32>
      %o = arith.addi %s, %i : tensor<16xi32>
      %ns = tt.splat %n : i32 -> tensor<16xi32>
      %inside = arith.cmpi slt, %o, %ns : tensor<16xi32>
      %p = tt.splat %x : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
      %q = tt.addptr %p, %o : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
      %v = tt.load %q, %inside : tensor<16x!tt.ptr<f32>>
      %before = arith.muli %pid, %trips : i32
      %turn = arith.addi %before, %t : i32
      %w = arith.muli %turn, %c16 : i32
      %ws = tt.splat %w : i32 -> tensor<16xi32>
      %wo = arith.addi %ws, %i : tensor<16xi32>
      %op = tt.splat %out : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
      %oq = tt.addptr %op, %wo : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
      tt.store %oq, %v, %inside : tensor<16x!tt.ptr<f32>>
    }}
    tt.return
  }}
}}
"""


@pytest.mark.parametrize("first", [60, 59, 55], ids=["from 0", "below 0 at the end", "below 0"])
def test_a_launch_looks_at_every_trip_of_every_program(target: str, first: int) -> None:
    """The second program takes one trip less, and begins 16 further down."""
    step, trips, cap = 20, 4, 50
    memory, out = RNG.standard_normal(300).astype(np.float32), np.full(16 * 7, np.nan, np.float32)
    kernel, x = emulated(down()), memory[100:]
    arguments = x, out, first, step, trips, cap, 150
    kernel[2](*arguments)
    starts = [min(first - 16 * p - step * t, cap) for p in (0, 1) for t in range(trips - p)]
    wanted = np.concatenate([memory[100 + at : 116 + at] for at in starts])
    np.testing.assert_array_equal(out, wanted)
    assert ("may be negative" in kernel.report(*arguments, grid=2)) == (min(starts) < 0)


def test_a_trip_that_no_program_has_is_not_looked_at() -> None:
    """The second of two programs would be below 0 in the fourth trip, which the first alone has."""
    (asked,) = emulated(down()).plan().asked
    numbers = {"first": 60, "step": 20, "trips": 4, "cap": 70, "n": 150}
    assert never_negative([asked], numbers, (2, 1, 1))
    assert not never_negative([asked], {**numbers, "first": 59}, (2, 1, 1))


def test_of_no_trips_nothing_is_negative() -> None:
    (asked,) = emulated(down()).plan().asked
    assert never_negative(
        [asked], {"first": -1, "step": 1, "trips": -9, "cap": 70, "n": 9}, (2, 1, 1)
    )


def test_too_many_trips_are_not_looked_at() -> None:
    (asked,) = emulated(down()).plan().asked
    numbers = {"first": 100, "step": 0, "trips": MOST_PROGRAMS // 2, "cap": 70, "n": 150}
    assert never_negative([asked], numbers, (2, 1, 1))
    assert not never_negative([asked], {**numbers, "trips": MOST_PROGRAMS // 2 + 1}, (2, 1, 1))


@pytest.mark.parametrize(
    ("at", "is_asked"),
    [
        ("arith.minsi %e, %cap", True),
        ("arith.divsi %e, %cap", True),
        ("arith.xori %e, %cap", False),
    ],
)
def test_what_is_asked(at: str, is_asked: bool) -> None:
    assert bool(emulated(down(at)).plan().asked) == is_asked


def test_what_the_trips_come_from_decides_a_launch() -> None:
    assert emulated(down()).plan().deciding == {"first", "step", "trips", "cap", "n"}


@pytest.mark.parametrize("sizes", [(70, 130, 100), (33, 65, 20), (97, 200, 300)])
def test_tiles_in_turn(target: str, sizes: tuple[int, int, int]) -> None:
    """Tutorial 09's product of a program's tiles, whose edges are clamped."""
    kernel = emulated((Path(__file__).parent / "kernels" / "tiles_in_turn.ttir").read_text())
    arguments, wanted = product(*sizes)
    kernel[3](*arguments)
    check(arguments[2], wanted)
    assert "gather or scatter" not in kernel.report(*arguments, grid=3)


def product(m: int, n: int, k: int) -> tuple[list[Any], Any]:
    """Random arguments of a product, in rows of multiples of 8, and what comes of it."""
    strides = [-(-size // 8) * 8 for size in (k, n, n)]
    a, b = (RNG.standard_normal(s).astype(np.float16) for s in ((m, strides[0]), (k, strides[1])))
    out = np.full((m, strides[2]), np.nan, np.float16)
    return [a, b, out, m, n, k, *strides], a[:, :k].astype(np.float64) @ b[:, :n].astype(np.float64)


def check(out: Any, wanted: Any) -> None:
    """Whether a product is right, and nothing beside it was written."""
    columns = wanted.shape[1]
    np.testing.assert_allclose(out[:, :columns].astype(np.float64), wanted, atol=0.05, rtol=0.01)
    assert np.isnan(out[:, columns:]).all()
