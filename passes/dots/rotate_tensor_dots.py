"""How rotate-dots keeps the tensor cores busy where threads work between products in tensor memory.

Before:   scf.for %n ... iter_args(%acc, %count) {
            wait for slot %count of the keys     mma(%q, keys, %s, false)   commit   wait
            ... %p, %scaled from %s, %acc ...
            store %p in %tp, %scaled in %o
            wait for slot %count of the values   mma(%tp, values, %o, true) commit   wait
            %next = load %o
          }
After:    scf.if there is an iteration { issue the first product of the first one }
          store %acc in %o
          scf.for %n ... iter_args(%count) {
            scf.if there is another iteration { issue its first product, into the other slot of %s }
            wait for slot %count of %s           ... %p ...
            wait for the second product of the iteration before
            %acc = load %o    ... %scaled ...    store %p in %tp, %scaled in %o
            wait for slot %count of the values   mma(%tp, values, %o, true) commit
          }
          wait for the last one's second product     %acc = load %o

1. A product is issued an iteration ahead if it overwrites its sum and depends on nothing but
   scalars that count, and slots of rings. The sum gets two slots: while threads work
   on one, the next product fills the other. Where tensor memory has no room for two (or a second
   CTA would lose its part), the next product is issued once all threads have loaded this one, in
   front of the next product that follows.
2. A product of which an iteration takes nothing but a loop-carried sum, and buffers that it stores,
   is awaited in the next iteration, in front of what loads its sum or overwrites its operands. So
   the tensor cores multiply while threads work. The sum stays in tensor memory between iterations.

What a commit counts is all that was issued before it, so waits keep their meaning wherever they
stand; a phase of a barrier is over before the next begins, as a thread waits for each of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.dialects.def_use import defining_op, of_kind, users
from tilec.dialects.gpu_tile import (
    AllocOp,
    BufferLoadOp,
    BufferStoreOp,
    BufferView,
    RingSlotOp,
    RingWaitOp,
    SlotOp,
)
from tilec.dialects.gpu_tile.types import tensor_buffer_of
from tilec.dialects.types import is_tile
from tilec.passes.analysis.issue_order import constant_steps, is_free, needed_to_issue
from tilec.passes.contract import PassContext
from tilec.passes.dots.issued_products import ROTATED
from tilec.passes.dots.tensor_rotation import (
    ISSUING_OPS,
    Deferred,
    Product,
    Rotation,
    find_rotation,
)
from tilec.passes.rewriting.control import only_if
from tilec.passes.rewriting.loops import (
    behind,
    clone_mapped,
    first_in,
    in_block,
    terminator,
    without_iteration_argument,
)
from tilec.passes.rewriting.op_tables import OpSet, order_of
from tilec.passes.rewriting.refusals import attempt
from tilec.passes.rewriting.scalars import binary, constant, less
from tilec.passes.rewriting.walk import alloc_of, is_of, users_of


def rotate_tensor_dots(loop: ir.Operation, context: PassContext) -> None:
    """Rotates one loop, if it has products to be issued ahead."""
    found, refused = attempt(find_rotation, loop, context)
    if found is not None:
        how = "into another slot" if found.slots > 1 else "when this one's was loaded"
        why = (
            f"products run while threads work: the next iteration's is issued {how}, "
            f"{len(found.late)} awaited in the next"
        )
        kept = [f"one is awaited in its own: {reason}" for reason in found.kept]
        context.report.add("matrix instructions", loop, ROTATED, "; ".join([why, *kept]))
        _rewrite(loop, found)
    elif refused:
        context.report.add("matrix instructions", loop, "not rotated", refused)


def _rewrite(loop: ir.Operation, rotation: Rotation) -> None:
    body = loop.regions[0].blocks[0]
    for product in rotation.early:
        _give_slots(product, loop, rotation.slots)
    moved = OpSet()
    for product in rotation.early:
        waits = [turn.operation for turn in of_kind(product.turns, RingWaitOp)]
        moved.update((*product.issued, *waits))
    read_late = [turn for deferred in rotation.late for turn in deferred.product.turns]
    own = OpSet(turn for turn in of_kind(read_late, RingWaitOp) if turn not in moved)
    _issue_ahead(loop, moved, _place_of_next(body, rotation))
    for wait in own:
        _wait_late(wait.opview, body)
    for deferred in rotation.late:
        loop = _await_later(loop, deferred)


def _give_slots(product: Product, loop: ir.Operation, slots: int) -> None:
    """Slots of a product's sum and of its ring, whose turn moves to the body's top."""
    multiply, old = product.multiply, product.turn
    alloc = multiply.acc.owner
    one = tensor_buffer_of(alloc.result)
    with ir.InsertionPoint(loop), alloc.operation.location:
        whole = AllocOp.build(results=[(one.with_slots(slots) if slots > 1 else one).type()])
    with ir.InsertionPoint.at_block_begin(loop.regions[0].blocks[0]), old.operation.location:
        slot = RingSlotOp.build(old.ring, old.count)
        now = SlotOp.build(whole, slot) if slots > 1 else whole
    old.ring.owner.slots = slots
    old.slot.replace_all_uses_with(slot)
    alloc.result.replace_all_uses_with(now)
    old.operation.erase()
    alloc.operation.erase()
    product.turn = slot.owner


def _place_of_next(body: ir.Block, rotation: Rotation) -> ir.Operation:
    """The op in front of which an iteration issues the next one's products: its first, or, where
    sums have one slot, the first behind all loads of this one's sums."""
    first, last = next(iter(body.operations)).operation, terminator(body)
    if rotation.slots > 1:
        return first
    order = order_of(body.operations)
    loaded = max(
        order[in_block(use.owner.operation, body)]
        for product in rotation.early
        for use in product.multiply.acc.uses
        if is_of(use.owner, BufferLoadOp)
    )
    later = [d.product.multiply.operation for d in rotation.late]
    return next((op for op in later if order[op] > loaded), last)


