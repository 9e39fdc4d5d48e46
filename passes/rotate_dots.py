"""rotate-dots: an iteration's second product runs under the next iteration's work between products.

Before:   scf.for %n ... iter_args(%acc, %max, %count) {
            wait for slot %count of the keys     %s = %q @ keys (issue, wait)     give the slot back
            %p, %scaled, %max = ... from %s, %acc, %max ...
            wait for slot %count of the values   %acc = %p @ values + %scaled (issue, wait)   ...
          }
After:    scf.if there is an iteration {
            %s = the first product of the first iteration   %p, %scaled, %max = ...
            scf.for the other iterations ... iter_args(%p, %scaled, %max, %count) {
              issue this iteration's first product
              issue the second product of the iteration before
              wait for the first, not for the second   %p, %max = ... from %s, %max ...
              "gpu_tile.wgmma_meanwhile"()
              wait for the second   %scaled = ... from %acc ...
            }
            the second product of the last iteration
          }

The tensor cores then multiply while the other units do what stands between two products (Shah et
al., "FlashAttention-3", 2024, section 3.2). In tensor memory they do more: `rotate_tensor_dots`.
A loop's only product, which it scales and adds up, runs under that of the next: `rotate_sums`.
Of three and more the last ones run under the next iteration's first ones: `rotate_last`.
The first product must start from a constant and depend on nothing but scalars that count, and
slots of rings; the second must compute the loop-carried accumulator. What needs that
accumulator goes behind all other work of its iteration. A slot that threads read, too, is given
back where they have.
Does not handle: loops with other matrix instructions, first products with operands in registers,
buffers ordered by a sync, second products whose slots threads read.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.dialects.def_use import only_use
from tilec.dialects.elementwise import is_elementwise
from tilec.dialects.gpu_tile import WgmmaMeanwhileOp, WgmmaWaitOp
from tilec.dialects.types import is_tile
from tilec.passes.analysis.issue_order import constant_steps, ops_beside
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.dots.issued_products import (
    IssuedProduct,
    LoopRewrite,
    find_product,
    products_of,
    starts_from_constant,
)
from tilec.passes.dots.rotate_last import plan_rotated_last
from tilec.passes.dots.rotate_sums import plan_rotated_sum
from tilec.passes.dots.rotate_tensor_dots import rotate_tensor_dots
from tilec.passes.rewriting.control import for_loop
from tilec.passes.rewriting.loops import clone_mapped, find_loops, in_block, is_inside, terminator
from tilec.passes.rewriting.op_tables import OpSet
from tilec.passes.rewriting.refusals import Refusal, attempt
from tilec.passes.rewriting.scalars import binary, constant
from tilec.passes.rewriting.walk import is_pure
from tilec.records import dataclass


@tile_pass(
    requires=Level.BUFFERS,
    behind={
        "specialize-warps": "that gives slots back where their readers end, which rotating moves",
        "pair-products": "a rotated product is not recognised as half of a pair",
    },
    rings=True,
)
def rotate_dots(module: ir.Module, context: PassContext) -> None:
    """Starts the next iteration's first warpgroup product before the rest of this one."""
    for loop in find_loops(module):
        rotate_tensor_dots(loop, context)
    for loop in find_loops(module):
        rewrite, refused = attempt(_plan, loop, context)
        if rewrite is not None:
            context.report.add("matrix instructions", loop, rewrite.CHOSEN, rewrite.WHY)
            rewrite.run()
        elif refused:
            context.report.add("matrix instructions", loop, "not rotated", refused)


def _plan(loop: ir.Operation, context: PassContext) -> LoopRewrite | None:
    """How a loop rotates; None where it has no products that could."""
    for plan in (plan_rotated_sum, plan_rotated_last):
        rewrite = plan(loop, context)
        if rewrite is not None:
            return rewrite
    rotation = _find(loop)
    return None if rotation is None else _Rewrite(loop, rotation)


@dataclass
class _Rotation:
    """The ops that move. `early`: the first product's up to its issue; `late`: the second's behind
    its operands in registers; both in order. `number`: that of the accumulator among the carried
    values. `counters`: by such numbers, what an iteration adds."""

    first: IssuedProduct
    second: IssuedProduct
    early: list[ir.Operation]
    late: list[ir.Operation]
    number: int
    counters: dict[int, int]

    def beside(self, body: ir.Block) -> list[ir.Operation]:
        """What the loop does beside its products, in order."""
        products = (self.first, self.second)
        moved = OpSet(op for p in products for op in (p.wait, *p.releases))
        return ops_beside(body, OpSet((*self.early, *self.late)), moved)


def _find(loop: ir.Operation) -> _Rotation | None:
    body = loop.regions[0].blocks[0]
    multiplies = products_of(body)
    if not any(map(starts_from_constant, multiplies)):
        return None
    if len(multiplies) != 2:
        raise Refusal(f"the loop has {len(multiplies)} products")
    first, second = (find_product(m, body) for m in multiplies)
    if first is None or second is None:
        raise Refusal("a product is not issued and waited for in one place")
    number, counters = _carried_number(second, body), constant_steps(loop)
    if number < 0:
        raise Refusal("the second product is no loop-carried accumulator's")
    if not (first.releases and second.releases):
        raise Refusal("a product reads buffers of no ring")
    common = [release for release in first.releases if release in second.releases]
    if common and min(turn.slots for turn in second.turns) < 2:
        raise Refusal("both products read the only slot of one ring")
    first.releases = [one for one in first.released_at_once() if one not in common]
    early = first.needed_to_issue(body, counters, ())
    late = second.needed_to_issue(body, counters, (second.fence.acc, second.multiply.lhs))
    rotation = _Rotation(first, second, early, late, number, counters)
    if _is_read_beside(rotation, body):
        raise Refusal("threads read what the second product does")
    return rotation


