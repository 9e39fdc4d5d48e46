"""await-commits: a role that fills a ring lasts until its slots have been given back.

Before:   "gpu_tile.role"() ({
            %fills = scf.for %k = %low to %high step %step iter_args(%count = %c0) -> (i32) {
              %slot, %parity = "gpu_tile.ring_position"(%count) {slots = 3}
              "gpu_tile.barrier_wait"(%empty, %slot, not %parity)
              "gpu_tile.tma_load"(%map, ..., %full, %slot, ...)
              scf.yield %count + 1
            }
          }) {name = "load"}
          ... "gpu_tile.tcgen05_multicast_commit"(%empty, %slot, %mask) ...
After:      ... the same loop ...
            scf.for %ahead = 0 to 3 step 1 {
              %slot, %parity = "gpu_tile.ring_position"(%fills + %ahead) {slots = 3}
              "gpu_tile.barrier_wait"(%empty, %slot, not %parity)
            }
          }) {name = "load"}

A commit of products in tensor memory is an arrival that no thread makes: that the products are over
says nothing of it, no barrier of threads orders it, and only who waits for its phase knows that it
has come. A CTA of a cluster that ended before a neighbour's commit came would have it change what
the next CTA, or launch, has in its shared memory by then; so would its own last commit, if that is
of a slot. CUTLASS's pipelines have `producer_tail` for this.

1. Of each role, the waits for free slots whose barriers are arrived at by commits of other roles.
2. The count of a ring's uses is followed out of the loops that carry it, to the end of the role.
   There the role waits as if it filled each slot once more.
Does not handle: explicit kernels, whose author waits; kernels without roles, whose threads have
waited for the last commit by the end.
"""

from __future__ import annotations

from mlir import ir

from tilec.diagnostics import InternalError
from tilec.dialects.gpu_tile import (
    BarrierWaitOp,
    RingPositionOp,
    RoleOp,
    Tcgen05CommitOp,
    Tcgen05MulticastCommitOp,
)
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.rewriting.loops import terminator
from tilec.passes.rewriting.scalars import binary, i32_constant, negated
from tilec.passes.rewriting.walk import find_ops, kernels, role_of

_COMMITS = (Tcgen05CommitOp, Tcgen05MulticastCommitOp)


@tile_pass(requires=Level.ALLOCATED, ensures=Level.ALLOCATED)
def await_commits(module: ir.Module, context: PassContext) -> None:
    """Lets roles wait for the commits that give their slots back before they end."""
    for function in kernels(module):
        for role in find_ops(function, RoleOp):
            _wait_at_end(role)


def _wait_at_end(role: ir.Operation) -> None:
    barriers: dict[ir.Value, RingPositionOp] = {}
    for wait in find_ops(role, BarrierWaitOp):
        position = wait.opview.slot.owner
        if isinstance(position, RingPositionOp) and _awaits_free_slot(wait.opview, role):
            barriers[wait.opview.barrier] = position
    body = role.regions[0].blocks[0]
    for barrier, position in barriers.items():
        fills = _at_end(position.count, body)
        with ir.InsertionPoint(terminator(body)), position.operation.location:
            _wait_for_all(barrier, fills, position.slots)


def _awaits_free_slot(wait: BarrierWaitOp, role: ir.Operation) -> bool:
    """Whether a wait is for the other parity than that of its use of the ring, and commits of other
    roles arrive at its barrier."""
    users = [use.owner for use in wait.barrier.uses]
    committed = any(isinstance(op.opview, _COMMITS) and role_of(op) != role for op in users)
    return committed and wait.parity.owner.operation.name == "arith.xori"


def _wait_for_all(barrier: ir.Value, fills: ir.Value, slots: int) -> None:
    ends = [i32_constant(number) for number in (0, slots, 1)]
    loop = ir.Operation.create("scf.for", operands=ends, regions=1)
    block = loop.regions[0].blocks.append(ends[0].type, arg_locs=[loop.location])
    with ir.InsertionPoint(block):
        count = binary("arith.addi", fills, block.arguments[0])
        slot, parity = RingPositionOp.build(count, slots=slots)
        BarrierWaitOp.build(barrier, slot, negated(parity))
        ir.Operation.create("scf.yield")


def _at_end(count: ir.Value, body: ir.Block) -> ir.Value:
    """What a count that loops carry has come to at the end of a role's body."""
    while isinstance(count.owner, ir.Block) and count.owner != body:
        loop = count.owner.owner.operation
        number = list(count.owner.arguments).index(count) - (loop.name == "scf.for")
        count = _last_of_chain(loop.results[number])
        if loop.block == body:
            return count
        count = _carrier(count, loop.block)
    raise InternalError(f"no loop of a role carries the count of its ring: {count}")


def _last_of_chain(result: ir.Value) -> ir.Value:
    """Where loops of one block count on from each other: the result of the last."""
    while True:
        block = result.owner.operation.block
        following = [use.owner for use in result.uses if use.owner.operation.block == block]
        loops = [op for op in following if op.operation.name in ("scf.for", "scf.while")]
        if not loops:
            return result
        loop = loops[0].operation
        operands = list(loop.operands)
        result = loop.results[operands.index(result) + len(loop.results) - len(operands)]


def _carrier(result: ir.Value, block: ir.Block) -> ir.Value:
    """The argument of a loop's block that its yield gives a value to."""
    operands = list(terminator(block).operands)
    arguments = list(block.arguments)
    return arguments[operands.index(result) + len(arguments) - len(operands)]
