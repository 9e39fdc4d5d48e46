"""Exchanges in random layouts, on the emulator against NumPy: in threads, lanes, warps."""

from __future__ import annotations

import random

import numpy as np
import pytest
from emulated import array_type, lower, random_layout, run, seed_of, tile_type
from test_reductions import load_text, random_array, store_text

from tilec.hardware.layout import Layout, parse_layout
from tilec.passes.layouts.partners import Partners, partners


def exchange(shape: tuple[int, ...], kind: str, layout: Layout, axis: int, mask: int) -> str:
    type_ = tile_type(shape, kind, layout)
    array = array_type(len(shape), kind)
    return f"""
func.func @k(%x: {array}, %y: {array}) attributes {{tile.kernel}} {{
  %c0 = arith.constant 0 : index
  {load_text(shape, kind, layout, "%v", "%x")}
  %w = "tile.exchange"(%v) {{axis = {axis} : i32, mask = {mask} : i32}} : ({type_}) -> {type_}
  {store_text(shape, kind, layout, "%w", "%y")}
  return
}}"""


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("num_warps", [1, 4])
def test_random_layouts(number: int, num_warps: int) -> None:
    """Sizes that are multiples of the mask's range only, phantoms along them and beside."""
    kind = ("f32", "i8", "bf16", "i64", "i32", "f16")[number]
    rng = random.Random(seed_of(number, num_warps))
    mask = rng.randrange(1, 16)
    along = rng.choice([1, 2, 3, 5]) << mask.bit_length()
    shape = (rng.choice([1, 3, 4]), along) if number % 2 else (along, rng.choice([1, 3, 4]))
    axis = number % 2
    layout = random_layout(rng, shape, num_warps)
    x = random_array(np.random.default_rng(number), shape, kind)
    y = np.zeros_like(x)
    run(exchange(shape, kind, layout, axis, mask), [x, y], num_warps=num_warps, mode="check")
    wanted = np.take(x, np.arange(along) ^ mask, axis)
    np.testing.assert_array_equal(y.view(np.uint8), wanted.view(np.uint8))


@pytest.mark.parametrize(
    ("shape", "layout", "axis", "mask"),
    [
        ((256,), "T(32,2):(4@0,128@0) V(4):(1@0)", 0, 131),
        ((512,), "T(32,2):(4@0,128@0) V(4,2):(1@0,256@0)", 0, 511),
        ((64, 3), "T(16,2,2):(2@0,32@0,0) V(2,3):(1@0,1@1)", 0, 31),
        ((3, 128), "T(32,2):(2@1,64@1) V(2,3):(1@1,1@0)", 1, 65),
    ],
)
def test_neighbours_of_a_thread_go_to_other_warps(
    shape: tuple[int, ...], layout: str, axis: int, mask: int
) -> None:
    x = random_array(np.random.default_rng(mask), shape, "f32")
    y = np.zeros_like(x)
    run(exchange(shape, "f32", parse_layout(layout), axis, mask), [x, y], num_warps=2, mode="check")
    np.testing.assert_array_equal(y, np.take(x, np.arange(shape[axis]) ^ mask, axis))


def test_neighbours_move_as_vectors_without_bank_conflicts() -> None:
    """32 neighbours a thread: 8 stores and 8 loads of 16 bytes, rows a vector apart in banks."""
    held = parse_layout("T(64):(32@0) V(32):(1@0)")
    ptx, shared = lower(exchange((2048,), "f32", held, 0, 1024), num_warps=2)
    assert ptx.count("st.shared.v4.b32") == ptx.count("ld.shared.v4.b32") == 8
    assert shared == 64 * (32 + 4) * 4 - 16


@pytest.mark.parametrize(
    ("layout", "mask", "expected"),
    [
        ("T(32):(1@0) V(4):(32@0)", 32, Partners((1, 0, 3, 2), 0)),
        ("T(32):(1@0) V(4):(32@0)", 127, Partners((3, 2, 1, 0), 31)),
        ("T(32):(4@0) V(4):(1@0)", 5, Partners((1, 0, 3, 2), 1)),
        ("T(2,16):(0,8@0) V(8):(1@0)", 72, Partners(tuple(range(8)), 18)),
        ("T(32):(4@0) V(4,3):(1@0,128@0)", 2, Partners((2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9), 0)),
        ("T(32,4):(1@0,32@0) V():()", 33, None),
        ("T(32):(1@0) V(3):(32@0)", 32, None),
        ("T(32):(1@0) V(4):(16@0)", 16, None),
    ],
)
def test_who_holds_the_partner(layout: str, mask: int, expected: Partners | None) -> None:
    assert partners(parse_layout(layout), 1, 0, mask) == expected


def test_a_warp_moves_no_more_than_it_must() -> None:
    """A register a shuffle, two of 16 bits in one; nothing for partners in registers."""
    near = parse_layout("T(32):(4@0) V(4):(1@0)")
    counts = []
    for kind, mask in (("f32", 4), ("f16", 4), ("f32", 3)):
        ptx, shared = lower(exchange((128,), kind, near, 0, mask), num_warps=1)
        assert shared == 0
        counts.append(ptx.count("shfl.sync"))
    assert counts == [4, 2, 0]
