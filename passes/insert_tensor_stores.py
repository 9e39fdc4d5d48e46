"""insert-tensor-stores: tiles that do not lie coalesced in registers leave through the copy engine.

Before:   %y = "gpu_tile.convert_layout"(%x)   "tile.store"(%y, %c, %m, %n)
After:    %x0, %x1, ... = "tile.split"(%x) {axis = 1}
          "gpu_tile.warp_tma_store"(%x0, slot 0 of %s, %map, %m, %n) {pending = 1 : i32}
          "gpu_tile.warp_tma_store"(%x1, slot 1 of %s, %map, %m, %n + 64) {pending = 1 : i32}   ...
          and at the kernel's end "gpu_tile.tma_wait"() {pending = 0 : i32, read = true}

The threads go on while the tile is on its way: in a persistent kernel the next program's work hides
it. Registers are not rearranged, no warp waits for another, and a partial tile needs no bounds. The
tile goes in panels of one swizzle's width, so that two small buffers serve all of it, or in whole
rows where that would be the narrowest one (`hardware/ring_stages.py`).
Does not handle: tiles that are not two-dimensional or whose warps do not hold whole boxes, stores
in loops of the author's, stores with a cache hint, arrays that the kernel reads or stores to in two
places (other branches of one scf.if aside), kernels that order memory accesses with other CTAs (a
flag would not wait for the copy engine), or in which parts of sums come in turns (pass split-sums).
"""

from __future__ import annotations

from typing import NamedTuple

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.def_use import made_by, users
from tilec.dialects.effects import written_by
from tilec.dialects.gpu_tile import (
    AllocOp,
    ConvertLayoutOp,
    MakeTensorMapOp,
    SlotOp,
    TmaWaitOp,
    WarpTmaStoreOp,
)
from tilec.dialects.gpu_tile.types import BufferType, layout_attr, layout_of
from tilec.dialects.tile import Atomic
from tilec.dialects.types import byte_width, element, shape
from tilec.dialects.types import tile as tile_type
from tilec.hardware.layout import Layout, warp_boxes
from tilec.hardware.ring_stages import most_store_bytes, panel_bytes, pending_stores, store_slots
from tilec.hardware.sizes import WARP_SIZE
from tilec.hardware.target import Feature
from tilec.messages.diagnostics import InternalError
from tilec.passes.analysis.coordinates import as_copy_coordinate
from tilec.passes.analysis.divisibility import Divisibility
from tilec.passes.analysis.hazards import read_ahead_hazard
from tilec.passes.analysis.vector_width import access_width, contiguous_dim, element_bytes
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.copies.tensor_copies import box_of
from tilec.passes.copies.tensor_map_rules import why_no_tensor_map
from tilec.passes.layouts.candidates import access_cost, blocked_layout, store_requests
from tilec.passes.layouts.panels import in_panels
from tilec.passes.layouts.parts import part_layout
from tilec.passes.programs.sum_parts import comes_in_turns
from tilec.passes.rewriting.loops import are_alternatives, enclosing_ops, is_program_loop
from tilec.passes.rewriting.refusals import Refusal, attempt
from tilec.passes.rewriting.scalars import binary, i32_constant
from tilec.passes.rewriting.walk import find_ops, is_of
from tilec.records import dataclass

SCATTERED = 1.5
"""Times the requests to L2 of whole rows from which on a store is worth the copy engine. The f32
sums of a warpgroup fill sectors, but make eight requests where whole rows make two: on an H200
products that write more than they read took 8 to 25 % less time through the copy engine, 4096 cubed
0.5 to 2 %."""


@kernel_pass(requires=Level.LAYOUTS, needs=Feature.TMA)
def insert_tensor_stores(function: ir.Operation, context: PassContext) -> None:
    """Turns stores of tiles that do not lie coalesced into tensor stores, where there are some."""
    if not context.allowance.copies:
        return
    if context.lanes < WARP_SIZE:  # a warp elects one lane to issue, of one of its programs
        return
    facts = Divisibility(function)
    stores = [op.opview for op in find_ops(function, tile.StoreOp)]
    written = False
    for store in [store for store in stores if _scatters(store, facts)]:
        reason = _refusal(store, function, facts, context)
        chosen = "TMA" if reason is None else "no"
        why = reason or "whole rows without rearranging registers: no layout conversion"
        context.report.add("tensor store", store.operation, chosen, why)
        if reason is None:
            with store.operation.location:
                _emit(store, function)
            written = True
    if written:
        *_, last = function.regions[0].blocks[0].operations
        with ir.InsertionPoint(last), last.location:
            TmaWaitOp.build(pending=0, read=True)


