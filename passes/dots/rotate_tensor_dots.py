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
   scalars that count, and buffers that barriers guard. The sum gets two slots: while threads work
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
from dataclasses import dataclass, field

from mlir import ir

from tilec.dialects.gpu_tile import (
    AllocOp,
    BarrierInitOp,
    BarrierWaitOp,
    BufferLoadOp,
    BufferStoreOp,
    RingPositionOp,
    SlotOp,
    Tcgen05CommitOp,
    Tcgen05MmaOp,
)
from tilec.dialects.gpu_tile.types import TensorBuffer, tensor_buffer_of
from tilec.dialects.types import is_tile
from tilec.passes.allocate_shared import shared_bytes
from tilec.passes.analysis.issue_order import (
    constant_steps,
    is_free,
    needed_to_issue,
    ring_position,
    slot_waits,
)
from tilec.passes.analysis.lifetimes import Allocation, find_tensor_allocations
from tilec.passes.contract import PassContext
from tilec.passes.keep_accumulators import without_argument
from tilec.passes.rewriting.loops import behind, clone_mapped, enclosing_ops, is_inside, terminator
from tilec.passes.rewriting.scalars import binary, constant, less
from tilec.tensor_memory import COLUMNS, power_of_two

_ISSUING_OPS = (BarrierWaitOp, Tcgen05CommitOp, Tcgen05MmaOp)
_SLOTS = 2


@dataclass
class _Product:
    """A matrix instruction, its commit and the wait for that, and commits that give slots back.

    `counted`: the position of the commit's barrier; `positions`: those of its operands in rings.
    """

    multiply: Tcgen05MmaOp
    commit: Tcgen05CommitOp
    wait: BarrierWaitOp
    counted: RingPositionOp
    releases: list[Tcgen05CommitOp]
    positions: list[RingPositionOp] = field(default_factory=list)

    @property
    def issued(self) -> list[ir.Operation]:
        """The ops by which it is issued."""
        return [view.operation for view in (self.multiply, self.commit, *self.releases)]


@dataclass
class _Deferred:
    """A product awaited an iteration later. `stores`: what fills its operands and its sum;
    `load`: of the sum, the next value that the loop carries, None if it stays where it is."""

    product: _Product
    stores: list[BufferStoreOp]
    load: BufferLoadOp | None


@dataclass
class _Rotation:
    """`early`: products issued an iteration ahead, into `slots` each; `late`: awaited later."""

    early: list[_Product]
    late: list[_Deferred]
    slots: int


def rotate_tensor_dots(loop: ir.Operation, context: PassContext) -> None:
    """Rotates one loop, if it has products to be issued ahead."""
    found = _find(loop, context)
    if isinstance(found, _Rotation):
        how = "into another slot" if found.slots > 1 else "when this one's was loaded"
        context.report.add(
            "matrix instructions",
            loop,
            "rotated",
            f"products run while threads work: the next iteration's is issued {how}, "
            f"{len(found.late)} awaited in the next",
        )
        _rewrite(loop, found)
    elif found is not None:
        context.report.add("matrix instructions", loop, "not rotated", found)


# What moves ---------------------------------------------------------------------------------------


def _find(loop: ir.Operation, context: PassContext) -> _Rotation | str | None:
    body = loop.regions[0].blocks[0]
    multiplies = [view for view in body.operations if isinstance(view, Tcgen05MmaOp)]
    products = [_product(multiply, body) for multiply in multiplies]
    known = [product for product in products if product is not None]
    fresh = [product for product in known if _overwrites(product.multiply)]
    if not fresh:
        return None
    if len(known) < len(products):
        return "a product is not issued and awaited in one place"
    refused = [_refused_ahead(product, body, loop) for product in fresh]
    early = [p for p, why in zip(fresh, refused, strict=True) if why is None]
    if not early:
        return refused[0]
    others = [product for product in known if product not in early]
    if any(_holds_only_slot(product, others) for product in early):
        return "products read the only slot of one ring"
    slots = _slots(loop, early, context)
    if not slots:
        return f"its sums and operands take more than {COLUMNS} columns of tensor memory at once"
    late = [found for p in others if (found := _deferred(p, body)) is not None]
    return _Rotation(early, late, slots)


