"""How layouts map through reductions and broadcasts, and when a conversion stays inside a thread.

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
    if thread_steps(source, rank) == thread_steps(result, rank):
        chosen = []
        for at in result.value_coordinates(rank):
            if at not in held and not is_past_edge(at, shape):
                return None
            chosen.append(held.get(at, 0))
        return tuple(chosen)
    return None


def is_past_edge(at: Shape, shape: Shape) -> bool:
    """Whether a coordinate lies outside of a tile of `shape`: what is there may be anything."""
    return any(a >= size for a, size in zip(at, shape, strict=True))


def thread_steps(layout: Layout, rank: int) -> list[Shape]:
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
