"""await-arrivals: a role that fills a ring lasts until its slots have been given back.

Before:   "gpu_tile.role"() ({                                  (in a cluster of 2 x 1 programs)
            %fills = scf.for %k = %low to %high step %step iter_args(%count = %c0) -> (i32) {
              %slot, %parity = "gpu_tile.ring_position"(%count) {slots = 3}
              "gpu_tile.barrier_wait"(%empty, %slot, not %parity)
              "gpu_tile.tma_multicast"(%map, ..., %full, %slot, ...)
              scf.yield %count + 1
            }
          }) {name = "load"}
          ... "gpu_tile.barrier_wait"(%full, %slot, %parity)
          ... "gpu_tile.remote_arrive"(%empty, %slot, %mask) ...
          "gpu_tile.cluster_sync"() {order = "acq_rel"}
          return
After:      ... the same loop ...
            scf.for %ahead = 0 to 3 step 1 {
              %slot, %parity = "gpu_tile.ring_position"(%fills + %ahead) {slots = 3}
              "gpu_tile.barrier_wait"(%empty, %slot, not %parity)
            }
          }) {name = "load"}
          ... the same, and
          return

A CTA of a cluster that ended before all that reaches its shared memory has come would have it
change what the next CTA, or launch, has there by then. A meeting of the cluster at the end keeps
them, if it orders memory; but then it is passed only when the results that all threads stored have
got as far as the GPU's memory. The role that loads has nothing to store. CUTLASS's pipelines end so
(`producer_tail`).

1. Of each role, the waits for free slots whose barriers other roles of other CTAs arrive at, or
   commits of products: an arrival that no thread makes. That the products are over says nothing of
   it, no barrier of threads orders it, and only who waits for its phase knows that it has come.
2. The count of a ring's uses is followed out of the loops that carry it, to the end of the role.
   There the role waits as if it filled each slot once more, under the branches that the wait in the
   loop stands under.
3. If with that all that CTAs do to each other is awaited where it arrives
   (`programs/reached_barriers.py`), the cluster does not meet at its end. Else it does, and only
   commits are waited for. It also does where pairs of CTAs multiply: they return their tensor
   memory together, behind what each did there.
Does not handle: explicit kernels, whose author waits; kernels without roles, whose threads have
waited for the last commit by the end.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from mlir import ir

from tilec.diagnostics import InternalError
from tilec.dialects.gpu_tile import (
    BarrierWaitOp,
    ClusterSyncOp,
    RemoteArriveOp,
    RingPositionOp,
    RoleOp,
    Tcgen05MmaOp,
)
from tilec.mma_shapes import find_instruction
from tilec.passes.contract import Level, PassContext, show_location, tile_pass
from tilec.passes.programs.reached_barriers import COMMITS, free_waits, given_back_by, unawaited
from tilec.passes.rewriting.loops import enclosing_ops, in_block, is_inside, terminator
from tilec.passes.rewriting.scalars import binary, i32_constant, negated
from tilec.passes.rewriting.walk import find_ops, kernels


@tile_pass(
    requires=Level.ALLOCATED,
    ensures=Level.ALLOCATED,
    behind={
        "share-copies": "it decides who arrives in which CTA, and lets the cluster meet",
        "load-early": "that makes a second role that fills slots",
    },
)
def await_arrivals(module: ir.Module, context: PassContext) -> None:
    """Lets roles wait for what gives their slots back before they end, instead of the cluster."""
    for function in kernels(module):
        _await(function, context)


def _await(function: ir.Operation, context: PassContext) -> None:
    by_role = [_open_waits(role) for role in find_ops(function, RoleOp)]
    meeting = _last_meeting(function)
    why = None if meeting is None else _why_meet(function, [w for waits in by_role for w in waits])
    kinds = _ALL_KINDS if why is None else COMMITS
    for waits in by_role:
        last = {wait.barrier: wait for wait in waits if given_back_by(wait, *kinds)}
        for wait in last.values():
            _wait_at_end(wait)
    if meeting is None:
        return
    about = "cluster's end"
    if why is None:
        meeting.erase()
        reason = "what reaches a CTA is awaited there"
        context.report.add(about, function, "each CTA by itself", reason)
    else:
        context.report.add(about, function, "the CTAs meet", why)


_ALL_KINDS = (*COMMITS, RemoteArriveOp)
"""Arrivals that may come when a CTA would have ended."""


def _open_waits(role: ir.Operation) -> list[BarrierWaitOp]:
    """A role's waits for free slots of the rings that it does not wait for in the end already."""
    waits = free_waits(role)
    done = [wait.barrier for wait in waits if _is_at_end(wait)]
    return [wait for wait in waits if wait.barrier not in done]


