"""infer-layouts: every tile gets a layout; where two wishes differ a conversion is written out.

Before:   %x = "tile.load"(%a, %i) ... -> tensor<1024xf32>
          %m = "tile.reduce"(%x) ... : (tensor<1024xf32>) -> tensor<f32>
After:    %x = "tile.load"(%a, %i) ...
              -> tensor<1024xf32, #gpu_tile.layout<"T(128):(4@0) V(4,2):(1@0,512@0)">>
          %m = "tile.reduce"(%x) ... -> tensor<f32, #gpu_tile.layout<"T(128):(0) V():()">>

1. Gathers, scatters and updates of neighbouring elements are noted (`index_runs`): accesses like
   others, and as wide as one instruction (of additions: `vector_additions`). Where elements are
   neighbours in most places (`usual_steps`), or computed places may be for all anybody knows,
   neighbouring threads have them.
   Shifted loads count as the aligned ones that `align-loads` makes of them.
2. Constants, splats, iotas and broadcasts are cloned per use, so that they tie nothing together;
   so is what computes the numbers of rows that a load role gathers (`layouts/operand_numbers.py`).
3. Values that want one layout form components; instruction fragments are hard layouts, and those of
   bytes that are turned on their way to shared memory (`dots/turned_bytes.py`). What a
   scatter stores need not lie as its numbers do where these can be made in any layout.
4. Components are decided heaviest first: each takes the cheapest of the layouts its memory accesses
   and its decided neighbours (through reductions, broadcasts, transposes, reshapes) propose, or of
   those that spread it evenly over all threads if no access does. The price counts accesses,
   conversions, computing, each thread that repeats it anew, and what reductions pass between
   threads (`layouts/decisions.py`).
5. Types are written; an operand in another layout than its op needs gets a conversion, and a memory
   access in a costly layout is done in its own, followed or preceded by a conversion.

Does not handle: tiles as kernel arguments (there are none), compare-and-swaps as accesses, dots
whose operands should stay in registers.
"""

from __future__ import annotations

from dataclasses import replace

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.tile import ArrayOp, Atomic
from tilec.dialects.types import is_tile, shape
from tilec.hardware.fragments import accumulator_layout, tensor_memory_layout, warpgroup_grid
from tilec.hardware.layout import Layout
from tilec.hardware.mma_shapes import find_instruction
from tilec.hardware.target import Feature
from tilec.passes.analysis.dependence import ops_behind
from tilec.passes.analysis.divisibility import Divisibility
from tilec.passes.analysis.index_runs import Indexed, neighbours_dim, note_runs
from tilec.passes.analysis.shifted_loads import ShiftedLoad, find_beside, find_shifted
from tilec.passes.analysis.usual_steps import is_repeated, nearest_dim, nearest_stride
from tilec.passes.analysis.vector_additions import most_added
from tilec.passes.analysis.vector_width import access_width, contiguous_dim, element_bytes
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.dots.turned_bytes import turned_layouts
from tilec.passes.layouts.accesses import Access
from tilec.passes.layouts.assignment import assign_layouts
from tilec.passes.layouts.candidates import thread_tile_layout, warp_grid
from tilec.passes.layouts.components import (
    MATERIALIZED,
    Components,
    build_components,
    depth_factor,
    is_apart,
    walk,
)
from tilec.passes.layouts.conversion_costs import conversion_cost
from tilec.passes.layouts.decisions import decide_layouts
from tilec.passes.layouts.maps import widened
from tilec.passes.layouts.operand_numbers import separate_operand_numbers
from tilec.passes.layouts.product_rows import keeps_rows, reduces_rows
from tilec.passes.rewriting.op_tables import OpMap
from tilec.passes.rewriting.walk import is_of


@kernel_pass(requires=Level.SELECTED, ensures=Level.LAYOUTS)
def infer_layouts(function: ir.Operation, context: PassContext) -> None:
    """Chooses a layout for every tile of every kernel."""
    if any(map(context.target.supports, (Feature.WGMMA, Feature.TCGEN05))):
        separate_operand_numbers(function)
    for op in reversed(walk(function)):
        _clone_per_use(op)
    ops, facts = walk(function), Divisibility(function)
    note_runs(ops, facts)
    turned = turned_layouts(ops, facts, context)
    components = build_components(ops, {**turned, **_hard_layouts(ops, context)})
    accesses = _accesses(ops, facts, find_shifted(function, facts), context)
    decide_layouts(components, ops, accesses, context)
    assign_layouts(ops, components, _cuts(components, accesses, context), context)


def _clone_per_use(op: ir.Operation) -> None:
    if op.name not in MATERIALIZED or not is_tile(op.results[0]):
        return
    uses = [(use.owner, use.operand_number) for use in op.results[0].uses]
    for owner, number in uses[1:]:
        copy = op.clone(ir.InsertionPoint(op))
        owner.operation.operands[number] = copy.results[0]


