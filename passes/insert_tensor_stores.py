"""insert-tensor-stores: tiles that do not lie coalesced in registers leave through the copy engine.

Before:   %y = "gpu_tile.convert_layout"(%x)   "tile.store"(%y, %c, %m, %n)
After:    "gpu_tile.tma_wait"() {pending = 0 : i32, read = false}      (the one before is written)
          "gpu_tile.buffer_store"(%x, %s)
          "gpu_tile.tma_store"(%s, %map, %m, %n)   "gpu_tile.tma_commit"()
          ... and at the kernel's end "gpu_tile.tma_wait"() {pending = 0 : i32, read = true}

The threads go on while the tile is on its way: in a persistent kernel the next program's work hides
it. Registers are not rearranged, and a partial tile needs no bounds. Stores of a CTA stay in order:
each waits for the one before, which is long done.
Does not handle: tiles that are not two-dimensional, stores with a cache hint, arrays that the
kernel also reads, kernels that order memory accesses with other CTAs (a flag would not wait for
the copy engine).
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.gpu_tile import (
    AllocOp,
    BufferStoreOp,
    ConvertLayoutOp,
    MakeTensorMapOp,
    TmaCommitOp,
    TmaStoreOp,
    TmaWaitOp,
)
from tilec.dialects.gpu_tile.types import BufferType
from tilec.dialects.types import element, shape
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.divisibility import Divisibility
from tilec.passes.hazards import read_ahead_hazard
from tilec.passes.tensor_copies import box_of
from tilec.passes.tensor_map_rules import why_no_tensor_map
from tilec.passes.vector_width import contiguous_dim
from tilec.passes.warpgroup_dot import operand_layout, swizzle_bytes
from tilec.target import Feature


@tile_pass(requires=Level.LAYOUTS, ensures=Level.LAYOUTS)
def insert_tensor_stores(module: ir.Module, context: PassContext) -> None:
    """Turns stores behind a layout conversion into tensor stores, where the target has them."""
    if not context.target.supports(Feature.TMA):
        return
    for function in module.body.operations:
        if function.operation.name == "func.func":
            _rewrite(function.operation, context)


def _rewrite(function: ir.Operation, context: PassContext) -> None:
    facts = Divisibility(function)
    stores: list[tile.StoreOp] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if isinstance(op.opview, tile.StoreOp) and _converted(op.opview) is not None:
            stores.append(op.opview)
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    written = False
    for store in stores:
        reason = _refusal(store, function, facts, context)
        chosen = "TMA" if reason is None else "no"
        why = reason or "the tile does not lie coalesced in registers"
        context.report.add("tensor store", store.operation, chosen, why)
        if reason is None:
            with store.operation.location:
                _emit(store, function)
            written = True
    if written:
        *_, last = function.regions[0].blocks[0].operations
        with ir.InsertionPoint(last), last.location:
            TmaWaitOp.build(pending=0, read=True)


def _converted(store: tile.StoreOp) -> ConvertLayoutOp | None:
    """The conversion in front of a store that nothing else needs."""
    owner = store.value.owner
    if isinstance(owner, ConvertLayoutOp) and len(list(store.value.uses)) == 1:
        return owner
    return None


def _only_writes(op: ir.Operation) -> bool:
    return op.name in (tile.StoreOp.OPERATION_NAME, "memref.dim", MakeTensorMapOp.OPERATION_NAME)


def _refusal(
    store: tile.StoreOp, function: ir.Operation, facts: Divisibility, context: PassContext
) -> str | None:
    sizes, row = shape(store.value), contiguous_dim(store.dst, store.dims)
    if any(not _only_writes(use.owner) for use in store.dst.uses):
        return "the kernel also reads the array"
    hazard = read_ahead_hazard(function, (), "the kernel")
    if hazard is not None:
        return hazard
    if len(sizes) != 2:
        return f"the tile has {len(sizes)} dimensions"
    if row is None:
        return "no tile dimension has stride 1"
    if "cache" in store.options:
        return "the store has a cache hint"
    if not swizzle_bytes(sizes[row], element(store.value)):
        return f"{sizes[row]} elements along the row fill no swizzle"
    boxed = box_of(_buffer(store, row))
    if isinstance(boxed, str):
        return boxed
    return why_no_tensor_map(
        store.dst,
        store.dims,
        boxed[0],
        facts,
        context.target,
        offsets=store.offsets,
        store=True,
    )


def _buffer(store: tile.StoreOp, row: int) -> BufferType:
    sizes = shape(store.value)
    layout = operand_layout(sizes, element(store.value), row)
    return BufferType(sizes, element(store.value), layout)


def _emit(store: tile.StoreOp, function: ir.Operation) -> None:
    conversion = _converted(store)
    assert conversion is not None
    row = contiguous_dim(store.dst, store.dims)
    assert row is not None
    type_ = _buffer(store, row)
    boxed = box_of(type_)
    assert not isinstance(boxed, str)
    box, swizzle = boxed
    with ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]):
        tensor_map = MakeTensorMapOp.build(store.dst, box=box, dims=store.dims, swizzle=swizzle)
    i32 = ir.IntegerType.get_signless(32)
    with ir.InsertionPoint(store.operation):
        buffer = AllocOp.build(results=[type_.type()])
        TmaWaitOp.build(pending=0, read=False)
        BufferStoreOp.build(conversion.src, buffer)
        at = [
            ir.Operation.create("arith.index_cast", results=[i32], operands=[offset]).results[0]
            for offset in store.offsets
        ]
        TmaStoreOp.build(buffer, tensor_map, at)
        TmaCommitOp.build()
    store.operation.erase()
    conversion.operation.erase()