def _wait_late(turn: RingWaitOp, body: ir.Block) -> None:
    """Waits for a ring's slot in front of the first op that is or holds a reader of it; views of it
    stay behind the wait."""
    buffers = [slot.result for slot in users(turn.slot, SlotOp)]
    first = first_in(body, (user for buffer in buffers for user in users_of(buffer)))
    order = [view.operation for view in body.operations]
    views = [op for op in order[: order.index(first)] if _is_view_of(op, turn.slot)]
    for op in (turn.operation, *views):
        op.move_before(first)


def _is_view_of(op: ir.Operation, slot: ir.Value) -> bool:
    """Whether an op is the slot of this number, or a view of that slot."""
    while is_of(op, BufferView):
        if is_of(op, SlotOp) and op.opview.index == slot:
            return True
        source = defining_op(op.opview.src)
        if source is None:
            return False
        op = source
    return False


def _issue_ahead(loop: ir.Operation, moved: OpSet, place: ir.Operation) -> None:
    """The ops `moved` in front of the loop for its first iteration, and at `place` for the next."""
    body = loop.regions[0].blocks[0]
    lower, upper, step, *inits = loop.operands
    induction, *carried = body.arguments
    steps = constant_steps(loop)
    needed = needed_to_issue(list(moved), body, steps, (), ISSUING_OPS)
    with ir.InsertionPoint(loop), loop.location:
        first = dict(zip([induction, *carried], [lower, *inits], strict=True))
        _issue_if(less(lower, upper), needed, first)
    # Values that the branch needs: those of the next iteration.
    with ir.InsertionPoint(place), loop.location:
        following = binary("arith.addi", induction, step)
        mapped = {induction: following}
        for number, distance in steps.items():
            if any(carried[number] in op.operands for op in needed):
                added = constant(carried[number].type, distance)
                mapped[carried[number]] = binary("arith.addi", carried[number], added)
        _issue_if(less(following, upper), needed, mapped)
    for op in reversed(needed):
        unused = not any(list(result.uses) for result in op.results)
        if op in moved and not unused:
            _forget_wait(op.opview)
        elif op in moved or (is_free(op) and unused):
            op.erase()