def _accesses(
    ops: list[ir.Operation],
    facts: Divisibility,
    shifted: OpMap[ShiftedLoad],
    context: PassContext,
) -> list[Access]:
    beside = find_beside(ops)
    accesses = [op for op in ops if is_of(op, ArrayOp)]
    found = [_access(op, facts, shifted.get(op), context) for op in accesses]
    return [replace(one, beside=beside.get(one.op)) for one in found]


def _access(
    op: ir.Operation, facts: Divisibility, shifted: ShiftedLoad | None, context: PassContext
) -> Access:
    view = op.opview
    value, array = view.tile, view.array
    lies = view.mask if isinstance(view, tile.ScatterOp) or is_apart(op) else value
    contiguous, strided = None, None
    if isinstance(view, Indexed):
        run = None if isinstance(view, tile.AtomicCasOp) else view.options.get("run")
        contiguous, width = run or (_neighbours_dim(view, facts), 1)
        width = min(width, most_added(view, context)) if isinstance(view, Atomic) else width
        strided = _computed_along(view) if contiguous is None else None
    else:
        contiguous = contiguous_dim(array, view.dims)
        width, _ = access_width(view, facts)
        if shifted is not None:
            width = shifted.width  # by align-loads
        if contiguous is None and view.dims:
            strided = nearest_stride(view, facts)
    return Access(
        op,
        lies,
        shape(value),
        contiguous,
        width,
        element_bytes(array),
        depth_factor(op),
        is_load=view.is_load,
        is_indexed=isinstance(view, Indexed),
        strided=strided,
    )


def _neighbours_dim(op: Indexed, facts: Divisibility) -> int | None:
    """The dimension that an access by indices runs along in memory, as far as is known."""
    known = neighbours_dim(op, facts)
    return nearest_dim(op) if known is None else known


def _computed_along(view: Indexed) -> int | None:
    """The last dimension of elements whose places are computed, of their numbers and of others that
    nobody knows, as quotients by a page's length: they lie as those of an unknown stride do. Keys
    and values put into pages of 8 and 16 elements, each thread 8 in a row, touched a sector for
    each element (FlagGems' took 264 us for 107 of Triton's). Of places that memory says nothing is
    known; where neighbours are mostly one element, as the channel's of a picture, all layouts touch
    as little."""
    if is_repeated(view):
        return None
    behind = (op for op in ops_behind(view.indices) if is_of(op, ArrayOp))
    if any(shape(op.opview.tile) for op in behind):
        return None
    sizes = shape(view.mask)
    return max((dim for dim, size in enumerate(sizes) if size > 1), default=None)


def _hard_layouts(ops: list[ir.Operation], context: PassContext) -> dict[ir.Value, Layout]:
    hard = {}
    for op in ops:
        if not is_of(op, tile.DotOp):
            continue
        dot = op.opview
        row = find_instruction(dot.options["instruction"])
        sizes = shape(dot.acc)
        if row.is_tensor:
            hard[dot.result] = tensor_memory_layout(sizes, context.num_warps)
            continue
        if row.acc_layout is None:
            hard[dot.result] = thread_tile_layout(sizes, context.num_threads)
            continue
        grid = warpgroup_grid(sizes, context.num_warps) if row.is_warpgroup else None
        if grid is None:
            # Warps without rows of their own would compute those of others once more.
            enough = sizes[-2] > row.m * (context.num_warps // 2)
            whole = keeps_rows(dot) if enough else reduces_rows(dot)
            grid = warp_grid(row, sizes, context.num_warps, rows_only=whole)
        hard[dot.result] = accumulator_layout(row, sizes, *grid)
    return hard


def _cuts(components: Components, accesses: list[Access], context: PassContext) -> OpMap[Layout]:
    """Accesses cheaper in their own layout plus a conversion than in their component's."""
    cuts: OpMap[Layout] = OpMap()
    for access in accesses:
        component = components.of(access.value)
        layout = component.layout
        if layout is None or not access.shape or access.is_indexed:
            continue  # with a gather its indices would have to be converted, too
        own = access.preferred(context.num_threads)
        ways = [layout, own]
        if component.hard is not None if access.is_load else access.depth > 1:
            # Warps that wait for each other have other work to do in a loop. What is loaded beside
            # a product's sums would go through a buffer, which takes memory from the rings.
            ways.append(widened(layout, access.contiguous, access.width))
        prices = {each: _price(access, layout, each) for each in ways}
        best = min(prices, key=prices.__getitem__)
        if best != layout:
            cuts[access.op] = best
            context.report.add(
                "memory layout",
                access.op,
                f"{'coalesced' if best == own else 'wide inside warps'}, unlike its neighbours'",
                "cheaper than their layout, conversion included",
            )
    return cuts


def _price(access: Access, layout: Layout, own: Layout) -> int:
    """Bytes of traffic of an access in its `own` layout, and the conversion to or from `layout`."""
    if own == layout:
        return access.cost(own)
    ends = (own, layout) if access.is_load else (layout, own)
    convert = conversion_cost(access.shape, access.element_bytes, *ends)
    return access.cost(own) + access.depth * convert
