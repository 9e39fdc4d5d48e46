"""Decides the layout of every component: the cheapest of those that someone proposes.

A layout's price, in bytes of traffic of the whole CTA (`op_costs.py` has the exchange rate):

* what its memory accesses move, and an instruction each;
* a conversion at each link to a decided neighbour that would need one between threads;
* what its threads compute: slots of each op times elements a thread holds. Work that threads
  repeat is paid as often as they do it;
* what reductions pass between lanes and between warps.

A component without a memory access proposes to itself what spreads it evenly over all threads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.tile import Combining
from tilec.dialects.types import is_tile, shape
from tilec.hardware.layout import Layout
from tilec.hardware.sizes import WARP_SIZE
from tilec.passes.contract import PassContext
from tilec.passes.layouts.accesses import Access
from tilec.passes.layouts.axis_levels import Place, axis_levels
from tilec.passes.layouts.candidates import blocked_layout
from tilec.passes.layouts.components import Component, Components, depth_factor
from tilec.passes.layouts.conversion_costs import CONVERSION_COST
from tilec.passes.layouts.maps import run_first, spread_out, widened
from tilec.passes.layouts.neighbours import Link, links
from tilec.passes.layouts.op_costs import (
    SHUFFLE_SLOTS,
    SLOT_BYTES,
    combining_slots,
    issue_slots,
    words,
)

UNANCHORED_WIDTH = 4
"""Neighbours a thread holds of a tile that no memory access wants in another way: 16 bytes of
4-byte elements, should it be converted or stored after all."""


@dataclass
class _Work:
    """What a component weighs. `slots`: of one element, loop depth counted."""

    accesses: list[Access] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    reductions: list[tile.ReduceOp] = field(default_factory=list)
    slots: int = 0


def decide_layouts(
    components: Components,
    ops: list[ir.Operation],
    accesses: list[Access],
    context: PassContext,
) -> None:
    """Gives every component of a function, whose ops are `ops`, its layout; heaviest first.

    Tiles that only give the elements of others in another order pass on what the first decided
    neighbour proposes: what is behind them, however heavy, hears of it before it is decided.
    """
    work = _gather_work(components, ops, accesses)
    every = components.all()
    for component in every:
        component.layout = component.hard
        component.weight += _computing(component, work[id(component)])
    undecided = sorted((c for c in every if c.layout is None), key=lambda c: -c.weight)
    while undecided:
        # Neighbours of decided components go first among equals: their choice is informed.
        component = max(
            undecided,
            key=lambda c: (
                _passes_on(work[id(c)], components),
                c.weight,
                _is_informed(work[id(c)].links, components),
            ),
        )
        undecided.remove(component)
        component.layout = _cheapest(component, work[id(component)], components, context)


def _gather_work(
    components: Components, ops: list[ir.Operation], accesses: list[Access]
) -> dict[int, _Work]:
    """By the identity of components, which no longer change."""
    work = {id(component): _Work() for component in components.all()}

    def of(value: ir.Value) -> _Work:
        return work[id(components.of(value))]

    for access in accesses:
        of(access.value).accesses.append(access)
        components.of(access.value).weight += access.bytes * access.depth
    for link in links(ops):
        of(link.value).links.append(link)
    for op in ops:
        view = op.opview
        if isinstance(view, Combining):
            of(view.inputs[0]).slots += combining_slots(view) * depth_factor(op)
        if isinstance(view, tile.ReduceOp):
            of(view.inputs[0]).reductions.append(view)
        if len(op.results) > 0 and is_tile(op.results[0]):
            of(op.results[0]).slots += issue_slots(op) * depth_factor(op)
    return work


def _computing(component: Component, work: _Work) -> int:
    """The price, in bytes of traffic, of computing a component if no thread repeats another's
    work."""
    return work.slots * prod(shape(component.values[0])) * SLOT_BYTES // WARP_SIZE


def _passes_on(work: _Work, components: Components) -> bool:
    if work.accesses or work.reductions or work.slots:
        return False
    decided = ((link, components.of(link.other).layout) for link in work.links)
    return any(layout is not None and link.propose(layout) for link, layout in decided)


def _is_informed(linked: list[Link], components: Components) -> bool:
    return any(components.of(link.other).layout is not None for link in linked)


def _cheapest(
    component: Component, work: _Work, components: Components, context: PassContext
) -> Layout:
    decided = [
        (link, layout)
        for link in work.links
        if (layout := components.of(link.other).layout) is not None
    ]
    proposals = _accesses_propose(work, context.num_threads)
    if not proposals:
        proposals = _evenly_spread(shape(component.values[0]), work.reductions, context.num_threads)
    for link, layout in decided:
        linked = link.propose(layout)
        proposals += linked
        for access in work.accesses:
            proposals += [run_first(like, access.contiguous) for like in linked]
            if access.is_indexed and not access.is_load:
                proposals += [widened(like, access.contiguous, access.width) for like in linked]

    def cost(layout: Layout) -> int:
        return (
            sum(access.cost(layout) for access in work.accesses)
            + sum(link.cost(layout, other) for link, other in decided)
            + sum(_meeting_cost(op, layout) for op in work.reductions)
            + work.slots * layout.num_values * context.num_warps * SLOT_BYTES
        )

    return min(dict.fromkeys(proposals), key=cost)


def _evenly_spread(
    sizes: tuple[int, ...], reductions: list[tile.ReduceOp], num_threads: int
) -> list[Layout]:
    """The layouts that spread a tile of `sizes` over all threads: one with lanes along the last
    dimension first, and for each reduction's axis one that spreads its results first, so that as
    few threads as possible hold parts of one sum."""

    def blocked(sizes: tuple[int, ...]) -> Layout:
        return blocked_layout(sizes, max(0, len(sizes) - 1), UNANCHORED_WIDTH, num_threads)

    axes = dict.fromkeys(op.axis for op in reductions)
    rows = {axis: blocked((*sizes[:axis], *sizes[axis + 1 :])) for axis in axes}
    return [blocked(sizes), *(spread_out(rows[axis], axis, sizes[axis]) for axis in axes)]


def _accesses_propose(work: _Work, num_threads: int) -> list[Layout]:
    """For each access what is coalesced; and rows of one warp each, if rows are reduced and there
    are enough for all warps."""
    proposals = []
    for access in work.accesses:
        # A wide access serves a narrow one badly, and the other way round: the cost decides.
        widths = {a.width for a in work.accesses if a.contiguous == access.contiguous}
        for width in sorted(widths, reverse=True):
            proposals.append(access.preferred(num_threads, width))
            if _has_rows(access, work.reductions, num_threads):
                proposals.append(access.preferred(num_threads, width, along=WARP_SIZE))
    return proposals


def _has_rows(access: Access, reductions: list[tile.ReduceOp], num_threads: int) -> bool:
    axis = access.contiguous
    if axis is None or all(op.axis != axis for op in reductions):
        return False
    return prod(access.shape) // access.shape[axis] >= num_threads // WARP_SIZE


def _meeting_cost(op: tile.ReduceOp, layout: Layout) -> int:
    """What a reduction passes between threads: shuffles, and partial results of warps in shared
    memory."""
    levels = axis_levels(layout, op.axis)
    rows = layout.slice(op.axis)
    lanes = prod(level.size for level in levels if level.place is Place.LANE)
    steps = (lanes - 1).bit_length() * rows.num_values * max(1, layout.num_threads // WARP_SIZE)
    total = 0
    for value in op.inputs:
        total += steps * words(value) * (SHUFFLE_SLOTS + 1) * SLOT_BYTES
    if any(level.place is Place.WARP for level in levels):
        partials = prod(level.size for level in levels if level.place is Place.WARP)
        gathered = partials * prod(shape(op.outputs[0]))
        total += sum(CONVERSION_COST + gathered * 4 * words(value) for value in op.inputs)
    return total * depth_factor(op.operation)
