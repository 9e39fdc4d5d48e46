"""estimate-registers: says so where a kernel's values surely take more registers than a thread has.

Before and After are the same program. What is counted (`analysis/register_pressure.py`) is less
than what ptxas needs, so that nothing is said of kernels that fit; a kernel it speaks of keeps
values in memory ("spills"), which the author should hear before it is slow.
Does not handle: registers for addresses and for ptxas's own schedule, which it does not count.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.gpu_tile import RoleOp
from tilec.dialects.gpu_tile.role import entry_registers, total_warps
from tilec.passes.analysis.register_pressure import SUBJECT, most_live_registers, tiles_apart
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.rewriting.walk import kernels
from tilec.passes.roles.threads import runs_in_one_thread


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
    for name, block, registers in parts or [("a thread", body, share)]:
        live = most_live_registers(block, tiles_apart(function, block))
        if live > registers:
            context.report.add(
                SUBJECT,
                function,
                f"{live} for {name}, which has {registers}",
                "its tiles are alive at the same time: the rest is spilled to memory",
                live=live,
                registers=registers,
            )
