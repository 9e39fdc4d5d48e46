"""How insert-async-copies prepares buffers that no tensor copy fills for a load role.

Before:   %t = "tile.load"(%a, %m, %k) ...   %u = elementwise work on %t
          "gpu_tile.buffer_store"(%u, %s)   "gpu_tile.wgmma"(%s, ...)
After:    %ring = "gpu_tile.make_ring"() {fills = threads ...}                        (in front)
          %slot = "gpu_tile.ring_slot"(%ring, %count)
          "gpu_tile.cp_async"(%a, %s, ...)   "gpu_tile.ring_publish"(%ring, %slot) {by = "copies"}
                or, with whatever stands between load and store,
          "gpu_tile.buffer_store"(%u, %s)    "gpu_tile.ring_publish"(%ring, %slot) {by = "warp"}
          "gpu_tile.ring_wait"(%ring, %count)

Here every thread still fills and waits; specialize-warps makes the ring longer and moves the
filling, with the loads and the work between, to a load role. That is done where the author demands
roles, or where it pays beside tensor copies (`worthwhile_fills`); elsewhere the threads that
multiply issue cp.async (pipeline-loops).

1. A buffer qualifies if a matrix instruction reads it from there and its tile follows from loads,
   gathers and what a thread does with its own elements (`program_slice`).
2. cp.async where load and buffer allow it; each thread's copies arrive by themselves. Else loads
   and stores, one arrival a warp.
3. Buffers that the same instruction reads first share a ring; what is copied shares that of tensor
   copies, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.def_use import defining_op, made_by, of_kind, traced, users
from tilec.dialects.effects import is_product
from tilec.dialects.gpu_tile import (
    AllocOp,
    BufferStoreOp,
    RingPublishOp,
    RingSlotOp,
    RingWaitOp,
    ThreadCopy,
    TmaLoadOp,
)
from tilec.dialects.gpu_tile.ring import COPIES
from tilec.dialects.gpu_tile.types import buffer_of, is_tensor_buffer
from tilec.hardware.sizes import WARPGROUP_WARPS
from tilec.hardware.target import Feature
from tilec.passes.analysis.divisibility import Divisibility
from tilec.passes.analysis.hazards import read_ahead_hazard
from tilec.passes.analysis.index_runs import index_run
from tilec.passes.analysis.vector_width import access_width, element_bytes
from tilec.passes.contract import PassContext
from tilec.passes.copies.buffer_fills import (
    SMALLEST_COPY,
    Fill,
    Read,
    Uses,
    copy_bytes,
    emit_cp_async,
    feeds_products,
    readers,
    why_no_copy,
)
from tilec.passes.layouts.components import is_thin
from tilec.passes.rewriting.free_ops import erase_unused
from tilec.passes.rewriting.loops import (
    add_counter,
    behind,
    find_loops,
    first_in,
    why_no_counter,
)
from tilec.passes.rewriting.op_tables import OpMap, OpSet, order_of
from tilec.passes.rewriting.refusals import Refusal, attempt, refuse
from tilec.passes.rewriting.rings import make_ring
from tilec.passes.rewriting.walk import is_of
from tilec.passes.roles.program_slice import Slice
from tilec.records import dataclass


@dataclass
class _RoleFill:
    """A buffer that a role fills. `load`, `dims`: of a copy of `bytes` each, None where threads
    load and store."""

    store: BufferStoreOp
    load: Read | None = None
    dims: tuple[int, ...] = ()
    bytes: int = 0

    @property
    def block(self) -> ir.Block:
        """The loop body that it stands in."""
        return self.store.operation.block


def operand_fills(function: ir.Operation) -> list[BufferStoreOp]:
    """The stores of a kernel's loops that fill operands of matrix instructions in buffers."""
    blocks = [loop.regions[0].blocks[0] for loop in find_loops(function)]
    return [store for block in blocks for store in _operand_fills(block)]


def _operand_fills(block: ir.Block) -> list[BufferStoreOp]:
    stores = of_kind(block.operations, BufferStoreOp)
    return [store for store in stores if _is_operand(store, block)]


def worthwhile_fills(
    function: ir.Operation,
    block: ir.Block,
    taken: OpSet,
    facts: Divisibility,
    context: PassContext,
) -> list[BufferStoreOp]:
    """Lists the stores that a load role had better take over, beside the tensor copies of a loop
    that replace the stores `taken`: all that is left, if all of it can be copied by cp.async or
    comes from vectors by elementwise work, else none.

    On an H200, products of 4096^3 without a demand: with elementwise work 1.08 to 1.33 times as
    fast as with that work among the products, tf32 with one operand transposed by cp.async 1.0 to
    1.5 times. Not so loads of 2 bytes and bytes that are transposed: 0.8 to 1.2 times. Beside a
    multiply role only copies: nobody has measured more.
    """
    loop, room = block.owner, context.target.max_threads // context.target.warp_size
    if loop.name != "scf.for" or context.num_warps + WARPGROUP_WARPS > room:
        return []
    rest = [store for store in _operand_fills(block) if store not in taken]
    computes = context.target.supports(Feature.WGMMA)
    for store in rest:
        found, _ = attempt(_fill, function, store, facts, context)
        if found is None:
            return []
        if found.load is None and not (computes and _from_vectors(function, store, facts)):
            return []
    return rest


