"""allocate-shared: every buffer gets its place; buffers that never live together share it.

Before:   %a = "gpu_tile.alloc"() {options = {}} ...
After:    %a = "gpu_tile.alloc"() {options = {offset = 1024 : i32}} ...
          and `tile.shared_bytes` on the kernel

A buffer lives from its alloc to its last use in program order; a use in a loop that does not hold
the alloc keeps it alive to the loop's end. Largest first, each at the lowest free offset.
insert-barriers, which runs after, orders accesses to buffers that share memory.
Does not handle: asynchronous readers (they end at their wait, not at their issue).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from mlir import ir

from tilec.dialects.gpu_tile import AllocOp, ReshapeViewOp, SlotOp, ViewOp
from tilec.dialects.gpu_tile.types import BufferType, buffer_of
from tilec.dialects.types import show
from tilec.passes.contract import Level, PassContext, show_location, tile_pass
from tilec.passes.locations import error_at

SHARED_BYTES = "tile.shared_bytes"


@dataclass
class _Placed:
    op: AllocOp
    type: BufferType
    first: int
    last: int
    offset: int = 0


@tile_pass(requires=Level.BUFFERS, ensures=Level.ALLOCATED)
def allocate_shared(module: ir.Module, context: PassContext) -> None:
    """Fills in offsets. CompileError naming the buffers if they do not fit."""
    for function in module.body.operations:
        if function.operation.name == "func.func":
            _allocate(function.operation, context)


def _allocate(function: ir.Operation, context: PassContext) -> None:
    buffers = _lifetimes(function)
    total = _place(buffers)
    for buffer in buffers:
        buffer.op.operation.attributes["options"] = AllocOp.options.kind.write(
            {"offset": buffer.offset}
        )
    i32 = ir.IntegerType.get_signless(32)
    function.attributes[SHARED_BYTES] = ir.IntegerAttr.get(i32, total)
    if total > context.target.shared_bytes:
        sizes = [
            f"{b.type.size_bytes} bytes for {show(b.type.shape)}x{b.type.element} "
            f"({show_location(b.op.operation)})"
            for b in buffers
        ]
        raise error_at(
            function,
            f"the kernel needs {total} bytes of shared memory, "
            f"{context.target.name} has {context.target.shared_bytes}",
            *sizes,
            "help: smaller tiles need less",
        )
    if buffers:
        context.report.add(
            "shared memory",
            function,
            f"{total} bytes",
            f"{len(buffers)} buffers of {sum(b.type.size_bytes for b in buffers)} bytes in all",
            bytes=total,
        )


def shared_bytes(function: ir.Operation, without: Collection[ir.Operation] = ()) -> int:
    """Bytes the buffers of a kernel take, those that the ops `without` allocate left out."""
    buffers = [b for b in _lifetimes(function) if b.op.operation not in without]
    return _place(buffers)


def _place(buffers: list[_Placed]) -> int:
    """Fills in offsets; returns the bytes they take together."""
    placed: list[_Placed] = []
    for buffer in sorted(buffers, key=lambda b: -b.type.size_bytes):
        buffer.offset = _lowest_offset(buffer, placed)
        placed.append(buffer)
    return max((b.offset + b.type.size_bytes for b in placed), default=0)


def _lowest_offset(buffer: _Placed, placed: list[_Placed]) -> int:
    alive = sorted(
        (b for b in placed if b.first <= buffer.last and buffer.first <= b.last),
        key=lambda b: b.offset,
    )
    align = buffer.type.alignment_bytes
    offset = 0
    for other in alive:
        if offset + buffer.type.size_bytes <= other.offset:
            break
        end = other.offset + other.type.size_bytes
        offset = max(offset, -(-end // align) * align)
    return offset


def _lifetimes(function: ir.Operation) -> list[_Placed]:
    position: dict[ir.Operation, int] = {}
    loop_end: dict[ir.Operation, int] = {}

    def visit(op: ir.Operation) -> None:
        position[op] = len(position)
        for region in op.regions:
            for block in region.blocks:
                for inner in block.operations:
                    visit(inner.operation)
        loop_end[op] = len(position)

    visit(function)
    allocs = [op.opview for op in position if isinstance(op.opview, AllocOp)]
    return [
        _Placed(
            alloc,
            buffer_of(alloc.result),
            position[alloc.operation],
            _last_use(alloc.result, alloc.operation, position, loop_end),
        )
        for alloc in allocs
    ]


def _last_use(
    value: ir.Value,
    alloc: ir.Operation,
    position: dict[ir.Operation, int],
    loop_end: dict[ir.Operation, int],
) -> int:
    last = position[alloc]
    for use in value.uses:
        user = use.owner.operation
        if isinstance(user.opview, (ViewOp, ReshapeViewOp, SlotOp)):
            last = max(last, _last_use(user.results[0], alloc, position, loop_end))
        at, end = user, position[user]
        while at.block != alloc.block:
            at = at.parent
            end = loop_end[at]
        last = max(last, end)
    return last
