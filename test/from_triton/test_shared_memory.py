"""Which arrays of a launch are one, and which pointers have to be flat."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tilec.runtime.arrays import ArrayView, describe
from tilec.triton.plan import Plan, plan_kernel
from tilec.triton.reader import read_kernel
from tilec.triton.shared_memory import Sharing, alone, interleave, shared, sharing

KERNELS = Path(__file__).parent / "kernels"


def plan_of(
    name: str, flat: frozenset[str] = frozenset(), groups: tuple[tuple[str, ...], ...] = ()
) -> Plan:
    """The plan of a kernel of the folder."""
    function = read_kernel((KERNELS / f"{name}.ttir").read_text())
    return plan_kernel(function, flat=flat, groups=groups)


def softmax(x: object, out: object, x_stride: int, out_stride: int) -> Sharing:
    """What a launch of softmax shares; its arrays are x, then out."""
    plan = plan_of("softmax")
    pointers = {"x": describe(x), "out": describe(out)}
    numbers = {"x_stride": x_stride, "out_stride": out_stride, "columns": 30, "rows": 4}
    return sharing(
        plan, [rule.view(pointers[rule.root], numbers) for rule in plan.arrays], pointers
    )


X = np.zeros((4, 32), np.float32)


def test_apart() -> None:
    assert softmax(X, X.copy(), 32, 32) == Sharing((0, 1))
    whole = np.zeros((8, 32), np.float32)
    assert softmax(whole[:4], whole[4:], 32, 32) == Sharing((0, 1))


def test_the_same_array_twice_is_one() -> None:
    assert softmax(X, X, 32, 32) == Sharing((0, 0))


@pytest.mark.parametrize(("x_stride", "out_stride"), [(32, 40), (16, 16), (29, 29)])
def test_other_rows_of_the_same_memory_are_flat(x_stride: int, out_stride: int) -> None:
    """Of 29 elements a row of 30 is one longer: two rows have an element in common."""
    assert softmax(X, X, x_stride, out_stride).flat == {"x", "out"}


def test_halves_of_rows_are_apart() -> None:
    whole = np.zeros((4, 96), np.float32)
    assert softmax(whole[:, :30], whole[:, 30:], 96, 96) == Sharing((0, 1))
    assert softmax(whole[:, 48:], whole[:, :30], 96, 96) == Sharing((0, 1))
    assert softmax(whole[:, :30], whole[:, 29:], 96, 96).flat == {"x", "out"}
    assert softmax(whole[:, 80:], whole[1:, :25], 96, 96).flat == {"x", "out"}  # around the end
    assert softmax(whole[:, :30], whole[:, 30:], 96, 48).flat == {"x", "out"}


def test_what_interleaves_has_no_byte_in_common() -> None:
    drawn = np.random.default_rng(3)
    apart = 0
    for _ in range(400):
        sizes, steps = (
            drawn.integers(1, 5, (2, 2)),
            drawn.choice([-24, -3, 1, 2, 3, 8, 12, 24], (2, 2)),
        )
        starts = drawn.integers(200, 230, 2)
        of = [
            {int(start + i * step[0] + j * step[1]) for i in range(size[0]) for j in range(size[1])}
            for start, size, step in zip(starts, sizes, steps, strict=True)
        ]
        one, two = (
            ArrayView(int(start) * 4, tuple(size.tolist()), tuple(step.tolist()), "f32", ("cpu", 0))
            for start, size, step in zip(starts, sizes, steps, strict=True)
        )
        if interleave(one, two):
            apart += 1
            assert of[0].isdisjoint(of[1])
    assert apart > 40


def added(starts: tuple[int, int, int], n: int) -> Sharing:
    """What a launch of vector_add shares, whose x, y and out begin at numbers of one array."""
    plans = lambda flat, groups: plan_of("vector_add", flat, groups)  # noqa: E731
    pointers = {
        name: describe(LONG[start : start + n])
        for name, start in zip(("x", "y", "out"), starts, strict=True)
    }
    return shared(plans, pointers, {"n": n}).sharing


LONG = np.zeros(1000, np.float32)


@pytest.mark.parametrize(
    ("starts", "joined"),
    [
        ((0, 300, 600), ()),
        ((0, 100, 600), ()),  # only read
        ((300, 300, 300), ()),
        ((0, 300, 500), (("y", "out"),)),
        ((500, 100, 300), (("x", "y", "out"),)),
        ((0, 200, 400), (("x", "y", "out"),)),  # x overlaps y alone, which is out now
    ],
)
def test_pointers_that_overlap_are_joined(
    starts: tuple[int, int, int], joined: tuple[tuple[str, ...], ...]
) -> None:
    assert added(starts, 250).joined == joined


TWO_ARRAYS = """
module {
  tt.func public @two(%x: !tt.ptr<f32>, %n: i32) {
    %0 = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
    %1 = tt.splat %x : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
    %2 = tt.addptr %1, %0 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    %3 = tt.splat %n : i32 -> tensor<16xi32>
    %4 = arith.cmpi slt, %0, %3 : tensor<16xi32>
    %5 = tt.load %2, %4 : tensor<16x!tt.ptr<f32>>
    tt.store %2, %5 : tensor<16x!tt.ptr<f32>>
    tt.return
  }
}
"""


LAST_ROWS = """
module {
  tt.func public @last_rows(%x: !tt.ptr<f32>, %h: !tt.ptr<f32>, %rows: i32, %chunks: i32) {
    %c0_i32 = arith.constant 0 : i32
    %c1_i32 = arith.constant 1 : i32
    %c8_i32 = arith.constant 8 : i32
    %c16_i32 = arith.constant 16 : i32
    %0 = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
    %1 = tt.splat %x : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
    %2 = tt.splat %h : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
    scf.for %i = %c0_i32 to %chunks step %c1_i32  : i32 {
      %3 = arith.addi %i, %c1_i32 : i32
      %4 = arith.muli %3, %c8_i32 : i32
      %5 = arith.minsi %4, %rows : i32
      %6 = arith.subi %5, %c1_i32 : i32
      %7 = arith.muli %6, %c16_i32 : i32
      %8 = tt.splat %7 : i32 -> tensor<16xi32>
      %9 = arith.addi %8, %0 : tensor<16xi32>
      %10 = tt.addptr %1, %9 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
      %11 = tt.load %10 : tensor<16x!tt.ptr<f32>>
      %12 = arith.muli %i, %c16_i32 : i32
      %13 = tt.splat %12 : i32 -> tensor<16xi32>
      %14 = arith.addi %13, %0 : tensor<16xi32>
      %15 = tt.addptr %2, %14 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
      tt.store %15, %11 : tensor<16x!tt.ptr<f32>>
    }
    tt.return
  }
}
"""


@pytest.mark.parametrize(("begins", "flat"), [(48, set()), (32, {"x", "h"})])
def test_an_array_that_begins_before_its_memory_meets_none_there(
    begins: int, flat: set[str]
) -> None:
    """Row 0 of `x` is one in front of the pointer: of `h`, unless that is memory of its own."""
    plan = plan_kernel(read_kernel(LAST_ROWS))
    at = 1 << 20
    views = {
        "h": ArrayView(at, (48,), (1,), "f32", ("cpu", 0), memory=(at, at + 4 * 48)),
        "x": ArrayView(
            at + 4 * 48, (320,), (1,), "f32", ("cpu", 0), memory=(at + 4 * begins, at + 4 * 368)
        ),
    }
    numbers = {"rows": 20, "chunks": 3}
    arrays = [rule.view(views[rule.root], numbers) for rule in plan.arrays]
    assert sharing(plan, arrays, views).flat == flat


def test_which_numbers_decide_a_launch() -> None:
    """Those of arrays, and heads, of which the launch computes that none is negative."""
    assert plan_of("dropout").deciding == {"n"}
    assert plan_of("softmax").deciding == {"x_stride", "out_stride", "columns"}
    (asked,) = plan_of("attention").asked
    assert asked.name == "kv"
    assert {"H", "G", "N_CTX"} <= plan_of("attention").deciding


def test_before_a_launch_several_arrays_of_a_written_pointer_are_flat() -> None:
    assert alone(plan_of("softmax")).flat == frozenset()
    plan = plan_kernel(read_kernel(TWO_ARRAYS))
    assert len(plan.arrays) == 2
    assert alone(plan).flat == {"x"}
    flat = plan_kernel(read_kernel(TWO_ARRAYS), flat=frozenset({"x"}))
    assert len(flat.arrays) == 1
    assert flat.raised == {}
