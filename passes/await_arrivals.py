"""await-arrivals: a role that fills a ring lasts until its slots have been given back.

Before:   "gpu_tile.role"() ({                                  (in a cluster of 2 x 1 programs)
            %fills = scf.for %k = %low to %high step %step iter_args(%count = %c0) -> (i32) {
              %slot = "gpu_tile.ring_acquire"(%ring, %count)
              "gpu_tile.tma_multicast"(%map, ..., %ring, %slot, ...)
              scf.yield %count + 1
            }
          }) {name = "load"}
          ... %slot = "gpu_tile.ring_wait"(%ring, %count)
          ... "gpu_tile.ring_release"(%ring, %slot, %mask) ...
          "gpu_tile.cluster_sync"() {order = "acq_rel"}
          return
After:      ... the same loop ...
            scf.for %ahead = 0 to 3 step 1 { "gpu_tile.ring_acquire"(%ring, %fills + %ahead) }
          }) {name = "load"}
          ... the same, and
          return

A CTA must not end while arrivals of other CTAs, or of its own products, are on their way to its
shared memory: they would change what the next CTA, or launch, keeps there. The cluster could meet
at its end, with an order of memory; but threads pass such a meeting only when all that they stored
has got as far as the GPU's memory. The role that loads has nothing to store, so it waits. CUTLASS's
pipelines end so (`producer_tail`).

1. The pass looks at the rings whose slots a role acquires and roles of other CTAs, or the end of
   products, give back. No thread makes such an arrival and no barrier orders it, so it may come
   after the products are known to be over: only who acquires the slot knows that it has come.
2. The count of a ring's turns is followed out of the loops and branches that carry it, to the end
   of the role. There the role acquires each slot once more, under the branches that its turns in
   the loop stand under and the count does not go through.
3. If with that all that CTAs do to each other is awaited where it arrives
   (`programs/reached_rings.py`), the cluster does not meet at its end. Else it does, and only
   commits are waited for. It also does where pairs of CTAs multiply: they return their tensor
   memory together, behind what each did there.
Does not handle: explicit kernels, whose author waits; kernels without roles, whose threads have
waited for the last commit by the end.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from mlir import ir

from tilec.dialects.def_use import defining_op, of_kind
from tilec.dialects.gpu_tile import ClusterSyncOp, RingAcquireOp, RoleOp, Tcgen05MmaOp
from tilec.hardware.mma_shapes import find_instruction
from tilec.passes.contract import Level, PassContext, kernel_pass, show_location
from tilec.passes.programs.reached_rings import released_late, unawaited
from tilec.passes.rewriting.control import for_loop, only_if
from tilec.passes.rewriting.loops import COUNTED, enclosing_ops, in_block, is_inside, terminator
from tilec.passes.rewriting.op_tables import OpSet
from tilec.passes.rewriting.scalars import binary, i32_constant
from tilec.passes.rewriting.walk import find_ops


@kernel_pass(
    requires=Level.ALLOCATED,
    behind={
        "share-copies": "it decides who arrives in which CTA, and lets the cluster meet",
        "load-early": "that makes a second role that fills slots",
    },
    rings=True,
)
def await_arrivals(function: ir.Operation, context: PassContext) -> None:
    """Lets roles wait for what gives their slots back before they end, instead of the cluster."""
    by_role = [_open_turns(role) for role in find_ops(function, RoleOp)]
    meeting = _last_meeting(function)
    why = None if meeting is None else _why_meet(function, [t for turns in by_role for t in turns])
    for turns in by_role:
        last = {t.ring: t for t in turns if released_late(t, by_threads=why is None)}
        for turn in last.values():
            _acquire_at_end(turn, context)
    if meeting is None:
        return
    about = "cluster's end"
    if why is None:
        meeting.erase()
        reason = "what reaches a CTA is awaited there"
        context.report.add(about, function, "each CTA by itself", reason)
    else:
        context.report.add(about, function, "the CTAs meet", why)


def _open_turns(role: ir.Operation) -> list[RingAcquireOp]:
    """Finds the turns that a role acquires, of rings whose slots it does not acquire once more at
    its end already."""
    turns = [op.opview for op in find_ops(role, RingAcquireOp)]
    done = [turn.ring for turn in turns if _is_at_end(turn)]
    return [turn for turn in turns if turn.ring not in done]


def _is_at_end(turn: RingAcquireOp) -> bool:
    """Whether a turn is one that this pass has made."""
    count = defining_op(turn.count, "arith.addi")
    arguments = list(turn.operation.block.arguments)
    return count is not None and bool(arguments) and count.operands[1] == arguments[0]


def _last_meeting(function: ir.Operation) -> ir.Operation | None:
    """The cluster's meeting behind the roles."""
    body = list(function.regions[0].blocks[0].operations)
    roles = [number for number, op in enumerate(body) if isinstance(op, RoleOp)]
    behind = body[roles[-1] :] if roles else []
    return next((meeting.operation for meeting in of_kind(behind, ClusterSyncOp)), None)


