"""How layouts map through row-major reshapes.

Dimensions fall into *groups*, as short as possible, in which both shapes have as many elements: of
(34, 256) and (34, 128, 2) these are (34 | 34) and (256 | 128, 2). A reshape keeps an element's
row-major number in each of them. The first dimension of a group that has more than one element is
*open* here: nothing counts its end.

A tile may overhang along open dimensions. There a number is the sum of coordinates times steps: the
thread's numbers and the register's add up, past the edge as well, where all numbers of the group
are larger than those of elements. So an element of the result is where its number is in the source,
if the coordinates in the source are no other number's: if nothing of it lies past the edge of a
dimension that is not open. What of the result lies past any edge may hold anything.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from math import prod
from operator import mul

from tilec.hardware.layout import Layout, Mode, covers, normalize
from tilec.passes.layouts.maps import Shape, is_past_edge, thread_steps
from tilec.records import dataclass


@dataclass(frozen=True)
class _Side:
    """Of a shape's dimensions, which of so many `groups` each is in, how many numbers of that a
    `step` along it is, and whether it is `open`."""

    sizes: Shape
    groups: int
    group: Shape
    step: Shape
    open: tuple[bool, ...]

    def numbers(self, at: Sequence[int]) -> Shape:
        """The number in each group of the element at a coordinate, or of a step."""
        totals = [0] * self.groups
        for coordinate, group, step in zip(at, self.group, self.step, strict=True):
            totals[group] += coordinate * step
        return tuple(totals)

    def is_plain(self, layout: Layout) -> bool:
        """Whether a layout covers the tile and reaches past no edge but those of open
        dimensions."""
        reach = layout.extents(len(self.sizes))
        within = zip(reach, self.sizes, self.open, strict=True)
        return covers(layout, self.sizes) and all(r <= size or open for r, size, open in within)


@lru_cache(maxsize=1024)
def _sides(source: Shape, result: Shape) -> tuple[_Side, _Side]:
    ends = [list(accumulate(sizes, mul)) for sizes in (source, result)]
    cuts = sorted(set(ends[0]) & set(ends[1]) | {prod(source)})
    return _side(source, ends[0], cuts), _side(result, ends[1], cuts)


def _side(sizes: Shape, ends: list[int], cuts: list[int]) -> _Side:
    group = tuple(bisect_left(cuts, end) for end in ends)
    # What is behind a dimension in its group: all up to the cut at which that ends.
    step = tuple(cuts[number] // end for number, end in zip(group, ends, strict=True))
    before = [1, *cuts]
    starts = (end // size == before[g] for size, end, g in zip(sizes, ends, group, strict=True))
    open_ = tuple(size > 1 and first for size, first in zip(sizes, starts, strict=True))
    return _Side(sizes, len(cuts), group, step, open_)


@lru_cache(maxsize=1024)
def reshaped(layout: Layout, source: Shape, result: Shape) -> Layout | None:
    """The layout of a row-major reshape's result that moves nothing, or None.

    Every mode is a step of numbers in its group; it must fall into the result's dimensions whole or
    split at their boundaries.
    """
    have, want = _sides(source, result)
    if not have.is_plain(layout):
        return None
    threads = _renumbered(layout.threads, have, want)
    values = _renumbered(layout.values, have, want)
    if threads is None or values is None:
        return None
    found = Layout(threads, values)
    return normalize(found) if want.is_plain(found) else None


def _renumbered(modes: tuple[Mode, ...], have: _Side, want: _Side) -> tuple[Mode, ...] | None:
    written: list[Mode] = []
    for mode in modes:
        if not mode.stride:
            written.append(mode)
            continue
        parts = _split(mode.size, mode.stride * have.step[mode.dim], have.group[mode.dim], want)
        if parts is None:
            return None
        written += parts
    return tuple(written)


def _split(size: int, step: int, group: int, want: _Side) -> list[Mode] | None:
    """Writes `size` steps of `step` numbers of a group as modes along its dimensions in the
    result, innermost first."""
    parts: list[Mode] = []
    for dim in reversed(range(len(want.sizes))):
        extent, below = want.sizes[dim], want.step[dim]
        if size == 1:
            break
        if want.group[dim] != group or extent == 1:
            continue
        if not want.open[dim] and step >= below * extent:
            continue
        if step % below:
            return None
        stride = step // below
        here = size
        if not want.open[dim]:
            if extent % stride:
                return None
            here = min(size, extent // stride)
        if size % here:
            return None
        if here > 1:
            parts.append(Mode(here, stride, dim))
        size //= here
        step = below * extent
    return parts if size == 1 else None


@lru_cache(maxsize=1024)
def reshape_registers(
    source: Layout, shape: Shape, result: Layout, result_shape: Shape
) -> tuple[int, ...] | None:
    """Gives, for each result register, the source register with the same row-major numbers.

    Registers past the result's edge may take any. None if some element would change threads; then
    the reshape goes through shared memory.
    """
    have, want = _sides(shape, result_shape)
    if not have.is_plain(source) or _thread_numbers(source, have) != _thread_numbers(result, want):
        return None
    rank = len(result_shape)
    held = {
        have.numbers(at): register
        for register, at in enumerate(source.value_coordinates(len(shape)))
    }
    chosen = []
    for at in result.value_coordinates(rank):
        number = want.numbers(at)
        if number not in held and not is_past_edge(at, result_shape):
            return None
        chosen.append(held.get(number, 0))
    return tuple(chosen)


def _thread_numbers(layout: Layout, side: _Side) -> list[Shape]:
    return [side.numbers(step) for step in thread_steps(layout, len(side.sizes))]


def row_major_number(at: Sequence[int], shape: Sequence[int]) -> int:
    """The place of an element in row-major order."""
    total = 0
    for coordinate, size in zip(at, shape, strict=True):
        total = total * size + coordinate
    return total
