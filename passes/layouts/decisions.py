"""Decides the layout of every component: the cheapest of those that someone proposes.

A layout's price, in bytes of traffic of the whole CTA (`op_costs.py` has the exchange rate):

* what its memory accesses move, and an instruction each;
* a conversion at each link to a decided neighbour that would need one between threads;
* what its threads compute: slots of each op times elements a thread holds. Work that threads
  repeat is paid as often as they do it;
* what reductions and exchanges pass between lanes and between warps.

A component without a memory access proposes to itself what spreads it evenly over all threads.
"""

from __future__ import annotations

from dataclasses import field
from heapq import heapify, heappop, heappush
from math import prod

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.tile import Combining
from tilec.dialects.types import is_tile, shape
from tilec.hardware.layout import Layout, Mode, copies, normalize
from tilec.hardware.sizes import WARP_SIZE
from tilec.passes.contract import PassContext
from tilec.passes.layouts.accesses import Access
from tilec.passes.layouts.axis_levels import Place, axis_levels
from tilec.passes.layouts.candidates import blocked_layout
from tilec.passes.layouts.components import Component, Components, depth_factor
from tilec.passes.layouts.conversion_costs import CONVERSION_COST, conversion_cost
from tilec.passes.layouts.maps import run_first, spread_out, widened
from tilec.passes.layouts.neighbours import Link, links
from tilec.passes.layouts.op_costs import (
    SHUFFLE_SLOTS,
    SLOT_BYTES,
    TAKE_SLOTS,
    combining_slots,
    issue_slots,
    words,
)
from tilec.passes.layouts.partners import partners
from tilec.passes.layouts.scan_costs import in_runs, scan_cost, warps_last
from tilec.records import dataclass

UNANCHORED_WIDTH = 4
"""Neighbours a thread holds of a tile that no memory access wants in another way: 16 bytes of
4-byte elements, should it be converted or stored after all."""

SHORT_ROW = 256
"""Elements: 8 in each lane."""


@dataclass
class _Work:
    """What a component weighs. `slots`: issue slots of one element, loop depth counted."""

    accesses: list[Access] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    reductions: list[tile.ReduceOp] = field(default_factory=list)
    scans: list[tile.ScanOp] = field(default_factory=list)
    exchanges: list[tile.ExchangeOp] = field(default_factory=list)
    slots: int = 0

    @property
    def axes(self) -> list[int]:
        """The axes along which elements of the component meet."""
        return list(dict.fromkeys(op.axis for op in (*self.reductions, *self.exchanges)))


def decide_layouts(
    components: Components,
    ops: list[ir.Operation],
    accesses: list[Access],
    context: PassContext,
) -> None:
    """Gives every component of a function, whose ops are `ops`, its layout; heaviest first.

    Tiles that only give the elements of others in another order pass on what the first decided
    neighbour proposes: what is behind them, however heavy, hears of it before it is decided. So do
    tiles that are computed from such, element by element: bytes that are scaled in groups of a
    matrix and stored as rows are loaded as they are stored.
    """
    work = _gather_work(components, ops, accesses)
    every = components.all()
    for component in every:
        component.layout = component.hard
        component.weight += _computing(component, work[id(component)])
    undecided = sorted((c for c in every if c.layout is None), key=lambda c: -c.weight)
    behind: dict[int, dict[int, None]] = {}
    for number, component in enumerate(undecided):
        for link in work[id(component)].links:
            behind.setdefault(id(components.of(link.other)), {})[number] = None

    def turn(number: int) -> tuple[bool, int, bool, int]:
        # Neighbours of decided components go first among equals: their choice is informed.
        component = undecided[number]
        own = work[id(component)]
        informed = any(components.of(one.other).layout is not None for one in own.links)
        return not _passes_on(own, components), -component.weight, not informed, number

    turns = [turn(number) for number in range(len(undecided))]
    heapify(turns)
    while turns:
        component = undecided[heappop(turns)[-1]]
        if component.layout is None:  # else that was its turn before a neighbour was decided
            component.layout = _cheapest(component, work[id(component)], components, context)
            for number in behind.get(id(component), ()):
                heappush(turns, turn(number))


def _gather_work(
    components: Components, ops: list[ir.Operation], accesses: list[Access]
) -> dict[int, _Work]:
    """Gathers the work of each component, by the component's `id`: components no longer change.

    What goes anywhere for all anybody knows weighs nothing: it lies as its neighbours want it.
    """
    work = {id(component): _Work() for component in components.all()}

    def of(value: ir.Value) -> _Work:
        return work[id(components.of(value))]

    for access in accesses:
        of(access.value).accesses.append(access)
        components.of(access.value).weight += access.weight
    for link in links(ops):
        of(link.value).links.append(link)
    for op in ops:
        view = op.opview
        if isinstance(view, Combining):
            of(view.inputs[0]).slots += combining_slots(view) * depth_factor(op)
        if isinstance(view, tile.ReduceOp):
            of(view.inputs[0]).reductions.append(view)
        if isinstance(view, tile.ScanOp):
            of(view.inputs[0]).scans.append(view)
        if isinstance(view, tile.ExchangeOp):
            of(view.src).exchanges.append(view)
        if len(op.results) > 0 and is_tile(op.results[0]):
            of(op.results[0]).slots += issue_slots(op) * depth_factor(op)
    return work


