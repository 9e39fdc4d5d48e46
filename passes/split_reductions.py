"""split-reductions: what reductions, scans and exchanges pass between warps, takes and histograms
go through shared memory.

Before:   %y = "tile.reduce"(%x) ({...}) {axis = 0}      the axis lies in several warps
After:    %p = "gpu_tile.warp_reduce"(%x) ({...}) {axis = 0}        one partial result a warp
          %s = "gpu_tile.alloc"()   "gpu_tile.buffer_store"(%p, %s)
          %q = "gpu_tile.buffer_load"(%s)
          %y = "tile.reduce"(%q) ({...}) {axis = 0}                 all partials in each thread

1. A reduce whose axis stays inside warps is left alone, and so is such a scan.
2. A search for the place of an extreme (`analysis/searches.py`) is that within each warp first, so
   that warps meet once for both: what a warp's elements are compared with is their warp's extreme.
3. A scan becomes warp_scan, the totals' way through a buffer, and scan_carry. A reduction of the
   same tile behind it combines the totals that threads have for that: running sums and what is
   carried on from a step to the next meet once.
4. A take stores its source and gathers from the buffer; so does an exchange of elements that lie in
   different warps (`layouts/partners.py`), others are left alone. What a thread holds of neighbours
   moves as vectors: a dimension of their own, along which registers change places.
5. A histogram stores zeros, counts into the buffer, and loads it: a row of counts for each warp,
   added up at the end, where these are small, else one row. Zeros are stored by the threads that
   load the counts: in a loop no sync stands between the load and the next zeros, unless there are
   fewer bins than threads, and some load what others have stored.
6. A sum of histograms that a loop carries, and reads nowhere, is counted in one buffer: zeros
   before the loop, the sum behind it.
Partials of phantoms alone are not stored: the partial tile ends before them.
Does not handle: takes inside a warp by shuffles, which would save the shared memory.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import gcd

from mlir import ir

from tilec.dialects import gpu_tile, tile
from tilec.dialects.def_use import of_kind, only_use
from tilec.dialects.gpu_tile.types import buffer_of, layout_attr, layout_of
from tilec.dialects.types import element, shape
from tilec.dialects.types import tile as tile_type
from tilec.hardware.layout import Layout
from tilec.passes.analysis.searches import Search, search_of
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.layouts.axis_levels import (
    Place,
    axis_levels,
    gathered_layouts,
    is_spread_over_warps,
    shared_out,
)
from tilec.passes.layouts.buffer_layouts import buffer_for
from tilec.passes.layouts.maps import broadcast_source, expanded
from tilec.passes.layouts.partners import partners
from tilec.passes.layouts.reshapes import reshaped
from tilec.passes.layouts.scan_layout import split_levels
from tilec.passes.layouts.warp_partials import partial_types, through_buffers
from tilec.passes.rewriting.buffers import stored
from tilec.passes.rewriting.loops import behind, carried_by
from tilec.passes.rewriting.op_tables import OpMap, OpSet
from tilec.passes.rewriting.scalars import binary, constant
from tilec.passes.rewriting.values import replace_op, with_body
from tilec.passes.rewriting.walk import find_ops, is_of, kernels, ops_named
from tilec.records import dataclass

MOST_ROWS_BYTES = 4096
"""Counts of a histogram, a row for each warp: 256 bins of four warps. Not timed: few enough to be
zeroed and added up in a few instructions a thread."""


MOST_GATHERED = 64
"""Partial results of a search that a thread combines by itself, an extreme and a place each: of
more, as of 8 rows of 32 warps, each lane of a warp takes its part (without, 2300 bytes spilled)."""


@tile_pass(requires=Level.LAYOUTS)
def split_reductions(module: ir.Module, context: PassContext) -> None:
    """Routes reductions, scans and exchanges across warps, takes and histograms through shared
    memory."""
    found = ops_named(module.operation, (_SCAN, *_RULES))
    for function in kernels(module):
        _begin_together(function)
    twins = OpMap((op, _twins(op.opview)) for op in found if op.name == _SCAN)
    known = OpSet(twin for scan in twins for twin in twins[scan])
    searches = list(filter(None, map(_search_across_warps, found)))
    for search in searches:
        known.update((search.extreme.operation, search.place.operation))
    others = [each for each in found if each not in known]
    for search in searches:
        with ir.InsertionPoint(search.place), search.place.location:
            _split_search(search, context)
    for op in others:
        with ir.InsertionPoint(op), op.location:
            if op.name == _SCAN:
                _split_scan(op.opview, twins[op], context)
            else:
                _RULES[op.name](op.opview, context)


def _split_reduce(op: tile.ReduceOp, context: PassContext) -> None:
    layout = layout_of(op.inputs[0])
    if not is_spread_over_warps(layout, op.axis):
        return
    levels = axis_levels(layout, op.axis)
    kept = tuple(level for level in levels if level.place is Place.WARP)
    types = partial_types(op, layout, kept)
    partials = with_body(
        gpu_tile.WarpReduceOp.build(op.inputs, results=types, axis=op.axis), op.operation
    )
    count = shape(types[0])[op.axis]
    conversions = _conversions(list(op.outputs))
    own, made = gathered_layouts(layout, op.axis, count), [value.type for value in op.outputs]
    if conversions:
        rows = layout_of(conversions[0].result)
        own = (expanded(rows, op.axis, count),)
        made = [tile_type(shape(v), element(v), layout_attr(rows)) for v in op.outputs]
    gathered = through_buffers(partials, own)
    final = with_body(tile.ReduceOp.build(gathered, results=[made], axis=op.axis), op.operation)
    _report(op, context, "reduction", count)
    for conversion in conversions:
        result = list(op.outputs).index(conversion.src)
        replace_op(conversion, final[result])
    replace_op(op, *final)


def _conversions(
    results: Sequence[ir.Value], but: Collection[ir.Operation] = ()
) -> list[gpu_tile.ConvertLayoutOp]:
    """All that is done with a reduction's results, `but` for some, where each thread wants no more
    of them in one other layout: it can read the partials of these as well."""
    uses = [use.owner for value in results for use in value.uses if use.owner not in but]
    found = [use.opview for use in uses if is_of(use, gpu_tile.ConvertLayoutOp)]
    layouts = {layout_of(one.result) for one in found}
    if len(found) < len(uses) or len(layouts) != 1:
        return []
    return found if layouts.pop().num_values <= layout_of(results[0]).num_values else []


def _search_across_warps(op: ir.Operation) -> Search | None:
    """The search that ends in a reduction across warps, behind which all else that asks for the
    extreme stands."""
    search = search_of(op.opview) if is_of(op, tile.ReduceOp) else None
    if search is None or not is_spread_over_warps(layout_of(search.extreme.inputs[0]), search.axis):
        return None
    order = OpMap((view.operation, n) for n, view in enumerate(op.block.operations))
    at = order[op]
    late = all(order.get(one, 0) > at for one in search.readers())
    return search if late and search.extreme.operation.block == op.block else None


def _split_search(search: Search, context: PassContext) -> None:
    extreme, place = search.extreme, search.place
    layout, axis = layout_of(extreme.inputs[0]), search.axis
    kept = tuple(level for level in axis_levels(layout, axis) if level.place is Place.WARP)

    def part(op: tile.ReduceOp, value: ir.Value) -> ir.Value:
        types = partial_types(op, layout, kept)
        return with_body(
            gpu_tile.WarpReduceOp.build([value], results=[types], axis=axis), op.operation
        )[0]

    def whole(op: tile.ReduceOp, value: ir.Value, type_: ir.Type) -> ir.Value:
        reduced = tile.ReduceOp.build([value], results=[[type_]], axis=axis)
        return with_body(reduced, op.operation)[0]

    (elements,) = extreme.inputs
    own = part(extreme, elements)
    near = gpu_tile.WarpSpreadOp.build(own, results=[elements.type], axis=axis)
    at = part(place, search.chosen(elements, near, search.places))
    results = [extreme.outputs[0], place.outputs[0]]
    conversions = _conversions(results, [search.spreading])
    count, made = shape(own)[axis], [value.type for value in results]
    gathered = gathered_layouts(layout, axis, count)
    shared = shared_out(layout, axis, count) if gathered[0].num_values > MOST_GATHERED else None
    if conversions:
        rows = layout_of(conversions[0].result)
        gathered = (expanded(rows, axis, count),)
        made = [tile_type(shape(v), element(v), layout_attr(rows)) for v in results]
    elif shared is not None:
        gathered = (shared,)
    extremes, places = through_buffers([own, at], gathered)
    found = whole(extreme, extremes, made[0])
    every = tuple(dim for dim in range(len(shape(extremes))) if dim != axis)
    spread = tile.BroadcastOp.build(found, results=[extremes.type], dims=every)
    nearest = whole(place, search.chosen(extremes, spread, places), made[1])
    _report(place, context, "search", count)
    for conversion in conversions:
        replace_op(conversion, found if conversion.src == results[0] else nearest)
    search.end_at(found, nearest)


def _twins(scan: tile.ScanOp) -> list[ir.Operation]:
    """The reductions behind a scan across warps in its block that combine the same."""
    if not is_spread_over_warps(layout_of(scan.inputs[0]), scan.axis):
        return []
    users = [use.owner for use in scan.inputs[0].uses]
    found = [one for one in of_kind(users, tile.ReduceOp) if scan.combines_as(one)]
    order = OpMap((view.operation, n) for n, view in enumerate(scan.operation.block.operations))
    at = order[scan.operation]
    return [one.operation for one in found if order.get(one.operation, 0) > at]


def _split_scan(op: tile.ScanOp, twins: Sequence[ir.Operation], context: PassContext) -> None:
    layout = layout_of(op.inputs[0])
    if not is_spread_over_warps(layout, op.axis):
        return
    _, kept = split_levels(layout, op.axis)
    totals_types = partial_types(op, layout, kept)
    scanned = with_body(
        gpu_tile.WarpScanOp.build(
            op.inputs,
            results=[[value.type for value in op.outputs], totals_types],
            axis=op.axis,
            reverse=op.reverse,
        ),
        op.operation,
    )
    number = len(op.inputs)
    count = shape(totals_types[0])[op.axis]
    totals = through_buffers(scanned[number:], gathered_layouts(layout, op.axis, count))
    final = with_body(
        gpu_tile.ScanCarryOp.build(
            scanned[:number],
            totals,
            results=[value.type for value in op.outputs],
            axis=op.axis,
            reverse=op.reverse,
        ),
        op.operation,
    )
    _report(op, context, "scan", count)
    for twin in twins:
        made = [value.type for value in twin.results]
        whole = tile.ReduceOp.build(totals, results=[made], axis=op.axis)
        replace_op(twin, *with_body(whole, twin))
    replace_op(op, *final)


def _split_take(op: tile.TakeOp, context: PassContext) -> None:
    buffer = stored(op.src, buffer_for(op.src))
    taken = gpu_tile.BufferGatherOp.build(
        buffer, op.indices, results=[op.result.type], axis=op.axis
    )
    replace_op(op, taken)


def _split_exchange(op: tile.ExchangeOp, context: PassContext) -> None:
    layout, sizes = layout_of(op.src), shape(op.src)
    if partners(layout, len(sizes), op.axis, op.mask) is not None:
        return
    near = _neighbours_held(layout, sizes, op.axis)
    apart = (*sizes[: op.axis], sizes[op.axis] // near, near, *sizes[op.axis + 1 :])
    split = reshaped(layout, sizes, apart) if near > 1 else None
    value = op.src
    if split is not None:
        type_ = tile_type(apart, element(op.src), layout_attr(split))
        value = tile.ReshapeOp.build(op.src, results=[type_])
    mask = op.mask if split is None else op.mask // near
    buffer, taken = _exchanged(value, op.axis, mask)
    if split is not None:
        if op.mask % near:
            taken = tile.ExchangeOp.build(taken, axis=op.axis + 1, mask=op.mask % near)
        taken = tile.ReshapeOp.build(taken, results=[op.result.type])
    context.report.add(
        "exchange across warps",
        op.operation,
        f"{buffer_of(buffer).size_bytes} bytes of shared memory",
        f"axis {op.axis} of {layout} has elements {op.mask} apart in several warps",
    )
    replace_op(op, taken)


def _neighbours_held(layout: Layout, sizes: Sequence[int], axis: int) -> int:
    """How many neighbours along `axis` each thread holds, a power of two that divides the size."""
    levels = axis_levels(layout, axis)
    if not levels or levels[0].place is not Place.VALUE or levels[0].stride != 1:
        return 1
    size = gcd(levels[0].size, sizes[axis])
    return size & -size


def _exchanged(value: ir.Value, axis: int, mask: int) -> tuple[ir.Value, ir.Value]:
    """Through a buffer: that, and `value` with elements exchanged. All that a thread holds along
    other dimensions comes from one place: vectors stay vectors."""
    layout, sizes = layout_of(value), shape(value)
    # As wide accesses as there are: of the same passes the fewer instructions.
    buffer = stored(value, buffer_for(value, per_instruction=1))
    i32 = ir.IntegerType.get_signless(32)
    line = tuple(size if dim == axis else 1 for dim, size in enumerate(sizes))
    every = tuple(range(len(sizes)))
    place = tile_type(line, i32, layout_attr(broadcast_source(layout, every, line)))
    own = tile.IotaOp.build(results=[place], axis=axis)
    other = binary("arith.xori", own, constant(place, mask))
    if line != sizes:
        type_ = tile_type(sizes, i32, layout_attr(layout))
        other = tile.BroadcastOp.build(other, results=[type_], dims=every)
    taken = gpu_tile.BufferGatherOp.build(buffer, other, results=[value.type], axis=axis)
    return buffer, taken


def _split_histogram(op: tile.HistogramOp, context: PassContext) -> None:
    summed = _sum_of_loop(op)
    first = op.operation if summed is None else summed.loop
    with ir.InsertionPoint(first):
        buffer, type_ = _zeros(op, context)
    gpu_tile.BufferCountOp.build(op.values, op.mask, buffer)
    if summed is None:
        replace_op(op, *_counted(op, buffer, type_))
        return
    result, carried = summed.loop.results[summed.number], summed.argument
    with ir.InsertionPoint(behind(summed.loop)):
        (total,) = _counted(op, buffer, type_)
        whole = binary("arith.addi", result, total)
        result.replace_all_uses_except(whole, whole.owner.operation)
    replace_op(summed.add, carried)
    op.operation.erase()


@dataclass(frozen=True)
class _LoopSum:
    """A sum of histograms that a loop carries and nobody reads before its end: `argument` of its
    body, to which `add` adds, `number` of its results."""

    loop: ir.Operation
    argument: ir.Value
    add: ir.Operation
    number: int


def _sum_of_loop(op: tile.HistogramOp) -> _LoopSum | None:
    loop = op.operation.parent
    if loop is None or loop.name != "scf.for":
        return None
    use = only_use(op.result)
    add = None if use is None else use.owner.operation
    if add is None or add.name != "arith.addi" or add.block != op.operation.block:
        return None
    argument = add.operands[add.operands[0] == op.result]
    carried = carried_by(loop)
    use = only_use(add.results[0])
    if argument not in carried or only_use(argument) is None or use is None:
        return None
    number = carried.index(argument)
    if use.owner.operation.name != "scf.yield" or use.operand_number != number:
        return None
    return _LoopSum(loop, argument, add, number)


def _zeros(op: tile.HistogramOp, context: PassContext) -> tuple[ir.Value, ir.Type]:
    """A buffer of zeros to count in, and the type of the tile that it holds."""
    layout, (bins,) = layout_of(op.result), shape(op.result)
    rows = context.num_warps if context.num_warps * bins * 4 <= MOST_ROWS_BYTES else 1
    i32 = element(op.result)
    type_ = tile_type((rows, bins), i32, layout_attr(expanded(layout, 0, rows)))
    zeros = constant(type_, 0)
    buffer = stored(zeros, buffer_for(zeros))
    context.report.add(
        "histogram",
        op.operation,
        f"{rows} x {bins} counts in shared memory",
        f"{rows * bins * 4} bytes, of which rows for each warp may have {MOST_ROWS_BYTES}",
    )
    return buffer, type_


def _counted(op: tile.HistogramOp, buffer: ir.Value, type_: ir.Type) -> list[ir.Value]:
    """What all warps have counted."""
    counts = gpu_tile.BufferLoadOp.build(buffer, results=[type_])
    return tile.ReduceOp.build(
        [counts],
        results=[[op.result.type]],
        axis=0,
        body=lambda left, right: [binary("arith.addi", left, right)],
        body_types=[element(op.result)] * 2,
    )


def _begin_together(function: ir.Operation) -> None:
    """Stripes write into each other's memory when all have begun. They know it by the time that
    what they load arrives: the barrier stands behind the loads before the first reduction."""
    gathers = find_ops(function, tile.GatherStripesOp)
    if not gathers:
        return
    before = [*find_ops(function, tile.ReduceOp), *gathers]
    order = OpMap((op, number) for number, op in enumerate(gathers[0].block.operations))
    first = min(order[op] for op in before if op in order)
    loads = [op for op in find_ops(function, tile.LoadOp) if order.get(op, first) < first]
    place = behind(loads[-1]) if loads else gathers[0]
    with ir.InsertionPoint(place), gathers[0].location:
        gpu_tile.ClusterSyncOp.build(order="relaxed")


def _gather_stripes(op: tile.GatherStripesOp, context: PassContext) -> None:
    buffer = gpu_tile.AllocOp.build(results=[buffer_for(op.result).type()])
    gpu_tile.ClusterStoreOp.build(op.value, buffer)
    gpu_tile.ClusterSyncOp.build(order="acq_rel")
    replace_op(op, gpu_tile.BufferLoadOp.build(buffer, results=[op.result.type]))


def _report(op: tile.ReduceOp | tile.ScanOp, context: PassContext, what: str, count: int) -> None:
    context.report.add(
        f"{what} across warps",
        op.operation,
        f"{count} partial results a row in shared memory",
        f"axis {op.axis} of {layout_of(op.inputs[0])} lies in several warps",
    )


_SCAN = tile.ScanOp.OPERATION_NAME
_RULES = {
    tile.ReduceOp.OPERATION_NAME: _split_reduce,
    tile.TakeOp.OPERATION_NAME: _split_take,
    tile.ExchangeOp.OPERATION_NAME: _split_exchange,
    tile.HistogramOp.OPERATION_NAME: _split_histogram,
    tile.GatherStripesOp.OPERATION_NAME: _gather_stripes,
}
