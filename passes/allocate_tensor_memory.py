"""allocate-tensor-memory: buffers in tensor memory get columns, and the kernel takes and returns
them.

Before:   %acc = "gpu_tile.alloc"() {options = {}} : () -> !gpu_tile.buffer<..., #gpu_tile.tmem<..>>
          ...
After:    "gpu_tile.reserve_tensor_memory"() {columns = 256 : i32, options = {}}
          "gpu_tile.sync"() ...
          %acc = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : ...
          ...
          "gpu_tile.sync"() ...
          "gpu_tile.release_tensor_memory"() {columns = 256 : i32}

Buffers that are never alive together share columns (`lifetimes.py`, `placement.py`), but no
more than a smaller power of two needs: in a loop who shares has to wait for the others. Each
begins at a multiple of its columns rounded up to a power of two (of 32 at most), together they take
a power of two (PTX ISA 9.0, "tcgen05.alloc"). The allocs move to the
kernel's top, behind a sync that is there anyway before the first use, else behind one that is put
there; the kernel has one way out, and there all threads meet before the first warp returns the
memory.
Does not handle: columns for a part of the kernel only (they are held from its start to its end);
buffers that need more columns than there are (`TensorMemoryFull`: sums come to lie in registers, or
an error).
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.def_use import of_kind
from tilec.dialects.gpu_tile import (
    AllocOp,
    MakeRingOp,
    ReleaseTensorMemoryOp,
    ReserveTensorMemoryOp,
    SyncOp,
)
from tilec.dialects.gpu_tile.role import total_warps
from tilec.dialects.gpu_tile.types import is_tensor_buffer
from tilec.hardware.powers import power_above
from tilec.hardware.tensor_memory import COLUMNS, LEAST_COLUMNS
from tilec.messages.diagnostics import TensorMemoryFull
from tilec.passes.analysis.lifetimes import find_tensor_allocations
from tilec.passes.analysis.placement import place, spread
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.loops import behind
from tilec.passes.rewriting.op_tables import OpSet
from tilec.passes.rewriting.walk import all_ops, find_ops


@kernel_pass(requires=Level.BUFFERS, keeps=True)
def allocate_tensor_memory(function: ir.Operation, context: PassContext) -> None:
    """Fills in columns. CompileError naming the buffers if they do not fit."""
    allocs, reserved = _find(function)
    if not allocs or reserved:
        return
    found = find_tensor_allocations(function)
    used = place(found)
    if used > COLUMNS:
        raise error_at(
            function,
            f"the kernel needs {used} columns of tensor memory, a CTA has {COLUMNS}",
            *map(str, found),
            "help: smaller tiles or fewer slots need less",
            kind=TensorMemoryFull,
        )
    columns = max(LEAST_COLUMNS, power_above(used))
    spread(found, columns)
    for each in found:
        each.op.options = {"offset": each.offset}
    _take_and_return(function, allocs, columns, total_warps(function, context.num_warps))
    context.report.add(
        "tensor memory",
        function,
        f"{columns} columns",
        f"{len(found)} buffers of {sum(each.size for each in found)} columns in all",
        columns=columns,
    )


def _find(function: ir.Operation) -> tuple[list[AllocOp], bool]:
    """The allocs in tensor memory, in program order, and whether the kernel takes it already."""
    allocs = [op.opview for op in find_ops(function, AllocOp)]
    reserved = bool(find_ops(function, ReserveTensorMemoryOp))
    return [alloc for alloc in allocs if is_tensor_buffer(alloc.result)], reserved


def _take_and_return(
    function: ir.Operation, allocs: list[AllocOp], columns: int, warps: int
) -> None:
    block = function.regions[0].blocks[0]
    synced = _behind_sync(block, allocs)
    place = _behind_rings(block) if synced is None else synced.operation
    with ir.InsertionPoint(_behind_rings(block)), function.location:
        ReserveTensorMemoryOp.build(columns=columns)
        if synced is None:
            SyncOp.build(warps=warps)
    for alloc in allocs:
        if alloc.operation != place:
            alloc.operation.move_before(place)
    with ir.InsertionPoint.at_block_terminator(block), function.location:
        SyncOp.build(warps=warps)
        ReleaseTensorMemoryOp.build(columns=columns)


def _behind_rings(block: ir.Block) -> ir.Operation:
    """The op behind the kernel's rings, which are made known by the same sync."""
    rings = [ring.operation for ring in of_kind(block.operations, MakeRingOp)]
    return behind(rings[-1]) if rings else next(iter(block.operations)).operation


def _behind_sync(block: ir.Block, allocs: list[AllocOp]) -> ir.OpView | None:
    """The op behind the CTA's first sync, if that stands before any use of `allocs`."""
    users = OpSet(use.owner for alloc in allocs for use in alloc.result.uses)
    synced = False
    for view in block.operations:
        if synced:
            return view
        if isinstance(view, SyncOp) and view.barrier == 0 and view.mode == "sync":
            synced = True
        elif any(inner in users for inner in all_ops(view.operation)):
            return None
    return None
