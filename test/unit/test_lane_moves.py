"""Conversions inside warps: random permutations of lane and register bits, on the emulator against
NumPy."""

from __future__ import annotations

import random

import numpy as np
import pytest
from emulated import array_type, lower, run, seed_of, tile_type
from test_reductions import load_text, random_array, store_text

import tilec
import tilec.language as tl
from tilec.hardware.layout import Layout, Mode, copies, normalize, parse_layout
from tilec.passes.layouts.conversion_costs import cheap_lane_move, conversion_cost
from tilec.passes.layouts.lane_moves import LANE_BITS, LaneMove, lane_move
from tilec.passes.layouts.maps import widened

Shape = tuple[int, int]


def layouts(rng: random.Random, shape: Shape, num_warps: int) -> tuple[Layout, Layout]:
    """Two layouts with the same bits in each warp, in any order among lanes and registers; some
    lane bits of each tell copies, and some warps of the first, which may share in the second."""
    bits = [Mode(2, 1 << n, d) for d in (0, 1) for n in range(shape[d].bit_length() - 1)]
    rng.shuffle(bits)
    warps: list[Mode] = []
    for _ in range(num_warps.bit_length() - 1):
        warps.append(copies(2) if rng.random() < 0.5 or len(bits) < 2 else bits.pop())
    ends = []
    for side in range(2):
        rng.shuffle(bits)
        held = min(len(bits), LANE_BITS - rng.choice([0, 0, 1, 2, 5]))
        lanes = [*bits[:held], *[copies(2)] * (LANE_BITS - held)]
        rng.shuffle(lanes)
        ends.append((lanes, warps, bits[held:]))
        if side == 0:
            shared = bits[held:]
    lanes, own, registers = ends[1]
    ends[1] = (lanes, [_part(mode, lanes, registers, shared, rng) for mode in own], registers)
    first, second = (
        normalize(Layout((*lanes, *own), tuple(registers))) for lanes, own, registers in ends
    )
    return first, second


def _part(
    mode: Mode, lanes: list[Mode], registers: list[Mode], shared: list[Mode], rng: random.Random
) -> Mode:
    """What tells warps apart in the second layout, where those of the first have copies: a bit of
    the registers of both, or of the second's lanes."""
    if mode.stride:
        return mode
    if registers and registers[-1] in shared:
        return registers.pop()
    number = rng.randrange(LANE_BITS)
    if rng.random() < 0.5:
        return mode
    taken, lanes[number] = lanes[number], copies(2)
    return taken


def conversion(shape: Shape, kind: str, ends: tuple[Layout, Layout]) -> str:
    """An explicit kernel, which converts however much that costs; i1 comes from bytes."""
    stored = "i8" if kind == "i1" else kind
    source, result = (tile_type(shape, kind, end) for end in ends)
    bytes_, results = (tile_type(shape, stored, end) for end in ends)
    zero = "0" if stored[0] == "i" else "0.0"
    before, value, after = "", "%v", "%w"
    if kind == "i1":
        before = f"""%z = arith.constant dense<0> : {bytes_}
  %i = arith.cmpi ne, %v, %z : {bytes_}"""
        value, after = "%i", "%o"
    return f"""
func.func @k(%x: {array_type(2, stored)}, %y: {array_type(2, stored)})
    attributes {{tile.kernel, tile.explicit}} {{
  %c0 = arith.constant 0 : index
  {load_text(shape, stored, ends[0], "%v", "%x", zero)}
  {before}
  %w = "gpu_tile.convert_layout"({value}) : ({source}) -> {result}
  {f"%o = arith.extui %w : {result} to {results}" if kind == "i1" else ""}
  {store_text(shape, stored, ends[1], after, "%y")}
  return
}}"""


@pytest.mark.parametrize("num_warps", [1, 2, 8])
@pytest.mark.parametrize("kind", ["i1", "i8", "bf16", "f32", "i64", "f64"])
def test_random_bits(kind: str, num_warps: int) -> None:
    seed = seed_of(kind, num_warps)
    rng = random.Random(seed)
    shape = 1 << rng.randrange(5), 1 << rng.randrange(1, 6)
    while not isinstance(
        move := lane_move(*(ends := layouts(rng, shape, num_warps)), shape), LaneMove
    ):
        pass
    check(shape, kind, ends, move, num_warps, seed)


@pytest.mark.parametrize("kind", ["i8", "f16", "f32"])
def test_tiles_that_overhang(kind: str) -> None:
    """Phantoms move with the elements, which are where they should be."""
    seed = seed_of(kind)
    rng = random.Random(seed)
    reach = 1 << rng.randrange(2, 5), 1 << rng.randrange(2, 6)
    shape = rng.randrange(1, reach[0]), rng.randrange(1, reach[1])
    while not isinstance(move := lane_move(*(ends := layouts(rng, reach, 2)), shape), LaneMove):
        pass
    check(shape, kind, ends, move, 2, seed)
    beyond = Layout(ends[1].threads, (*ends[1].values, Mode(2, reach[0], 0)))
    assert "past the tile's edge" in str(lane_move(ends[0], beyond, shape))


