"""infer-layouts: every tile gets a layout; where two wishes differ a conversion is written out.

Before:   %x = "tile.load"(%a, %i) ... -> tensor<1024xf32>
          %m = "tile.reduce"(%x) ... : (tensor<1024xf32>) -> tensor<f32>
After:    %x = "tile.load"(%a, %i) ...
              -> tensor<1024xf32, #gpu_tile.layout<"T(128):(4@0) V(4,2):(1@0,512@0)">>
          %m = "tile.reduce"(%x) ... -> tensor<f32, #gpu_tile.layout<"T(128):(0) V():()">>

1. Gathers and scatters of neighbouring elements are noted (`index_runs`): accesses like others.
2. Constants, splats, iotas and broadcasts are cloned per use, so that they tie nothing together.
3. Values that want one layout form components; instruction fragments are hard layouts.
4. Components are decided heaviest first: each takes the cheapest of the layouts its memory accesses
   and its decided neighbours (through reductions, broadcasts, transposes, reshapes) propose.
5. Types are written; an operand in another layout than its op needs gets a conversion, and a memory
   access in a costly layout is done in its own, followed or preceded by a conversion.

Does not handle: tiles as kernel arguments (there are none), dots whose operands should stay in
registers.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.types import is_tile, shape
from tilec.fragments import accumulator_layout, tensor_memory_layout, warpgroup_grid
from tilec.layout import Layout
from tilec.mma_shapes import find_instruction
from tilec.passes.analysis.divisibility import Divisibility
from tilec.passes.analysis.index_runs import Indexed, note_runs
from tilec.passes.analysis.vector_width import contiguous_dim, element_bytes, provable_width
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.layouts.assignment import assign_layouts
from tilec.passes.layouts.candidates import (
    access_cost,
    blocked_layout,
    conversion_cost,
    thread_tile_layout,
    warp_grid,
)
from tilec.passes.layouts.components import (
    MATERIALIZED,
    Component,
    Components,
    build_components,
    depth_factor,
    tile_bytes,
    walk,
)
from tilec.passes.layouts.neighbours import Link, links
from tilec.passes.rewriting.op_tables import OpMap
from tilec.passes.rewriting.walk import kernels


@tile_pass(requires=Level.SELECTED, ensures=Level.LAYOUTS)
def infer_layouts(module: ir.Module, context: PassContext) -> None:
    """Chooses a layout for every tile of every kernel."""
    for function in kernels(module):
        _infer(function, context)


def _infer(function: ir.Operation, context: PassContext) -> None:
    for op in reversed(walk(function)):
        _clone_per_use(op)
    ops, facts = walk(function), Divisibility(function)
    note_runs(ops, facts)
    components = build_components(ops, _hard_layouts(ops, context))
    anchors = _anchors(ops, facts)
    for anchor in anchors:
        components.of(anchor.value).weight += anchor.weight
    _decide(components, ops, anchors, context)
    assign_layouts(ops, components, _cuts(components, anchors, context), context)


def _clone_per_use(op: ir.Operation) -> None:
    if op.name not in MATERIALIZED or not is_tile(op.results[0]):
        return
    uses = [(use.owner, use.operand_number) for use in op.results[0].uses]
    for owner, number in uses[1:]:
        copy = op.clone(ir.InsertionPoint(op))
        owner.operation.operands[number] = copy.results[0]


# Anchors --------------------------------------------------------------------------------------


class Anchor:
    """A load or store of a rectangular tile, or a gather or scatter of runs: the tile, and what a
    layout costs it."""

    def __init__(self, op: ir.Operation, facts: Divisibility) -> None:
        view = op.opview
        self.op = op
        self.is_load = isinstance(view, (tile.LoadOp, tile.GatherOp))
        self.is_indexed = isinstance(view, Indexed)
        self.value = view.result if self.is_load else view.value
        array = view.src if self.is_load else view.dst
        self.shape = shape(self.value)
        self.contiguous: int | None
        if self.is_indexed:
            self.contiguous, self.width = view.options["run"]
        else:
            self.contiguous = contiguous_dim(array, view.dims)
            self.width, _ = provable_width(facts, array, view.offsets, view.dims)
        self.element_bytes = element_bytes(array)
        self.depth = depth_factor(op)
        self.weight = tile_bytes(self.value) * self.depth

    def cost(self, layout: Layout) -> int:
        """Traffic in bytes, scaled by loop depth."""
        return self.depth * access_cost(
            layout, self.shape, self.contiguous, self.element_bytes, self.width
        )

    def preferred(self, num_threads: int, width: int | None = None) -> Layout:
        """The coalesced layout; `width`: of a neighbour that moves more elements at once."""
        if not self.shape:
            return blocked_layout((), 0, 1, num_threads)
        contiguous = len(self.shape) - 1 if self.contiguous is None else self.contiguous
        return blocked_layout(self.shape, contiguous, width or self.width, num_threads)


def _anchors(ops: list[ir.Operation], facts: Divisibility) -> list[Anchor]:
    return [Anchor(op, facts) for op in ops if _is_anchor(op.opview)]


def _is_anchor(view: ir.OpView) -> bool:
    if isinstance(view, Indexed):
        return "run" in view.options
    return isinstance(view, (tile.LoadOp, tile.StoreOp))


def _hard_layouts(ops: list[ir.Operation], context: PassContext) -> dict[ir.Value, Layout]:
    hard = {}
    for op in ops:
        if not isinstance(op.opview, tile.DotOp):
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
            grid = warp_grid(row, sizes, context.num_warps, rows_only=_is_reduced_along_n(dot))
        hard[dot.result] = accumulator_layout(row, sizes, *grid)
    return hard


def _is_reduced_along_n(dot: tile.DotOp) -> bool:
    """Whether a row of the result meets again in a reduction or as the lhs of another dot."""
    n = len(shape(dot.acc)) - 1
    pending, seen = [dot.result], set()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        for use in value.uses:
            user = use.owner.opview
            if isinstance(user, (tile.ReduceOp, tile.ScanOp)) and user.axis == n:
                return True
            if isinstance(user, tile.DotOp) and use.operand_number == 0:
                return True
            pending += [r for r in use.owner.results if is_tile(r) and shape(r) == shape(dot.acc)]
    return False


# Decisions ------------------------------------------------------------------------------------


def _decide(
    components: Components, ops: list[ir.Operation], anchors: list[Anchor], context: PassContext
) -> None:
    by_component: dict[int, list[Anchor]] = {}
    for anchor in anchors:
        by_component.setdefault(id(components.of(anchor.value)), []).append(anchor)
    neighbours: dict[int, list[Link]] = {}
    for link in links(ops):
        neighbours.setdefault(id(components.of(link.value)), []).append(link)
    undecided = components.all()
    for component in undecided:
        component.layout = component.hard
    undecided = sorted((c for c in undecided if c.layout is None), key=lambda c: -c.weight)
    while undecided:
        # Neighbours of decided components go first among equals: their choice is informed.
        component = max(
            undecided,
            key=lambda c: (c.weight, _is_informed(neighbours.get(id(c), []), components)),
        )
        undecided.remove(component)
        component.layout = _cheapest(
            component,
            by_component.get(id(component), []),
            neighbours.get(id(component), []),
            components,
            context,
        )


def _is_informed(linked: list[Link], components: Components) -> bool:
    return any(components.of(link.other).layout is not None for link in linked)


def _cheapest(
    component: Component,
    anchors: list[Anchor],
    linked: list[Link],
    components: Components,
    context: PassContext,
) -> Layout:
    threads = context.num_threads
    sizes = shape(component.values[0])
    proposals: list[Layout] = []
    for anchor in anchors:
        # A wide access serves a narrow one badly, and the other way round: the cost decides.
        widths = {a.width for a in anchors if a.contiguous == anchor.contiguous}
        proposals += [anchor.preferred(threads, width) for width in sorted(widths, reverse=True)]
    wanted = []
    for link in linked:
        other = components.of(link.other).layout
        mapped = None if other is None else link.propose(other)
        if mapped is not None:
            wanted.append((mapped, link))
            proposals.append(mapped)
    if not proposals:
        proposals.append(blocked_layout(sizes, max(0, len(sizes) - 1), 4, threads))
    bytes_ = max(element_size(v) for v in component.values)

    def cost(layout: Layout) -> int:
        total = sum(anchor.cost(layout) for anchor in anchors)
        for mapped, link in wanted:
            if mapped != layout:
                total += link.depth * conversion_cost(sizes, bytes_)
        return total

    return min(proposals, key=cost)


def element_size(value: ir.Value) -> int:
    """Bytes of one element of a tile."""
    return max(1, tile_bytes(value) // max(1, _count(value)))


def _count(value: ir.Value) -> int:
    total = 1
    for size in shape(value):
        total *= size
    return total


def _cuts(components: Components, anchors: list[Anchor], context: PassContext) -> OpMap[Layout]:
    """Accesses cheaper in their own layout plus a conversion than in their component's."""
    cuts: OpMap[Layout] = OpMap()
    for anchor in anchors:
        layout = components.of(anchor.value).layout
        own = anchor.preferred(context.num_threads)
        if layout is None or own == layout or not anchor.shape or anchor.is_indexed:
            continue  # with a gather its indices would have to be converted, too
        convert = anchor.depth * conversion_cost(anchor.shape, anchor.element_bytes)
        if anchor.cost(own) + convert < anchor.cost(layout):
            cuts[anchor.op] = own
            context.report.add(
                "memory layout",
                anchor.op,
                "coalesced, unlike its neighbours'",
                "cheaper than their layout, conversion included",
            )
    return cuts
