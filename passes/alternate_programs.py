"""alternate-programs: two sets of computing warps take the programs of a persistent kernel in turn.

Before:   "gpu_tile.role"() ({ ... }) {name = "load", first_warp = 8 ...}
          "gpu_tile.role"() ({
            scf.for %p = "gpu_tile.cta_id" ... iter_args(%n) {
              ... "gpu_tile.ring_wait"(%ring, ...) products, store ...   scf.yield %after
            }
          }) {name = "compute", first_warp = 0, warps = 4 ...}
After:    %order = "gpu_tile.make_ring"() {slots = 1, fills = 0, releases = 4 ...}
          "gpu_tile.role"() ({
            %team = arith.constant 0                              (1 in the second copy of the role)
            scf.for %p = "gpu_tile.cta_id" ... iter_args(%n, %number = 0) {
              %next = scf.if %number mod 2 == %team {
                %slot = "gpu_tile.ring_acquire"(%order, %number)
                ... "gpu_tile.ring_wait"(%ring, ...) products ...
                "gpu_tile.ring_release"(%order, %slot)
                ... store ...   scf.yield %after
              } else {
                scf.yield %n + how often the loops of program %p fill a slot
              }
              scf.yield %next, %number + 1
            }
          }) {name = "compute", first_warp = 0, warps = 4 ...}
          and the same again: name = "compute 1", first_warp = 4

Only where the author demands it (`tile.consumers = "pingpong"`): what one program does behind its
last product (conversions, the store) then runs under the products of the next.

1. The load role fills one ring in the order of the programs, as before. Who passes by a program
   counts what it fills: the part of the load role's loop that its counts need, where loops that do
   nothing but count are replaced by their number of iterations.
2. A program waits for full slots only when the program before has passed its last such wait, or the
   guard that skips it: a wait names no more than the parity of a phase, so whoever came two phases
   early would be let through.
3. Each copy has its own warps, and so its own named barriers, and its own buffers beside the rings.
4. No demand, no change: the warps of a program then share its tiles ("cooperative").

Does not handle: CTAs that ask for programs, products in tensor memory, rings with a barrier where
computing warps arrive.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.gpu_tile import RingAcquireOp, RingReleaseOp, RingWaitOp, RoleOp
from tilec.messages.diagnostics import InternalError
from tilec.passes.analysis.dependence import is_read
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.demands.kernels import CONSUMERS, PINGPONG, TEAMS, teams_of
from tilec.passes.programs.counting_loops import fold_counting_loops
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.loops import (
    behind,
    is_program_loop,
    replace_yield,
    terminator,
    with_iteration_arguments,
)
from tilec.passes.rewriting.rings import make_ring
from tilec.passes.rewriting.scalars import binary, equal, i32_constant
from tilec.passes.rewriting.walk import find_ops
from tilec.passes.roles.program_slice import Slice


@kernel_pass(
    requires=Level.BUFFERS,
    behind={"overlap-mma": "a second set of warps does what the first does by then"},
    rings=True,
)
def alternate_programs(function: ir.Operation, context: PassContext) -> None:
    """Lets two sets of computing warps take programs in turn where the author wants it."""
    if teams_of(function) > 1:
        _alternate(function, context)


def _alternate(function: ir.Operation, context: PassContext) -> None:
    roles = {op.opview.name: op.opview for op in find_ops(function, RoleOp)}
    if set(roles) != {"load", "compute"}:
        why = 'the kernel has no roles "load" and "compute"'
        raise error_at(function, f'consumers="{PINGPONG}" was asked for, but {why}')
    compute = roles["compute"]
    # A turn is released when all warps that have its program need no more full slots.
    order = make_ring(function, releases=compute.warps)
    with ir.InsertionPoint.at_block_begin(compute.body), compute.operation.location:
        team = i32_constant(0)
    _take_turns(roles["load"], compute, team, order)
    second = compute.operation.clone(ir.InsertionPoint(behind(compute.operation))).opview
    team = next(iter(second.body.operations)).operation
    team.attributes["value"] = ir.IntegerAttr.get(team.results[0].type, 1)
    second.name, second.first_warp = f"{compute.name} 1", compute.first_warp + compute.warps
    del function.attributes[CONSUMERS]
    chosen = f"ping-pong: {TEAMS} x {compute.warps} warps take programs in turn"
    context.report.add("consumers", function, chosen, "the author's demand")


def _program_loop(role: RoleOp) -> ir.Operation:
    return next(view.operation for view in role.body.operations if is_program_loop(view.operation))


def _take_turns(load: RoleOp, compute: RoleOp, team: ir.Value, order: ir.Value) -> None:
    """Has the compute role do the programs of a team only, and count what the others fill."""
    filling = _program_loop(load)
    part = Slice(load.operation, [])
    part.keep_carried(filling)
    old = _program_loop(compute)
    with ir.InsertionPoint(old), old.location:
        mapped = part.clone_before(filling)
        zero = i32_constant(0)
    loop, (number,) = with_iteration_arguments(old, [zero])
    body = loop.regions[0].blocks[0]
    _keep_order(body, number, order)
    ops, end = [view.operation for view in body.operations][:-1], terminator(body)
    *results, _ = end.operands
    with ir.InsertionPoint(end), loop.location:
        own = equal(binary("arith.andi", number, TEAMS - 1), team)
        branch = ir.Operation.create(
            "scf.if", results=[value.type for value in results], operands=[own], regions=2
        )
        following = binary("arith.addi", number, 1)
        taken, passed = (region.blocks.append() for region in branch.regions)
        with ir.InsertionPoint(taken):
            taken_end = ir.Operation.create("scf.yield", operands=results)
        with ir.InsertionPoint(passed):
            ours = _counts_of(body, filling.regions[0].blocks[0])
            counted = dict(
                zip(list(ours)[1:], part.clone_body(filling, mapped | ours), strict=True)
            )
            kept = {ours[count]: value for count, value in counted.items()}
            passing = [kept.get(argument, argument) for argument in list(body.arguments)[1:-1]]
            ir.Operation.create("scf.yield", operands=passing)
    for op in ops:
        op.move_before(taken_end)
    replace_yield(end, [*branch.results, following])
    fold_counting_loops(passed)


def _counts_of(body: ir.Block, filling: ir.Block) -> dict[ir.Value, ir.Value]:
    """Maps the load role's program and counts, the arguments of `filling`, to those of the compute
    role.

    Both carry them in one order. A count that went on with another's (`rings.go_on`) nobody reads,
    and the load role has none.
    """
    program, *counts, _ = body.arguments
    used = [count for count in counts if is_read(count)]
    theirs = list(filling.arguments)
    if len(used) + 1 != len(theirs):
        raise InternalError("a loop over programs carries other counts than its load role")
    return dict(zip(theirs, [program, *used], strict=True))


def _keep_order(body: ir.Block, number: ir.Value, order: ir.Value) -> None:
    """Applies rule 2 to a program's body: acquires `order` in front of the first wait for a full
    slot, and releases it behind the last."""
    waiting = _waiting(body)
    with ir.InsertionPoint(waiting[0]), waiting[0].location:
        slot = RingAcquireOp.build(order, number)
    _release_behind(body, order, slot)


def _waiting(block: ir.Block) -> list[ir.Operation]:
    return [view.operation for view in block.operations if find_ops(view.operation, RingWaitOp)]


def _release_behind(block: ir.Block, order: ir.Value, slot: ir.Value) -> None:
    """Releases the slot of `order` behind a block's last wait for a full slot; where one branch
    holds all of them, in both its blocks."""
    waiting = _waiting(block)
    only = waiting[0] if len(waiting) == 1 and waiting[0].name == "scf.if" else None
    if only is not None and all(region.blocks for region in only.regions):
        for region in only.regions:
            _release_behind(region.blocks[0], order, slot)
        return
    place = behind(waiting[-1]) if waiting else next(iter(block.operations)).operation
    with ir.InsertionPoint(place), place.location:
        RingReleaseOp.build(order, slot, by="warp")