def _overwrites(multiply: Tcgen05MmaOp) -> bool:
    made = multiply.use_acc.owner
    if isinstance(made, ir.Block) or made.operation.name != "arith.constant":
        return False
    return not ir.BoolAttr(made.attributes["value"]).value


def _product(multiply: Tcgen05MmaOp, body: ir.Block) -> _Product | None:
    views = list(body.operations)
    behind_it = views[[v.operation for v in views].index(multiply.operation) + 1 :]
    commits: list[Tcgen05CommitOp] = []
    for view in behind_it:
        if isinstance(view, Tcgen05MmaOp):
            break
        if isinstance(view, Tcgen05CommitOp):
            commits.append(view)
    awaited = {
        commit.barrier: view
        for view in behind_it
        for commit in commits
        if isinstance(view, BarrierWaitOp) and view.barrier == commit.barrier
    }
    done = [commit for commit in commits if commit.barrier in awaited]
    if len(done) != 1 or len(list(done[0].barrier.uses)) != 2:
        return None
    counted = done[0].slot.owner
    if not isinstance(counted, RingPositionOp) or counted.operation.block != body:
        return None
    releases = [commit for commit in commits if commit not in done]
    product = _Product(multiply, done[0], awaited[done[0].barrier], counted, releases)
    for operand in (multiply.lhs, multiply.rhs):
        position = ring_position(operand)
        if position is not None and position.operation.block == body:
            product.positions.append(position)
    return product


def _refused_ahead(product: _Product, body: ir.Block, loop: ir.Operation) -> str | None:
    """Why a product cannot be issued an iteration ahead, None if it can."""
    acc = product.multiply.acc.owner
    users = [use.owner.opview for use in product.multiply.acc.uses]
    loads = [user for user in users if isinstance(user, BufferLoadOp)]
    whole = isinstance(acc, AllocOp) and acc.operation.block == body
    if not whole or len(loads) + 1 != len(users):
        return "its sum goes on elsewhere"
    roots = [*product.issued, *(w.operation for w in slot_waits(product.positions, body))]
    given = [product.multiply.acc]
    needed = needed_to_issue(roots, body, constant_steps(loop), given, _ISSUING_OPS)
    return needed if isinstance(needed, str) else None


def _holds_only_slot(product: _Product, others: Sequence[_Product]) -> bool:
    """Whether a ring of one slot waits for another product to be given back."""
    held = [p for other in others for p in other.positions]
    return any(position.slots < _SLOTS and position in held for position in product.positions)


def _slots(loop: ir.Operation, early: Sequence[_Product], context: PassContext) -> int:
    """Of the sums of early products: two or one, 0 where tensor memory has not even that."""
    function = enclosing_ops(loop)[-1].parent
    sums = [product.multiply.acc.owner.operation for product in early]
    found = find_tensor_allocations(function)
    own = [each for each in found if is_inside(each.op.result, loop)]
    # What is stored in one iteration is read in the next: none of them share columns.
    together = [each for each in found if each in own or any(each.meets(one) for one in own)]
    once = sum(map(_rounded, together))
    again = sum(_rounded(each) for each in own if each.op.operation in sums)
    ctas = 2 if context.target.fits_twice(shared_bytes(function)) else 1
    if power_of_two(once + again) <= COLUMNS // ctas:
        return _SLOTS
    return int(once <= COLUMNS)


