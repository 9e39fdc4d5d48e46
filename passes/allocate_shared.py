"""allocate-shared: every buffer and mbarrier gets its place; those that never live together share
it.

Before:   %a = "gpu_tile.alloc"() {options = {}} ...
After:    %a = "gpu_tile.alloc"() {options = {offset = 1024 : i32}} ...
          and `tile.shared_bytes` on the kernel

`analysis/lifetimes.py` says which are alive together, `analysis/placement.py` where each lies.
insert-barriers, which runs after, orders accesses to buffers that share memory. A kernel with
`tile.explicit` has its author's barriers only, so there every buffer has its bytes for itself.
Does not handle: the least memory possible (the largest buffer is placed first, each at the lowest
offset that is free); buffers that do not fit (`DoesNotFit`: their choosers take less, or an error).
"""

from __future__ import annotations

from mlir import ir

from tilec.messages.diagnostics import DoesNotFit
from tilec.passes.analysis.lifetimes import find_allocations
from tilec.passes.analysis.placement import SHARED_BYTES, place
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.rewriting.locations import error_at


@kernel_pass(
    requires=Level.BUFFERS,
    ensures=Level.ALLOCATED,
    behind={"allocate-tensor-memory": "the address of tensor memory lies in shared memory"},
)
def allocate_shared(function: ir.Operation, context: PassContext) -> None:
    """Fills in offsets. CompileError naming the buffers if they do not fit."""
    found = find_allocations(function)
    total = place(found)
    for each in found:
        each.op.options = {"offset": each.offset}
    i32 = ir.IntegerType.get_signless(32)
    function.attributes[SHARED_BYTES] = ir.IntegerAttr.get(i32, total)
    if total > context.target.shared_bytes:
        raise error_at(
            function,
            f"the kernel needs {total} bytes of shared memory, "
            f"{context.target.name} has {context.target.shared_bytes}",
            *(str(each) for each in found if each.size),
            "help: smaller tiles, and fewer stages of loops, need less",
            kind=DoesNotFit,
        )
    if found:
        context.report.add(
            "shared memory",
            function,
            f"{total} bytes",
            f"{len(found)} buffers of {sum(each.size for each in found)} bytes in all",
            bytes=total,
        )