def _is_read_beside(rotation: _Rotation, body: ir.Block) -> bool:
    """Whether what stays in an iteration needs what goes to the next with the second product."""
    beside = OpSet(rotation.beside(body))
    gone = (op for op in rotation.late if op not in beside and op not in rotation.early)
    uses = (use.owner.operation for op in gone for one in op.results for use in one.uses)
    return any(in_block(user, body) in beside for user in uses)


def _carried_number(product: IssuedProduct, body: ir.Block) -> int:
    """The number of the loop-carried value that a product computes anew; -1 if it computes none."""
    use = only_use(product.wait.result)
    return use.operand_number if use is not None and use.owner == terminator(body) else -1


class _Rewrite(LoopRewrite):
    """Rotates one loop: its start, the loop, the last product."""

    WHY = "the second product runs while the next iteration works between its two"

    def __init__(self, loop: ir.Operation, rotation: _Rotation) -> None:
        super().__init__(loop)
        self._rotation = rotation
        second = rotation.second
        # What the second product takes in registers: carried to where it is issued.
        taken = [second.fence.acc, second.multiply.lhs]
        self._taken = [v for v in taken if is_tile(v) and is_inside(v, loop)]
        self._between = rotation.beside(self._body)

    def _iterations(self) -> list[ir.Value]:
        rotation = self._rotation
        mapped = dict(zip(self._arguments, [self._lower, *self._inits], strict=True))
        _clone(rotation.early, mapped)
        self._finish_first(mapped, pending=0)
        _clone(self._between, mapped)
        inits = self._carried(mapped)
        second = binary("arith.addi", self._lower, self._step)
        loop, block = for_loop([second, self._upper, self._step], inits, self._loop)
        with ir.InsertionPoint(block):
            induction, *carried = block.arguments
            ir.Operation.create("scf.yield", operands=self._steady(induction, carried))
        before = self._before(list(loop.results))
        _clone(rotation.late, before)
        final = list(loop.results)[: len(self._inits) - 1]
        final.insert(rotation.number, self._finish_second(before))
        return final

    def _steady(self, induction: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
        rotation = self._rotation
        mapped = {self._arguments[0]: induction, **self._entering(carried)}
        _clone(rotation.early, mapped)
        before = self._before(carried)
        _clone(rotation.late, before)
        self._finish_first(mapped, pending=1)
        accumulator = self._arguments[1 + rotation.number]
        late = OpSet((*_ops_behind(accumulator, self._between), *rotation.second.packing()))
        _clone([op for op in self._between if op not in late], mapped)
        with self._loop.location:
            WgmmaMeanwhileOp.build()
        mapped[accumulator] = self._finish_second(before)
        _clone([op for op in self._between if op in late], mapped)
        return self._carried(mapped)

    def _carried(self, mapped: dict[ir.Value, ir.Value]) -> list[ir.Value]:
        """Lists what goes on to the next iteration: all that is yielded but the accumulator, and
        the second product's operands."""
        number = self._rotation.number
        yielded = [v for i, v in enumerate(self._yielded) if i != number]
        return [mapped.get(value, value) for value in (*yielded, *self._taken)]

    def _entering(self, carried: list[ir.Value]) -> dict[ir.Value, ir.Value]:
        """Maps the old block arguments, the accumulator's left out, to the values of the iteration
        that `carried` enters."""
        number = self._rotation.number
        arguments = [a for i, a in enumerate(self._arguments[1:]) if i != number]
        return dict(zip(arguments, carried, strict=False))

    def _before(self, carried: list[ir.Value]) -> dict[ir.Value, ir.Value]:
        """Maps what the second product needs to its values in the iteration that gave `carried`."""
        entering = self._entering(carried)
        before = {}
        for number, step in self._rotation.counters.items():
            argument = self._arguments[1 + number]
            added = constant(argument.type, step)
            before[argument] = binary("arith.subi", entering[argument], added)
        taken = carried[len(self._inits) - 1 :]
        return before | dict(zip(self._taken, taken, strict=True))

    def _finish_first(self, mapped: dict[ir.Value, ir.Value], *, pending: int) -> None:
        """Waits for the first product and gives back the slots that it alone reads."""
        first = self._rotation.first
        with first.wait.operation.location:
            mapped[first.wait.result] = WgmmaWaitOp.build(
                mapped[first.multiply.result], results=[first.wait.result.type], pending=pending
            )
        _clone([release.operation for release in first.releases], mapped)

    def _finish_second(self, mapped: dict[ir.Value, ir.Value]) -> ir.Value:
        """Waits for the second product and gives its slots back."""
        second = self._rotation.second
        _clone([second.wait.operation, *(r.operation for r in second.releases)], mapped)
        return mapped[second.wait.result]


def _clone(ops: Sequence[ir.Operation], mapped: dict[ir.Value, ir.Value]) -> None:
    for op in ops:
        clone_mapped(op, mapped)


def _ops_behind(value: ir.Value, ops: Sequence[ir.Operation]) -> list[ir.Operation]:
    """The ops that need `value`, directly or not, and all behind one of them with an effect."""
    late: list[ir.Operation] = []
    values, stuck = [value], False
    for op in ops:
        if stuck or any(_reads(op, one) for one in values):
            late.append(op)
            values += op.results
            stuck = stuck or not (is_pure(op) or is_elementwise(op))
    return late


def _reads(op: ir.Operation, value: ir.Value) -> bool:
    """Whether an op or one inside it has `value` as an operand."""
    return any(
        use.owner.operation == op or any(is_inside(r, op) for r in use.owner.results)
        for use in value.uses
    )