def _computing(component: Component, work: _Work) -> int:
    """The price, in bytes of traffic, of computing a component if no thread repeats another's
    work, and of its exchanges between lanes."""
    slots = work.slots
    for op in work.exchanges:
        slots += SHUFFLE_SLOTS * words(op.src) * depth_factor(op.operation)
    return slots * prod(shape(component.values[0])) * SLOT_BYTES // WARP_SIZE


def _passes_on(work: _Work, components: Components) -> bool:
    if work.accesses or work.reductions or work.scans or work.exchanges:
        return False
    decided = ((link, components.of(link.other).layout) for link in work.links)
    return any(
        layout is not None and link.propose(layout)
        for link, layout in decided
        if link.reorders or not work.slots
    )


def _cheapest(
    component: Component, work: _Work, components: Components, context: PassContext
) -> Layout:
    decided = [
        (link, layout)
        for link in work.links
        if (layout := components.of(link.other).layout) is not None
    ]
    proposals = _proposals(component, work, decided, context)

    def price(access: Access, layout: Layout) -> int:
        # What exchanges want no access does; elsewhere a layout between is the better for both.
        if work.exchanges:
            return _converted_price(access, layout, context.num_threads)
        return access.cost(layout)

    def cost(layout: Layout) -> int:
        return (
            sum(price(access, layout) for access in work.accesses)
            + sum(link.cost(layout, other) for link, other in decided)
            + sum(_meeting_cost(op, layout) for op in work.reductions)
            + sum(scan_cost(op, layout) * depth_factor(op.operation) for op in work.scans)
            + sum(_exchange_cost(op, layout) for op in work.exchanges)
            + work.slots * layout.num_values * context.num_warps * SLOT_BYTES
        )

    return min(dict.fromkeys(proposals), key=cost)


def _proposals(
    component: Component, work: _Work, decided: list[tuple[Link, Layout]], context: PassContext
) -> list[Layout]:
    """What a component's accesses, its `decided` neighbours and its own ops want, or else what
    spreads it evenly."""
    proposals = _accesses_propose(work, context.num_threads)
    if not proposals:
        sizes = shape(component.values[0])
        for axis in dict.fromkeys(op.axis for op in work.exchanges):
            proposals += _in_registers(sizes, axis, context.num_threads)
        proposals += _evenly_spread(sizes, work.axes, context.num_threads)
    if work.reductions or work.scans:
        proposals += _whole_in_each_warp(shape(component.values[0]), context.num_warps)
    for link, layout in decided:
        linked = link.propose(layout)
        proposals += linked
        for access in work.accesses:
            proposals += [run_first(like, access.contiguous) for like in linked]
            if access.is_indexed and not access.is_load:
                proposals += [widened(like, access.contiguous, access.width) for like in linked]

    for op in work.scans:
        proposals += [warps_last(layout, op.axis) for layout in proposals]
    # Neighbours that are apart in memory still share lines, of which lanes that hold runs of them
    # touch more: running sums of 64 numbers, 64 bytes apart, take 4.4 us for 3.6 (H200).
    if all(one.contiguous is not None or one.is_indexed for one in work.accesses):
        for op in work.scans:
            proposals += [in_runs(layout, op.axis) for layout in proposals]
    return proposals


def _evenly_spread(sizes: tuple[int, ...], axes: list[int], num_threads: int) -> list[Layout]:
    """The layouts that spread a tile of `sizes` over all threads: one with lanes along the last
    dimension first, and for each axis along which elements meet one that spreads the rows first, so
    that as few threads as possible hold parts of one."""

    def blocked(sizes: tuple[int, ...]) -> Layout:
        return blocked_layout(sizes, max(0, len(sizes) - 1), UNANCHORED_WIDTH, num_threads)

    rows = {axis: blocked((*sizes[:axis], *sizes[axis + 1 :])) for axis in axes}
    return [blocked(sizes), *(spread_out(rows[axis], axis, sizes[axis]) for axis in axes)]


def _accesses_propose(work: _Work, num_threads: int) -> list[Layout]:
    """Proposes for each access the layout in which it is coalesced, and rows of one warp each, if
    elements of a row meet and there are enough rows for all warps."""
    proposals, met = [], [*work.axes, *(op.axis for op in work.scans)]
    for access in work.accesses:
        # A wide access serves a narrow one badly, and the other way round: the cost decides.
        widths = {a.width for a in work.accesses if a.contiguous == access.contiguous}
        for width in sorted(widths, reverse=True):
            proposals.append(access.preferred(num_threads, width))
            if _has_rows(access, met, num_threads):
                proposals.append(access.preferred(num_threads, width, along=WARP_SIZE))
    for op in work.exchanges[:1] if work.accesses else ():
        proposals += _in_registers(shape(op.src), op.axis, num_threads)
    return proposals


