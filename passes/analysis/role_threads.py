"""Which roles one thread runs alone."""

from __future__ import annotations

from mlir import ir

from tilec.dialects import gpu_tile
from tilec.dialects.elementwise import ELEMENTWISE
from tilec.dialects.gpu_tile.types import is_tiled
from tilec.dialects.op import TileOp, class_of
from tilec.passes.rewriting.free_ops import is_one_element
from tilec.passes.rewriting.walk import find_ops

_SCALAR_PREFIXES = ("scf.", "memref.dim", "gpu.yield")


def runs_in_one_thread(role: gpu_tile.RoleOp) -> bool:
    """Whether the body holds nothing but scalars and what one thread does for all."""
    others: list[ir.Operation] = []

    def look(op: ir.Operation) -> ir.WalkResult:
        if op == role.operation or _is_for_one_thread(op) or is_one_element(op):
            return ir.WalkResult.ADVANCE
        others.append(op)
        return ir.WalkResult.INTERRUPT  # mostly soon: a walk of every op inside would cost more

    role.operation.walk(look, ir.WalkOrder.PRE_ORDER)
    return not others


def runs_in_one_warp(role: gpu_tile.RoleOp) -> bool:
    """Whether a role that one thread could run does nothing but wait and issue tensor copies: a
    whole warp runs it, and elects a thread for each instruction.

    What one thread alone computes is in vector registers, and six moves to uniform registers stand
    between a wait and its copies. A whole warp computes in uniform registers, in front of the wait.
    """
    return (
        runs_in_one_thread(role)
        and bool(find_ops(role.operation, gpu_tile.TmaLoadOp))
        and not any(op.opview.ALONE for op in find_ops(role.operation, TileOp))
    )


def _is_for_one_thread(op: ir.Operation) -> bool:
    name = op.name
    if name.startswith(ELEMENTWISE):  # whose operands are tiles where its result is
        # A constant tile that was moved in here has no instruction of its own.
        return name == "arith.constant" or not is_tiled(op.results[0])
    is_ours = class_of(op) is not None and op.opview.by_one_thread()
    if not is_ours and not name.startswith(_SCALAR_PREFIXES):
        return False
    return not any(map(is_tiled, (*op.operands, *op.results)))
