"""What a scan costs a thread in a layout, and the layout that makes it cheap.

A scan combines level by level (`axis_levels`): registers one after another take one combination
each, lanes a shuffle, a combination and a choice a doubling step, warps a combination and a choice
for each total that meets in shared memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from tilec.dialects import tile
from tilec.dialects.types import shape
from tilec.hardware.layout import Layout, Mode, normalize
from tilec.hardware.sizes import WARP_SIZE
from tilec.passes.layouts.axis_levels import Level, Place, axis_levels, is_mixed_radix
from tilec.passes.layouts.conversion_costs import CONVERSION_COST, conversion_cost
from tilec.passes.layouts.op_costs import (
    SHUFFLE_SLOTS,
    SLOT_BYTES,
    TAKE_SLOTS,
    combining_slots,
    words,
)
from tilec.passes.layouts.scan_layout import scan_layout, split_levels
from tilec.records import dataclass


def in_runs(layout: Layout, axis: int) -> Layout:
    """The same shares of the axis for registers, lanes and warps, but each thread's elements are
    neighbours along it, then those of lanes, then those of warps: fewer blocks meet between
    threads. What lies along other dimensions stays: so does how rows of memory are read.
    """
    strides: dict[tuple[bool, int], int] = {}
    reach = 1
    for is_value, modes in ((True, layout.values), (False, layout.threads)):
        for number, mode in enumerate(modes):
            if mode.dim == axis and mode.stride:
                strides[is_value, number] = reach
                reach *= mode.size

    def placed(modes: tuple[Mode, ...], is_value: bool) -> tuple[Mode, ...]:
        return tuple(
            Mode(mode.size, strides.get((is_value, number), mode.stride), mode.dim)
            for number, mode in enumerate(modes)
        )

    return normalize(Layout(placed(layout.threads, False), placed(layout.values, True)))


def warps_last(layout: Layout, axis: int) -> Layout:
    """The same lanes and registers, but what a warp holds lies together along the axis, then what
    the next one holds: warps meet for one total each, and not for one a warp and register. How a
    warp reads rows of memory stays."""
    threads = tuple(_cut_at_warps(layout.threads))
    places = [(True, n, mode) for n, mode in enumerate(threads)]
    places += [(False, n, mode) for n, mode in enumerate(layout.values)]
    below = [prod(mode.size for mode in threads[:n]) for n in range(len(threads))]
    moved, reach = {True: list(threads), False: list(layout.values)}, 1

    def order(place: tuple[bool, int, Mode]) -> tuple[bool, int]:
        is_thread, number, mode = place
        return is_thread and below[number] >= WARP_SIZE, mode.stride

    along = [place for place in places if place[2].dim == axis and place[2].stride]
    for is_thread, number, mode in sorted(along, key=order):
        moved[is_thread][number] = Mode(mode.size, reach, axis)
        reach *= mode.size
    return normalize(Layout(tuple(moved[True]), tuple(moved[False])))


def _cut_at_warps(modes: tuple[Mode, ...]) -> Iterator[Mode]:
    """Thread modes, of which none is of lanes and of warps."""
    below = 1
    for mode in modes:
        lanes = min(mode.size, max(1, WARP_SIZE // below))
        yield Mode(lanes, mode.stride, mode.dim)
        yield Mode(mode.size // lanes, mode.stride * lanes, mode.dim)
        below *= mode.size


def scan_cost(op: tile.ScanOp, layout: Layout) -> int:
    """What a scan passes between threads, and combines beyond one combination an element, in bytes
    of traffic of the whole CTA. In a layout that it does not support, with the conversions."""
    sizes, converted = shape(op.inputs[0]), 0
    levels = axis_levels(layout, op.axis)
    warps = max(1, layout.num_threads // WARP_SIZE)
    if not is_mixed_radix(levels):
        own = scan_layout(sizes, op.axis, warps)
        for value in op.inputs:
            converted += conversion_cost(sizes, 4 * words(value), layout, own)
            converted += conversion_cost(sizes, 4 * words(value), own, layout)
        layout, levels = own, axis_levels(own, op.axis)
    step = _Step(combining_slots(op), sum(map(words, op.inputs)))
    inner, outer = split_levels(layout, op.axis)
    slots = _within_warps(layout.num_values, inner, bool(outer), step)
    if outer:
        slots += _between_warps(layout, op.axis, outer, step)
        converted += CONVERSION_COST * len(op.inputs)
    return converted + slots * warps * SLOT_BYTES


@dataclass(frozen=True)
class _Step:
    """Slots to combine two elements, and the words of one."""

    combining: int
    words: int


def _within_warps(registers: int, levels: tuple[Level, ...], goes_on: bool, step: _Step) -> int:
    """Slots of a thread for the levels below the warps'. `goes_on`: warps follow, and want what
    each of these blocks adds up to."""
    slots, blocks = 0, registers
    for number, level in enumerate(levels):
        if level.place is Place.VALUE:
            blocks //= level.size
            continue
        is_last = number + 1 == len(levels) and not goes_on
        shuffles = (level.size - 1).bit_length() + (number > 0) + (not is_last)
        slots += blocks * shuffles * (SHUFFLE_SLOTS * step.words + step.combining + step.words)
    # Going down, each element takes in what lies before its block.
    return slots + registers * step.combining * (len(levels) > 1)


def _between_warps(layout: Layout, axis: int, outer: tuple[Level, ...], step: _Step) -> int:
    """Slots of a thread that reads the totals of its rows, adds them up and chooses by its place
    which lie before each of its blocks."""
    rows = layout.slice(axis).num_values
    totals = prod(level.size for level in outer)
    held = prod(level.size for level in outer if level.place is Place.VALUE)
    read = rows * totals * (TAKE_SLOTS * step.words + step.combining)
    chosen = rows * held * (totals // held) * step.words
    return read + chosen + layout.num_values * step.combining
