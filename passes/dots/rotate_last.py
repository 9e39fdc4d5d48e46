"""Half of rotate-dots: the last of several products run under the next iteration's work.

Before:   scf.for %n ... iter_args(%acc, %count) {
            wait for slots %count
            %s = %q @ keys (issue, wait)   %p = work on %s
            %w = %g @ values (issue, wait)   give the values' slot back   %d = work on %p, %w
            %e = %d narrowed   %acc = %acc + %e @ keys (issue, wait)   give the keys' slot back
          }
After:    scf.if there is an iteration {
            the first iteration but for its last product
            scf.for the other iterations ... iter_args(%acc, %count, %e) {
              wait for slots %count
              %s = %q @ keys (issue, wait)   %p = work on %s
              %w = %g @ values (issue, wait)   give the values' slot back
              %acc = %acc + %e @ keys of %count - 1 (issue, wait)   give that slot back
              %d = work on %p, %w   %e = %d narrowed
            }
            the last product of the last iteration
          }

A chain of products and of work between them leaves the tensor cores idle at its end: what comes
last waits for all else of its iteration, and the next iteration for it. Behind this nothing of an
iteration waits for its last products, and `delay-waits` issues them right behind the first ones
(Shah et al., "FlashAttention-3", 2024, section 3.2, of two products; here of gradients).

A last product adds what was computed in registers, and is narrowed for it, to a sum that the loop
carries and nothing else reads. Registers that it takes are written anew when it is done: narrowing
is the end of an iteration, and what stores the narrowed tile. Of one warpgroup: where there are
more, others multiply while one does what stands between products. Gradients of attention of 64
elements in 128 x 128 by two of them took 0.99 to 1.02 of the time, in 192 x 64 by three 0.99 to
1.05 (H200; queries), those of few programs by one 0.93 to 0.95.
Does not handle: fewer than three products (rotate-dots has two), products with both operands in
buffers, rings of two slots: the third iteration's copy would begin when half of the second is over.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.dialects.def_use import defining_op, only_use
from tilec.dialects.elementwise import is_elementwise
from tilec.dialects.gpu_tile import (
    RingReleaseOp,
    RingSlotOp,
    RingWaitOp,
    WgmmaFenceOp,
    WgmmaOp,
    WgmmaWaitOp,
)
from tilec.dialects.gpu_tile.types import is_buffer
from tilec.dialects.tile import StoreOp
from tilec.hardware.sizes import WARPGROUP_WARPS
from tilec.passes.analysis.issue_order import constant_steps, is_free
from tilec.passes.analysis.register_pressure import registers_of
from tilec.passes.contract import PassContext
from tilec.passes.dots.issued_products import (
    IssuedProduct,
    LoopRewrite,
    find_product,
    narrowing,
    products_of,
)
from tilec.passes.dots.late_stores import may_pass
from tilec.passes.rewriting.control import for_loop
from tilec.passes.rewriting.loops import clone_mapped, is_inside, terminator
from tilec.passes.rewriting.op_tables import OpSet
from tilec.passes.rewriting.refusals import Refusal
from tilec.passes.rewriting.scalars import binary, constant
from tilec.passes.rewriting.walk import all_ops, is_of, is_pure, kernel_of, role_of
from tilec.passes.roles.parts import parts_of
from tilec.records import dataclass

LEAST_PRODUCTS = 3
"""Of a loop here; two are `rotate-dots`' own."""
LEAST_SLOTS = 3
"""Of a ring that a last product reads: its slot goes back in the middle of the next iteration. With
two the copy for the one after that has half an iteration; not timed."""

Values = dict[ir.Value, ir.Value]


@dataclass
class _Last:
    """A product that moves, with the ops that it needs beside its sum and what comes from registers
    (`taken`); the number of the carried value that it adds to; the slots that go back behind it."""

    product: IssuedProduct
    needed: list[ir.Operation]
    number: int
    given_back: list[RingReleaseOp]

    @property
    def taken(self) -> ir.Value:
        return self.product.multiply.lhs


