"""Lowers requests for the program of a CTA that has not started, and their answers.

PTX ISA 9.0, "clusterlaunchcontrol.try_cancel", "clusterlaunchcontrol.query_cancel". An answer is
written by the async proxy and read as ordinary memory, so a reader fences before somebody lets the
next one be written there (CUDA C++ Programming Guide, "Cluster Launch Control").
"""

from __future__ import annotations

from math import prod

from mlir import ir

from tilec.dialects import gpu_tile
from tilec.passes.lower_to_nvvm.access import inline_asm, issue_once
from tilec.passes.lower_to_nvvm.shared_address import (
    barrier_pointer,
    buffer_address,
    byte_pointer,
    shared_base,
)
from tilec.passes.lower_to_nvvm.state import Lowering
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.scalars import compare

_TRY_CANCEL = "clusterlaunchcontrol.try_cancel.async.shared::cta"
_COUNTED = "mbarrier::complete_tx::bytes"
_READ = (
    "{\n\t.reg .b128 answer;\n\t.reg .pred there;\n\t"
    "ld.shared.b128 answer, [$4];\n\t"
    "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 there, answer;\n\t"
    "selp.b32 $0, 1, 0, there;\n\t"
    "mov.b32 $1, 0;\n\tmov.b32 $2, 0;\n\tmov.b32 $3, 0;\n\t"
    "@there clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 "
    "{$1, $2, $3, _}, answer;\n\t"
    "fence.proxy.async.shared::cta;\n\t}"
)


def lower_next_program(op: gpu_tile.NextProgramOp, state: Lowering) -> None:
    """Lowers to try_cancel by one thread; in a cluster the answer comes to every CTA of it."""
    if not state.dynamic:
        wanted = 'the kernel must be launched with all its CTAs: tile.persistent = "dynamic"'
        raise error_at(op.operation, f"'{op.operation.name}': {wanted}")
    barrier = barrier_pointer(op, state)
    operands = [_pointer(op.answer, state), barrier]
    everywhere = ".multicast::cluster::all" if prod(state.cluster) > 1 else ""
    request = f"{_TRY_CANCEL}.{_COUNTED}{everywhere}.b128 [$0], [$1];"
    issue_once(request, ["r", "r"], operands, state)


def lower_read(op: gpu_tile.NextProgramReadOp, state: Lowering) -> None:
    """Lowers to query_cancel; the program's place is asked for only where there is a program."""
    pointer = _pointer(op.answer, state)
    i32 = state.i32
    there, x, y, z = inline_asm(_READ, ["=r", "=r", "=r", "=r", "r"], [pointer], [i32] * 4)
    state.values[op.there] = compare("ne", there, state.i32_constant(0))
    for result, value in zip((op.x, op.y, op.z), (x, y, z), strict=True):
        state.values[result] = value


def _pointer(answer: ir.Value, state: Lowering) -> ir.Value:
    buffer = state.values[answer]
    return byte_pointer(shared_base(state), buffer_address(buffer, buffer.origin, state))


RULES = {
    gpu_tile.NextProgramOp: lower_next_program,
    gpu_tile.NextProgramReadOp: lower_read,
}