def _held(store: tile.StoreOp) -> ir.Value:
    """The tile that a store writes as the threads hold it: in front of a conversion that only
    stores need."""
    convert = made_by(store.value, ConvertLayoutOp)
    stored = len(users(store.value, tile.StoreOp)) == len(users(store.value))
    return convert.src if convert is not None and stored else store.value


def _scatters(store: tile.StoreOp, facts: Divisibility) -> bool:
    """Whether a tile must be converted to be written in whole rows, or is written in parts of
    sectors, or in pieces of lines in a persistent kernel, whose next program's work could hide a
    tensor store."""
    if _held(store) != store.value:
        return True
    persistent = any(is_program_loop(op) for op in enclosing_ops(store.operation))
    excess = _excess(store, facts)
    return excess.traffic > SCATTERED or (persistent and excess.requests > SCATTERED)


class _Excess(NamedTuple):
    """Requests to L2, and bytes of traffic, as multiples of those of whole rows."""

    requests: float
    traffic: float


def _excess(store: tile.StoreOp, facts: Divisibility) -> _Excess:
    """How many times as much it costs that threads write the tile as they hold it, in requests and
    in traffic; 1 where its rows are no runs of memory."""
    value, row = _held(store), contiguous_dim(store.dst, store.dims)
    if row is None:
        return _Excess(1.0, 1.0)
    width, _ = access_width(store, facts)
    layout, sizes, bytes_ = layout_of(value), shape(value), element_bytes(store.dst)
    whole = blocked_layout(sizes, row, width, layout.num_threads)
    requests = [store_requests(each, sizes, row, bytes_, width) for each in (layout, whole)]
    traffic = [
        access_cost(each, sizes, row, bytes_, width, is_load=False) for each in (layout, whole)
    ]
    return _Excess(requests[0] / requests[1], traffic[0] / traffic[1])


def _only_writes(op: ir.Operation) -> bool:
    return op.name in (tile.StoreOp.OPERATION_NAME, "memref.dim", MakeTensorMapOp.OPERATION_NAME)


def _is_instead(owner: ir.Operation, store: tile.StoreOp) -> bool:
    """Whether `owner` writes in the branch that a program takes where it does not take that of the
    store."""
    writes = store.dst in written_by(owner.opview) and not is_of(owner, Atomic)
    return writes and are_alternatives(owner.operation, store.operation)


def _refusal(
    store: tile.StoreOp, function: ir.Operation, facts: Divisibility, context: PassContext
) -> str | None:
    if store.options.get("wrapped"):
        return "its row is wrapped"
    # What another branch writes, no execution of the program orders with this.
    uses = [owner for use in store.dst.uses if not _is_instead(owner := use.owner, store)]
    others = [owner for owner in uses if not _only_writes(owner)]
    if others:
        scatters = all(is_of(owner, tile.ScatterOp) for owner in others)
        return f"the kernel also {'scatters into' if scatters else 'reads'} the array"
    if sum(is_of(owner, tile.StoreOp) for owner in uses) > 1:
        return "the kernel stores to the array in several places"
    # The copies of two iterations could arrive in any order; programs write tiles of their own.
    around = enclosing_ops(store.operation)
    if any(op.name != "scf.if" and not is_program_loop(op) for op in around):
        return "it stands in a loop"
    hazard = read_ahead_hazard(function, (), "the kernel")
    if hazard is not None:
        return hazard
    if comes_in_turns(function):
        return "parts of sums take the shared memory, and no next program would hide the copies"
    plan, reason = attempt(_plan, store)
    if plan is None:
        return reason
    fills_sectors = _held(store) == store.value and _excess(store, facts).traffic <= SCATTERED
    if plan.bytes > most_store_bytes(context.target, fills_sectors=fills_sectors):
        why = ": sectors are full" if fills_sectors else ""
        return f"{plan.bytes} bytes of shared memory are worth more to loads{why}"
    return why_no_tensor_map(
        store.dst,
        store.dims,
        plan.box,
        facts,
        context.target,
        offsets=store.offsets,
        store=True,
    )


