"""How layouts map between a tile and its parts along an axis, of joins and splits.

Where threads are placed alike, a part's element is in the thread that has it of the whole. Along
other axes either may reach past the edge: what is past the edge of a part is past that of the
whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from tilec.hardware.layout import Layout, Mode, covers, normalize
from tilec.passes.layouts.maps import Shape, is_past_edge, thread_steps


def join_registers(
    parts: Sequence[Layout], shapes: Sequence[Shape], whole: Layout, whole_shape: Shape, axis: int
) -> tuple[tuple[int, int], ...] | None:
    """Gives, for each register of the whole, (part number, register there), registers past its edge
    any; None if elements change threads."""
    rank = len(whole_shape)
    held: dict[Shape, tuple[int, int]] = {}
    for number, (layout, shape, start) in enumerate(
        zip(parts, shapes, _starts(shapes, axis), strict=True)
    ):
        if not _ends_with(layout, shape, axis) or not _are_alike(layout, whole, rank):
            return None
        for register, at in enumerate(layout.value_coordinates(rank)):
            held[_moved(at, axis, start)] = number, register
    chosen = []
    for at in whole.value_coordinates(rank):
        if at not in held and not is_past_edge(at, whole_shape):
            return None
        chosen.append(held.get(at, (0, 0)))
    return tuple(chosen)


def split_registers(
    parts: Sequence[Layout], shapes: Sequence[Shape], whole: Layout, axis: int
) -> list[tuple[int, ...]] | None:
    """Gives, for each part and register of it, the register of the whole, registers past a part's
    edge any; None if elements change threads."""
    rank = len(shapes[0])
    held = {at: register for register, at in enumerate(whole.value_coordinates(rank))}
    chosen = []
    for layout, shape, start in zip(parts, shapes, _starts(shapes, axis), strict=True):
        if not _are_alike(layout, whole, rank):
            return None
        found = []
        for at in layout.value_coordinates(rank):
            place = _moved(at, axis, start)
            if place not in held and not is_past_edge(at, shape):
                return None
            found.append(held.get(place, 0))
        chosen.append(tuple(found))
    return chosen


def _starts(shapes: Sequence[Shape], axis: int) -> list[int]:
    return list(accumulate((shape[axis] for shape in shapes), initial=0))[:-1]


def _moved(at: Shape, axis: int, start: int) -> Shape:
    return (*at[:axis], at[axis] + start, *at[axis + 1 :])


def _are_alike(layout: Layout, other: Layout, rank: int) -> bool:
    return thread_steps(layout, rank) == thread_steps(other, rank)


def _ends_with(layout: Layout, shape: Shape, axis: int) -> bool:
    """Whether a layout covers a part and does not reach into the next one."""
    return covers(layout, shape) and layout.extents(len(shape))[axis] <= shape[axis]


def whole_layout(part: Layout, axis: int, count: int, part_shape: Shape) -> Layout | None:
    """The layout of `count` equal parts joined along `axis`: each thread's parts follow each
    other."""
    if not _ends_with(part, part_shape, axis):
        return None
    return normalize(Layout(part.threads, (*part.values, Mode(count, part_shape[axis], axis))))


def part_layout(whole: Layout, axis: int, count: int, part_shape: Shape) -> Layout | None:
    """The inverse of `whole_layout`; None where a part's elements lie in other threads."""
    size = part_shape[axis]
    for number, mode in enumerate(whole.values):
        # The mode that steps through the parts is the axis's outermost; parts are its last digits.
        if mode.dim == axis and mode.size * mode.stride == count * size and mode.size % count == 0:
            inner = Mode(mode.size // count, mode.stride, axis)
            values = (*whole.values[:number], inner, *whole.values[number + 1 :])
            found = normalize(Layout(whole.threads, values))
            return found if _ends_with(found, part_shape, axis) else None
    return None
