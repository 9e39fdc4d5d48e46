"""overlap-launches: a kernel may start while the one before it in the stream still runs.

Before:   %m = memref.dim %x, %c0
          %t = "tile.load"(%x, %i) ...
After:    %m = memref.dim %x, %c0
          "gpu_tile.griddepcontrol"() {kind = "wait"}
          scf.if (the product of num_programs <= 2048) {
            "gpu_tile.griddepcontrol"() {kind = "launch_dependents"}
          }
          %t = "tile.load"(%x, %i) ...

And:      %ring = "gpu_tile.make_ring"() ...
          "gpu_tile.role"() ({ ... })
After:    %ring = "gpu_tile.make_ring"() ...
          "gpu_tile.griddepcontrol"() {kind = "launch_dependents"}
          "gpu_tile.role"() ({
            scf.for %k = %low ... {
              scf.if (%k < %low + %step) { "gpu_tile.griddepcontrol"() {kind = "wait"} }
              "gpu_tile.tma_load" ... } }) {name = "load"}
          "gpu_tile.role"() ({
            "gpu_tile.griddepcontrol"() {kind = "wait"} ... }) {name = "compute"}

CTAs are started early (CUDA C++ Programming Guide, "Programmatic Dependent Launch and
Synchronization"): they compute indices and make their rings, then wait before their first access to
global memory until all earlier launches are done. So what a launch costs, a microsecond or so,
hides under the end of the one before.

1. Where only roles use global memory, each waits by itself. One that only issues tensor copies does
   so in front of the first of them, with its coordinates computed and its slot free: that took
   0.1 to 0.4 us off products on an H200.
2. Else every thread waits in front of the first op that is not known to leave global memory alone;
   at the end where there is none, since the launch behind waits for this one only.
3. A kernel with roles lets the next launch in only where shared memory has no room for a CTA of it
   beside ours: else several of its CTAs would crowd on the first multiprocessor with room. Without
   that the next launch may start when all CTAs have ended, but before their writes are visible.
4. One without roles lets it in behind the wait, if it has few CTAs (`FEW_CTAS`) and multiplies
   none, which would crowd as well. On an H200 1 to 9 us of elementwise kernels, stencils and sums
   become 0.66 to 0.97 of that; in front of the wait is 0.95 to 1.23 times as long as behind it, the
   wait alone 0.86 to 1.00 of none.

Does not handle: explicit kernels, whose author has `tilec.language.gpu.griddepcontrol`.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.def_use import of_kind
from tilec.dialects.effects import is_product
from tilec.dialects.elementwise import is_elementwise
from tilec.dialects.gpu_tile import GriddepcontrolOp, NumCtasOp, RoleOp, TensorMapLoad, TmaWaitOp
from tilec.dialects.op import TileOp
from tilec.dialects.tile import NumProgramsOp
from tilec.hardware.target import Feature
from tilec.passes.analysis.placement import SHARED_BYTES
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.demands.kernels import ctas_of, is_persistent, is_whole, rounds_of
from tilec.passes.rewriting.control import only_if
from tilec.passes.rewriting.free_ops import is_scalar
from tilec.passes.rewriting.scalars import binary, constant, less
from tilec.passes.rewriting.walk import all_ops, find_ops

FEW_CTAS = 2048
"""Of a launch: an H200 begins 706 CTAs a us that let the next launch in, and 1190 that do not (2112
that do nothing else take 2.99 us for 1.78); 83846 CTAs of 1024 f16 took 102 us for 82."""
_ENDS = ("func.return", "gpu.yield", "scf.yield")


@kernel_pass(
    requires=Level.ALLOCATED,
    needs=Feature.GRIDDEPCONTROL,
    behind={"share-copies": "it waits in front of the first access of each role"},
)
def overlap_launches(function: ir.Operation, context: PassContext) -> None:
    """Lets kernels start early, and the next launch with them where it has to wait."""
    if _kinds(function):
        return
    body = list(function.regions[0].blocks[0].operations)
    first = next((op for op in body if not _is_within_cta(op)), body[-1])
    if has_roles(function):
        behind = _overlap_roles(body, first, context)
    else:
        multiplies = any(is_product(op.opview) for op in all_ops(function))
        behind = "" if multiplies else " and, of few CTAs, the one behind"
        with ir.InsertionPoint(first), function.location:
            GriddepcontrolOp.build(kind="wait")
            if behind:
                _let_in_behind_few(function)
    chosen = f"with the launch before{behind}"
    context.report.add("launches overlap", function, chosen, "waits before its first access")


def starts_early(function: ir.Operation) -> bool:
    """Whether a kernel waits for earlier launches by itself."""
    return "wait" in _kinds(function)


def has_roles(function: ir.Operation) -> bool:
    """Whether some warps of a kernel load for the others."""
    return bool(find_ops(function, RoleOp))


def _overlap_roles(body: list[ir.OpView], first: ir.OpView, context: PassContext) -> str:
    """Writes where roles wait, `first` being the first op of the kernel that may use global memory,
    and whether the launch behind starts with them; says that."""
    function = first.operation.parent
    fills = not context.target.fits_twice(function.attributes[SHARED_BYTES].value)
    by_roles = all(_is_role_or_end(op) for op in body[body.index(first) :])
    with ir.InsertionPoint(first), function.location:
        if fills:
            GriddepcontrolOp.build(kind="launch_dependents")
        if not by_roles:
            GriddepcontrolOp.build(kind="wait")
    for op in body if by_roles else ():
        if isinstance(op, RoleOp):
            _wait_in_role(op)
    return " and the one behind" if fills else ""


def _let_in_behind_few(function: ir.Operation) -> None:
    """Lets the next launch in where the kernel has few CTAs: those that run side by side are."""
    shares = is_persistent(function) and not is_whole(function)
    if shares and rounds_of(function) == 1:
        GriddepcontrolOp.build(kind="launch_dependents")
        return
    if shares:
        ctas = NumCtasOp.build()
    else:
        x, y, z = (NumProgramsOp.build(axis=axis) for axis in range(3))
        each = constant(x.type, ctas_of(function))
        ctas = binary("arith.muli", binary("arith.muli", x, y), binary("arith.muli", z, each))
    few = less(ctas, FEW_CTAS + 1)
    with only_if(few):
        GriddepcontrolOp.build(kind="launch_dependents")


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
        with only_if(begins):
            GriddepcontrolOp.build(kind="wait")


def _kinds(function: ir.Operation) -> set[str]:
    return {op.opview.kind for op in find_ops(function, GriddepcontrolOp)}


def _is_within_cta(view: ir.OpView) -> bool:
    if isinstance(view, TileOp):
        return view.IN_CTA or (view.PURE and view.IN_THREAD)
    op = view.operation
    return is_scalar(op) or is_elementwise(op) or op.name in ("tensor.splat", *_ENDS)
