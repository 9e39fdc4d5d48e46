"""How specialize-warps gives matrix instructions that add up in tensor memory a warp of their own.

Before:   scf.for %k ... {
            ... tensor copies fill %a, %b ...   "gpu_tile.barrier_wait"(%full, ...)
            "gpu_tile.tcgen05_mma"(%a, %b, %t, %add)
            "gpu_tile.ring_publish"(%done, ...) {by = "products"}   "gpu_tile.ring_wait"(%done, ...)
          }
          %sum = "gpu_tile.buffer_load"(%t)
After:    %slot = "gpu_tile.ring_acquire"(%sums, %n)                                   (multiply)
          scf.for %k ... {
            "gpu_tile.ring_wait"(%operands, ...)   "gpu_tile.tcgen05_mma"(..., %t[%slot], %add)
            "gpu_tile.ring_release"(%operands, ...) {by = "products"}      (load may go on then)
          }
          "gpu_tile.ring_publish"(%sums, %slot) {by = "products"}
          %slot = "gpu_tile.ring_wait"(%sums, %n)                                       (compute)
          %sum = "gpu_tile.buffer_load"(%t[%slot])   "gpu_tile.ring_release"(%sums, %slot)

A loop qualifies if it does nothing but copy, rows by number among others, multiply and wait, and
its sums are read behind it only. In a loop over programs the sums get two slots where tensor memory
holds them: the next program's products run under this one's end.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.def_use import made_by, of_kind
from tilec.dialects.gpu_tile import (
    AllocOp,
    BufferLoadOp,
    RingAcquireOp,
    RingAnnounceOp,
    RingPublishOp,
    RingReleaseOp,
    RingWaitOp,
    SlotOp,
    Tcgen05CopyOp,
    Tcgen05MmaOp,
    ThreadCopy,
    TmaLoadOp,
)
from tilec.dialects.gpu_tile.ring import COPIES, PRODUCTS
from tilec.dialects.gpu_tile.types import tensor_buffer_of
from tilec.dialects.types import is_tile
from tilec.hardware.tensor_memory import COLUMNS
from tilec.passes.analysis.dependence import is_read
from tilec.passes.rewriting.free_ops import is_one_element, is_scalar, stays_in_thread
from tilec.passes.rewriting.loops import (
    add_counter,
    behind,
    enclosing_ops,
    find_loops,
    inits_of,
    last_in,
)
from tilec.passes.rewriting.op_tables import OpMap, OpSet
from tilec.passes.rewriting.rings import make_ring
from tilec.passes.rewriting.values import replace_op
from tilec.passes.rewriting.walk import alloc_of, blocks_in
from tilec.records import dataclass


@dataclass
class Products:
    """A loop whose matrix instructions can have a warp of their own.

    `commits`, `waits`: how its products are published and awaited now. `sums`: the allocs that it
    adds up in; `readers`: the ops of the loop's block that hold the loads of them.
    `copies`: what brings scales to tensor memory.
    """

    loop: ir.Operation
    multiplies: list[Tcgen05MmaOp]
    commits: list[RingPublishOp]
    waits: list[RingWaitOp]
    sums: list[AllocOp]
    readers: list[ir.Operation]
    copies: list[Tcgen05CopyOp]

    @property
    def operands(self) -> list[ir.Value]:
        """The buffers that the instructions read."""
        read = [copy.src for copy in self.copies]
        return [v for op in self.multiplies for v in (op.lhs, op.rhs)] + read


def find_products(function: ir.Operation, copied: OpMap[ir.Operation]) -> list[Products]:
    """The loops that qualify. `copied`: the loop that fills each alloc by copies."""
    found = (_products(loop, copied) for loop in find_loops(function))
    return [products for products in found if products is not None]


def _products(loop: ir.Operation, copied: OpMap[ir.Operation]) -> Products | None:
    if any(map(is_tile, loop.results)):
        return None
    body = list(loop.regions[0].blocks[0].operations)
    multiplies = of_kind(body, Tcgen05MmaOp)
    commits = [publish for publish in of_kind(body, RingPublishOp) if publish.by == PRODUCTS]
    if not multiplies or not commits:
        return None
    # Every product is finished by a commit of its own; the last one waits for all of them.
    waits = [w for c in commits for w in of_kind(body, RingWaitOp) if w.ring == c.ring]
    copies = of_kind(body, Tcgen05CopyOp)
    ours = OpSet((*multiplies, *commits, *copies))
    if not all(view in ours or _is_simple(view) for view in body[:-1]):
        return None
    if len(waits) != len(commits):
        return None
    products = Products(loop, multiplies, commits, waits, [], [], copies)
    fills = [copied.get(alloc_of(v)) for v in products.operands]
    if not all(fill is not None and fill == loop for fill in fills):
        return None
    return products if _find_sums(products) else None


def _is_simple(view: ir.OpView) -> bool:
    """Whether a multiply role can do an op beside its products: scalars, single elements of arrays,
    the numbers that copies need, branches of these, copies and waits."""
    op, known = view.operation, (AllocOp, TmaLoadOp, ThreadCopy, RingAnnounceOp, RingWaitOp)
    if op.name == "scf.if":
        blocks = blocks_in(op)
        return all(_is_simple(inner) for block in blocks for inner in block.operations)
    if op.name == "scf.yield":
        return not any(is_tile(value) for value in op.operands)
    if isinstance(view, RingPublishOp):
        return view.by == COPIES
    return isinstance(view, known) or is_scalar(op) or is_one_element(op) or stays_in_thread(op)


def _find_sums(products: Products) -> bool:
    """Fills in the accumulators; whether nothing but the loop and loads behind it uses them."""
    seen = OpSet()
    for multiply in products.multiplies:
        alloc = made_by(multiply.acc, AllocOp)
        if alloc is None:
            return False
        if alloc in seen:
            continue
        seen.add(alloc)
        products.sums.append(alloc)
        for use in alloc.result.uses:
            user = use.owner.opview
            reader = _ancestor(user.operation, products.loop.block)
            if isinstance(user, BufferLoadOp) and reader is not None:
                products.readers.append(reader)
            elif user.operation not in [m.operation for m in products.multiplies]:
                return False
    order = [view.operation for view in products.loop.block.operations]
    behind_loop = [order.index(r) > order.index(products.loop) for r in products.readers]
    return bool(behind_loop) and all(behind_loop)


def _ancestor(op: ir.Operation, block: ir.Block) -> ir.Operation | None:
    """The op of `block` that is `op` or holds it."""
    around = [op, *enclosing_ops(op)]
    return next((each for each in around if each.block == block), None)


def add_multiply_role(
    products: Products, entry: ir.Operation, read: list[tuple[ir.Value, ir.Value]], warps: int
) -> list[ir.Operation]:
    """Rewrites one loop in place; returns what goes to the multiply role beside the waits for full
    slots.

    `entry`: an op at the kernel's entry in front of which sums go. `read`: the rings that the loop
    reads, and the slot of each. `warps`: how many read the sums.
    """
    slots = _slots(products)
    sums = make_ring(products.loop, slots=slots, fills=1, releases=warps)
    with ir.InsertionPoint(entry), products.loop.location:
        whole = [_slots_of(alloc, slots) for alloc in products.sums]
    for copy in products.copies:
        copy.dst.owner.operation.move_before(entry)
    count = add_counter(products.loop)
    return _Rewrite(products, slots, sums, whole, count).run(read)


def _slots(products: Products) -> int:
    """The slots for the sums of `products`: two where another program follows and tensor memory
    holds both, else one."""
    columns = sum(tensor_buffer_of(alloc.result).columns for alloc in products.sums)
    scales = sum(tensor_buffer_of(copy.dst).columns for copy in products.copies)
    follows = products.loop.parent.name == "scf.for"
    return 2 if follows and 2 * columns + scales <= COLUMNS else 1


def _slots_of(alloc: AllocOp, slots: int) -> ir.Value:
    one = tensor_buffer_of(alloc.result)
    return AllocOp.build(results=[(one.with_slots(slots) if slots > 1 else one).type()])


class _Rewrite:
    """Splits one loop; `ring`: of sums that products fill and threads read."""

    def __init__(
        self,
        products: Products,
        slots: int,
        ring: ir.Value,
        whole: list[ir.Value],
        count: ir.Value,
    ) -> None:
        self._products = products
        self._slots = slots
        self._ring = ring
        self._whole = whole
        self._count = count

    def run(self, read: list[tuple[ir.Value, ir.Value]]) -> list[ir.Operation]:
        """See `add_multiply_role`."""
        loop = self._products.loop
        issued = (*self._products.copies, *self._products.multiplies)
        multiplies = OpSet(issued)
        with ir.InsertionPoint(loop), loop.location:
            acquired = RingAcquireOp.build(self._ring, self._count)
            self._place_sums(acquired, multiplies)
        released = self._release_operands(read)
        published = self._hand_over(acquired)
        return [acquired.owner.operation, *(op.operation for op in issued), *released, published]

    def _place_sums(self, slot: ir.Value, users: OpSet | None = None) -> None:
        """Gives `users`, or whoever is left, one slot of the sums."""
        for alloc, whole in zip(self._products.sums, self._whole, strict=True):
            one = SlotOp.build(whole, slot) if self._slots > 1 else whole
            for use in list(alloc.result.uses):
                user = use.owner.operation
                if users is None or user in users:
                    user.operands[use.operand_number] = one

    def _release_operands(self, read: list[tuple[ir.Value, ir.Value]]) -> list[ir.Operation]:
        """Releases the slots of operands behind the last instruction: they are free when all
        products are done."""
        last = self._products.commits[-1].operation
        with ir.InsertionPoint(last), last.location:
            released = [RingReleaseOp.build(ring, slot, by=PRODUCTS) for ring, slot in read]
        commits, waits = self._products.commits, self._products.waits
        turns = OpSet(commit.slot.owner for commit in commits)
        done = OpSet(commit.ring.owner for commit in commits)
        for old in (*OpSet(waits), *OpSet(commits), *turns, *done):
            old.operation.erase()
        return [release.operation for release in released]

    def _hand_over(self, acquired: ir.Value) -> ir.Operation:
        loop = self._products.loop
        with ir.InsertionPoint(behind(loop)), loop.location:
            published = RingPublishOp.build(self._ring, acquired, by=PRODUCTS)
            ready = RingWaitOp.build(self._ring, self._count)
            self._place_sums(ready)
        for alloc in self._products.sums:
            alloc.operation.erase()
        last = last_in(loop.block, self._products.readers)
        with ir.InsertionPoint(behind(last)), last.location:
            RingReleaseOp.build(self._ring, ready, by="warp")
        return published.operation


def drop_shell(loop: ir.Operation) -> None:
    """Erases a loop whose work went to other roles, if nobody here reads what it computes beside:
    counts of turns that others take, nobody does."""
    if any(is_read(result) for result in loop.results):
        return
    replace_op(loop, *inits_of(loop))
