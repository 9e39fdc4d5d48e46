"""Register layouts: text, and each map of layouts against every element it moves."""

from __future__ import annotations

import re
from itertools import product

import pytest
import tensor_layouts
from hypothesis import given
from hypothesis import strategies as st

from tilec.hardware.layout import Layout, Mode, copies, covers, normalize, parse_layout
from tilec.passes.layouts.lane_moves import LaneMove, lane_move
from tilec.passes.layouts.runs import in_vectors, register_run

RANKS = st.integers(1, 3)


@st.composite
def modes(draw: st.DrawFn, rank: int, sizes: st.SearchStrategy[int], *, may_copy: bool) -> Mode:
    size = draw(sizes)
    if may_copy and draw(st.booleans()):
        return copies(size)
    return Mode(size, draw(st.integers(1, 20)), draw(st.integers(0, rank - 1)))


@st.composite
def layouts(draw: st.DrawFn, rank: int = 0) -> tuple[Layout, int]:
    """A layout and the rank of its tile."""
    rank = rank or draw(RANKS)
    powers = st.sampled_from([1, 2, 4])
    threads = draw(st.lists(modes(rank, powers, may_copy=True), max_size=3))
    values = draw(st.lists(modes(rank, st.integers(1, 4), may_copy=False), max_size=3))
    return Layout(tuple(threads), tuple(values)), rank


Place = tuple[int, int]
Held = dict[Place, tuple[int, ...]]


def held(layout: Layout, rank: int) -> Held:
    """(thread, register) -> coordinates, from the definition: digits times strides."""
    found: Held = {}
    for thread, value in product(range(layout.num_threads), range(layout.num_values)):
        coordinates = [0] * rank
        for index, group in ((thread, layout.threads), (value, layout.values)):
            rest = index
            for mode in group:
                if mode.stride:
                    coordinates[mode.dim] += rest % mode.size * mode.stride
                rest //= mode.size
        found[thread, value] = tuple(coordinates)
    return found


def by_thread(places: Held) -> dict[int, set[tuple[int, ...]]]:
    found: dict[int, set[tuple[int, ...]]] = {}
    for (thread, _), coordinates in places.items():
        found.setdefault(thread, set()).add(coordinates)
    return found


class TestText:
    """`parse_layout` and `str` are inverse; what does not read says why."""

    @given(layouts())
    def test_round_trip(self, drawn: tuple[Layout, int]) -> None:
        layout, _ = drawn
        assert parse_layout(str(layout)) == layout

    @pytest.mark.parametrize(
        "text",
        [
            "T(8,16):(8@1,1@0) V(8,8):(1@1,16@0)",
            "T():() V():()",
            "T(32):(0) V(3):(7@2)",
            "T(4,8,12):(2@1,1@0,16@0) V(2):(1@1)",
        ],
    )
    def test_reads_what_it_prints(self, text: str) -> None:
        assert str(parse_layout(text)) == text

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "malformed layout ''; expected e.g."),
            ("T(8):(1@0)", "malformed layout"),
            ("T(8):(1@0) V(2):(1@0) ", "malformed layout"),
            ("T(8):(-1@0) V():()", "malformed layout"),
            ("T(8,2):(1@0) V():()", "2 sizes but 1 strides"),
            ("T(8):(1@0) V(2):(1@0,2@0)", "1 sizes but 2 strides"),
            ("T(8):(1) V():()", "malformed mode 8:1"),
            ("T(8):(1@) V():()", "malformed mode 8:1@"),
            ("T(8):(@0) V():()", "malformed mode 8:@0"),
            ("T(8):(1@0@0) V():()", "malformed mode 8:1@0@0"),
            ("T(0):(1@0) V():()", "malformed mode 0:1@0"),
            ("T(64,128):(1@0,0) V():()", "more than 4096 threads or 65536 values a thread"),
            ("T():() V(512,512):(1@0,1@1)", "more than 4096 threads or 65536 values a thread"),
            ("T(12):(1@0) V():()", "thread mode of size 12 is no power of two"),
            ("T(3,128):(1@0,3@0) V():()", "thread mode of size 3 is no power of two"),
        ],
    )
    def test_what_does_not_read_says_why(self, text: str, message: str) -> None:
        with pytest.raises(ValueError, match=re.escape(message)):
            parse_layout(text)


@given(layouts())
def test_coordinates_follow_the_definition(drawn: tuple[Layout, int]) -> None:
    layout, rank = drawn
    values = layout.value_coordinates(rank)
    for (thread, value), expected in held(layout, rank).items():
        start = layout.thread_coordinates(thread, rank)
        assert tuple(a + b for a, b in zip(start, values[value], strict=True)) == expected


@given(layouts())
def test_normalize_keeps_the_map(drawn: tuple[Layout, int]) -> None:
    layout, rank = drawn
    simple = normalize(layout)
    assert held(simple, rank) == held(layout, rank)
    assert normalize(simple) == simple
    assert all(mode.size > 1 for mode in simple.threads + simple.values)


@given(layouts())
def test_extents_are_one_past_the_furthest_element(drawn: tuple[Layout, int]) -> None:
    layout, rank = drawn
    furthest = tuple(map(max, zip(*held(layout, rank).values(), strict=True)))
    assert layout.extents(rank) == tuple(at + 1 for at in furthest)