def _from_vectors(function: ir.Operation, store: BufferStoreOp, facts: Divisibility) -> bool:
    """Whether a store's tile is computed from what is loaded in words or more."""
    loads = (op for op in loads_for(function, store) if not is_thin(op.operation.results[0]))
    widths = [_width(op, facts) * element_bytes(op.src) for op in loads]
    computed = bool(widths) and not _is_loaded(store.value)
    return computed and all(width >= SMALLEST_COPY for width in widths)


def _is_loaded(value: ir.Value) -> bool:
    """Whether a tile is one in memory, maybe transposed."""
    return made_by(traced(value, tile.TransposeOp)[1], tile.LoadOp) is not None


def _width(op: Read, facts: Divisibility) -> int:
    """The number of elements that one access of a load or gather may move."""
    if isinstance(op, tile.GatherOp):
        return index_run(op, facts)[1]
    return access_width(op, facts)[0]


def fill_by_roles(
    function: ir.Operation, stores: Sequence[BufferStoreOp], context: PassContext
) -> list[ir.Operation]:
    """Puts rings around what the stores fill, where it may run in a load role; what may not
    stays, with the reason in the report. Gives the loads that are left: what such stores, or the
    numbers of gathered rows, come from."""
    if not stores:
        return []
    facts = Divisibility(function)
    plans: dict[ir.Block, list[_RoleFill]] = {}
    kept: list[ir.Operation] = []
    for store in stores:
        block, loads = store.operation.block, loads_for(function, store)
        if not any(load.operation.block == block for load in loads):
            continue  # computed here, or the same in every iteration
        found, why = attempt(_fill, function, store, facts, context)
        if found is None:
            context.report.add("producer", store.operation, "no", why)
        else:
            plans.setdefault(block, []).append(found)
            kept += [op.operation for op in loads if found.load is None or op != found.load]
    for fills in plans.values():
        _emit(fills, context)
    return kept


def loads_for(function: ir.Operation, store: BufferStoreOp) -> list[Read]:
    """What is loaded for a store."""
    part = Slice(function, [store.operation], tiles=True)
    return of_kind(part.ops, Read)


def _fill(
    function: ir.Operation, store: BufferStoreOp, facts: Divisibility, context: PassContext
) -> _RoleFill:
    """Plans how a load role fills a buffer."""
    if is_tensor_buffer(store.dst):
        raise Refusal("its product reads it from tensor memory, which the warps that compute fill")
    refuse(Slice(function, [store.operation], tiles=True).refusal)
    refuse(_hazard(function, store.operation, loads_for(function, store)))
    return _planned(store, facts, context)


def _is_operand(store: BufferStoreOp, block: ir.Block) -> bool:
    alloc = store.dst.owner
    own = is_of(alloc, AllocOp) and alloc.operation.block == block
    return own and feeds_products(Fill(store, ()))


def _hazard(function: ir.Operation, store: ir.Operation, loads: Sequence[Read]) -> str | None:
    arrays = [load.src for load in loads]
    return why_no_counter(store) or read_ahead_hazard(function, arrays, "the kernel")


def _planned(store: BufferStoreOp, facts: Divisibility, context: PassContext) -> _RoleFill:
    value, order = store.value, list(range(len(buffer_of(store.dst).shape)))
    transposes, value = traced(value, tile.TransposeOp)
    for transpose in transposes:
        order = [transpose.permutation[d] for d in order]
    load = value.owner
    if not isinstance(load, Read):
        op = defining_op(value)
        what = "an iteration before" if op is None else f"'{op.name}'"
        why = f"{what} stands between load and buffer"
        context.report.add("producer", store.operation, "loads and stores", why)
        return _RoleFill(store)
    dims = tuple(load.along[d] for d in order)
    uses = Uses([Fill(store, dims)], False, [])
    bytes_, why = copy_bytes(load, [(buffer_of(store.dst), dims)], facts, context)
    reason = why_no_copy(load, uses, False, bytes_, why)
    if reason is not None:
        context.report.add("producer", load.operation, "loads and stores", reason)
        return _RoleFill(store)
    why = "no tensor map fits; warps of their own copy"
    context.report.add("producer", load.operation, f"cp.async of {bytes_} bytes", why)
    return _RoleFill(store, load, dims, bytes_)