def _is_at_end(wait: BarrierWaitOp) -> bool:
    """Whether a wait is one that this pass has made."""
    count = wait.slot.owner.count.owner
    if isinstance(count, ir.Block) or count.operation.name != "arith.addi":
        return False
    return count.operation.operands[1] == wait.operation.block.arguments[0]


def _last_meeting(function: ir.Operation) -> ir.Operation | None:
    """The cluster's meeting behind the roles."""
    body = list(function.regions[0].blocks[0].operations)
    roles = [number for number, op in enumerate(body) if isinstance(op, RoleOp)]
    behind = body[roles[-1] :] if roles else []
    return next((op.operation for op in behind if isinstance(op, ClusterSyncOp)), None)


def _why_meet(function: ir.Operation, waits: Sequence[BarrierWaitOp]) -> str | None:
    """Why a cluster cannot do without its last meeting, if roles wait for their rings in the end;
    `waits`: all that they do for free slots."""
    products = [op.opview for op in find_ops(function, Tcgen05MmaOp)]
    if any(find_instruction(product.instruction).ctas > 1 for product in products):
        return "pairs return their tensor memory together"
    late = unawaited(function, [wait for wait in waits if given_back_by(wait, *_ALL_KINDS)])
    return f"nobody waits for what {show_location(late[0])} does to other CTAs" if late else None


def _wait_at_end(wait: BarrierWaitOp) -> None:
    position = wait.slot.owner
    fills, block = _at_end(position)
    with ir.InsertionPoint(terminator(block)), wait.operation.location:
        conditions = _conditions(wait.operation, block)
        if not conditions:
            _wait_for_all(wait.barrier, fills, position.slots)
            return
        condition = functools.reduce(functools.partial(binary, "arith.andi"), conditions)
        branch = ir.Operation.create("scf.if", operands=[condition], regions=2)
        with ir.InsertionPoint(branch.regions[0].blocks.append()):
            _wait_for_all(wait.barrier, fills, position.slots)
            ir.Operation.create("scf.yield")


def _wait_for_all(barrier: ir.Value, fills: ir.Value, slots: int) -> None:
    ends = [i32_constant(number) for number in (0, slots, 1)]
    loop = ir.Operation.create("scf.for", operands=ends, regions=1)
    block = loop.regions[0].blocks.append(ends[0].type, arg_locs=[loop.location])
    with ir.InsertionPoint(block):
        count = binary("arith.addi", fills, block.arguments[0])
        slot, parity = RingPositionOp.build(count, slots=slots)
        BarrierWaitOp.build(barrier, slot, negated(parity))
        ir.Operation.create("scf.yield")


def _conditions(op: ir.Operation, block: ir.Block) -> list[ir.Value]:
    """The conditions of the branches around `op`, inside its loop in `block`.

    InternalError if one changes from iteration to iteration, or `op` stands in an else.
    """
    around = enclosing_ops(op)
    loop = in_block(op, block)
    inner = around[: around.index(loop)] if loop != op else []
    found = []
    for below, branch in zip([op, *inner], inner, strict=False):
        if branch.name != "scf.if":
            continue
        condition = branch.operands[0]
        if is_inside(condition, loop) or below.block != branch.regions[0].blocks[0]:
            where = show_location(op)
            raise InternalError(f"{where}: some turns of a loop wait for a slot, others do not")
        found.append(condition)
    return found


def _at_end(position: RingPositionOp) -> tuple[ir.Value, ir.Block]:
    """What the count of a ring's uses has come to behind the outermost loop around the last of
    them, and that loop's block; without a loop there is one use more."""
    count, place = position.count, position.operation
    if not any(around.name in _LOOPS for around in enclosing_ops(place)):
        with ir.InsertionPoint(terminator(place.block)), place.location:
            return binary("arith.addi", count, i32_constant(1)), place.block
    while isinstance(count.owner, ir.Block):
        loop, number = count.owner.owner.operation, ir.BlockArgument(count).arg_number
        count = loop.results[number - (loop.name == "scf.for")]
        if loop.parent.name not in _LOOPS:
            return count, loop.block
        count = _carrier(count, loop.block)
    raise InternalError(f"no loop of a role carries the count of its ring: {count}")


_LOOPS = ("scf.for", "scf.while")


def _carrier(result: ir.Value, block: ir.Block) -> ir.Value:
    """The argument of a loop's block that its yield gives a value to; the value itself if it gives
    none."""
    operands = list(terminator(block).operands)
    arguments = list(block.arguments)
    if result not in operands:
        return result
    return arguments[operands.index(result) + len(arguments) - len(operands)]
