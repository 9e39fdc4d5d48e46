"""How a layout spreads one tile dimension over registers, lanes and warps.

The coordinate along an axis is a sum of digits, one per mode on that axis. `axis_levels` lists the
modes from the smallest stride to the largest, thread modes cut at the warp's edge, so that whoever
combines elements along the axis can do so level by level.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache

from tilec.hardware.layout import Layout, Mode, copies, normalize
from tilec.hardware.sizes import WARP_SIZE
from tilec.records import dataclass


class Place(Enum):
    """What tells the elements of a level apart."""

    VALUE = "registers of one thread"
    LANE = "lanes of one warp"
    WARP = "warps"


@dataclass(frozen=True)
class Level:
    """Steps of `stride` along the axis, `size` of them.

    `position`: of registers the index of the value mode, else the lowest bit of the thread number.
    """

    place: Place
    size: int
    stride: int
    position: int


@lru_cache(maxsize=4096)
def axis_levels(layout: Layout, axis: int) -> tuple[Level, ...]:
    """The levels of an axis, smallest stride first; size-1 modes and copies are no levels."""
    levels = []
    for position, mode in enumerate(layout.values):
        if mode.dim == axis and mode.size > 1 and mode.stride:
            levels.append(Level(Place.VALUE, mode.size, mode.stride, position))
    below = 1
    for mode in layout.threads:
        if mode.dim == axis and mode.stride:
            levels += _thread_levels(mode, below)
        below *= mode.size
    return tuple(sorted(levels, key=lambda level: level.stride))


def _thread_levels(mode: Mode, below: int) -> list[Level]:
    """A thread mode, cut in two where it runs over the warp's edge."""
    lanes = min(mode.size, max(1, WARP_SIZE // below))
    levels = []
    if lanes > 1:
        levels.append(Level(Place.LANE, lanes, mode.stride, below.bit_length() - 1))
    if mode.size > lanes:
        first = (below * lanes).bit_length() - 1
        levels.append(Level(Place.WARP, mode.size // lanes, mode.stride * lanes, first))
    return levels


def is_mixed_radix(levels: tuple[Level, ...]) -> bool:
    """Whether each level continues the one below: the digits, put in a row, count 0, 1, 2, ..."""
    expected = 1
    for level in levels:
        if level.stride != expected:
            return False
        expected *= level.size
    return True


def is_nested(levels: tuple[Level, ...]) -> bool:
    """Whether each level reaches past those below it: digits order coordinates."""
    reach = 0
    for level in levels:
        if level.stride <= reach:
            return False
        reach += (level.size - 1) * level.stride
    return True


def is_injective(levels: tuple[Level, ...]) -> bool:
    """Whether no coordinate of the axis is held twice (but for copies)."""
    if is_nested(levels):
        return True
    sums = [0]
    for level in levels:
        sums = [at + digit * level.stride for at in sums for digit in range(level.size)]
    return len(set(sums)) == len(sums)


def is_spread_over_warps(layout: Layout, axis: int) -> bool:
    """Whether elements along the axis lie in different warps."""
    return any(level.place is Place.WARP for level in axis_levels(layout, axis))


@lru_cache(maxsize=1024)
def partial_layout(layout: Layout, axis: int, kept: tuple[Level, ...]) -> Layout:
    """The layout of partial results along the axis: `kept` levels number them, the others are gone.

    Each combination of the kept levels' digits has one partial result, in the order of the axis.
    Lanes and warps of the other levels hold copies.
    """
    strides: dict[tuple[bool, int], int] = {}
    below = 1
    for level in kept:
        strides[level.place is Place.VALUE, level.position] = below
        below *= level.size
    values = []
    for position, mode in enumerate(layout.values):
        if mode.dim != axis:
            values.append(mode)
        elif (True, position) in strides:
            values.append(Mode(mode.size, strides[True, position], axis))
    threads: list[Mode] = []
    below = 1
    for mode in layout.threads:
        if mode.dim != axis:
            threads.append(mode)
            below *= mode.size
            continue
        for part in _thread_levels(mode, below):
            stride = strides.get((False, part.position), 0)
            threads.append(Mode(part.size, stride, axis) if stride else copies(part.size))
        below *= mode.size
    return normalize(Layout(tuple(threads), tuple(values)))


def num_partials(size: int, kept: tuple[Level, ...]) -> int:
    """The number of partial results that hold an element of an axis of `size`; those past it hold
    phantoms alone.

    The kept levels must nest, so that partials start in ascending order.
    """
    starts = [0]
    for level in kept:
        starts = [at + digit * level.stride for digit in range(level.size) for at in starts]
    return sum(1 for at in starts if at < size)


@lru_cache(maxsize=1024)
def gathered_layouts(layout: Layout, axis: int, count: int) -> tuple[Layout, ...]:
    """The layouts in which every thread holds all `count` partial results of its rows: with the
    axis fastest, as vectors of partial results, and with the rows, as vectors of these."""
    threads = tuple(copies(m.size) if m.dim == axis else m for m in layout.threads)
    values = tuple(mode for mode in layout.values if mode.dim != axis)
    along = (Mode(count, 1, axis),) if count > 1 else ()
    orders = (along + values, values + along)
    return tuple(dict.fromkeys(normalize(Layout(threads, order)) for order in orders))


def shared_out(layout: Layout, axis: int, count: int) -> Layout | None:
    """The layout in which the lanes of each warp hold `count` partial results, one or a few each of
    every row; None where rows lie in several threads, too."""
    if any(mode.dim != axis and mode.stride for mode in layout.threads):
        return None
    lanes = min(WARP_SIZE, 1 << (count - 1).bit_length())
    threads = (Mode(lanes, 1, axis), copies(layout.num_threads // lanes))
    rows = tuple(mode for mode in layout.values if mode.dim != axis)
    rest = -(-count // lanes)
    along = (Mode(rest, lanes, axis),) if rest > 1 else ()
    return normalize(Layout(threads, rows + along))
