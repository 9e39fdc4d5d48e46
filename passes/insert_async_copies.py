"""insert-async-copies: loads that fill buffers become asynchronous copies.

Before:   %t = "tile.load"(%a, %m, %k) ...   "gpu_tile.buffer_store"(%t, %s)
After:    "gpu_tile.cp_async"(%a, %s, %true, %m, %k) {dims = ..., bytes = 16 : i32, cache = "cg"}
          "gpu_tile.cp_async_commit"()   "gpu_tile.cp_async_wait"() {pending = 0 : i32}

The data does not pass through registers, and pipeline-loops can issue the copy ahead of its use.
The wait stands right behind, so the program means the same without that pass.

1. A load in a loop qualifies if all its uses fill buffers; a transpose on the way becomes the
   copy's `dims`. Several buffers take a copy each. So does a gather, as `cp_async_gather`, if the
   numbers of later iterations' rows are known ahead.
2. Where the author demands stages, a load whose value is used in registers, too, is copied to a
   buffer and read back from there. Undemanded it stays, unless a tensor copy fills a product's
   buffer with it (`copies/copies_beside.py`): it would cost a second instruction per vector and a
   barrier, which a loop without dots wins back only where few warps hide the latency.
   In a branch, of a block that some iterations skip, the copy stands in front of the branch, masked
   by its condition (`copies/masked_copies.py`), where pipeline-loops can issue it ahead.
3. A copy needs 4 provably aligned bytes and zero padding; where it does not fit, the load stays and
   the report says why. Of a gather it needs so many neighbours (its option `run`).

Does not handle: loads outside loops (nothing to overlap them with).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.def_use import of_kind
from tilec.dialects.gpu_tile import (
    AllocOp,
    BufferLoadOp,
    BufferStoreOp,
    CpAsyncCommitOp,
    CpAsyncWaitOp,
    ThreadCopy,
    TmaLoadOp,
)
from tilec.dialects.gpu_tile.types import BufferType, buffer_of
from tilec.dialects.tile import ArrayOp
from tilec.dialects.types import is_tile
from tilec.hardware.sizes import VECTOR_BYTES
from tilec.hardware.target import Feature
from tilec.passes.analysis.addresses_ahead import ADDRESS_OPS, address_ops
from tilec.passes.analysis.divisibility import Divisibility
from tilec.passes.analysis.hazards import read_ahead_hazard
from tilec.passes.analysis.placement import shared_bytes
from tilec.passes.contract import Level, PassContext, Report, kernel_pass
from tilec.passes.copies.buffer_fills import (
    Read,
    Uses,
    copy_bytes,
    emit_cp_async,
    feeds_tensor_cores,
    uses_of,
    why_no_copy,
)
from tilec.passes.copies.copies_beside import plan_copies_beside, read_operands_back
from tilec.passes.copies.im2col_walks import im2col_walk
from tilec.passes.copies.masked_copies import move_in_front
from tilec.passes.copies.tensor_copies import TensorCopy, emit_tensor_copies, plan_tensor_copy
from tilec.passes.demands.loops import STAGES, demands_roles, forbids_roles
from tilec.passes.layouts.buffer_layouts import buffer_for
from tilec.passes.rewriting.free_ops import erase_unused
from tilec.passes.rewriting.loops import enclosing_ops, is_program_loop
from tilec.passes.rewriting.op_tables import OpSet
from tilec.passes.rewriting.refusals import attempt
from tilec.passes.rewriting.walk import find_ops, uses_behind
from tilec.passes.roles.fills import fill_by_roles, loads_for, operand_fills, worthwhile_fills


@kernel_pass(
    requires=Level.LAYOUTS,
    needs=Feature.CP_ASYNC,
    behind={"stage-operands": "that makes the buffers that copies fill"},
    rings=True,
)
def insert_async_copies(function: ir.Operation, context: PassContext) -> None:
    """Turns loads that fill buffers in loops into cp_async, where the target has it."""
    facts, loads = Divisibility(function), _reads(function)
    if context.target.supports(Feature.TMA) and (
        context.allowance.copies or demands_roles(function)
    ):
        loads = _use_tensor_maps(function, loads, facts, context)
    blocks: list[ir.Block] = []
    for load in loads:
        loop = _loop_of(load.operation)
        if loop is None:
            continue
        uses = uses_of(load.result, load.along)
        demanded = _demands_stages(loop) and load.operation.block == loop.regions[0].blocks[0]
        demanded = demanded and not _is_address(load)
        if isinstance(load, tile.GatherOp) and uses.in_registers:
            continue
        if not uses.fills and not (demanded and uses.in_registers):
            continue
        if not demanded and not context.allowance.copies:
            continue
        block = _copy(load, uses, demanded, facts, context)
        if block is not None and block not in blocks:
            blocks.append(block)
    for block in blocks:
        _close_groups(block)


def _reads(function: ir.Operation) -> list[Read]:
    return [op.opview for op in find_ops(function, tile.LoadOp, tile.GatherOp)]


def _use_tensor_maps(
    function: ir.Operation, reads: list[Read], facts: Divisibility, context: PassContext
) -> list[Read]:
    """Makes tensor copies of the loops whose loads all fill operands that matrix instructions read
    from buffers, and of some of a loop's loads where a load role fills the rest; returns the loads
    and gathers that are left to threads that multiply."""
    by_block: dict[ir.Block, list[Read]] = {}
    for read in reads:
        fills = uses_of(read.result, read.along).fills
        if _loop_of(read.operation) is not None and any(
            feeds_tensor_cores(f, context) for f in fills
        ):
            loads = by_block.setdefault(read.operation.block, [])
            gathered = isinstance(read, tile.GatherOp)
            loads += [] if gathered and attempt(im2col_walk, read)[0] is None else [read]
    with_roles = context.target.supports(Feature.WGMMA) and demands_roles(function)
    rest: list[BufferStoreOp] = operand_fills(function) if with_roles else []
    plans = []
    multiply = context.target.supports(Feature.WGMMA) and not forbids_roles(function)
    for block, candidates in by_block.items():
        if multiply and candidates:
            _read_back_where_two_fit(function, candidates, facts, context)
        plan = _plan_each(candidates, facts, context) if with_roles else None
        if plan is None:
            plan, others = _plan_block(function, block, candidates, facts, context)
            rest += others
        plans.append(plan)
    taken = OpSet(copy.store for plan in plans for copy in plan)
    rest = [store for store in rest if store not in taken]
    passed_on = OpSet(read for store in rest for read in loads_for(function, store))
    for copies in filter(None, plans):
        copies += plan_copies_beside(copies, passed_on, facts, context)
        emit_tensor_copies(copies)
        for load in OpSet(copy.load for copy in copies):
            _erase(load, uses_of(load.result, load.along), None)
            gathered = isinstance(load, tile.GatherOp)
            why = "rows follow each other" if gathered else "a tensor map describes the array"
            by = "TMA, in im2col mode" if gathered else "TMA"
            context.report.add("asynchronous copy", load.operation, by, why)
            if gathered:
                erase_unused(load.result)  # and the numbers of its rows
            else:
                load.operation.erase()
    kept = fill_by_roles(function, rest, context)
    return [read for read in _reads(function) if read.operation not in kept]


def _read_back_where_two_fit(
    function: ir.Operation, loads: list[Read], facts: Divisibility, context: PassContext
) -> None:
    """Has registers read operands back where shared memory holds what loads fill twice, beside the
    rest: one slot of tensor copies, which nobody refills ahead, is slower than cp.async
    (Householder products, backward: 210 us for 194, H200). Else the report says that the loop has
    one slot: other tiles, if the compiler chooses them, leave room for a second."""
    uses = [uses_of(load.result, load.along) for load in loads]
    fills = [fill.store.dst for use in uses for fill in use.fills]
    filled = OpSet(dst.owner for dst in fills if isinstance(dst.owner.opview, AllocOp))
    slot = sum(buffer_of(alloc.results[0]).slot_bytes for alloc in filled)
    if shared_bytes(function, without=filled) + 2 * slot <= context.target.shared_bytes:
        read_operands_back(loads, facts, context)
    elif all(use.in_registers for use in uses):
        why = f"a stage takes {slot} bytes of shared memory, and no second fits beside the rest"
        context.report.add("pipeline", _loop_of(loads[0].operation), "no", why, stages=1)


def _plan_each(loads: list[Read], facts: Divisibility, context: PassContext) -> list[TensorCopy]:
    """The copies of all loads that can be tensor copies."""
    return [copy for load in loads for copy in _plan_tensor_copies([load], facts, context)]


def _plan_block(
    function: ir.Operation,
    block: ir.Block,
    loads: list[Read],
    facts: Divisibility,
    context: PassContext,
) -> tuple[list[TensorCopy], list[BufferStoreOp]]:
    """The tensor copies of a block without a demand, and what else a load role had better fill.

    A role that gathers runs ahead into the next program of a CTA. Where it has none, several CTAs
    whose threads gather for themselves share a multiprocessor instead: jagged products in tiles of
    128 x 64 take 14.7 us for 19.1 by roles, of 128 x 128 86.9 for 103, of 128 x 256 57.1 for 63.0
    (H200)."""
    silent = replace(context, report=Report())
    some = _plan_each(loads, facts, silent)
    taken = OpSet(copy.store for copy in some)
    walked = OpSet(copy.load for copy in some)
    gathers = [g for g in of_kind(block.operations, tile.GatherOp) if g not in walked]
    multiplies = context.target.supports(Feature.TCGEN05)  # in a role of its own, if others copy
    alone = multiplies and gathers and not forbids_roles(function)
    beside = some and not multiplies and any(_is_gathered_ahead(g, facts, context) for g in gathers)
    shared = any(map(is_program_loop, enclosing_ops(block.owner)))
    by_roles = alone or (some and (multiplies or context.target.supports(Feature.WGMMA)))
    if by_roles and (shared or not beside):
        rest = worthwhile_fills(function, block, taken, facts, silent)
        if rest:
            return some, rest
    if beside:
        for load in loads:
            why = "threads that multiply gather rows beside it, several iterations ahead"
            context.report.add("tensor map", load.operation, "no", why)
        return [], []
    return _plan_tensor_copies(loads, facts, context), []


def _is_gathered_ahead(gather: tile.GatherOp, facts: Divisibility, context: PassContext) -> bool:
    """Whether a gather is of operands and becomes copies issued ahead."""
    uses = uses_of(gather.result, gather.along)
    targets = [(buffer_of(fill.store.dst), fill.dims) for fill in uses.fills]
    wanted = any(feeds_tensor_cores(fill, context) for fill in uses.fills)
    return wanted and _bytes_or_reason(gather, uses, targets, False, facts, context)[1] is None


def _plan_tensor_copies(
    loads: list[Read], facts: Divisibility, context: PassContext
) -> list[TensorCopy]:
    """A copy for every fill of the loads, or nothing and the reason in the report."""
    copies: list[TensorCopy] = []
    if not loads:
        return copies
    kernel = enclosing_ops(loads[0].operation)[-1].parent
    # One slot that nobody refills ahead is slower than cp.async into several.
    forbidden = "warp_specialize=False" if forbids_roles(kernel) else None
    for load in loads:
        uses = uses_of(load.result, load.along)
        reason = forbidden or why_no_copy(load, uses, False, VECTOR_BYTES, "")
        for fill in uses.fills if reason is None else ():
            planned, why = attempt(plan_tensor_copy, load, fill.store, fill.dims, facts, context)
            if planned is None:
                reason = why
                break
            copies.append(planned)
        if reason is not None:
            context.report.add("tensor map", load.operation, "no", reason)
            return []
    return copies


def _loop_of(op: ir.Operation) -> ir.Operation | None:
    parent = op.parent
    while parent is not None and parent.name not in ("scf.for", "scf.while"):
        parent = parent.parent
    return parent


def _demands_stages(loop: ir.Operation) -> bool:
    # A demand that is no integer is pipeline-loops' to refuse.
    stages = loop.attributes.get(STAGES)
    return isinstance(stages, ir.IntegerAttr) and stages.value > 1


def _is_address(load: Read) -> bool:
    """Whether other copies and accesses go where the loaded number says, or only if it says so: it
    has to be there when they are issued, ahead of their own iteration."""

    def passed_on(use: ir.OpOperand) -> Iterable[ir.Value]:
        op = use.owner.operation
        return op.results if op.name.startswith(("arith.", "tensor.extract")) else ()

    uses = uses_behind(load.result, passed_on)
    return any(
        not is_tile(use.owner.operands[use.operand_number])
        and find_ops(use.owner.operation, ArrayOp, TmaLoadOp)
        for use in uses
    )


def _copy(
    load: Read, uses: Uses, demanded: bool, facts: Divisibility, context: PassContext
) -> ir.Block | None:
    """Makes copies of a load; returns the block that they stand in, None where they cannot be."""
    targets = [(buffer_of(fill.store.dst), fill.dims) for fill in uses.fills]
    home = next((f.store.dst for f in uses.fills if f.dims == load.along), None)
    own = None
    if uses.in_registers and home is None and demanded:
        own = buffer_for(load.result)
        targets.append((own, load.along))
    bytes_, reason = _bytes_or_reason(load, uses, targets, demanded, facts, context)
    if reason is not None:
        context.report.add("asynchronous copy", load.operation, "no", reason)
        return None
    in_front = isinstance(load, tile.LoadOp) and not uses.in_registers
    mask = move_in_front(load, uses) if in_front else None
    with ir.InsertionPoint(load.operation), load.operation.location:
        if own is not None:
            home = AllocOp.build(results=[own.type()])
            emit_cp_async(load, home, load.along, bytes_)
        for fill in uses.fills:
            fill.store.dst.owner.operation.move_before(load.operation)
            emit_cp_async(load, fill.store.dst, fill.dims, bytes_, mask)
        why = "only fills buffers"
        if uses.in_registers:
            why = "the author's demand; read back into registers"
            back = BufferLoadOp.build(home, results=[load.result.type])
    _erase(load, uses, back if uses.in_registers else None)
    context.report.add("asynchronous copy", load.operation, f"cp.async of {bytes_} bytes", why)
    block = load.operation.block
    load.operation.erase()
    return block


def _bytes_or_reason(
    load: Read,
    uses: Uses,
    targets: list[tuple[BufferType, tuple[int, ...]]],
    demanded: bool,
    facts: Divisibility,
    context: PassContext,
) -> tuple[int, str | None]:
    """Bytes of each copy that does what a load or gather does, and why there are none."""
    bytes_, why = copy_bytes(load, targets, facts, context)
    return bytes_, why_no_copy(load, uses, demanded, bytes_, why) or _why_not_ahead(load)


def _why_not_ahead(load: Read) -> str | None:
    """Says why what a gather brings for later iterations cannot be read ahead, so that the loop's
    other copies had better run ahead without it (pipeline-loops); None for loads, and where it
    can."""
    loop = load.operation.parent
    if not isinstance(load, tile.GatherOp) or loop.name != "scf.for":
        return None
    _, reason = attempt(address_ops, loop, [load.operation], tiles=True)
    return reason or read_ahead_hazard(loop, [load.src], "the loop")


def _erase(load: Read, uses: Uses, back: ir.Value | None) -> None:
    for fill in uses.fills:
        fill.store.operation.erase()
    for view in uses.views:
        view.erase()
    if back is not None:
        load.result.replace_all_uses_with(back)


def _close_groups(block: ir.Block) -> None:
    """Puts a commit and a wait behind each run of copies between which only pure address code
    stands."""
    pending: ir.Operation | None = None
    for view in list(block.operations):
        if isinstance(view, ThreadCopy):
            pending = view.operation
        elif pending is not None and not _is_between_copies(view.operation):
            _close(pending)
            pending = None


def _is_between_copies(op: ir.Operation) -> bool:
    return op.name.startswith(ADDRESS_OPS) or op.name in ("gpu_tile.alloc", "memref.dim")


def _close(copy: ir.Operation) -> None:
    following = list(copy.block.operations)
    at = next(i for i, o in enumerate(following) if o.operation == copy) + 1
    with ir.InsertionPoint(following[at]), copy.location:
        CpAsyncCommitOp.build()
        CpAsyncWaitOp.build(pending=0)
