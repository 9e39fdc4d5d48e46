"""estimate-registers: says so where a kernel's values take more registers than a thread has.

Before and After are the same program. To what is counted (`analysis/register_pressure.py`) come
addresses: few in a role, which has barriers and descriptors; more in a thread that loads between
products whose sums cannot move. A kernel it speaks of keeps values in memory ("spills"), which the
author should hear before it is slow. `test/bench/register_verdicts.py` compares with ptxas.
Does not handle: ptxas's own schedule; where there is one, reports ask it (`tilec/resources.py`).
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.gpu_tile import RoleOp, Tcgen05MmaOp, WgmmaOp
from tilec.dialects.gpu_tile.role import entry_registers, total_warps
from tilec.passes.analysis.register_pressure import SUBJECT, most_live_registers, tiles_apart
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.rewriting.walk import find_ops, kernels
from tilec.passes.roles.threads import runs_in_one_thread

ROLE_ADDRESSES = 6
"""Of a role, beside what is counted: a 128 x 192 product by two sets of warps in turn (108 of 112)
spills, attention with heads of 64 by three warpgroups (153 of 160) does not."""
BETWEEN_PRODUCTS = 34
"""Of a thread that loads, too, where one asynchronous product's sums wait beside another's: they
stay where the instruction has them. Attention with heads of 256 spills at 216 of 248."""


@tile_pass(requires=Level.BUFFERS, ensures=Level.BUFFERS)
def estimate_registers(module: ir.Module, context: PassContext) -> None:
    """Reports the parts of kernels whose live values exceed their registers."""
    for function in kernels(module):
        _estimate(function, context)


def _estimate(function: ir.Operation, context: PassContext) -> None:
    threads = total_warps(function, context.num_warps) * context.target.warp_size
    share = entry_registers(context.target, threads)
    body = function.regions[0].blocks[0]
    roles = [view for view in body.operations if isinstance(view, RoleOp)]
    roles = [role for role in roles if not runs_in_one_thread(role)]
    parts = [(f"role '{role.name}'", role.body, role.registers or share) for role in roles]
    beside = ROLE_ADDRESSES if parts else 0
    if not parts and len(find_ops(function, WgmmaOp) + find_ops(function, Tcgen05MmaOp)) > 1:
        beside = BETWEEN_PRODUCTS
    for name, block, registers in parts or [("a thread", body, share)]:
        live = beside + most_live_registers(block, tiles_apart(function, block))
        if live > registers:
            context.report.add(
                SUBJECT,
                function,
                f"about {live} for {name}, which has {registers}",
                "its tiles are alive at the same time: the rest is spilled to memory",
                live=live,
                registers=registers,
            )
