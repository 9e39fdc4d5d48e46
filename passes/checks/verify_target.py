"""verify-target: a program for other hardware than it is compiled for is an error, op by op.

Passes ask the target before they choose; a program that comes in with its choices made (a `.tile`
file with layouts, a dump, a kernel in `tilec.language.gpu`) is asked here. Where ops are one
thread's, instructions are ops of nvvm or text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mlir import ir

from tilec.dialects import gpu_tile, tile
from tilec.dialects.gpu_tile.barrier import TENSOR_FENCES
from tilec.dialects.gpu_tile.ring import PRODUCTS
from tilec.dialects.gpu_tile.types import is_tensor_buffer
from tilec.dialects.op import TileOp
from tilec.hardware.mma_shapes import find_instruction
from tilec.hardware.ptx_version import feature_of, instructions
from tilec.hardware.target import TARGETS, Feature, Target
from tilec.messages.diagnostics import CompileError
from tilec.passes.rewriting.locations import error_at

_NEEDS: Mapping[type[TileOp], Feature] = {
    gpu_tile.CpAsyncOp: Feature.CP_ASYNC,
    gpu_tile.CpAsyncCommitOp: Feature.CP_ASYNC,
    gpu_tile.CpAsyncWaitOp: Feature.CP_ASYNC,
    gpu_tile.CpAsyncArriveOp: Feature.MBARRIER,
    gpu_tile.BarrierInitOp: Feature.MBARRIER,
    gpu_tile.RemoteArriveOp: Feature.CLUSTERS,
    gpu_tile.ClusterIdOp: Feature.CLUSTERS,
    gpu_tile.NumClustersOp: Feature.CLUSTERS,
    gpu_tile.ClusterPositionOp: Feature.CLUSTERS,
    gpu_tile.ClusterMaskOp: Feature.CLUSTERS,
    gpu_tile.ClusterSyncOp: Feature.CLUSTERS,
    gpu_tile.NextProgramOp: Feature.CLUSTER_LAUNCH_CONTROL,
    gpu_tile.NextProgramReadOp: Feature.CLUSTER_LAUNCH_CONTROL,
    gpu_tile.FenceOp: Feature.TMA,
    gpu_tile.MakeTensorMapOp: Feature.TMA,
    gpu_tile.TmaLoadOp: Feature.TMA,
    gpu_tile.TmaMulticastOp: Feature.CLUSTERS,
    gpu_tile.TmaPairLoadOp: Feature.TCGEN05,
    gpu_tile.TmaPairMulticastOp: Feature.TCGEN05,
    gpu_tile.Tcgen05MulticastCommitOp: Feature.TCGEN05,
    gpu_tile.TmaStoreOp: Feature.TMA,
    gpu_tile.WarpTmaStoreOp: Feature.TMA,
    gpu_tile.TmaCommitOp: Feature.TMA,
    gpu_tile.TmaWaitOp: Feature.TMA,
    gpu_tile.GriddepcontrolOp: Feature.GRIDDEPCONTROL,
    gpu_tile.ReserveTensorMemoryOp: Feature.TCGEN05,
    gpu_tile.ReleaseTensorMemoryOp: Feature.TCGEN05,
    gpu_tile.Tcgen05CommitOp: Feature.TCGEN05,
    gpu_tile.Tcgen05CopyOp: Feature.TCGEN05,
    gpu_tile.Tcgen05MulticastCommitOp: Feature.TCGEN05,
    gpu_tile.WgmmaFenceOp: Feature.WGMMA,
    gpu_tile.WgmmaMeanwhileOp: Feature.WGMMA,
    gpu_tile.WgmmaWaitOp: Feature.WGMMA,
}
"""What an op takes of the hardware, whatever its attributes."""


_DOTS = (tile.DotOp, tile.DotScaledOp)
_NAMED = (gpu_tile.MmaOp, gpu_tile.WgmmaOp, gpu_tile.Tcgen05MmaOp, gpu_tile.Tcgen05MmaScaledOp)
"""Ops that name an instruction, which says what it takes; dots do where that is chosen."""
_INLINE = "llvm.inline_asm"
_CLUSTER = "nvvm.cluster_dim"
_REGISTER = "read.ptx.sreg."


def verify_target(module: ir.Module, target: Target) -> None:
    """CompileError carrying one error per op that `target` cannot execute."""
    errors: list[CompileError] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        for feature, name in _needed(op):
            if not target.supports(feature):
                able = [name for name, other in TARGETS.items() if other.supports(feature)]
                errors.append(
                    error_at(
                        op,
                        f"'{name}' needs {feature.name}, which {target.name} does not have",
                        f"help: {', '.join(able)} {'has' if len(able) == 1 else 'have'} it",
                    )
                )
                break
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    if errors:
        raise CompileError.group(errors)


def _needed(op: ir.Operation) -> Iterator[tuple[Feature, str]]:
    """What an op takes of the hardware, and the name of what takes it."""
    if op.name.startswith(("llvm.", "nvvm.")):
        names = _instructions(op)
        found = ((feature_of(name), name) for name in names)
    else:
        found = iter([(_feature_of(op.opview), op.name)])
    return ((feature, name) for feature, name in found if feature is not None)


def _instructions(op: ir.Operation) -> list[str]:
    """The instructions of an op that is one thread's, as PTX names them."""
    if op.name == _INLINE:
        return sorted(instructions(op.attributes["asm_string"].value))
    if op.name == "llvm.call_intrinsic":
        return [op.attributes["intrin"].value.removeprefix("llvm.nvvm.")]
    if op.name == "llvm.func":
        return ["barrier.cluster"] if _CLUSTER in op.attributes else []
    name = op.name.removeprefix("nvvm.").removeprefix(_REGISTER)
    return [] if name == op.name else [name]


def _feature_of(view: ir.OpView) -> Feature | None:
    if isinstance(view, gpu_tile.AllocOp):
        return Feature.TCGEN05 if is_tensor_buffer(view.result) else None
    if isinstance(view, gpu_tile.FenceOp) and view.kind in TENSOR_FENCES:
        return Feature.TCGEN05
    if isinstance(view, _DOTS):
        named = view.options.get("instruction")
        return None if named is None else find_instruction(named).feature
    if isinstance(view, _NAMED):
        return find_instruction(view.instruction).feature
    if isinstance(view, gpu_tile.MakeRingOp):
        return Feature.MBARRIER if view.bytes else None
    if isinstance(view, (gpu_tile.RingPublishOp, gpu_tile.RingReleaseOp)):
        return _feature_of_arrival(view)
    if isinstance(view, gpu_tile.RoleOp):
        return Feature.SETMAXNREG if view.registers else None
    return _NEEDS.get(type(view))


def _feature_of_arrival(view: gpu_tile.RingPublishOp | gpu_tile.RingReleaseOp) -> Feature | None:
    if view.by == PRODUCTS:
        return Feature.TCGEN05
    return Feature.CLUSTERS if view.mask is not None else None
