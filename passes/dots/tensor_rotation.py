"""Which products in tensor memory rotate-dots issues an iteration ahead, or awaits an iteration
later: the rules of `rotate_tensor_dots.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from mlir import ir

from tilec.dialects.def_use import made_by, of_kind, users
from tilec.dialects.gpu_tile import (
    AllocOp,
    BufferLoadOp,
    BufferStoreOp,
    RingHandover,
    RingPublishOp,
    RingReleaseOp,
    RingSlotOp,
    RingWaitOp,
    SlotOp,
    Tcgen05MmaOp,
    ThreadCopy,
)
from tilec.dialects.gpu_tile.ring import PRODUCTS
from tilec.hardware.powers import power_above
from tilec.hardware.tensor_memory import COLUMNS
from tilec.passes.analysis.issue_order import (
    constant_steps,
    needed_to_issue,
    ring_turn,
)
from tilec.passes.analysis.lifetimes import Allocation, find_tensor_allocations
from tilec.passes.analysis.placement import shared_bytes
from tilec.passes.contract import PassContext
from tilec.passes.rewriting.loops import enclosing_ops, is_inside, terminator
from tilec.passes.rewriting.refusals import Refusal, attempt, refuse
from tilec.passes.rewriting.scalars import truth_of
from tilec.passes.rewriting.walk import alloc_of, is_of, kernel_of, users_of
from tilec.records import dataclass

ISSUING_OPS = (RingWaitOp, RingHandover, Tcgen05MmaOp)
_SLOTS = 2
"""Of sums of early products: one is multiplied into while the other, of the iteration before, is
read."""


@dataclass
class Product:
    """A matrix instruction, what publishes its sum and the wait for that, and what releases the
    slots that it reads.

    `turn`: of the ring of its sum; `turns`: of those of its operands.
    """

    multiply: Tcgen05MmaOp
    publish: RingPublishOp
    wait: RingWaitOp
    turn: RingSlotOp
    releases: list[RingReleaseOp]
    turns: list[RingSlotOp | RingWaitOp] = field(default_factory=list)

    @property
    def issued(self) -> list[ir.Operation]:
        """The ops that issue this product: itself, and what tells of its end."""
        return [view.operation for view in (self.multiply, self.publish, *self.releases)]


@dataclass
class Deferred:
    """A product awaited an iteration later. `stores`: what fills its operands and its sum;
    `load`: of the sum, the next value that the loop carries, None if it stays where it is."""

    product: Product
    stores: list[BufferStoreOp]
    load: BufferLoadOp | None


@dataclass
class Rotation:
    """What moves in a loop. `early`: products issued an iteration ahead, into `slots` each; `late`:
    products awaited an iteration later; `kept`: why others stay, where there is a reason to
    tell."""

    early: list[Product]
    late: list[Deferred]
    slots: int
    kept: list[str]


def find_rotation(loop: ir.Operation, context: PassContext) -> Rotation | None:
    """Finds what rotates in a loop; None where no product could."""
    body = loop.regions[0].blocks[0]
    multiplies = of_kind(body.operations, Tcgen05MmaOp)
    products = [_product(multiply, body) for multiply in multiplies]
    known = [product for product in products if product is not None]
    fresh = [product for product in known if truth_of(product.multiply.use_acc) is False]
    if not fresh:
        return None
    if len(known) < len(products):
        raise Refusal("a product is not issued and awaited in one place")
    if any(is_of(copy.dst.owner, SlotOp) for copy in of_kind(body.operations, ThreadCopy)):
        raise Refusal("threads copy into slots that a product awaited later would still read")
    refused = [_refused_ahead(product, body, loop) for product in fresh]
    early = [p for p, why in zip(fresh, refused, strict=True) if why is None]
    if not early:
        refuse(refused[0])
    for product in early:
        product.releases = [r for r in product.releases if not _is_read_late(r, early)]
    if _waits_for_only_slot(early):
        raise Refusal("products read the only slot of one ring")
    slots = _slots(loop, early, context)
    if not slots:
        raise Refusal(
            f"its sums and operands take more than {COLUMNS} columns of tensor memory at once"
        )
    others = [attempt(_deferred, product, loop) for product in known if product not in early]
    late = [found for found, _ in others if found is not None]
    return Rotation(early, late, slots, [why for _, why in others if why])


def _product(multiply: Tcgen05MmaOp, body: ir.Block) -> Product | None:
    views = list(body.operations)
    behind_it = views[[v.operation for v in views].index(multiply.operation) + 1 :]
    told: list[RingPublishOp | RingReleaseOp] = []
    for view in behind_it:
        if isinstance(view, Tcgen05MmaOp):
            break
        if isinstance(view, RingHandover) and view.by == PRODUCTS:
            told.append(view)
    published = of_kind(told, RingPublishOp)
    waits = {wait.ring: wait for wait in of_kind(behind_it, RingWaitOp)}
    done = [publish for publish in published if publish.ring in waits]
    if len(done) != 1 or len(list(done[0].ring.uses)) != 3:
        return None
    turn = made_by(done[0].slot, RingSlotOp)
    if turn is None or turn.operation.block != body:
        return None
    releases = of_kind(told, RingReleaseOp)
    product = Product(multiply, done[0], waits[done[0].ring], turn, releases)
    for operand in (multiply.lhs, multiply.rhs):
        read = ring_turn(operand)
        if read is not None and read.operation.block == body:
            product.turns.append(read)
    return product


def _refused_ahead(product: Product, body: ir.Block, loop: ir.Operation) -> str | None:
    """Says why a product cannot be issued an iteration ahead; None if it can."""
    acc = made_by(product.multiply.acc, AllocOp)
    others = len(users(product.multiply.acc)) - len(users(product.multiply.acc, BufferLoadOp))
    whole = acc is not None and acc.operation.block == body
    if not whole or others != 1:
        return "its sum goes on elsewhere"
    given = [product.multiply.acc]
    steps = constant_steps(loop)
    return attempt(needed_to_issue, product.issued, body, steps, given, ISSUING_OPS)[1] or None


def _is_read_late(release: RingReleaseOp, early: Sequence[Product]) -> bool:
    """Whether what stays in its iteration reads a slot, too: its release, behind all readers, must
    not go ahead with an early product."""
    ahead = [product.multiply.operation for product in early]
    slots = users(release.slot, SlotOp)
    return any(user not in ahead for slot in slots for user in users_of(slot.result))


def _waits_for_only_slot(early: Sequence[Product]) -> bool:
    """Whether an early product would wait for its next tile in the only slot of a ring, which holds
    this iteration's, while the release of that slot stays behind, in this iteration."""
    returned = [release.slot for product in early for release in product.releases]
    turns = [turn for product in early for turn in product.turns]
    return any(turn.slots < _SLOTS and turn.slot not in returned for turn in turns)


