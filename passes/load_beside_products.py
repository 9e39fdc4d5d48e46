"""load-beside-products: what a computing role loads beside its rings comes an iteration ahead.

Before:   scf.for %k = %lower to %upper step %s iter_args(%acc = ...) {
            %slot = "gpu_tile.ring_wait"(%ring, %n)   ... "gpu_tile.wgmma_wait"(...)
            %scale = "tile.load"(%scales, %m, %k) : tensor<128x1xf32, ...>
            ... the product times %scale, added to %acc ...
          }
After:    %first = scf.if (%lower < %upper) { "tile.load"(%scales, %m, %lower) } else { zeros }
          scf.for %k = %lower to %upper step %s iter_args(%acc = ..., %scale = %first) {
            %slot = "gpu_tile.ring_wait"(%ring, %n)   ... "gpu_tile.wgmma_wait"(...)
            ... the product times %scale, added to %acc ...
            %next = "tile.load"(%scales, %m, %k + %s; in the last iteration %k)
            scf.yield ..., %next
          }

What is multiplied comes through rings, which run ahead. What else an iteration needs is loaded
where it is used, behind a wait for the tensor cores. The loads go to the end of an iteration, so
that they are under way while the next one multiplies, in the registers of those before them.

A loop of the computing role that waits for rings qualifies with those of its loads that the role's
threads have registers for, small ones first, of arrays that the kernel does not write, at addresses
known ahead: each that is left is waited for in every iteration.
Does not handle: loads in branches of the loop, gathers, loads at addresses that are loaded.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.gpu_tile import RingWaitOp, RoleOp
from tilec.dialects.gpu_tile.role import entry_registers, total_warps
from tilec.dialects.tile import LoadOp
from tilec.passes.analysis.placement import shared_bytes
from tilec.passes.analysis.register_pressure import most_live_registers
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.copies.loads_ahead import AheadLoads, ahead_loads, issue_behind
from tilec.passes.rewriting.loops import find_loops
from tilec.passes.rewriting.op_tables import OpSet
from tilec.passes.rewriting.walk import find_ops, kernel_of
from tilec.passes.roles.registers import COMPUTE_REGISTERS

LEAST_REGISTERS, MOST_REGISTERS = 8, 32
"""Of a thread, for what is under way: so many always, and so many where CTAs that share a
multiprocessor leave its threads more than they hold (recurrences over chunks with decays on an
H200, 32 for 8: 98 us for 142, 119 for 159, 194 for 219)."""


@tile_pass(
    requires=Level.BUFFERS,
    ensures=Level.BUFFERS,
    behind={
        "specialize-warps": "that says what the computing role loads itself",
        "rotate-dots": "a product that needs what is carried is not rotated",
        "overlap-mma": "it counts the values that a loop carries",
    },
)
def load_beside_products(module: ir.Module, context: PassContext) -> None:
    """Has a computing role load what no ring brings an iteration ahead."""
    for view in find_ops(module.operation, RoleOp):
        if view.opview.name == "compute":
            _load_beside(view, context)


def _load_beside(role: ir.Operation, context: PassContext) -> None:
    room = None
    for loop in find_loops(role):
        near = _near(loop)
        if not near:
            continue
        if room is None:  # of the role as it came: what counts its registers takes long
            room = _room(role, context)
        found = _chosen(loop, near, room)
        if found is not None:
            why = f"{found.registers} registers a thread hold what is under way"
            context.report.add("loads", loop, "an iteration ahead", why)
            issue_behind(found)


def _room(role: ir.Operation, context: PassContext) -> int:
    """Registers of a thread of the computing role for what is under way."""
    function, target = kernel_of(role), context.target
    threads = total_warps(function, context.num_warps) * target.warp_size
    ctas = target.ctas_beside(shared_bytes(function))
    here = role.opview.registers or min(
        entry_registers(target, threads), target.registers_per_sm // (ctas * threads)
    )
    taken = most_live_registers(role.opview.body) + COMPUTE_REGISTERS
    return max(LEAST_REGISTERS, min(MOST_REGISTERS, here - taken))


def _near(loop: ir.Operation) -> list[AheadLoads]:
    """Of a loop that waits for rings: each of its loads that may come ahead."""
    body = list(loop.regions[0].blocks[0].operations)
    if not any(isinstance(view, RingWaitOp) for view in body):
        return []
    loads = [view for view in body if isinstance(view, LoadOp) and _is_needed(view.result)]
    alone = [ahead_loads(loop, [load.operation]) for load in loads]
    return [found for found in alone if found is not None and _is_near(found)]


def _chosen(loop: ir.Operation, near: list[AheadLoads], room: int) -> AheadLoads | None:
    """Those that so many registers have room for, small ones first, in the loop's order."""
    chosen = OpSet()
    for found in sorted(near, key=lambda found: found.registers):
        if found.registers <= room:
            chosen.update(found.loads)
            room -= found.registers
    body = loop.regions[0].blocks[0].operations
    return ahead_loads(loop, [view.operation for view in body if view.operation in chosen])


def _is_near(found: AheadLoads) -> bool:
    """Whether loads may come ahead, and wait for none of their addresses."""
    return found.is_safe and not any(isinstance(op.opview, LoadOp) for op in found.addresses)


def _is_needed(value: ir.Value) -> bool:
    """Whether more than ops without effect follow from a value: the computing role still has the
    addresses of copies that others issue."""
    pending, seen = [value], OpSet()
    while pending:
        for use in pending.pop().uses:
            user = use.owner.operation
            if not user.results:
                return True
            if user not in seen:
                seen.add(user)
                pending += user.results
    return False