def _converted_price(access: Access, layout: Layout, num_threads: int) -> int:
    """Bytes of traffic of an access to a tile of `layout`: in that layout, or in the one it wants
    and converted, which `infer-layouts` then does."""
    own = access.preferred(num_threads)
    there = access.cost(layout)
    if own == layout or not access.shape or access.is_indexed:
        return there
    ends = (own, layout) if access.is_load else (layout, own)
    converted = access.depth * conversion_cost(access.shape, access.element_bytes, *ends)
    return min(there, access.cost(own) + converted)


def _in_registers(sizes: tuple[int, ...], axis: int, num_threads: int) -> list[Layout]:
    """Neighbours along `axis` in the registers of one thread, as many as it has, and in the lanes
    of as few warps as possible: a network exchanges near elements most often. What lies in
    different warps is far apart along other dimensions, the first ones if they suffice. And the
    same in one warp, of which the others are copies: small tiles cost more to exchange than to
    compute in all warps. And along all lanes of a warp, as memory has them."""
    warps = num_threads // WARP_SIZE
    held = max(1, sizes[axis] // max(WARP_SIZE, num_threads * sizes[axis] // prod(sizes)))
    along = -(-sizes[axis] // held)
    flat = blocked_layout(sizes, axis, held, num_threads, narrow=False, along=along)
    if any(count & (count - 1) for count in (*sizes, warps)):
        return [flat]
    return [_over_warps(sizes, axis, warps, 1), _over_warps(sizes, axis, 1, warps), flat]


def _over_warps(sizes: tuple[int, ...], axis: int, warps: int, same: int) -> Layout:
    """Sizes are powers of two. `same`: how many warps hold the same."""
    part, modes = list(sizes), []
    for dim in (*(d for d in range(len(sizes)) if d != axis), axis):
        count = min(warps, part[dim])
        warps //= count
        part[dim] //= count
        modes.append(Mode(count, part[dim], dim))
    held = max(1, min(part[axis], prod(part) // WARP_SIZE))
    along = -(-part[axis] // held)
    own = blocked_layout(tuple(part), axis, held, WARP_SIZE, narrow=False, along=along)
    return normalize(Layout((*own.threads, *modes, copies(warps * same)), own.values))


def _has_rows(access: Access, axes: list[int], num_threads: int) -> bool:
    axis = access.contiguous
    if axis is None or axis not in axes:
        return False
    return prod(access.shape) // access.shape[axis] >= num_threads // WARP_SIZE


def _whole_in_each_warp(sizes: tuple[int, ...], num_warps: int) -> list[Layout]:
    """For a short row: all of it in the lanes of a warp, and again in each other one, so that warps
    need not meet."""
    if len(sizes) != 1 or sizes[0] > SHORT_ROW or num_warps == 1:
        return []
    one = blocked_layout(sizes, 0, 1, WARP_SIZE)
    return [normalize(Layout((*one.threads, copies(num_warps)), one.values))]


def _meeting_cost(op: tile.ReduceOp, layout: Layout) -> int:
    """What a reduction passes between threads: shuffles, and partial results of warps in
    shared memory."""
    levels = axis_levels(layout, op.axis)
    rows = layout.slice(op.axis)
    lanes = prod(level.size for level in levels if level.place is Place.LANE)
    steps = (lanes - 1).bit_length() * rows.num_values * max(1, layout.num_threads // WARP_SIZE)
    total = 0
    for value in op.inputs:
        total += steps * words(value) * (SHUFFLE_SLOTS + 1) * SLOT_BYTES
    if any(level.place is Place.WARP for level in levels):
        partials = prod(level.size for level in levels if level.place is Place.WARP)
        gathered = partials * prod(shape(op.inputs[0])) // shape(op.inputs[0])[op.axis]
        total += sum(CONVERSION_COST + gathered * 4 * words(value) for value in op.inputs)
    return total * depth_factor(op.operation)


def _exchange_cost(op: tile.ExchangeOp, layout: Layout) -> int:
    """What an exchange costs: nothing inside a thread, a shuffle a word between lanes, and between
    warps a store, a load and two barriers. In bytes, as accesses are counted."""
    found = partners(layout, len(shape(op.src)), op.axis, op.mask)
    if found is not None and not found.lanes:
        return 0
    held = layout.num_values * max(1, layout.num_threads // WARP_SIZE) * words(op.src)
    slots = 2 * TAKE_SLOTS if found is None else SHUFFLE_SLOTS
    barriers = CONVERSION_COST if found is None else 0
    return (barriers + held * slots * SLOT_BYTES) * depth_factor(op.operation)