def plan_rotated_last(loop: ir.Operation, context: PassContext) -> LoopRewrite | None:
    """How the last products of a loop with several rotate; None where it has too few."""
    body = loop.regions[0].blocks[0]
    multiplies = products_of(body)
    if len(multiplies) < LEAST_PRODUCTS:
        return None
    products = [find_product(one, body) for one in multiplies]
    if any(product is None for product in products):  # of several groups, say: `overlap-mma` tells
        return None
    found = [product for product in products if product is not None]
    last = [one for one in found if _is_last(one, body)]
    if not last or len(last) == len(found):
        raise Refusal("no product adds to what the loop carries alone")
    role = role_of(loop)
    warps = context.num_warps if role is None else role.opview.warps
    if warps > WARPGROUP_WARPS:
        raise Refusal("other warpgroups multiply while one works behind its first products")
    counters = constant_steps(loop)
    moved = [_plan(one, last[n + 1 :], body, counters) for n, one in enumerate(last)]
    _require_room(loop, moved, context)
    first = [one for one in found if one not in last]
    return _Rewrite(loop, first, moved, counters)


def _is_last(product: IssuedProduct, body: ir.Block) -> bool:
    """Whether nothing of an iteration needs a product's sum but the next one's, which adds to it,
    and what it multiplies was computed in this one."""
    use = only_use(product.wait.result)
    if use is None or use.owner != terminator(body):
        return False
    before, lhs = body.arguments[1 + use.operand_number], product.multiply.lhs
    return product.fence.acc == before and not is_buffer(lhs) and is_inside(lhs, body.owner)


def _plan(
    product: IssuedProduct,
    behind: Sequence[IssuedProduct],
    body: ir.Block,
    counters: dict[int, int],
) -> _Last:
    """How a product moves. `behind`: those that move, too, and come after it."""
    number = only_use(product.wait.result).operand_number
    ends = _narrowed(product, body)
    if not ends or not _may_end(ends, product, body):
        raise Refusal("a product takes registers that are written before the one ahead is done")
    if only_use(body.arguments[1 + number]) is None:
        raise Refusal("a sum is read beside its product")
    if not product.releases or not product.turns:
        raise Refusal("a product reads buffers of no ring")
    if min(turn.slots for turn in product.turns) < LEAST_SLOTS:
        raise Refusal(f"a ring that it would hold longer has fewer than {LEAST_SLOTS} slots")
    given = (product.fence.acc, product.multiply.lhs)
    needed = product.needed_to_issue(body, counters, given)
    if any(value == body.arguments[0] for op in needed for value in op.operands):
        raise Refusal("a product depends on its iteration's number")
    later = [release for one in behind for release in one.releases]
    return _Last(product, needed, number, [r for r in product.releases if r not in later])


def _require_room(loop: ir.Operation, moved: Sequence[_Last], context: PassContext) -> None:
    """Refuses where what goes on to the next iteration in registers does not fit beside it."""
    function = kernel_of(loop)
    more = sum(registers_of(one.taken) for one in moved)
    for part in parts_of(function, context):
        if is_inside(loop.regions[0].blocks[0].arguments[0], part.block.owner):
            taken = part.peak(function).registers + more
            if taken > part.registers:
                raise Refusal(f"its last products would take {taken} of {part.registers} registers")


