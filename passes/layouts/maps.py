"""How layouts map through shape-changing ops, and when a conversion stays inside a thread.

Each function answers for one op: given the layout on one side, the layout on the other side under
which no element moves between threads, or None where there is no such layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

from tilec.hardware.layout import Layout, Mode, copies, normalize
from tilec.hardware.powers import power_below
from tilec.hardware.sizes import WARP_SIZE
from tilec.passes.layouts.lane_moves import digits_of

Shape = tuple[int, ...]


@lru_cache(maxsize=4096)
def register_permutation(source: Layout, result: Layout, shape: Shape) -> tuple[int, ...] | None:
    """Gives, for each result register, the source register of the same thread with the same
    element; None where another thread has one.

    Result registers past the tile's edge (phantoms) may take any register.
    """
    rank = len(shape)
    if rank == 0:
        return (0,) * result.num_values
    held = {at: register for register, at in enumerate(source.value_coordinates(rank))}
    if _thread_map(source, rank) == _thread_map(result, rank):
        chosen = []
        for at in result.value_coordinates(rank):
            if at in held:
                chosen.append(held[at])
            elif any(a >= s for a, s in zip(at, shape, strict=True)):
                chosen.append(0)
            else:
                return None
        return tuple(chosen)
    return None


def _thread_map(layout: Layout, rank: int) -> list[Shape]:
    """Coordinates each thread bit adds; two layouts place threads alike iff these are equal."""
    bits: list[Shape] = []
    for mode in layout.threads:
        for power in range((mode.size - 1).bit_length()):
            step = [0] * rank
            if mode.stride:
                step[mode.dim] = mode.stride << power
            bits.append(tuple(step))
    while bits and not any(bits[-1]):
        bits.pop()
    return bits


def run_first(layout: Layout, dim: int | None) -> Layout:
    """The same elements in each thread, its neighbours along `dim` first, as wide accesses want
    them; the layout itself without such a dimension."""
    first: list[Mode] = []
    rest, run = list(layout.values), 1
    while found := next((m for m in rest if (m.dim, m.stride) == (dim, run)), None):
        first.append(found)
        rest.remove(found)
        run *= found.size
    return normalize(Layout(layout.threads, (*first, *rest)))


def widened(layout: Layout, dim: int | None, width: int) -> Layout:
    """The same elements in each warp, at least `width` neighbours along `dim` in each thread: lanes
    give up what lies nearer and take what lies next instead; the layout itself where they cannot.
    """
    if dim is None:
        return layout
    threads, values = digits_of(layout.threads), digits_of(layout.values)
    for number, near in enumerate(threads[: WARP_SIZE.bit_length() - 1]):
        if near.dim != dim or not 0 < near.stride < width:
            continue
        far = [bit for bit in values if bit.dim == dim and bit.stride >= width and bit.size == 2]
        if not far:
            return layout
        next_ = min(far, key=lambda bit: bit.stride)
        threads[number] = next_
        values[values.index(next_)] = near
    return run_first(Layout(tuple(threads), tuple(values)), dim)


def expanded(layout: Layout, axis: int, size: int) -> Layout:
    """A layout one rank higher with `axis` of `size` held whole by every thread."""

    def shift(mode: Mode) -> Mode:
        move = mode.stride and mode.dim >= axis
        return Mode(mode.size, mode.stride, mode.dim + 1) if move else mode

    values = (*map(shift, layout.values), Mode(size, 1, axis))
    return normalize(Layout(tuple(map(shift, layout.threads)), values))


SPREAD_RUN = 4
"""Neighbours along a new axis that a thread holds, if there are enough for all threads: as in
`UNANCHORED_WIDTH`, 16 bytes of 4-byte elements."""


@lru_cache(maxsize=1024)
def spread_out(layout: Layout, axis: int, size: int) -> Layout:
    """A layout one rank higher with `axis` of `size` spread over the threads that hold copies of
    `layout`, fastest first; what they do not suffice for is in the registers of each.

    A run of `SPREAD_RUN` neighbours comes first in registers where `size` has as many a thread.
    """
    whole = expanded(layout, axis, 1)
    spare = prod(_two_power(m.size) for m in whole.threads if not m.stride)
    reach = run = min(SPREAD_RUN, power_below(size // spare))
    threads = []
    for mode in whole.threads:
        take = 1
        while not mode.stride and take < _two_power(mode.size) and take * reach < size:
            take *= 2
        if take == 1:
            threads.append(mode)
            continue
        threads += [Mode(take, reach, axis), copies(mode.size // take)]
        reach *= take
    values = (Mode(run, 1, axis), *whole.values, Mode(-(-size // reach), reach, axis))
    return normalize(Layout(tuple(threads), values))


def _two_power(size: int) -> int:
    """The largest power of two that divides `size`."""
    return size & -size


def broadcast_source(result: Layout, dims: Sequence[int], source_shape: Shape) -> Layout:
    """The layout of a broadcast's source; source dimensions of size 1 are held by everyone."""
    layout = result.keep(dims)
    threads = tuple(
        copies(m.size) if m.stride and source_shape[m.dim] == 1 else m for m in layout.threads
    )
    values = tuple(m for m in layout.values if source_shape[m.dim] != 1)
    return normalize(Layout(threads, values))