def _emit(fills: Sequence[_RoleFill], context: PassContext) -> None:
    """Rings at the kernel's entry, fills and waits in front of the readers."""
    groups: OpMap[list[_RoleFill]] = OpMap()
    for fill in fills:
        groups.setdefault(_first_reader(fill), []).append(fill)
    count = _count(fills[0].store.operation)
    for reader, group in groups.items():
        copied = all(fill.load is not None for fill in group)
        wait = _wait_beside(reader) if copied else None
        _emit_group(group, wait or _new_ring(group, count), context)


def _first_reader(fill: _RoleFill) -> ir.Operation:
    """The first op of the fill's block that is, or holds, a matrix instruction reading it."""
    products = filter(is_product, readers(fill.store.dst))
    return first_in(fill.block, (product.operation for product in products))


def _wait_beside(reader: ir.Operation) -> RingWaitOp | None:
    """The wait for tensor copies that nothing reads before `reader` does; None where there are
    none."""
    for wait in of_kind(reader.block.operations, RingWaitOp):
        brought = [load.dst for load in users(wait.ring, TmaLoadOp)]
        users_of_slots = (r for dst in brought for r in readers(dst))
        waiting = [r.operation for r in users_of_slots if not isinstance(r, TmaLoadOp)]
        if waiting and first_in(reader.block, waiting) == reader:
            return wait
    return None


def _count(store: ir.Operation) -> ir.Value:
    """The count of the turns of a store's block: that of its tensor copies, if it has some."""
    turns = of_kind(store.block.operations, RingSlotOp)
    return turns[0].count if turns else add_counter(store)


def refused_fills(context: PassContext) -> list[str]:
    """Makes notes for an error of the reasons, as reported, for which a load role does not fill
    buffers."""
    return [
        f"the buffer filled at {entry['at']} stays with its readers: {entry['why']}"
        for entry in context.report.decisions
        if entry["about"] == "producer" and entry["chosen"] == "no"
    ]


def arrivals(copies: bool, stores: bool, warps: int, warp_size: int) -> int:
    """The number of times that `warps` publish a slot which they fill together: every thread once
    for its copies, and every warp once for its stores."""
    return warps * (warp_size * copies + stores)


def _new_ring(group: Sequence[_RoleFill], count: ir.Value) -> RingWaitOp:
    """A ring of the group's own: a turn's slot and its wait, where the last store stands."""
    last = group[-1].store.operation
    ring = make_ring(last)
    with ir.InsertionPoint(behind(last)), last.location:
        RingSlotOp.build(ring, count)
        return RingWaitOp.build(ring, count).owner.opview


def _emit_group(group: Sequence[_RoleFill], wait: RingWaitOp, context: PassContext) -> None:
    """A turn's fills in front of the wait for it, which moves where the last store stands."""
    last, ring = group[-1].store.operation, wait.ring
    turn = users(ring, RingSlotOp)[0].operation
    order = order_of(last.block.operations)
    if order[wait] < order[last]:
        wait.operation.move_before(behind(last))
    copies = any(fill.load is not None for fill in group)
    stores = any(fill.load is None for fill in group)
    with ir.InsertionPoint(wait), last.location:
        for fill in group:
            fill.store.dst.owner.operation.move_before(turn)
            if fill.load is None:
                fill.store.operation.move_before(wait.operation)
            else:
                with fill.load.operation.location:
                    emit_cp_async(fill.load, fill.store.dst, fill.dims, fill.bytes)
        if copies:
            RingPublishOp.build(ring, turn.results[0], by=COPIES)
        if stores:
            RingPublishOp.build(ring, turn.results[0], by="warp")
    _move_readers_behind(wait, group)
    made, warps = ring.owner.opview, context.num_warps
    made.fills += arrivals(copies, stores, warps, context.target.warp_size)
    for fill in group:
        if fill.load is not None:
            value = fill.store.value
            fill.store.operation.erase()
            erase_unused(value)


def _move_readers_behind(wait: RingWaitOp, group: Sequence[_RoleFill]) -> None:
    """Moves what reads a fill and stood in front of the group's last store, as the copy of one
    operand's scales does, behind the wait."""
    order = order_of(wait.operation.block.operations)
    early = [
        reader.operation
        for fill in group
        for reader in readers(fill.store.dst)
        if order.get(reader.operation, len(order)) < order[wait]
        and not isinstance(reader, (BufferStoreOp, ThreadCopy))
    ]
    for reader in sorted(early, key=order.__getitem__, reverse=True):
        reader.move_after(wait.operation)
