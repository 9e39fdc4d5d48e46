"""Layouts through reshapes, joins and splits, phantoms included: every element of the result is
where NumPy says, over all small shapes and many layouts of each."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product
from math import prod

import numpy as np
import pytest

from tilec.hardware.layout import Layout, covers, parse_layout
from tilec.passes.layouts.candidates import blocked_layout
from tilec.passes.layouts.parts import (
    join_registers,
    part_layout,
    split_registers,
    whole_layout,
)
from tilec.passes.layouts.reshapes import reshape_registers, reshaped

Shape = tuple[int, ...]
Registers = list[list[int]]
"""The element that each register of each thread holds; -1: anything."""
ANYTHING = -1


def held(tile: np.ndarray, layout: Layout) -> Registers:
    """What a layout's threads hold of a tile."""
    found = []
    for thread in range(layout.num_threads):
        base = layout.thread_coordinates(thread, tile.ndim)
        places = [np.add(base, at) for at in layout.value_coordinates(tile.ndim)]
        inside = [bool((at < tile.shape).all()) for at in places]
        found.append(
            [int(tile[tuple(at)]) if i else ANYTHING for at, i in zip(places, inside, strict=True)]
        )
    return found


def agrees(made: Registers, wanted: Registers) -> bool:
    """Whether registers hold what they should, and whatever where that is anything."""
    return all(
        w in (ANYTHING, m)
        for mine, theirs in zip(made, wanted, strict=True)
        for m, w in zip(mine, theirs, strict=True)
    )


def numbered(shape: Shape) -> np.ndarray:
    return np.arange(prod(shape)).reshape(shape)


