"""allocate-shared: every buffer gets its place; buffers that never live together share it.

Before:   %a = "gpu_tile.alloc"() {options = {}} ...
After:    %a = "gpu_tile.alloc"() {options = {offset = 1024 : i32}} ...
          and `tile.shared_bytes` on the kernel

1. A buffer lives from its alloc to its last use in program order; a use in a loop that does not hold
   the alloc keeps it alive to the loop's end.
2. Largest first, each at the lowest offset that is free while it lives.
3. The first SMALL_TOTAL bytes of small buffers share with nobody, where there is room: to reuse
   memory takes a barrier (insert-barriers, which runs after, places it), which costs more.
Does not handle: asynchronous readers (they end at their wait, not at their issue).
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from tilec.dialects.gpu_tile import AllocOp, ReshapeViewOp, SlotOp, ViewOp
from tilec.dialects.gpu_tile.types import BufferType, buffer_of
from tilec.dialects.types import show
from tilec.passes.contract import Level, PassContext, show_location, tile_pass
from tilec.passes.locations import error_at

SHARED_BYTES = "tile.shared_bytes"
SMALL_BYTES, SMALL_TOTAL = 1024, 2048
"""Up to which size a buffer is small, and how many bytes of small buffers share with nobody."""


@dataclass
class _Placed:
    op: AllocOp
    type: BufferType
    first: int
    last: int
    offset: int = 0

    @property
    def end(self) -> int:
        """One past its last byte."""
        return self.offset + self.type.size_bytes


@tile_pass(requires=Level.BUFFERS, ensures=Level.ALLOCATED)
def allocate_shared(module: ir.Module, context: PassContext) -> None:
    """Fills in offsets. CompileError naming the buffers if they do not fit."""
    for function in module.body.operations:
        if function.operation.name == "func.func":
            _allocate(function.operation, context)


def _allocate(function: ir.Operation, context: PassContext) -> None:
    buffers = _lifetimes(function)
    total = _place(buffers, SMALL_TOTAL)
    if total > context.target.shared_bytes:
        total = _place(buffers, 0)
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


def _place(buffers: list[_Placed], small_total: int) -> int:
    """Gives every buffer its offset; the bytes needed. `small_total`: bytes that share with nobody."""
    placed: list[_Placed] = []
    end = 0
    for buffer in sorted(buffers, key=lambda b: -b.type.size_bytes):
        size = buffer.type.size_bytes
        if size <= min(SMALL_BYTES, small_total):
            small_total -= size
            align = buffer.type.alignment_bytes
            buffer.offset = -(-end // align) * align
        else:
            buffer.offset = _lowest_offset(buffer, placed)
        placed.append(buffer)
        end = max(end, buffer.end)
    return end


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
        offset = max(offset, -(-other.end // align) * align)
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