@pytest.mark.parametrize("factor", [3, 5])
@pytest.mark.parametrize("kind", ["i8", "bf16", "f32"])
def test_an_odd_digit_stays(kind: str, factor: int) -> None:
    """Of the registers anywhere among them, of the warps behind all others: 96 columns of three
    warpgroups move as 32 of one do."""
    seed = seed_of(kind, factor)
    rng = random.Random(seed)
    rows, columns = 1 << rng.randrange(4), 1 << rng.randrange(3, 5)
    digit, warps = Mode(factor, columns, 1), Mode(3, rows, 0)
    move: LaneMove | str = ""
    while isinstance(move, str) or not move.exchanges:
        ends = []
        for end in layouts(rng, (rows, columns), 4):
            place = rng.randrange(len(end.values) + 1)
            values = (*end.values[:place], digit, *end.values[place:])
            ends.append(Layout((*end.threads, warps), values))
        shape = 3 * rows, factor * columns
        move = lane_move(*ends, shape)
    check(shape, kind, (ends[0], ends[1]), move, 12, seed)
    assert "lies elsewhere" in str(lane_move(ends[0], moved_digit(ends[1], digit), shape))


def moved_digit(layout: Layout, digit: Mode) -> Layout:
    """The odd digit counts single elements, and each other mode along its dimension as many."""

    def moved(mode: Mode) -> Mode:
        if mode == digit:
            return Mode(mode.size, 1, mode.dim)
        return Mode(mode.size, mode.stride * (digit.size if mode.dim == digit.dim else 1), mode.dim)

    threads = tuple(moved(mode) if mode.stride else mode for mode in layout.threads)
    return Layout(threads, tuple(map(moved, layout.values)))


def check(
    shape: Shape, kind: str, ends: tuple[Layout, Layout], move: LaneMove, num_warps: int, seed: int
) -> None:
    """What a conversion stores is what was loaded, by no more shuffles than are counted."""
    text = conversion(shape, kind, ends)
    x = random_array(np.random.default_rng(seed), shape, "i8" if kind == "i1" else kind)
    x = x % 2 if kind == "i1" else x
    for mode in ("check", "late"):
        y = np.zeros_like(x)
        run(text, [x, y], num_warps=num_warps, mode=mode)
        np.testing.assert_array_equal(y.view(np.uint8), x.view(np.uint8))
    ptx, shared = lower(text, num_warps=num_warps)
    assert shared == 0
    assert "bar.sync" not in ptx
    assert ptx.count("shfl.sync") <= move.counts(8 * x.itemsize)[0]


ODD = {
    "a bit leaves for another lane than the one whose bit enters": (
        "T(32):(1@1) V(4):(32@1)",
        "T(2,2,2,4):(2@1,32@1,64@1,8@1) V(2,2):(1@1,4@1)",
    ),
    "each copy sends its half to another lane": (
        "T(2,16):(0,1@1) V(8):(16@1)",
        "T(32):(1@1) V(4):(32@1)",
    ),
    "copies get all": ("T(32):(1@1) V(4):(32@1)", "T(2,16):(0,1@1) V(8):(16@1)"),
    "warps take their part": (
        "T(32,2):(1@1,0) V(4):(32@1)",
        "T(2,16,2):(1@1,4@1,64@1) V(2):(2@1)",
    ),
    "warps take it from other lanes": (
        "T(32,4):(1@1,0) V(4):(32@1)",
        "T(4,8,4):(0,1@1,16@1) V(2,2):(8@1,64@1)",
    ),
}


