"""insert-async-copies: loads that only fill a buffer become asynchronous copies.

Before:   %t = "tile.load"(%a, %m, %k) ...   "gpu_tile.buffer_store"(%t, %s)
After:    "gpu_tile.cp_async"(%a, %s, %true, %m, %k) {dims = ..., bytes = 16 : i32, cache = "cg"}
          "gpu_tile.cp_async_commit"()   "gpu_tile.cp_async_wait"() {pending = 0 : i32}

The data does not pass through registers, and pipeline-loops can issue the copy ahead of its use. The
wait stands right behind, so the program means the same without that pass. A copy needs 4 provably
aligned bytes and zero padding; where it does not fit, the load stays and the report says why.
Does not handle: loads outside loops (nothing to overlap them with), loads whose values are also used in
registers.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.gpu_tile import BufferStoreOp, CpAsyncCommitOp, CpAsyncOp, CpAsyncWaitOp
from tilec.dialects.gpu_tile.types import buffer_of
from tilec.dialects.types import bit_width, element, shape
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.divisibility import Divisibility
from tilec.passes.layout_candidates import blocked_layout
from tilec.passes.lower_to_nvvm.buffer import shared_width
from tilec.passes.vector_width import contiguous_dim, element_bytes, provable_width
from tilec.target import Feature

SMALLEST_COPY = 4
"""Bytes; PTX ISA 9.0, "cp.async": cp-size is 4, 8 or 16."""


@tile_pass(requires=Level.LAYOUTS, ensures=Level.LAYOUTS)
def insert_async_copies(module: ir.Module, context: PassContext) -> None:
    """Turns load + buffer_store pairs in loops into cp_async, where the target has it."""
    if not context.target.supports(Feature.CP_ASYNC):
        return
    for function in module.body.operations:
        if function.operation.name == "func.func":
            _rewrite(function.operation, context)


def _rewrite(function: ir.Operation, context: PassContext) -> None:
    facts = Divisibility(function)
    stores: list[BufferStoreOp] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if isinstance(op.opview, BufferStoreOp):
            stores.append(op.opview)
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    blocks: list[ir.Block] = []
    for store in stores:
        load = store.value.owner
        if isinstance(load, tile.LoadOp) and _in_loop(load.operation):
            block = store.operation.block
            if _copy(load, store, facts, context) and block not in blocks:
                blocks.append(block)
    for block in blocks:
        _close_groups(block)


def _in_loop(op: ir.Operation) -> bool:
    parent = op.parent
    while parent is not None and parent.name not in ("scf.for", "scf.while"):
        parent = parent.parent
    return parent is not None


def _copy(
    load: tile.LoadOp, store: BufferStoreOp, facts: Divisibility, context: PassContext
) -> bool:
    width, why = provable_width(facts, load.src, load.offsets, load.dims)
    inside = _width_inside(load, store, width, context)
    if inside < width:
        width, why = inside, "the buffer holds no longer run"
    bytes_ = width * element_bytes(load.src)
    reason = _refusal(load, store, bytes_, why)
    if reason is not None:
        context.report.add("asynchronous copy", load.operation, "no", reason)
        return False
    i1 = ir.IntegerType.get_signless(1)
    with ir.InsertionPoint(store.operation), load.operation.location:
        always = ir.Operation.create(
            "arith.constant", results=[i1], attributes={"value": ir.IntegerAttr.get(i1, 1)}
        ).results[0]
        CpAsyncOp.build(
            load.src,
            store.dst,
            always,
            load.offsets,
            dims=load.dims,
            bytes=bytes_,
            cache="cg" if bytes_ == 16 else "ca",
        )
    context.report.add(
        "asynchronous copy", load.operation, f"cp.async of {bytes_} bytes", "only fills a buffer"
    )
    store.operation.erase()
    load.operation.erase()
    return True


def _width_inside(load: tile.LoadOp, store: BufferStoreOp, width: int, context: PassContext) -> int:
    """Elements of a vector of `width` that neighbour each other in the buffer, too."""
    buffer = buffer_of(store.dst)
    contiguous = contiguous_dim(load.src, load.dims)
    if contiguous is None:
        return 1
    sizes = shape(load.result)
    layout = blocked_layout(sizes, contiguous, width, context.num_threads, narrow=False)
    return min(width, shared_width(buffer.layout, layout, len(sizes), buffer.element_bytes))


def _refusal(load: tile.LoadOp, store: BufferStoreOp, bytes_: int, why: str) -> str | None:
    if sum(1 for _ in load.result.uses) > 1:
        return "the tile is also used in registers"
    if load.operation.block != store.operation.block:
        return "load and use stand in different blocks"
    if bytes_ < SMALLEST_COPY:
        return f"only {bytes_} bytes are provably aligned: {why}"
    if not _is_zero(load.padding):
        return f"padding is {load.padding}; a copy fills with zeros"
    if "cache" in load.options:
        return "the load has a cache hint"
    if bit_width(element(load.result)) < 8:
        return f"{element(load.result)} is not stored as whole bytes"
    return None


def _is_zero(padding: ir.Attribute) -> bool:
    # -0.0 has a bit that a zero fill would lose.
    return padding.value == 0 and not str(padding).startswith("-")


def _close_groups(block: ir.Block) -> None:
    """One commit and wait behind each run of copies with nothing but pure address code between."""
    pending: ir.Operation | None = None
    for view in list(block.operations):
        if isinstance(view, CpAsyncOp):
            pending = view.operation
        elif pending is not None and not _is_between_copies(view.operation):
            _close(pending)
            pending = None
    if pending is not None:
        _close(pending)


def _is_between_copies(op: ir.Operation) -> bool:
    return op.name.startswith("arith.") or op.name in ("gpu_tile.alloc", "memref.dim")


def _close(copy: ir.Operation) -> None:
    following = list(copy.block.operations)
    at = next(i for i, o in enumerate(following) if o.operation == copy) + 1
    with ir.InsertionPoint(following[at]), copy.location:
        CpAsyncCommitOp.build()
        CpAsyncWaitOp.build(pending=0)
