"""Lowers roles: a branch on the number of the warp, and registers moved between warpgroups.

The number comes from lane 0, so that ptxas knows the branch to be uniform. A role that only issues
copies and waits for barriers runs under one thread of its first warp, elected once at its top: the
instructions then need no predicate of their own. Where they are tensor copies, the warp runs as a
whole and the elected thread issues them (`runs_in_one_warp`). PTX ISA 9.0, "setmaxnreg",
"elect.sync".
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mlir import ir

from tilec.dialects import gpu_tile
from tilec.dialects.gpu_tile.role import ctas_per_sm, entry_registers
from tilec.passes.analysis.role_threads import runs_in_one_thread, runs_in_one_warp
from tilec.passes.lower_to_nvvm.access import inline_asm
from tilec.passes.lower_to_nvvm.shared_address import shared_base
from tilec.passes.lower_to_nvvm.state import Lowering
from tilec.passes.rewriting.control import only_if
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.scalars import compare, create
from tilec.passes.rewriting.walk import kernel_of


def lower_role(op: gpu_tile.RoleOp, state: Lowering) -> None:
    """The role's warps run its body, the others pass by.

    CompileError for a role past the kernel's last warp, or inside another one.
    """
    warp_size = state.context.target.warp_size
    _check(op, state)
    shared_base(state)  # made once, in front of every role
    alone, warp = runs_in_one_thread(op), runs_in_one_warp(op)
    with _where(_in_role(op, state)):
        _move_registers(op, state)
        with _where(_first_warp(op, state) if warp else _elected(op, state) if alone else None):
            marker = ir.Operation.create("llvm.mlir.zero", results=[ir.Type.parse("!llvm.ptr")])
            first, warps = op.first_warp * warp_size, 1 if warp else op.warps
            with state.part(marker, first, warps * warp_size, alone=alone and not warp):
                state.lower_block(op.body, state)
            marker.erase()


def _check(op: gpu_tile.RoleOp, state: Lowering) -> None:
    total = state.total_threads // state.context.target.warp_size
    if op.first_warp + op.warps > total:
        last = op.first_warp + op.warps
        raise error_at(op.operation, f"role '{op.name}' ends at warp {last} of {total}")
    if state.in_role:
        raise error_at(op.operation, f"role '{op.name}' is inside another role")


def _in_role(op: gpu_tile.RoleOp, state: Lowering) -> ir.Value | None:
    """Whether this warp has the role (i1); None where all have."""
    if op.warps * state.context.target.warp_size == state.total_threads:
        return None
    number = state.warp()
    if op.first_warp:
        number = state.arith("subi", number, op.first_warp)
    return compare("ult", number, state.i32_constant(op.warps))


def _first_warp(op: gpu_tile.RoleOp, state: Lowering) -> ir.Value:
    """Whether this is the role's first warp (i1)."""
    return compare("eq", state.warp(), state.i32_constant(op.first_warp))


def _elected(op: gpu_tile.RoleOp, state: Lowering) -> ir.Value:
    """Whether this is the thread of the role's first warp that was elected (i1)."""
    first = _first_warp(op, state)
    elected = create("nvvm.elect.sync", [], state.i1)
    return state.arith("andi", first, elected)


def _move_registers(op: gpu_tile.RoleOp, state: Lowering) -> None:
    ctas = ctas_per_sm(kernel_of(op.operation))
    entry = entry_registers(state.context.target, state.total_threads, ctas)
    if op.registers and op.registers != entry:
        kind = "dec" if op.registers < entry else "inc"
        inline_asm(f"setmaxnreg.{kind}.sync.aligned.u32 {op.registers};", [], [], [])


@contextmanager
def _where(condition: ir.Value | None) -> Iterator[None]:
    """Ops made inside run where `condition` holds (None: everywhere)."""
    if condition is None:
        yield
        return
    with only_if(condition):
        yield


def lower_end(op: ir.Operation, state: Lowering) -> None:
    """Lowers the gpu.yield of a role, which has no results."""


RULES = {gpu_tile.RoleOp: lower_role, "gpu.yield": lower_end}