@pytest.mark.parametrize("case", ODD)
def test_moves_out_of_place(case: str) -> None:
    source, result = map(parse_layout, ODD[case])
    move = lane_move(source, result, (1, 128))
    assert isinstance(move, LaneMove)
    check((1, 128), "f32", (source, result), move, source.num_threads // 32, 0)


def test_a_lane_sends_one_register_at_once() -> None:
    """Half of the lanes want one of its two, the others the other: what freed a bit of the lane's
    number, the warps, asks for no half."""
    whole, parted = map(parse_layout, ("T(32,2):(4@0,0) V(4):(1@0)", "T(64):(2@0) V(2):(1@0)"))
    assert lane_move(whole, parted, (128,)) == "a lane would send different registers at once"


NEIGHBOURS = parse_layout("T(32):(2@0) V(2):(1@0)")
APART = parse_layout("T(32):(1@0) V(2):(32@0)")


def test_an_exchange_moves_half_the_registers() -> None:
    lanes = parse_layout("T(2,16):(2@0,4@0) V(2):(1@0)")
    swapped = parse_layout("T(2,16):(1@0,4@0) V(2):(2@0)")
    move = lane_move(lanes, swapped, (64,))
    assert isinstance(move, LaneMove)
    assert move.is_in_place
    assert move.counts(32) == (1, 4)
    assert move.counts(64) == (2, 8)


def test_words_of_neighbours_need_no_unpacking() -> None:
    """Sums of a product for vectors of 16 bytes: a pair of halves stays a word from the conversion
    to the store. Where neighbours part, each element is put into a word and taken out."""
    sums = parse_layout("T(4,8):(2@1,1@0) V(2,2,4):(1@1,8@0,8@1)")
    vectors = widened(sums, 1, 8)
    assert vectors == parse_layout("T(4,8):(8@1,1@0) V(8,2):(1@1,8@0)")
    move = lane_move(sums, vectors, (16, 32))
    assert isinstance(move, LaneMove)
    assert move.counts(16) == (6, 8 + 2 * 16)
    apart = lane_move(sums, parse_layout("T(4,8):(8@1,1@0) V(2,8):(8@0,1@1)"), (16, 32))
    assert isinstance(apart, LaneMove)
    assert apart.counts(16)[1] == 2 * 16 + 2 * 16


def test_96_columns_give_vectors_as_32_do() -> None:
    sums = parse_layout("T(4,8,12):(2@1,1@0,16@0) V(2,2,12):(1@1,8@0,8@1)")
    vectors = widened(sums, 1, 8)
    assert vectors == parse_layout("T(4,8,12):(8@1,1@0,16@0) V(8,2,3):(1@1,8@0,32@1)")
    move = lane_move(sums, vectors, (192, 96))
    assert isinstance(move, LaneMove)
    assert move.counts(16) == (3 * 6, 3 * (8 + 2 * 16))


def test_lanes_that_have_nothing_to_give_keep_their_layout() -> None:
    rows = parse_layout("T(32):(1@0) V(8):(1@1)")
    assert widened(rows, 1, 8) == rows
    narrow = parse_layout("T(4,8):(2@1,1@0) V(2):(1@1)")
    assert widened(narrow, 1, 8) == narrow


@pytest.mark.parametrize(
    ("source", "result", "size", "why"),
    [
        ("T(32):(2@0) V(2):(1@0)", "T(32):(1@0) V(3):(32@0)", 33, "past the tile's edge"),
        ("T(32):(3@0) V(3):(1@0)", "T(32):(1@0) V(3):(32@0)", 96, "no power of two"),
        ("T(64):(2@0) V(2):(1@0)", "T(64):(1@0) V(2):(64@0)", 128, "leave their warp"),
        ("T(64):(1@0) V():()", "T(32):(1@0) V(2):(32@0)", 64, "leave their warp"),
    ],
)
def test_what_shuffles_do_not_do(source: str, result: str, size: int, why: str) -> None:
    move = lane_move(parse_layout(source), parse_layout(result), (size,))
    assert isinstance(move, str)
    assert why in move


def test_layouts_are_chosen_by_the_price_of_what_is_made() -> None:
    """A lane bit against a register bit costs less than two barriers; a transpose of 64 x 64 in a
    warp goes through shared memory, for the price that it has there."""
    assert isinstance(cheap_lane_move((64,), 4, NEIGHBOURS, APART), LaneMove)
    assert conversion_cost((64,), 4, NEIGHBOURS, APART) < 1024
    rows = parse_layout("T(32):(1@0) V(2,64):(32@0,1@1)")
    columns = parse_layout("T(32):(1@1) V(2,64):(32@1,1@0)")
    assert "cost more" in str(cheap_lane_move((64, 64), 4, rows, columns))
    assert conversion_cost((64, 64), 4, rows, columns) > 64 * 64 * 4


@tilec.kernel(grid=1, num_warps=1)
def sort(x: tl.array, y: tl.array, N: tl.const, LOG: tl.const) -> None:
    """A bitonic network: neighbours at a distance change places by split and join."""
    v, i = tl.load(x, 0, N), tl.arange(N)
    for stage in tl.static_range(1, LOG + 1):
        for step in tl.static_range(stage):
            distance = 1 << (stage - 1 - step)
            first, second = tl.split(v.reshape((N // (2 * distance), 2, distance)), 2, axis=1)
            other = tl.join((second, first), axis=1).reshape((N,))
            rising = ((i & distance) == 0) == ((i & (1 << stage)) == 0)
            v = tl.where(rising, tl.minimum(v, other), tl.maximum(v, other))
    tl.store(y, 0, v)


def test_a_sort_in_one_warp_meets_no_barrier() -> None:
    """By reshapes, splits and joins; 21 steps, each value used twice in each, compile at once."""
    compiled = sort.compile(["x:f32[64]", "y:f32[64]"], {"N": 64, "LOG": 6}, target="sm_90a")
    assert "bar.sync" not in compiled.ptx
    assert compiled.shared_bytes == 0
    x = np.random.default_rng(0).standard_normal(64).astype(np.float32)
    y = np.zeros_like(x)
    sort(x, y, 64, 6)
    np.testing.assert_array_equal(y, np.sort(x))
