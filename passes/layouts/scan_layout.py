"""Which layouts a scan can work on, and which one it likes best.

A scan combines level by level (`axis_levels`): registers one after another, lanes by shuffles,
warps through shared memory. Its only demand: along the axis the levels must nest, each continuing
the one below. The cheapest order is a short run of registers, then lanes, then warps, then whatever
is left as outer registers: then what meets in shared memory is one total per warp and outer
register.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilec.hardware.layout import Layout, Mode, covers, normalize
from tilec.hardware.powers import power_above
from tilec.hardware.sizes import WARP_SIZE
from tilec.passes.layouts.axis_levels import (
    Level,
    Place,
    axis_levels,
    is_mixed_radix,
    partial_layout,
)

LONGEST_RUN = 8
"""Registers a thread scans alone before lanes take part: as many steps as the lanes' five and
warps' three take together; longer runs only lengthen the chain."""


def supports_scan(layout: Layout, shape: Sequence[int], axis: int) -> bool:
    """Whether tile.scan along `axis` of a tile of `shape` works on `layout` as it is."""
    return covers(layout, tuple(shape)) and is_mixed_radix(axis_levels(layout, axis))


def split_levels(layout: Layout, axis: int) -> tuple[tuple[Level, ...], tuple[Level, ...]]:
    """The levels below the first that spans warps, and the rest."""
    levels = axis_levels(layout, axis)
    inner = next((i for i, v in enumerate(levels) if v.place is Place.WARP), len(levels))
    return levels[:inner], levels[inner:]


def block_length(inner: Sequence[Level]) -> int:
    """Elements of the axis that the inner levels span: what one total stands for."""
    return prod(level.size for level in inner)


def totals_layout(layout: Layout, axis: int) -> Layout:
    """The layout of a warp scan's totals: one per combination of the levels from the warps' up."""
    return partial_layout(layout, axis, split_levels(layout, axis)[1])


def scan_layout(shape: Sequence[int], axis: int, num_warps: int) -> Layout:
    """The layout a scan along `axis` likes best: registers, lanes, warps, outer registers.

    Lanes and warps the axis does not need go to the other dimensions, the last one first; what
    remains is copies, and so are two of three warpgroups. Each dimension is covered, phantoms
    included.
    """
    groups = num_warps // (num_warps & -num_warps)
    num_warps //= groups
    needed = list(shape)
    run = 1
    while run < LONGEST_RUN and run * WARP_SIZE < needed[axis]:
        run *= 2
    threads: list[Mode] = []
    values = [Mode(run, 1, axis)]
    reach = [1] * len(shape)
    reach[axis] = run
    # Warps first go where rows are independent: nothing meets in shared memory then.
    others = [d for d in reversed(range(len(shape))) if d != axis]
    for group, dims in ((WARP_SIZE, [axis, *others]), (num_warps, [*others, axis])):
        left = group
        for dim in dims:
            size = power_above(min(left, -(-needed[dim] // reach[dim])))
            threads.append(Mode(size, reach[dim], dim))
            reach[dim] *= size
            left //= size
        threads.append(Mode(left, 0, -1))
    threads.append(Mode(groups, 0, -1))
    for dim, size in enumerate(needed):
        values.append(Mode(-(-size // reach[dim]), reach[dim], dim))
    return normalize(Layout(tuple(threads), tuple(values)))
