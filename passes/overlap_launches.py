"""overlap-launches: a kernel may start while the one before it in the stream still runs.

Before:   %full = "gpu_tile.barrier_init"() ...   "gpu_tile.fence"() ...   "gpu_tile.sync"() ...
          "gpu_tile.role"() ({ ... })
After:    %full = "gpu_tile.barrier_init"() ...   "gpu_tile.fence"() ...   "gpu_tile.sync"() ...
          "gpu_tile.griddepcontrol"() {kind = "launch_dependents"}
          "gpu_tile.griddepcontrol"() {kind = "wait"}
          "gpu_tile.role"() ({ ... })

CTAs of a kernel with roles are started early (CUDA C++ Programming Guide, "Programmatic Dependent
Launch and Synchronization"): they make their barriers, then wait before their first access to
global memory until all earlier launches are done. So what a launch costs, a microsecond or so,
hides under the end of the one before.

1. Every thread waits, in front of the first op that is not known to leave global memory alone.
2. The next launch is let in early only where shared memory has no room for a CTA of it beside ours:
   else several of its CTAs would crowd on the first multiprocessor with room. Without that the next
   launch may start when all CTAs have ended, but before their writes are visible.

Does not handle: kernels without roles, whose copies start at once; explicit kernels, whose author
has `tilec.language.gpu.griddepcontrol`.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects import gpu_tile
from tilec.dialects.gpu_tile import GriddepcontrolOp, RoleOp
from tilec.passes.allocate_shared import SHARED_BYTES
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.walk import kernels
from tilec.target import Feature

_WITHIN_CTA = (
    gpu_tile.AllocOp,
    gpu_tile.BarrierInitOp,
    gpu_tile.ClusterIdOp,
    gpu_tile.ClusterMaskOp,
    gpu_tile.ClusterPositionOp,
    gpu_tile.ClusterSyncOp,
    gpu_tile.CtaIdOp,
    gpu_tile.FenceOp,
    gpu_tile.MakeTensorMapOp,
    gpu_tile.NumClustersOp,
    gpu_tile.NumCtasOp,
    gpu_tile.SlotOp,
    gpu_tile.SyncOp,
    gpu_tile.TileOrderOp,
    gpu_tile.ViewOp,
)
"""Ops of `gpu_tile` that leave global memory alone; a tensor map is a parameter of the kernel."""
_SCALAR_OPS = ("memref.dim", "tile.program_id", "tile.num_programs", "tile.assume")


@tile_pass(requires=Level.ALLOCATED, ensures=Level.ALLOCATED)
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
        GriddepcontrolOp.build(kind="wait")
    chosen = "with the launch before" + (" and the one behind" if fills else "")
    context.report.add("launches overlap", function, chosen, "waits before its first access")


def _kinds(function: ir.Operation) -> set[str]:
    found: set[str] = set()

    def visit(op: ir.Operation) -> ir.WalkResult:
        if isinstance(op.opview, GriddepcontrolOp):
            found.add(op.opview.kind)
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    return found


def _is_within_cta(view: ir.OpView) -> bool:
    name = view.operation.name
    return isinstance(view, _WITHIN_CTA) or name.startswith("arith.") or name in _SCALAR_OPS
