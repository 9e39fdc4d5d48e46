"""Comparisons of coordinates with bounds against NumPy: layouts, divisors, starts, predicates."""

from __future__ import annotations

import operator
import random
from dataclasses import dataclass
from math import prod

import numpy as np
import pytest
from emulated import array_type, random_layout, run, tile_type

from tilec.hardware.layout import Layout, parse_layout
from tilec.passes.layouts.maps import broadcast_source

PREDICATES = {
    **{"slt": operator.lt, "sle": operator.le, "sgt": operator.gt, "sge": operator.ge},
    **{"ult": operator.lt, "ule": operator.le, "ugt": operator.gt, "uge": operator.ge},
    **{"eq": operator.eq, "ne": operator.ne},
}


@pytest.mark.share(3)
@pytest.mark.parametrize("seed", range(60))
def test_against_numpy(seed: int) -> None:
    rng = random.Random(seed)
    shape = tuple(rng.choice([8, 12, 16, 24, 64]) for _ in range(rng.choice([1, 1, 2])))
    axis = rng.randrange(len(shape))
    divisor, multiple = rng.choice([1, 2, 4, 6, 8, 12]), rng.choice([0, 1, 2, 4, 6, 8, 12])
    case = Case(
        random_layout(rng, shape, num_warps=1),
        shape,
        axis,
        rng.choice(list(PREDICATES)),
        (divisor, rng.randrange(-3, 3 + shape[axis] // divisor)),
        (multiple, rng.randrange(-3, 6)),
        bound_first=rng.random() < 0.5,
        broadcast=rng.random() < 0.5,
    )
    case.check()


@pytest.mark.parametrize(
    ("layout", "predicate", "bound", "start"),
    [
        ("T(32):(8@0) V(8):(1@0)", "slt", (8, 3), (8, 1)),
        ("T(32):(8@0) V(8):(1@0)", "slt", (1, 11), (8, 0)),
        ("T(32):(8@0) V(8):(1@0)", "sge", (8, 3), (1, 5)),
        # "At most 8" parts 8 from 9.
        ("T(32):(8@0) V(8):(1@0)", "sle", (8, 1), (8, 0)),
        # A thread's three neighbours lie on both sides of a multiple of four.
        ("T(32):(3@0) V(3):(1@0)", "slt", (4, 1), (8, 0)),
        # The product wraps around to 2, which only powers of two survive.
        ("T(32):(6@0) V(6):(1@0)", "slt", (6, 715827883), (6, 0)),
    ],
)
def test_sides_that_neighbours_do_not_share(
    layout: str, predicate: str, bound: tuple[int, int], start: tuple[int, int]
) -> None:
    read = parse_layout(layout)
    Case(read, (read.extents(1)[0],), 0, predicate, bound, start).check()


@dataclass(frozen=True)
class Case:
    """Coordinates along `axis`, and a start, against a bound; both given as two factors, of which
    the compiler knows the first."""

    layout: Layout
    shape: tuple[int, ...]
    axis: int
    predicate: str
    bound: tuple[int, int]
    start: tuple[int, int]
    bound_first: bool = False
    broadcast: bool = False

    def check(self) -> None:
        """Runs it and compares with what NumPy says."""
        out = np.full(self.shape, -1, np.int32)
        scalars = [np.int32(self.bound[1]), np.int32(self.start[1])]
        run(self.program, [out, *scalars], num_warps=1)
        at = prod(self.start) + np.indices(self.shape, np.int32)[self.axis]
        sides = [at, np.full(self.shape, prod(self.bound), np.int64).astype(np.int32)]
        if self.predicate[0] == "u":
            sides = [side.view(np.uint32) for side in sides]
        compare = PREDICATES[self.predicate]
        expected = compare(*(reversed(sides) if self.bound_first else sides))
        np.testing.assert_array_equal(out, expected.astype(np.int32))

    @property
    def program(self) -> str:
        """Writes 1 where the comparison holds and 0 elsewhere."""
        whole, flags = (tile_type(self.shape, kind, self.layout) for kind in ("i32", "i1"))
        array, rank = array_type(len(self.shape), "i32"), len(self.shape)
        operands = "%bounds, %at" if self.bound_first else "%at, %bounds"
        return f"""
func.func @k(%out: {array}, %n: i32, %s: i32) attributes {{tile.kernel}} {{
  %c0 = arith.constant 0 : index
  %divisor = arith.constant {self.bound[0]} : i32
  %multiple = arith.constant {self.start[0]} : i32
  %bound = arith.muli %n, %divisor : i32
  %start = arith.muli %s, %multiple : i32
  {self._coordinates(whole)}
  %starts = tensor.splat %start : {whole}
  %at = arith.addi %starts, %iota : {whole}
  %bounds = tensor.splat %bound : {whole}
  %is = arith.cmpi {self.predicate}, {operands} : {whole}
  %one = arith.constant dense<1> : {whole}
  %zero = arith.constant dense<0> : {whole}
  %y = arith.select %is, %one, %zero : {flags}, {whole}
  "tile.store"(%y, %out, {", ".join(["%c0"] * rank)})
    {{dims = array<i32: {", ".join(map(str, range(rank)))}>, options = {{}}}}
    : ({whole}, {array}, {", ".join(["index"] * rank)}) -> ()
  return
}}"""

    def _coordinates(self, whole: str) -> str:
        if not self.broadcast:
            return f'%iota = "tile.iota"() {{axis = {self.axis} : i32}} : () -> {whole}'
        size = self.shape[self.axis : self.axis + 1]
        line = tile_type(size, "i32", broadcast_source(self.layout, (self.axis,), size))
        return (
            f'%line = "tile.iota"() {{axis = 0 : i32}} : () -> {line}\n  %iota = "tile.broadcast"'
            f"(%line) {{dims = array<i32: {self.axis}>}} : ({line}) -> {whole}"
        )