class _Rewrite(LoopRewrite):
    """Rewrites one loop: its start, the loop, the last products."""

    def __init__(
        self,
        loop: ir.Operation,
        first: Sequence[IssuedProduct],
        moved: Sequence[_Last],
        counters: dict[int, int],
    ) -> None:
        super().__init__(loop)
        self._moved, self._counters = moved, counters
        last = OpSet(op for one in moved for op in _narrowed(one.product, self._body))
        ops = _staying(self._body, moved)
        self._narrowing = [op for op in ops if op in last]
        ops = [op for op in ops if op not in last]
        waits = OpSet(product.wait.operation for product in first)
        place = 1 + max(n for n, op in enumerate(ops) if op in waits)
        while place < len(ops) and is_of(ops[place], RingReleaseOp):
            place += 1
        self._ahead, self._behind = ops[:place], ops[place:]
        many = "product runs" if len(moved) == 1 else f"{len(moved)} products run"
        self.WHY = f"its last {many} under the next iteration's first ones"

    def _iterations(self) -> list[ir.Value]:
        mapped = dict(zip(self._arguments, [self._lower, *self._inits], strict=True))
        _clone([*self._ahead, *self._behind, *self._narrowing], mapped)
        for one in self._moved:  # their sums begin as they came
            mapped[one.product.wait.result] = self._inits[one.number]
        following = binary("arith.addi", self._lower, self._step)
        bounds = [following, self._upper, self._step]
        loop, block = for_loop(bounds, self._carried(mapped), self._loop)
        with ir.InsertionPoint(block):
            induction, *carried = block.arguments
            ir.Operation.create("scf.yield", operands=self._steady(induction, carried))
        carried = list(loop.results)
        final = carried[: len(self._inits)]
        for one, total in zip(self._moved, self._multiply(carried), strict=True):
            final[one.number] = total
        return final

    def _steady(self, induction: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
        mapped = dict(zip(self._arguments, [induction, *carried], strict=False))
        _clone(self._ahead, mapped)
        for one, total in zip(self._moved, self._multiply(carried), strict=True):
            mapped[one.product.wait.result] = total
        _clone([*self._behind, *self._narrowing], mapped)
        return self._carried(mapped)

    def _carried(self, mapped: Values) -> list[ir.Value]:
        """Lists what goes on to the next iteration: all that is yielded, and what the last products
        take from registers."""
        taken = [one.taken for one in self._moved]
        return [mapped.get(value, value) for value in (*self._yielded, *taken)]

    def _multiply(self, carried: list[ir.Value]) -> list[ir.Value]:
        """The last products of the iteration that gave `carried`; their sums."""
        before = dict(zip(self._arguments[1:], carried, strict=False))
        for number, step in self._counters.items():
            added = constant(carried[number].type, step)
            before[self._arguments[1 + number]] = binary("arith.subi", carried[number], added)
        totals = []
        taken = carried[len(self._inits) :]
        for one, tile in zip(self._moved, taken, strict=True):
            before[one.taken] = tile
            for op in (*one.needed, one.product.wait.operation, *_operations(one.given_back)):
                if is_of(op, RingWaitOp):
                    before[op.result] = _named(op.opview, before)
                else:
                    clone_mapped(op, before)
            totals.append(before[one.product.wait.result])
        return totals


def _narrowed(product: IssuedProduct, body: ir.Block) -> list[ir.Operation]:
    """The ops of a body, in order, that narrow what a product takes, and all that follows from it
    but the product; none where threads do not narrow it there."""
    found = OpSet(narrowing(product.multiply.lhs, body))
    *ops, _ = [view.operation for view in body.operations]
    for op in ops:
        read = [defining_op(value) for each in all_ops(op) for value in each.operands]
        if op != product.multiply.operation and any(one in found for one in read if one):
            found.add(op)
    return [op for op in ops if op in found]


def _may_end(ops: Sequence[ir.Operation], product: IssuedProduct, body: ir.Block) -> bool:
    """Whether ops may be the end of an iteration: they store at most, and pass nothing that does
    what others notice."""
    every = [view.operation for view in body.operations]
    last = OpSet([*ops, product.fence.operation, product.multiply.operation])
    stores = [op for op in ops if is_of(op, StoreOp)]
    if not all(is_of(op, StoreOp) or is_pure(op) or is_elementwise(op) for op in ops):
        return False
    passed = every[every.index(stores[0]) : -1] if stores else []
    products = (RingReleaseOp, RingWaitOp, WgmmaFenceOp, WgmmaOp, WgmmaWaitOp)
    return may_pass(op for op in passed if op not in last and not is_of(op, *products))


def _staying(body: ir.Block, moved: Sequence[_Last]) -> list[ir.Operation]:
    """The ops of a body that stay in their iteration, in order: all but moved products, and what is
    for these alone and costs nothing there."""
    gone = OpSet(op for one in moved for op in _own_ops(one))
    needed = OpSet(op for one in moved for op in one.needed)
    *ops, _ = [view.operation for view in body.operations]
    for op in reversed(ops):
        users = [use.owner for result in op.results for use in result.uses]
        if op in needed and is_free(op) and all(user in gone for user in users):
            gone.add(op)
    return [op for op in ops if op not in gone]


def _own_ops(one: _Last) -> list[ir.Operation]:
    """The ops that are of a moved product alone."""
    product = one.product
    return _operations([product.fence, product.multiply, product.wait, *one.given_back])


def _operations(views: Sequence[ir.OpView]) -> list[ir.Operation]:
    return [view.operation for view in views]


def _named(turn: RingWaitOp, mapped: Values) -> ir.Value:
    """The slot of a turn that an earlier iteration has waited for."""
    with turn.operation.location:
        return RingSlotOp.build(turn.ring, mapped.get(turn.count, turn.count))


def _clone(ops: Sequence[ir.Operation], mapped: Values) -> None:
    for op in ops:
        clone_mapped(op, mapped)