@dataclass(frozen=True)
class _Plan:
    """How a tile leaves: in `panels` equal parts along dimension `row`, each in registers as
    `layout` and in shared memory as `buffer`, a warp's boxes of it being `box`."""

    panels: int
    row: int
    layout: Layout
    buffer: BufferType
    box: tuple[int, ...]
    swizzle: str

    @property
    def slots(self) -> int:
        """Panels that may be on their way, or wait, at once."""
        return store_slots(self.panels, self.buffer.slot_bytes)

    @property
    def bytes(self) -> int:
        """The bytes of shared memory that the slots take."""
        return self.slots * self.buffer.slot_bytes


def _plan(store: tile.StoreOp) -> _Plan:
    sizes, row = shape(store.value), contiguous_dim(store.dst, store.dims)
    if len(sizes) != 2:
        raise Refusal(f"the tile has {len(sizes)} dimensions")
    if row is None:
        raise Refusal("no tile dimension has stride 1")
    if "cache" in store.options:
        raise Refusal("the store has a cache hint")
    kind = element(store.value)
    span = panel_bytes(sizes[1 - row], sizes[row] * byte_width(kind))
    if not span:
        raise Refusal(f"{sizes[row]} elements along the row fill no swizzle")
    whole = layout_of(_held(store))
    width = span // byte_width(kind)
    most = sizes[row] // width
    # Where warps hold different panels, some of them go at once.
    for panels in (n for n in range(most, 0, -1) if most % n == 0):
        part = list(sizes)
        part[row] = sizes[row] // panels
        layout = part_layout(whole, row, panels, tuple(part)) if panels > 1 else whole
        if layout is not None:
            break
    else:
        raise InternalError("a tile is one panel at least")
    buffer = BufferType(tuple(part), kind, in_panels(tuple(part), width, row, span))
    box, swizzle = box_of(buffer)
    for rows in _BOX_ROWS:
        box = tuple(box[d] if d == row else rows for d in range(2))
        if part[1 - row] % rows == 0 and warp_boxes(layout, tuple(part), box) is not None:
            return _Plan(panels, row, layout, buffer, box, swizzle)
    raise Refusal("no warp holds whole boxes")


_BOX_ROWS = (64, 32, 16, 8)
"""Rows of a box, the most first: swizzled rows repeat every 8."""


def _emit(store: tile.StoreOp, function: ir.Operation) -> None:
    plan, held = _plan(store), _held(store)
    with ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]):
        tensor_map = MakeTensorMapOp.build(
            store.dst, box=plan.box, dims=store.dims, swizzle=plan.swizzle
        )
    slots = plan.slots
    with ir.InsertionPoint(store.operation):
        ring = AllocOp.build(results=[plan.buffer.with_slots(slots).type()])
        at = [as_copy_coordinate(offset) for offset in store.offsets]
        axis = store.dims[plan.row]
        for number, part in enumerate(_parts(held, plan)):
            corner = list(at)
            if number:
                step = i32_constant(number * plan.buffer.shape[plan.row])
                corner[axis] = binary("arith.addi", at[axis], step)
            buffer = SlotOp.build(ring, i32_constant(number % slots))
            pending = pending_stores(number, plan.panels, slots)
            WarpTmaStoreOp.build(part, buffer, tensor_map, corner, pending=pending)
    conversion = None if held == store.value else store.value.owner.operation
    store.operation.erase()
    if conversion is not None and not list(conversion.results[0].uses):
        conversion.erase()


def _parts(value: ir.Value, plan: _Plan) -> list[ir.Value]:
    """The tile cut into panels; each thread's registers are dealt out."""
    if plan.panels == 1:
        return [value]
    type_ = tile_type(plan.buffer.shape, plan.buffer.element, layout_attr(plan.layout))
    return tile.SplitOp.build(value, results=[type_] * plan.panels, axis=plan.row)