@lru_cache(maxsize=1024)
def reshaped(layout: Layout, source: Shape, result: Shape) -> Layout | None:
    """The layout of a row-major reshape's result that moves nothing, or None.

    Every mode is a stride in the row-major element number; it must fall into the result's
    dimensions whole or split at their boundaries. Only exact layouts qualify: a phantom's number is
    another element's.
    """
    if not layout.is_exact(source):
        return None
    threads = _renumbered(layout.threads, source, result)
    values = _renumbered(layout.values, source, result)
    if threads is None or values is None:
        return None
    found = Layout(threads, values)
    return normalize(found) if found.is_exact(result) else None


def _renumbered(modes: tuple[Mode, ...], source: Shape, result: Shape) -> tuple[Mode, ...] | None:
    written: list[Mode] = []
    for mode in modes:
        if not mode.stride:
            written.append(mode)
            continue
        step = mode.stride * prod(source[mode.dim + 1 :])
        parts = _split(mode.size, step, result)
        if parts is None:
            return None
        written += parts
    return tuple(written)


def _split(size: int, step: int, result: Shape) -> list[Mode] | None:
    """Writes `size` steps of `step` elements as modes along the result's dimensions, innermost
    first."""
    parts: list[Mode] = []
    below = 1
    for dim in reversed(range(len(result))):
        extent = result[dim]
        if size == 1:
            break
        if step < below * extent and extent > 1:
            if step % below or extent % (step // below):
                return None
            stride = step // below
            here = min(size, extent // stride)
            if size % here:
                return None
            if here > 1:
                parts.append(Mode(here, stride, dim))
            size //= here
            step = below * extent
        below *= extent
    return parts if size == 1 else None


@lru_cache(maxsize=1024)
def reshape_registers(
    source: Layout, shape: Shape, result: Layout, result_shape: Shape
) -> tuple[int, ...] | None:
    """Gives, for each result register, the source register with the same row-major number.

    None if some element would change threads; then the reshape goes through shared memory.
    """
    if not (source.is_exact(shape) and result.is_exact(result_shape)):
        return None
    if _linear_threads(source, shape) != _linear_threads(result, result_shape):
        return None
    held = {
        row_major_number(at, shape): register
        for register, at in enumerate(source.value_coordinates(len(shape)))
    }
    numbers = [
        row_major_number(at, result_shape) for at in result.value_coordinates(len(result_shape))
    ]
    if not all(number in held for number in numbers):
        return None
    return tuple(held[number] for number in numbers)


def row_major_number(at: Sequence[int], shape: Sequence[int]) -> int:
    """The place of an element in row-major order."""
    total = 0
    for coordinate, size in zip(at, shape, strict=True):
        total = total * size + coordinate
    return total


def _linear_threads(layout: Layout, shape: Shape) -> list[int]:
    bits = [row_major_number(step, shape) for step in _thread_map(layout, len(shape))]
    while bits and not bits[-1]:
        bits.pop()
    return bits


def join_registers(
    parts: Sequence[Layout], shapes: Sequence[Shape], whole: Layout, whole_shape: Shape, axis: int
) -> tuple[tuple[int, int], ...] | None:
    """Gives, for each register of the whole, (part number, register there); None if elements change
    threads."""
    rank = len(whole_shape)
    if not whole.is_exact(whole_shape):
        return None
    held: dict[Shape, tuple[int, int]] = {}
    start = 0
    for number, (layout, shape) in enumerate(zip(parts, shapes, strict=True)):
        if not layout.is_exact(shape) or _thread_map(layout, rank) != _thread_map(whole, rank):
            return None
        for register, at in enumerate(layout.value_coordinates(rank)):
            held[(*at[:axis], at[axis] + start, *at[axis + 1 :])] = (number, register)
        start += shape[axis]
    wanted = whole.value_coordinates(rank)
    if not all(at in held for at in wanted):
        return None
    return tuple(held[at] for at in wanted)


def whole_layout(part: Layout, axis: int, count: int, part_shape: Shape) -> Layout | None:
    """The layout of `count` equal parts joined along `axis`: each thread's parts follow each
    other."""
    if not part.is_exact(part_shape):
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
            return found if found.is_exact(part_shape) else None
    return None
