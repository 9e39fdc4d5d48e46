"""The place of an extreme on the emulator against NumPy: each warp searches its part, in many
layouts, and warps meet once."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from emulated import array_type, lower, random_layout, run, seed_of, tile_type
from test_reductions import SHAPES, load_text, single, store_text

from tilec.hardware.layout import Layout, parse_layout

HOLDS = {
    "arith.maximumf": "oeq",
    "arith.maxnumf": "uge",
    "arith.minimumf": "oeq",
    "arith.minnumf": "ule",
}


def search(shape: Sequence[int], axis: int, layout: Layout, extreme: str, padding: str) -> str:
    """A kernel that writes the extreme and its place along the axis again, from every copy."""
    rest = [*shape[:axis], *shape[axis + 1 :]]
    dims = ", ".join(str(d) for d in range(len(shape)) if d != axis)
    rows = layout.slice(axis)
    x, at, flags = (tile_type(shape, e, layout) for e in ("f32", "i32", "i1"))
    one, place = (tile_type(rest, e, rows) for e in ("f32", "i32"))

    def spread(value: str, from_: str, to: str) -> str:
        listed = f"{{dims = array<i32{': ' * bool(dims)}{dims}>}}"
        return f'"tile.broadcast"({value}) {listed} : ({from_}) -> {to}'

    def reduce(value: str, element: str, op: str, types: str) -> str:
        arguments, body = f"%p0: {element}, %q0: {element}", single(op, element)
        region = f"({{\n^bb0({arguments}):\n{body}\n}}) {{axis = {axis} : i32}}"
        return f'"tile.reduce"({value}) {region} : {types}'

    named = [("x", "f32"), ("y", "f32"), ("z", "i32")]
    arrays = ", ".join(f"%{name}: {array_type(len(shape), e)}" for name, e in named)
    return f"""
func.func @k({arrays}) attributes {{tile.kernel}} {{
  %c0 = arith.constant 0 : index
  %most = arith.constant dense<2147483647> : {at}
  {load_text(shape, "f32", layout, "%v", "%x", padding)}
  %at = "tile.iota"() {{axis = {axis} : i32}} : () -> {at}
  %m = {reduce("%v", "f32", extreme, f"({x}) -> {one}")}
  %s = {spread("%m", one, x)}
  %same = arith.cmpf {HOLDS[extreme]}, %v, %s : {x}
  %none = arith.cmpf une, %v, %v : {x}
  %holds = arith.ori %same, %none : {flags}
  %chosen = arith.select %holds, %at, %most : {flags}, {at}
  %i = {reduce("%chosen", "i32", "arith.minsi", f"({at}) -> {place}")}
  %ms = {spread("%m", one, x)}
  {store_text(shape, "f32", layout, "%ms", "%y")}
  %is = {spread("%i", place, at)}
  {store_text(shape, "i32", layout, "%is", "%z")}
  return
}}"""


@pytest.mark.share(2)
@pytest.mark.parametrize("num_warps", [1, 4, 8])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("extreme", HOLDS)
def test_warps_meet_once(shape: tuple[int, ...], axis: int, num_warps: int, extreme: str) -> None:
    """Of equals the lowest place, with numbers far from those of phantoms; of NaNs the first,
    where they are the extreme."""
    seed = seed_of(shape, axis, num_warps, extreme)
    layout, rng = random_layout(random.Random(seed), shape, num_warps), np.random.default_rng(seed)
    is_least = "min" in extreme
    x = rng.integers(-9, 9, shape).astype(np.float32)
    if "imum" in extreme:
        x[rng.random(shape) < 0.02] = np.nan
    text = search(shape, axis, layout, extreme, "-1.0e30" if is_least else "1.0e30")
    y, z = np.zeros_like(x), np.full(shape, -1, np.int32)
    run(text, [x, y, z], num_warps=num_warps)
    value, place = (x.min, x.argmin) if is_least else (x.max, x.argmax)
    np.testing.assert_array_equal(y, np.broadcast_to(value(axis, keepdims=True), shape))
    np.testing.assert_array_equal(z, np.broadcast_to(np.expand_dims(place(axis), axis), shape))
    assert lower(text, num_warps=num_warps)[0].count("bar.sync") <= 1


@pytest.mark.parametrize("columns", [2048, 1999, 300])
def test_lanes_share_what_many_warps_have_found(columns: int) -> None:
    """8 rows of 16 warps, of which the last ones may have no elements."""
    layout, shape = parse_layout("T(512):(4@1) V(4,8):(1@1,1@0)"), (8, columns)
    x = np.random.default_rng(columns).integers(-99, 99, shape).astype(np.float32)
    x[3, columns // 2] = np.nan
    y, z = np.zeros_like(x), np.full(shape, -1, np.int32)
    text = search(shape, 1, layout, "arith.maximumf", "1.0e30")
    run(text, [x, y, z], num_warps=16)
    np.testing.assert_array_equal(y, np.broadcast_to(x.max(1, keepdims=True), shape))
    np.testing.assert_array_equal(z, np.broadcast_to(x.argmax(1)[:, None], shape))