def _why_meet(function: ir.Operation, turns: Sequence[RingAcquireOp]) -> str | None:
    """Says why a cluster still meets at its end though roles wait for their rings there; None if it
    need not. `turns`: all that the roles acquire."""
    products = [op.opview for op in find_ops(function, Tcgen05MmaOp)]
    if any(find_instruction(product.instruction).ctas > 1 for product in products):
        return "pairs return their tensor memory together"
    late = unawaited(function, [turn for turn in turns if released_late(turn, by_threads=True)])
    return f"nobody waits for what {show_location(late[0])} does to other CTAs" if late else None


def _acquire_at_end(turn: RingAcquireOp, context: PassContext) -> None:
    fills, block, carriers = _at_end(turn, context)
    with ir.InsertionPoint(terminator(block)), turn.operation.location:
        conditions = _conditions(turn.operation, block, carriers, context)
        if not conditions:
            _acquire_all(turn, fills)
            return
        condition = functools.reduce(functools.partial(binary, "arith.andi"), conditions)
        with only_if(condition):
            _acquire_all(turn, fills)


def _acquire_all(turn: RingAcquireOp, fills: ir.Value) -> None:
    ends = [i32_constant(number) for number in (0, turn.slots, 1)]
    _, block = for_loop(ends)
    with ir.InsertionPoint(block):
        RingAcquireOp.build(turn.ring, binary("arith.addi", fills, block.arguments[0]))
        ir.Operation.create("scf.yield")


def _conditions(
    op: ir.Operation, block: ir.Block, carriers: OpSet, context: PassContext
) -> list[ir.Value]:
    """The conditions of the branches around `op`, inside its loop in `block`, through which its
    ring's count does not go: who takes none of them has nothing to wait for.

    An error if one changes from iteration to iteration, or `op` stands in an else.
    """
    around = enclosing_ops(op)
    loop = in_block(op, block)
    inner = around[: around.index(loop)] if loop != op else []
    found = []
    for below, branch in zip([op, *inner], inner, strict=False):
        if branch.name != "scf.if" or branch in carriers:
            continue
        condition = branch.operands[0]
        if is_inside(condition, loop) or below.block != branch.regions[0].blocks[0]:
            raise context.broken(op, "some turns of a loop acquire a slot, others do not")
        found.append(condition)
    return found


def _at_end(turn: RingAcquireOp, context: PassContext) -> tuple[ir.Value, ir.Block, OpSet]:
    """Follows the count of a ring's turns to behind all loops around the last of them. Gives the
    value there, the block in which it is known, and the ops that the count goes through on its way;
    a turn that no loop repeats is counted as one. An error if it is lost on its way."""
    count, place, carriers = turn.count, turn.operation, OpSet()
    around = [op for op in enclosing_ops(turn.operation) if op.name in COUNTED]
    for op in around:
        below = _given(count, op) if carriers else _counted_by(turn, op)
        if below is not None:
            count, place = below, op
            carriers.add(op)
        elif carriers:
            break
    outside = around[around.index(place) + 1 :] if carriers else around
    if any(op.name in _LOOPS for op in outside):
        raise context.broken(turn.operation, "a loop does not carry the count of its ring on")
    if not carriers:
        with ir.InsertionPoint(terminator(place.block)), place.location:
            count = binary("arith.addi", count, 1)
    return count, place.block, carriers


_LOOPS = ("scf.for", "scf.while")


def _counted_by(turn: RingAcquireOp, op: ir.Operation) -> ir.Value | None:
    """What the count of a turn has come to behind `op`, a loop that carries it or a branch that
    counts it; None if `op` is neither."""
    count = turn.count
    if op.name in _LOOPS:
        carried = defining_op(count) is None and count.owner.owner.operation == op
        number = ir.BlockArgument(count).arg_number if carried else 0
        return op.results[number - (op.name == "scf.for")] if carried else None
    below = turn.operation
    while below.parent != op:
        below = below.parent
    yielded = zip(op.results, terminator(below.block).operands, strict=True)
    return next((result for result, value in yielded if _is_next(value, count)), None)


def _is_next(value: ir.Value, count: ir.Value) -> bool:
    op = defining_op(value, "arith.addi")
    return op is not None and op.operands[0] == count


def _given(result: ir.Value, op: ir.Operation) -> ir.Value | None:
    """The result of a loop or a branch that is what an op right inside it gives; None where it has
    none, as of a while that does not pass it on."""
    block = result.owner.operation.block
    operands = list(terminator(block).operands)
    if result not in operands:
        return None
    number = operands.index(result)
    if op.name != "scf.while":
        return op.results[number]
    before = op.regions[0].blocks[0]
    passed = zip(op.results, list(terminator(before).operands)[1:], strict=True)
    return next((each for each, value in passed if value == before.arguments[number]), None)
