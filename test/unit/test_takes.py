"""Takes on the emulator against NumPy's take_along_axis."""

from __future__ import annotations

import random

import numpy as np
import pytest
from emulated import array_type, random_layout, run, tile_type
from test_reductions import DTYPES, load_text, random_array, store_text

from tilec.hardware.layout import Layout, parse_layout


@pytest.mark.parametrize("element", ["i8", "f16", "f32", "i64"])
@pytest.mark.parametrize(
    ("shape", "axis", "length", "num_warps"),
    [((37,), 0, 100, 4), ((3, 37), 1, 5, 2), ((9, 20), 0, 1, 8), ((4, 5, 6), 1, 12, 4)],
)
def test_take(shape: tuple[int, ...], axis: int, length: int, num_warps: int, element: str) -> None:
    rng, wanted = random.Random(length), (*shape[:axis], length, *shape[axis + 1 :])
    layouts = [random_layout(rng, s, num_warps) for s in (shape, wanted)]
    check(shape, axis, length, element, *layouts, num_warps=num_warps)


def test_neighbours_with_indices_of_their_own() -> None:
    """A thread's four lie beside each other where they come from, if their indices are the same."""
    rows = parse_layout("T(16,4):(4@1,1@0) V(4,2):(1@1,4@0)")
    check((8, 64), 0, 8, "f32", rows, rows, num_warps=2)


def check(
    shape: tuple[int, ...],
    axis: int,
    length: int,
    element: str,
    source: Layout,
    result: Layout,
    num_warps: int,
) -> None:
    generator, wanted = np.random.default_rng(length), (*shape[:axis], length, *shape[axis + 1 :])
    x = random_array(generator, shape, element)
    i = generator.integers(0, shape[axis], wanted).astype(np.int32)
    y = np.zeros(wanted, DTYPES[element])
    array, indices = array_type(len(shape), element), array_type(len(shape), "i32")
    taken = tile_type(wanted, element, result)
    text = f"""
func.func @k(%x: {array}, %i: {indices}, %y: {array}) attributes {{tile.kernel}} {{
  %c0 = arith.constant 0 : index
  {load_text(shape, element, source, "%v", "%x")}
  {load_text(wanted, "i32", result, "%t", "%i")}
  %r = "tile.take"(%v, %t) {{axis = {axis} : i32}} :
    ({tile_type(shape, element, source)}, {tile_type(wanted, "i32", result)}) -> {taken}
  {store_text(wanted, element, result, "%r", "%y")}
  return
}}"""
    run(text, [x, i, y], num_warps=num_warps)
    np.testing.assert_array_equal(y, np.take_along_axis(x, i, axis))
