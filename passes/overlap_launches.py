"""overlap-launches: a kernel may start while the one before it in the stream still runs.

Before:   %ring = "gpu_tile.make_ring"() ...
          "gpu_tile.role"() ({ ... })
After:    %ring = "gpu_tile.make_ring"() ...
          "gpu_tile.griddepcontrol"() {kind = "launch_dependents"}
          "gpu_tile.role"() ({
            scf.for %k = %low ... {
              scf.if (%k < %low + %step) { "gpu_tile.griddepcontrol"() {kind = "wait"} }
              "gpu_tile.tma_load" ... } }) {name = "load"}
          "gpu_tile.role"() ({
            "gpu_tile.griddepcontrol"() {kind = "wait"} ... }) {name = "compute"}

CTAs of a kernel with roles are started early (CUDA C++ Programming Guide, "Programmatic Dependent
Launch and Synchronization"): they make their rings, then wait before their first access to
global memory until all earlier launches are done. So what a launch costs, a microsecond or so,
hides under the end of the one before.

1. Where only roles use global memory, each waits by itself. One that only issues tensor copies does
   so in front of the first of them, with its coordinates computed and its slot free: that took
   0.1 to 0.4 us off products on an H200.
2. Else every thread waits in front of the first op that is not known to leave global memory alone.
3. The next launch is let in early only where shared memory has no room for a CTA of it beside ours:
   else several of its CTAs would crowd on the first multiprocessor with room. Without that the next
   launch may start when all CTAs have ended, but before their writes are visible.

Does not handle: kernels without roles, whose copies start at once; explicit kernels, whose author
has `tilec.language.gpu.griddepcontrol`.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.def_use import of_kind
from tilec.dialects.gpu_tile import GriddepcontrolOp, RoleOp, TensorMapLoad, TmaWaitOp
from tilec.dialects.op import TileOp
from tilec.hardware.target import Feature
from tilec.passes.analysis.placement import SHARED_BYTES
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.rewriting.scalars import binary, less
from tilec.passes.rewriting.walk import all_ops, find_ops, kernels

_ENDS = ("func.return", "gpu.yield", "scf.yield")


@tile_pass(
    requires=Level.ALLOCATED,
    ensures=Level.ALLOCATED,
    behind={
        "share-copies": "it waits in front of the first access of each role",
    },
)
def overlap_launches(module: ir.Module, context: PassContext) -> None:
    """Lets kernels with roles start early, and the next launch with them where it has to wait."""
    if not context.target.supports(Feature.GRIDDEPCONTROL):
        return
    for function in kernels(module):
        _overlap(function, context)


def starts_early(function: ir.Operation) -> bool:
    """Whether a kernel waits for earlier launches by itself."""
    return "wait" in _kinds(function)


def _overlap(function: ir.Operation, context: PassContext) -> None:
    body = list(function.regions[0].blocks[0].operations)
    if not any(isinstance(op, RoleOp) for op in body) or _kinds(function):
        return
    first = next(op for op in body if not _is_within_cta(op))
    fills = not context.target.fits_twice(function.attributes[SHARED_BYTES].value)
    with ir.InsertionPoint(first), function.location:
        if fills:
            GriddepcontrolOp.build(kind="launch_dependents")
        by_roles = all(_is_role_or_end(op) for op in body[body.index(first) :])
        if not by_roles:
            GriddepcontrolOp.build(kind="wait")
    for op in body if by_roles else ():
        if isinstance(op, RoleOp):
            _wait_in_role(op)
    chosen = "with the launch before" + (" and the one behind" if fills else "")
    context.report.add("launches overlap", function, chosen, "waits before its first access")


def _is_role_or_end(op: ir.OpView) -> bool:
    """Whether an op of a kernel's own block leaves global memory to roles; waits for stores to have
    read their buffers are behind all of them."""
    return isinstance(op, (RoleOp, TmaWaitOp)) or _is_within_cta(op)


def _wait_in_role(role: RoleOp) -> None:
    copies = find_ops(role.operation, TensorMapLoad)
    if copies and _uses_only(role.operation, copies):
        for block in dict.fromkeys(op.block for op in copies):
            _wait_before_copies(block)
        return
    first = next(
        op for op in role.body.operations if not _is_within_cta(op) or op.operation.name in _ENDS
    )
    with ir.InsertionPoint(first.operation), role.operation.location:
        GriddepcontrolOp.build(kind="wait")


def _uses_only(role: ir.Operation, copies: list[ir.Operation]) -> bool:
    """Whether a role uses global memory by these copies alone."""
    branches = ("scf.for", "scf.if", "scf.while", "scf.condition")
    return all(
        op in (role, *copies) or op.name in branches or _is_within_cta(op.opview)
        for op in all_ops(role)
    )


def _wait_before_copies(block: ir.Block) -> None:
    """Waits in front of a block's first copy; of a loop, in its first iteration."""
    first, *_ = of_kind(block.operations, TensorMapLoad)
    loop = block.owner
    with ir.InsertionPoint(first.operation), first.operation.location:
        if loop.name != "scf.for":
            GriddepcontrolOp.build(kind="wait")
            return
        low, _, step = list(loop.operands)[:3]
        begins = less(block.arguments[0], binary("arith.addi", low, step))
        branch = ir.Operation.create("scf.if", operands=[begins], regions=2)
        with ir.InsertionPoint(branch.regions[0].blocks.append()):
            GriddepcontrolOp.build(kind="wait")
            ir.Operation.create("scf.yield")


def _kinds(function: ir.Operation) -> set[str]:
    return {op.opview.kind for op in find_ops(function, GriddepcontrolOp)}


def _is_within_cta(view: ir.OpView) -> bool:
    if isinstance(view, TileOp):
        return view.IN_CTA
    name = view.operation.name
    return name.startswith("arith.") or name in ("memref.dim", *_ENDS)