@given(layouts(), st.data())
def test_slice_drops_a_dimension(drawn: tuple[Layout, int], data: st.DataObject) -> None:
    layout, rank = drawn
    axis = data.draw(st.integers(0, rank - 1))
    sliced = layout.slice(axis)
    assert sliced.num_threads == layout.num_threads
    expected = by_thread(held(layout, rank))
    for thread, found in by_thread(held(sliced, rank - 1)).items():
        assert found == {(*at[:axis], *at[axis + 1 :]) for at in expected[thread]}


@given(layouts(), st.data())
def test_permute_renames_dimensions(drawn: tuple[Layout, int], data: st.DataObject) -> None:
    layout, rank = drawn
    permutation = data.draw(st.permutations(range(rank)))
    source = held(layout, rank)
    for place, found in held(layout.permute(permutation), rank).items():
        assert found == tuple(source[place][p] for p in permutation)


@given(layouts(), st.data())
def test_keep_is_the_source_of_a_broadcast(drawn: tuple[Layout, int], data: st.DataObject) -> None:
    layout, rank = drawn
    # `keep` reads the rank from the layout: name every dimension.
    named = Layout(layout.threads, layout.values + tuple(Mode(2, 30, d) for d in range(rank)))
    order = data.draw(st.permutations(range(rank)))
    dims = order[: data.draw(st.integers(0, rank))]
    source = named.keep(dims)
    expected = by_thread(held(named, rank))
    assert source.num_threads == named.num_threads
    for thread, found in by_thread(held(source, max(len(dims), 1))).items():
        wanted = {tuple(at[d] for d in dims) or (0,) for at in expected[thread]}
        assert found == wanted


@given(layouts(), st.data())
def test_covers_means_every_element_is_held(drawn: tuple[Layout, int], data: st.DataObject) -> None:
    layout, rank = drawn
    shape = tuple(data.draw(st.integers(1, 9)) for _ in range(rank))
    elements = set(product(*map(range, shape)))
    assert covers(layout, shape) == (elements <= set(held(layout, rank).values()))


@given(layouts(), st.data())
def test_is_exact_means_each_element_once_per_copy(
    drawn: tuple[Layout, int], data: st.DataObject
) -> None:
    layout, rank = drawn
    shape = tuple(data.draw(st.integers(1, 9)) for _ in range(rank))
    places = list(held(layout, rank).values())
    spread = sorted(places)
    copied = len(places) // max(len(set(places)), 1)
    once = sorted(product(*map(range, shape)))
    same = spread == sorted(at for at in once for _ in range(copied))
    number = 1
    for mode in layout.threads:
        number *= 1 if mode.stride else mode.size
    assert layout.is_exact(shape) == (same and copied == number)
    assert layout.has_phantoms(shape) == any(at not in set(once) for at in places)


def test_covers_sees_a_hole() -> None:
    layout = parse_layout("T(4):(4@0) V(2):(1@0)")
    assert not covers(layout, (16,))
    assert covers(layout, (2,))
    assert not layout.is_exact((2,))


@given(layouts(), st.data())
def test_agrees_with_cute_s_algebra(drawn: tuple[Layout, int], data: st.DataObject) -> None:
    """Linearised over a tile's shape, a layout is CuTe's (thread, value) -> offset."""
    layout, rank = drawn
    shape = tuple(data.draw(st.integers(1, 40)) for _ in range(rank))
    steps = tensor_layouts.compute_row_major_strides(shape)
    row = steps if isinstance(steps, tuple) else (steps,)

    def cute(group: tuple[Mode, ...]) -> tensor_layouts.Layout:
        sizes = tuple(mode.size for mode in group) or (1,)
        strides = tuple(mode.stride * row[mode.dim] if mode.stride else 0 for mode in group)
        return tensor_layouts.Layout(sizes, strides or (0,))

    threads, values = cute(layout.threads), cute(layout.values)
    for (thread, value), at in held(layout, rank).items():
        offset = sum(a * b for a, b in zip(at, row, strict=True))
        assert threads(thread) + values(value) == offset


WGMMA = "T(4,8,4):(2@1,1@0,16@0) V(2,2,{n}):(1@1,8@0,8@1)"
"""How a warpgroup holds 64 rows of sums, `n` times 8 columns."""


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("n", [1, 2, 6, 9, 16])
def test_lanes_arrange_sums_in_vectors_of_four(dim: int, n: int) -> None:
    """Each thread has four neighbours at a time, and all threads all elements, in their warps."""
    layout, sizes = parse_layout(WGMMA.format(n=n)), (64, 8 * n)
    found = in_vectors(layout, dim, 4)
    assert (register_run(found, dim), found.num_values) == (4, layout.num_values)
    assert isinstance(lane_move(layout, found, sizes), LaneMove)


def test_what_cannot_come_in_vectors_stays() -> None:
    for text, dim, nbytes in (
        ("T(32):(1@0) V(3):(1@1)", 0, 4),  # three sums a lane have no half to hand on
        ("T(4,8):(2@1,1@0) V(2):(1@1)", 1, 8),  # 16 bytes already
        ("T(8,4):(1@0,4@1) V(4):(1@1)", 1, 4),
    ):
        layout = parse_layout(text)
        assert in_vectors(layout, dim, nbytes) == layout