def _rounded(each: Allocation) -> int:
    return -(-each.size // each.alignment) * each.alignment


def _deferred(product: _Product, body: ir.Block) -> _Deferred | None:
    """A product that the next iteration can wait for."""
    stores: list[BufferStoreOp] = []
    load: BufferLoadOp | None = None
    multiply = product.multiply
    for operand in (multiply.lhs, multiply.rhs, multiply.acc):
        if not isinstance(operand.owner, AllocOp):
            continue
        carried = operand == multiply.acc
        inside = operand.owner.operation.block == body
        for user in (use.owner.opview for use in operand.uses):
            if isinstance(user, BufferStoreOp) and inside and user.operation.block == body:
                stores.append(user)
            elif isinstance(user, BufferLoadOp) and inside and carried and load is None:
                load = user
            elif user.operation != multiply.operation and user.operation.block == body:
                return None
        if carried and inside and load is None:
            return None
    if not stores:
        # Nothing would keep the thread that issues from running two phases ahead of the others.
        return None
    if load is None:
        return _Deferred(product, stores, None)
    (*uses,) = load.result.uses
    goes_on = len(uses) == 1 and uses[0].owner.operation == terminator(body)
    return _Deferred(product, stores, load) if goes_on else None


# The rewrite --------------------------------------------------------------------------------------


def _rewrite(loop: ir.Operation, rotation: _Rotation) -> None:
    body = loop.regions[0].blocks[0]
    for product in rotation.early:
        _give_slots(product, loop, rotation.slots)
    moved: set[ir.Operation] = set()
    for product in rotation.early:
        waits = [wait.operation for wait in slot_waits(product.positions, body)]
        moved.update((*product.issued, *waits))
    _issue_ahead(loop, moved, _place_of_next(body, rotation))
    for deferred in rotation.late:
        positions = deferred.product.positions
        for wait in slot_waits(positions, body):
            wait.operation.move_before(deferred.product.multiply.operation)
    for deferred in rotation.late:
        loop = _await_later(loop, deferred)


def _give_slots(product: _Product, loop: ir.Operation, slots: int) -> None:
    """Slots of a product's sum and of its barrier, whose position moves to the body's top."""
    multiply, old = product.multiply, product.counted
    alloc = multiply.acc.owner
    one = tensor_buffer_of(alloc.result)
    with ir.InsertionPoint(loop), alloc.operation.location:
        shape = (slots, *one.shape) if slots > 1 else one.shape
        whole = AllocOp.build(results=[TensorBuffer(shape, one.element, one.layout).type()])
    with ir.InsertionPoint.at_block_begin(loop.regions[0].blocks[0]), old.operation.location:
        slot, parity = RingPositionOp.build(old.count, slots=slots)
        now = SlotOp.build(whole, slot) if slots > 1 else whole
    init = product.commit.barrier.owner
    assert isinstance(init, BarrierInitOp)
    init.operation.attributes["slots"] = ir.IntegerAttr.get(slot.type, slots)
    for before, after in ((old.slot, slot), (old.parity, parity), (alloc.result, now)):
        before.replace_all_uses_with(after)
    old.operation.erase()
    alloc.operation.erase()


def _place_of_next(body: ir.Block, rotation: _Rotation) -> ir.Operation:
    """Where an iteration issues the next one's products: first of all, or behind all loads of this
    one's sums."""
    first, last = next(iter(body.operations)).operation, terminator(body)
    if rotation.slots > 1:
        return first
    order = {view.operation: number for number, view in enumerate(body.operations)}
    loaded = max(
        order[_in_block(use.owner.operation, body)]
        for product in rotation.early
        for use in product.multiply.acc.uses
        if isinstance(use.owner.opview, BufferLoadOp)
    )
    later = [d.product.multiply.operation for d in rotation.late]
    return next((op for op in later if order[op] > loaded), last)


def _in_block(op: ir.Operation, block: ir.Block) -> ir.Operation:
    while op.block != block:
        op = op.parent
    return op


def _issue_ahead(loop: ir.Operation, moved: set[ir.Operation], place: ir.Operation) -> None:
    """The ops `moved` in front of the loop for its first iteration, and at `place` for the next."""
    body = loop.regions[0].blocks[0]
    lower, upper, step, *inits = loop.operands
    induction, *carried = body.arguments
    steps = constant_steps(loop)
    needed = needed_to_issue(list(moved), body, steps, (), _ISSUING_OPS)
    assert not isinstance(needed, str)
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
        if op in moved or (is_free(op) and unused):
            op.erase()


def _issue_if(
    condition: ir.Value, needed: Sequence[ir.Operation], mapped: dict[ir.Value, ir.Value]
) -> None:
    branch = ir.Operation.create("scf.if", operands=[condition], regions=2)
    with ir.InsertionPoint(branch.regions[0].blocks.append()):
        for op in needed:
            clone_mapped(op, mapped)
        ir.Operation.create("scf.yield")


def _await_later(loop: ir.Operation, deferred: _Deferred) -> ir.Operation:
    """Moves the wait for a product to the next iteration; returns the loop, which may be new."""
    product, load = deferred.product, deferred.load
    body = loop.regions[0].blocks[0]
    for store in deferred.stores:
        alloc = store.dst.owner.operation
        if alloc.block == body:
            alloc.move_before(loop)
    total: ir.Value | None = None
    touching = [store.operation for store in deferred.stores]
    if load is not None:
        (use,) = load.result.uses
        number = use.operand_number
        total = body.arguments[1 + number]
        sink(total, body)
        touching += [_in_block(use.owner.operation, body) for use in total.uses]
    order = [view.operation for view in body.operations]
    _wait_before(min(touching, key=order.index), product)
    product.wait.operation.erase()
    if load is None:
        with ir.InsertionPoint(behind(loop)), loop.location:
            _wait_for_last(loop, product)
        return loop
    return _keep_sum(loop, product, load, number)


def _keep_sum(
    loop: ir.Operation, product: _Product, load: BufferLoadOp, number: int
) -> ir.Operation:
    """The carried sum stays in tensor memory: stored once, loaded where an iteration reads it."""
    body, acc, kind = loop.regions[0].blocks[0], product.multiply.acc, load.result.type
    total = body.arguments[1 + number]
    with ir.InsertionPoint(loop), load.operation.location:
        BufferStoreOp.build(loop.operands[3 + number], acc)
    readers = [_in_block(use.owner.operation, body) for use in total.uses]
    readers = [op for op in readers if op != terminator(body)]
    if readers:
        order = [view.operation for view in body.operations]
        with ir.InsertionPoint(min(readers, key=order.index)), load.operation.location:
            total.replace_all_uses_with(BufferLoadOp.build(acc, results=[kind]))
    location = load.operation.location
    new = without_argument(loop, number, load)
    with ir.InsertionPoint(behind(new)), location:
        _wait_for_last(new, product)
        last = BufferLoadOp.build(acc, results=[kind])
    loop.results[number].replace_all_uses_with(last)
    others = [result for n, result in enumerate(loop.results) if n != number]
    for old, result in zip(others, new.results, strict=True):
        old.replace_all_uses_with(result)
    loop.erase()
    return new


def _wait_before(op: ir.Operation, product: _Product) -> None:
    """Waits for the product of the iteration before; the first of all waits for nothing."""
    with ir.InsertionPoint(op), product.wait.operation.location:
        _wait_for_previous(product.counted.count, product)


def _wait_for_last(loop: ir.Operation, product: _Product) -> None:
    number = ir.BlockArgument(product.counted.count).arg_number - 1
    _wait_for_previous(loop.results[number], product)


def _wait_for_previous(count: ir.Value, product: _Product) -> None:
    """Waits for the product before the one of number `count`: the other parity. A barrier on which
    nothing was counted yet lets that pass (PTX ISA 9.0, "mbarrier.test_wait")."""
    slot, parity = RingPositionOp.build(count, slots=product.counted.slots)
    before = binary("arith.xori", parity, constant(ir.IntegerType.get_signless(1), 1))
    BarrierWaitOp.build(product.commit.barrier, slot, before)


def sink(value: ir.Value, body: ir.Block) -> None:
    """Moves tile arithmetic that depends on `value` down to its first user: what can be done
    without comes first."""
    dependent: set[ir.Operation] = set()
    known = {value}
    for view in body.operations:
        if any(operand in known for operand in view.operation.operands):
            dependent.add(view.operation)
            known.update(view.operation.results)
    order = {view.operation: number for number, view in enumerate(body.operations)}
    for op in sorted(dependent, key=order.__getitem__, reverse=True):
        users = [_in_block(use.owner.operation, body) for r in op.results for use in r.uses]
        if users and op.name.startswith(("arith.", "math.")) and any(map(is_tile, op.results)):
            now = [view.operation for view in body.operations]
            op.move_before(min(users, key=now.index))