def factored(number: int, rank: int) -> Iterator[Shape]:
    if rank < 2:
        yield from [(number,)] if rank else [()] if number == 1 else []
        return
    for first in range(1, number + 1):
        if number % first == 0:
            yield from ((first, *rest) for rest in factored(number // first, rank - 1))


RESHAPES = [
    (source, result)
    for number in (1, 2, 3, 4, 6, 12)
    for source in (s for rank in range(4) for s in factored(number, rank))
    for result in (r for rank in range(4) for r in factored(number, rank))
]


def blocked(shape: Shape) -> Iterator[Layout]:
    for dim, width, threads in product(range(max(1, len(shape))), (1, 2, 4), (2, 16)):
        yield blocked_layout(shape, dim, width, threads)


def test_reshapes_of_blocked_layouts() -> None:
    """All of at most three dimensions: where a layout is found, its registers are, and right."""
    overhang = 0
    for source, result in RESHAPES:
        tile = numbered(source)
        for layout in set(blocked(source)):
            found = reshaped(layout, source, result)
            if found is None:
                continue
            assert covers(found, result), (layout, source, result)
            chosen = reshape_registers(layout, source, found, result)
            assert chosen is not None, (layout, source, found, result)
            made = [[thread[i] for i in chosen] for thread in held(tile, layout)]
            assert agrees(made, held(tile.reshape(result), found))
            overhang += layout.has_phantoms(source)
    assert overhang > 100


def wide(shape: Shape) -> list[Layout]:
    """Blocked layouts of this tile and of those that are a little larger."""
    larger = product(*(range(size, size + 3) for size in shape))
    return sorted({layout for each in larger for layout in blocked(each)}, key=str)


def test_reshapes_of_any_layouts() -> None:
    """Whatever the two layouts: where registers are found, they are right."""
    rng, right = random.Random(1), 0
    for source, result in rng.choices(RESHAPES, k=60):
        tile = numbered(source)
        for one, other in product(*(rng.choices(wide(s), k=12) for s in (source, result))):
            if one.num_threads != other.num_threads:
                continue
            chosen = reshape_registers(one, source, other, result)
            if chosen is not None:
                made = [[thread[i] for i in chosen] for thread in held(tile, one)]
                assert agrees(made, held(tile.reshape(result), other)), (one, other)
                right += 1
    assert right > 100


@pytest.mark.parametrize(
    ("layout", "source", "result", "wanted"),
    [
        # Overhanging rows, which the reshape does not touch.
        ("T(4,8):(8@1,1@0) V(8,3):(1@1,8@0)", (19, 32), (19, 16, 2),
         "T(4,8):(4@1,1@0) V(2,4,3):(1@2,1@1,8@0)"),
        # An open dimension that is split.
        ("T(16):(8@0) V(8):(1@0)", (96,), (12, 8), "T(16):(1@0) V(8):(1@1)"),
        ("T(16):(1@0) V(8):(1@1)", (12, 8), (96,), "T(16):(8@0) V(8):(1@0)"),
        # Rows that are joined: past the edge of a row lies the next one.
        ("T(8):(1@1) V(2):(1@0)", (2, 6), (12,), None),
    ],
)  # fmt: skip
def test_reshapes_that_overhang(
    layout: str, source: Shape, result: Shape, wanted: str | None
) -> None:
    found = reshaped(parse_layout(layout), source, result)
    assert found == (wanted and parse_layout(wanted))


PARTS = [
    (shape, axis, count)
    for shape in ((1,), (3,), (4,), (5, 1), (3, 2), (5, 4), (3, 5, 1), (2, 3, 2), (3, 1, 4))
    for axis in range(len(shape))
    for count in (1, 2, 3)
]


@pytest.mark.parametrize(("shape", "axis", "count"), PARTS)
def test_joins_and_splits(shape: Shape, axis: int, count: int) -> None:
    """Equal parts, in each of the layouts that a part or the whole proposes to the other."""
    whole = (*shape[:axis], count * shape[axis], *shape[axis + 1 :])
    proposed = [(part, whole_layout(part, axis, count, shape)) for part in set(blocked(shape))]
    proposed += [(part_layout(all_, axis, count, shape), all_) for all_ in set(blocked(whole))]
    pairs = [(part, all_) for part, all_ in proposed if part is not None and all_ is not None]
    assert pairs or shape[axis] & (shape[axis] - 1)  # else each reaches into the next one
    for part, all_ in pairs:
        assert covers(part, shape)
        assert covers(all_, whole)
        check_parts([part] * count, [shape] * count, all_, whole, axis)


def check_parts(
    parts: list[Layout], shapes: list[Shape], all_: Layout, whole: Shape, axis: int
) -> None:
    """Compares the registers of a join and of a split with NumPy's."""
    tile = numbered(whole)
    ends = np.cumsum([shape[axis] for shape in shapes])
    pieces = np.split(tile, ends[:-1], axis)
    own = [held(piece, part) for piece, part in zip(pieces, parts, strict=True)]
    joined = join_registers(parts, shapes, all_, whole, axis)
    assert joined is not None
    made = [[own[n][thread][i] for n, i in joined] for thread in range(all_.num_threads)]
    assert agrees(made, held(tile, all_))
    cut = split_registers(parts, shapes, all_, axis)
    assert cut is not None
    for chosen, wanted in zip(cut, own, strict=True):
        assert agrees([[thread[i] for i in chosen] for thread in held(tile, all_)], wanted)


@pytest.mark.parametrize(("shape", "axis", "count"), PARTS)
def test_parts_of_any_layouts(shape: Shape, axis: int, count: int) -> None:
    """Whatever the layouts, with a part of another size: where registers are found, they are
    right."""
    last = (*shape[:axis], 2, *shape[axis + 1 :])
    shapes = [shape] * count + [last]
    whole = (*shape[:axis], count * shape[axis] + 2, *shape[axis + 1 :])
    largest = tuple(map(max, shape, last))
    rng, tile = random.Random(1), numbered(whole)
    pieces = np.split(tile, np.cumsum([each[axis] for each in shapes])[:-1], axis)
    for part, all_ in product(rng.choices(wide(largest), k=12), rng.choices(wide(whole), k=12)):
        parts, own = [part] * len(shapes), [held(piece, part) for piece in pieces]
        joined = join_registers(parts, shapes, all_, whole, axis)
        if joined is not None:
            made = [[own[n][thread][i] for n, i in joined] for thread in range(all_.num_threads)]
            assert agrees(made, held(tile, all_)), (part, all_)
        cut = split_registers(parts, shapes, all_, axis)
        for wanted, chosen in zip(own, cut, strict=True) if cut else ():
            assert agrees([[thread[i] for i in chosen] for thread in held(tile, all_)], wanted)
