"""Half of rotate-dots: products that a loop scales and adds up, each under the next one.

Before:   scf.for %k ... iter_args(%acc, %count) {
            wait for slot %count   %p = %a @ %b (issue, wait)   give the slot back
            %acc = %acc + %p * ...
          }
After:    scf.if there is an iteration {
            issue %p of the first
            scf.for every second iteration that two others follow ... iter_args(%acc, %count, %p) {
              issue %q of the next iteration
              wait for %p, not for %q   %acc = %acc + %p * ...
              issue %p of the one behind it
              wait for %q, not for %p   %acc = %acc + %q * ...
            }
            the one or two that are left
          }

Tensor cores then multiply while threads add: a loop that waits for each product leaves them idle
as long as it scales and adds, and sets of warps that begin together idle together. A slot that
threads read, too, is given back where they have. Each of the two
products in flight has registers of its own, so the loop has two iterations: sums in flight cannot
be copied.

The product must be the only one of its loop, start from a constant and depend on nothing but
scalars that count and slots of rings; the loop must carry more than its result, and hold no loop:
the product of the next program would run under all of this one's, which would be there five times.
Does not handle: operands in registers, loops outside of roles, sums three of which leave too few
registers.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.dialects.gpu_tile import RingSlotOp, RoleOp, WgmmaWaitOp
from tilec.dialects.gpu_tile.role import ctas_per_sm, entry_registers, total_warps
from tilec.dialects.gpu_tile.types import is_buffer, layout_of
from tilec.dialects.types import bit_width, element
from tilec.hardware.sizes import WORD_BYTES
from tilec.passes.analysis.issue_order import constant_steps, ops_beside
from tilec.passes.analysis.register_pressure import most_live_registers
from tilec.passes.contract import PassContext
from tilec.passes.dots.issued_products import IssuedProduct, LoopRewrite, find_product, products_of
from tilec.passes.rewriting.control import either, for_loop
from tilec.passes.rewriting.loops import clone_mapped, find_loops, terminator
from tilec.passes.rewriting.op_tables import OpSet
from tilec.passes.rewriting.refusals import Refusal, refuse
from tilec.passes.rewriting.scalars import binary, less
from tilec.passes.rewriting.walk import kernel_of, role_of

BESIDE = 28
"""Registers of a thread beside what is counted: 128 x 128 by two warpgroups takes 230 of 232 so,
and ptxas spills nothing."""

Values = dict[ir.Value, ir.Value]


def plan_rotated_sum(loop: ir.Operation, context: PassContext) -> LoopRewrite | None:
    """How a loop with one product whose result it adds up rotates; None where it has no such."""
    body = loop.regions[0].blocks[0]
    multiplies = products_of(body)
    if len(multiplies) != 1:
        return None
    product = find_product(multiplies[0], body)
    if product is None or not product.starts_from_constant:
        return None
    if not product.releases or not product.turns or not is_buffer(product.multiply.lhs):
        raise Refusal("the product reads buffers of no ring")
    if min(turn.slots for turn in product.turns) < 2:
        raise Refusal("the product reads the only slot of a ring")
    if len(find_loops(loop)) > 1:
        raise Refusal(
            "a loop inside it takes longer than the product, and would be there five times"
        )
    if any(use.owner.operation == terminator(body) for use in product.wait.result.uses):
        raise Refusal("the loop carries a product as it is")
    counters = constant_steps(loop)
    early = product.needed_to_issue(body, counters, ())
    refuse(_why_no_room(loop, product, context))
    return _Rewrite(loop, product, early, counters)


def _why_no_room(loop: ir.Operation, product: IssuedProduct, context: PassContext) -> str | None:
    role = role_of(loop)
    if role is None:
        return "no other warps load"
    view: RoleOp = role.opview
    function = kernel_of(loop)
    threads = total_warps(function, context.num_warps) * context.target.warp_size
    there = view.registers or entry_registers(context.target, threads, ctas_per_sm(function))
    result = product.wait.result
    sums = layout_of(result).num_values * bit_width(element(result)) // (8 * WORD_BYTES)
    taken = most_live_registers(view.body) + sums + BESIDE
    return f"a second product's sums make {taken} of {there} registers" if taken > there else None


class _Rewrite(LoopRewrite):
    """Rewrites one loop: its start, the loop, what is left."""

    CHOSEN = "a product under the next one"
    WHY = "tensor cores multiply while threads add up the product before"

    def __init__(
        self,
        loop: ir.Operation,
        product: IssuedProduct,
        early: Sequence[ir.Operation],
        counters: dict[int, int],
    ) -> None:
        super().__init__(loop)
        self._product, self._early, self._counters = product, early, counters
        self._at_once = [release.operation for release in product.released_at_once()]
        moved = OpSet((product.wait.operation, *self._at_once))
        self._rest = ops_beside(self._body, OpSet(early), moved)

    def _iterations(self) -> list[ir.Value]:
        flying = self._issue(self._lower, self._inits, 0)
        twice = binary("arith.addi", self._step, self._step)
        stop = binary("arith.subi", self._upper, twice)
        inits = [self._lower, *self._inits, flying]
        loop, block = for_loop([self._lower, stop, twice], inits, self._loop)
        with ir.InsertionPoint(block):
            at, _, *carried, flying = block.arguments
            second, carried = self._two(at, carried, flying)
            behind = binary("arith.addi", at, twice)
            flying = self._issue(behind, carried, 1)
            carried = self._finish(second[0], carried, second[1], pending=1)
            ir.Operation.create("scf.yield", operands=[behind, *carried, flying])
        at, *carried, flying = loop.results
        return self._left(at, carried, flying)

    def _two(
        self, at: ir.Value, carried: Sequence[ir.Value], flying: ir.Value
    ) -> tuple[tuple[ir.Value, ir.Value], list[ir.Value]]:
        """Issues the product behind the one in flight, of the iteration at `at`, and finishes this:
        where that is and its product, and what the loop carries to it."""
        following = binary("arith.addi", at, self._step)
        other = self._issue(following, carried, 1)
        return (following, other), self._finish(at, carried, flying, pending=1)

    def _left(self, at: ir.Value, carried: Sequence[ir.Value], flying: ir.Value) -> list[ir.Value]:
        """The iteration in flight, and the one behind it if there is one."""

        def two() -> list[ir.Value]:
            second, handed = self._two(at, carried, flying)
            return self._finish(second[0], handed, second[1], pending=0)

        more = less(binary("arith.addi", at, self._step), self._upper)
        return either(more, two, lambda: self._finish(at, carried, flying, pending=0))

    def _issue(self, at: ir.Value, carried: Sequence[ir.Value], ahead: int) -> ir.Value:
        """The product of the iteration at `at`, which is so many ahead of what is carried."""
        mapped = self._mapped(at, carried)
        for number, step in self._counters.items():
            value = carried[number]
            if ahead:
                value = binary("arith.addi", value, ahead * step)
            mapped[self._arguments[1 + number]] = value
        for op in self._early:
            clone_mapped(op, mapped)
        return mapped[self._product.multiply.result]

    def _finish(
        self, at: ir.Value, carried: Sequence[ir.Value], flying: ir.Value, *, pending: int
    ) -> list[ir.Value]:
        """Waits for the product of the iteration at `at` and does the rest, having given back the
        slots that it alone reads; what the loop carries then."""
        product, mapped = self._product, self._mapped(at, carried)
        with product.wait.operation.location:
            kind = product.wait.result.type
            mapped[product.wait.result] = WgmmaWaitOp.build(flying, results=[kind], pending=pending)
        for turn in product.turns:
            if turn.slot not in mapped:
                count = mapped[turn.count]
                with turn.operation.location:
                    mapped[turn.slot] = RingSlotOp.build(turn.ring, count)
        for op in (*self._at_once, *self._rest):
            clone_mapped(op, mapped)
        return [mapped.get(value, value) for value in self._yielded]

    def _mapped(self, at: ir.Value, carried: Sequence[ir.Value]) -> Values:
        return dict(zip(self._arguments, [at, *carried], strict=True))