def _forget_wait(wait: RingWaitOp) -> None:
    """Drops a wait for a slot that other products read, too: it was waited for an iteration
    ahead."""
    with ir.InsertionPoint(wait.operation), wait.operation.location:
        wait.slot.replace_all_uses_with(RingSlotOp.build(wait.ring, wait.count))
    wait.operation.erase()


def _issue_if(
    condition: ir.Value, needed: Sequence[ir.Operation], mapped: dict[ir.Value, ir.Value]
) -> None:
    with only_if(condition):
        for op in needed:
            clone_mapped(op, mapped)


def _await_later(loop: ir.Operation, deferred: Deferred) -> ir.Operation:
    """Moves the wait for a product to the next iteration; returns the loop, which may be new."""
    product, load = deferred.product, deferred.load
    body = loop.regions[0].blocks[0]
    kept = [*(store.dst for store in deferred.stores), product.multiply.acc]
    for alloc in (alloc_of(buffer).operation for buffer in kept):
        if alloc.block == body:
            alloc.move_before(loop)
    touching = [store.operation for store in deferred.stores]
    if load is not None:
        (use,) = load.result.uses
        number = use.operand_number
        total = body.arguments[1 + number]
        sink(total, body)
        touching += [use.owner.operation for use in total.uses]
    _wait_before(first_in(body, touching), product)
    product.wait.operation.erase()
    if load is None:
        with ir.InsertionPoint(behind(loop)), loop.location:
            _wait_for_last(loop, product)
        return loop
    return _keep_sum(loop, product, load, number)


def _keep_sum(
    loop: ir.Operation, product: Product, load: BufferLoadOp, number: int
) -> ir.Operation:
    """The carried sum stays in tensor memory: stored once, loaded where an iteration reads it."""
    body, acc, kind = loop.regions[0].blocks[0], product.multiply.acc, load.result.type
    total = body.arguments[1 + number]
    with ir.InsertionPoint(loop), load.operation.location:
        BufferStoreOp.build(loop.operands[3 + number], acc)
    readers = [use.owner.operation for use in total.uses]
    readers = [op for op in readers if op != terminator(body)]
    if readers:
        with ir.InsertionPoint(first_in(body, readers)), load.operation.location:
            total.replace_all_uses_with(BufferLoadOp.build(acc, results=[kind]))
    location = load.operation.location
    new = without_iteration_argument(loop, number)
    load.operation.erase()
    with ir.InsertionPoint(behind(new)), location:
        _wait_for_last(new, product)
        last = BufferLoadOp.build(acc, results=[kind])
    loop.results[number].replace_all_uses_with(last)
    loop.erase()
    return new


def _wait_before(op: ir.Operation, product: Product) -> None:
    """Waits for the product of the iteration before; the first of all waits for nothing."""
    with ir.InsertionPoint(op), product.wait.operation.location:
        _wait_for_previous(product.turn.count, product)


def _wait_for_last(loop: ir.Operation, product: Product) -> None:
    number = ir.BlockArgument(product.turn.count).arg_number - 1
    _wait_for_previous(loop.results[number], product)


def _wait_for_previous(count: ir.Value, product: Product) -> None:
    """Waits for the product in the slot of turn `count` before that turn, if there was one."""
    RingWaitOp.build(product.publish.ring, count, previous=True)


def sink(value: ir.Value, body: ir.Block) -> None:
    """Moves tile arithmetic that depends on `value` down to its first user: what can be done
    without comes first."""
    dependent: list[ir.Operation] = []
    known = {value}
    for view in body.operations:
        if any(operand in known for operand in view.operation.operands):
            dependent.append(view.operation)
            known.update(view.operation.results)
    for op in reversed(dependent):
        users = [use.owner.operation for r in op.results for use in r.uses]
        if users and op.name.startswith(("arith.", "math.")) and any(map(is_tile, op.results)):
            op.move_before(first_in(body, users))