def _slots(loop: ir.Operation, early: Sequence[Product], context: PassContext) -> int:
    """The number of slots that the sums of early products get: two or one; 0 where tensor memory
    has no room for one."""
    function = kernel_of(loop)
    sums = [product.multiply.acc.owner.operation for product in early]
    found = find_tensor_allocations(function)
    own = [each for each in found if is_inside(each.op.result, loop)]
    # What is stored in one iteration is read in the next: none of them share columns.
    together = [each for each in found if each in own or any(each.meets(one) for one in own)]
    once = sum(map(_rounded, together))
    again = sum(_rounded(each) for each in own if each.op.operation in sums)
    ctas = 2 if context.target.fits_twice(shared_bytes(function)) else 1
    if power_above(once + again) <= COLUMNS // ctas:
        return _SLOTS
    return int(once <= COLUMNS)


def _rounded(each: Allocation) -> int:
    return -(-each.size // each.alignment) * each.alignment


def _deferred(product: Product, loop: ir.Operation) -> Deferred | None:
    """A product that the next iteration can wait for; None: it has nothing to gain."""
    found = _stores_and_load(product.multiply, loop)
    # Without stores nothing keeps the thread that issues from running two phases ahead of others.
    if found is None or not found[0]:
        return None
    stores, load = found
    body = loop.regions[0].blocks[0]
    if _given_back_behind(product, body):
        raise Refusal("threads give back behind it what it reads")
    uses = [] if load is None else [use.owner.operation for use in load.result.uses]
    goes_on = load is None or uses == [terminator(body)]
    return Deferred(product, stores, load) if goes_on else None


def _stores_and_load(
    multiply: Tcgen05MmaOp, loop: ir.Operation
) -> tuple[list[BufferStoreOp], BufferLoadOp | None] | None:
    """Finds what a loop stores in a product's operands and its sum, and its load of the sum where
    that is the loop's own; None where anything else in the loop uses them. Operands in slots of
    rings are passed over."""
    body = loop.regions[0].blocks[0]
    stores: list[BufferStoreOp] = []
    load: BufferLoadOp | None = None
    for operand in (multiply.lhs, multiply.rhs, multiply.acc):
        if ring_turn(operand) is not None:
            continue
        carried = operand == multiply.acc
        inside = alloc_of(operand).operation.block == body
        for user in (each.opview for each in users_of(alloc_of(operand).result)):
            if isinstance(user, BufferStoreOp) and inside and user.operation.block == body:
                stores.append(user)
            elif isinstance(user, BufferLoadOp) and inside and carried and load is None:
                load = user
            elif user.operation != multiply.operation and loop in enclosing_ops(user.operation):
                return None
        if carried and inside and load is None:
            return None
    return stores, load


def _given_back_behind(product: Product, body: ir.Block) -> bool:
    """Whether threads release a slot that a product reads once they have waited for it. If the wait
    went an iteration later, the release would stay, and free what is still read."""
    slots = [turn.slot for turn in product.turns]
    views = list(body.operations)
    behind = views[[view.operation for view in views].index(product.wait.operation) :]
    releases = of_kind(behind, RingReleaseOp)
    return any(release.slot in slots and release.by != PRODUCTS for release in releases)
