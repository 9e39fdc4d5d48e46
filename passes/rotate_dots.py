"""rotate-dots: the first product of the next iteration runs under the rest of this one.

Before:   scf.for %n ... iter_args(%acc, %count) {
            wait for slot %count of the keys   %s = %q @ keys   (issue, wait)   give the slot back
            ... softmax of %s ...
            wait for slot %count of the values   %acc = %p @ values + %acc * %alpha   (issue, wait)
          }
After:    scf.if there is an iteration {
            the first product of the first iteration
            scf.for all but the last ... iter_args(%pending, %s, ...) {
              issue the first product of the next iteration
              ... softmax of %s ...
              %acc = wait for %pending, all but the newest group   give its values' slot back
              issue %acc * %alpha + %p @ values   wait for the first product, not for this one
            }
            the rest of the last iteration
          }

The tensor cores then multiply while the other units do what stands between two products. The first
product must start from a constant and depend on nothing but scalars that count, and buffers that
barriers guard; the second, if there is one, is the loop-carried accumulator's.
Does not handle: loops with other matrix instructions, first products with operands in registers,
buffers ordered by a sync.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mlir import ir

from tilec.dialects.gpu_tile import (
    BarrierArriveOp,
    BarrierWaitOp,
    RingPositionOp,
    SlotOp,
    ViewOp,
    WgmmaFenceOp,
    WgmmaOp,
    WgmmaWaitOp,
)
from tilec.dialects.gpu_tile.types import is_buffer
from tilec.dialects.types import is_tile
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.divisibility import constant_of
from tilec.passes.loops import clone_mapped, is_inside, terminator


@tile_pass(requires=Level.BUFFERS, ensures=Level.BUFFERS)
def rotate_dots(module: ir.Module, context: PassContext) -> None:
    """Starts the next iteration's first warpgroup product before the rest of this one."""
    loops: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "scf.for":
            loops.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for loop in loops:
        found = _find(loop)
        if isinstance(found, _Rotation):
            why = "the next iteration's first product runs under the rest of this one"
            context.report.add("matrix instructions", loop, "rotated", why)
            _Rewrite(loop, found).run()
        elif found is not None:
            context.report.add("matrix instructions", loop, "not rotated", found)


@dataclass
class _Product:
    """A matrix instruction with its fence and wait, and the arrivals that give its slots back."""

    fence: WgmmaFenceOp
    multiply: WgmmaOp
    wait: WgmmaWaitOp
    releases: list[BarrierArriveOp] = field(default_factory=list)
    positions: list[RingPositionOp] = field(default_factory=list)


@dataclass
class _Rotation:
    """What moves. `early`: the first product's ops up to its issue, in order. `counters`: per
    loop-carried number what an iteration adds. `number`: the second product's accumulator."""

    first: _Product
    early: list[ir.Operation]
    counters: dict[int, int]
    second: _Product | None
    number: int


def _find(loop: ir.Operation) -> _Rotation | str | None:
    body = loop.regions[0].blocks[0]
    multiplies = [view for view in body.operations if isinstance(view, WgmmaOp)]
    if not multiplies or not any(_is_constant(m.acc.owner.acc) for m in multiplies if _fenced(m)):
        return None
    if len(multiplies) > 2:
        return f"the loop has {len(multiplies)} products"
    products = [_product(m, body) for m in multiplies]
    if None in products:
        return "a product is not issued and waited for in one place"
    first, *others = products
    counters = _counters(loop)
    early = _early(first, body, counters)
    if isinstance(early, str):
        return early
    second, number = None, -1
    if others:
        number = _carried_number(others[0], body)
        second = others[0] if number >= 0 else None
        if second is None:
            return "the second product is no loop-carried accumulator's"
    if not all(p.releases for p in (first, second) if p is not None):
        return "a product reads buffers that no barrier guards"
    return _Rotation(first, early, counters, second, number)


def _fenced(multiply: WgmmaOp) -> bool:
    return isinstance(multiply.acc.owner, WgmmaFenceOp)


def _is_constant(value: ir.Value) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.name == "arith.constant"


def _product(multiply: WgmmaOp, body: ir.Block) -> _Product | None:
    fence, uses = multiply.acc.owner, list(multiply.result.uses)
    wait = uses[0].owner.opview if len(uses) == 1 else None
    whole = isinstance(fence, WgmmaFenceOp) and isinstance(wait, WgmmaWaitOp) and not wait.pending
    if not whole or any(op.operation.block != body for op in (fence, wait)):
        return None
    product = _Product(fence, multiply, wait)
    for operand in (multiply.lhs, multiply.rhs):
        position = _position(operand)
        if position is not None and position.operation.block == body:
            product.positions.append(position)
    slots = [position.slot for position in product.positions]
    product.releases = [
        view for view in body.operations if isinstance(view, BarrierArriveOp) and view.slot in slots
    ]
    return product


def _position(operand: ir.Value) -> RingPositionOp | None:
    while is_buffer(operand) and isinstance(operand.owner, ViewOp):
        operand = operand.owner.src
    owner = operand.owner
    position = owner.index.owner if isinstance(owner, SlotOp) else None
    return position if isinstance(position, RingPositionOp) else None


def _counters(loop: ir.Operation) -> dict[int, int]:
    """The loop-carried values that grow by a constant, by number."""
    body = loop.regions[0].blocks[0]
    found = {}
    for number, yielded in enumerate(terminator(body).operands):
        owner = yielded.owner
        if isinstance(owner, ir.Block) or owner.name != "arith.addi":
            continue
        base, step = owner.operands
        if base == body.arguments[1 + number] and (known := constant_of(step)) is not None:
            found[number] = known
    return found


def _early(product: _Product, body: ir.Block, counters: dict[int, int]) -> list[ir.Operation] | str:
    """The ops of the body up to a product's issue that it needs, in order; or what it must wait
    for."""
    needed: set[ir.Operation] = set()
    pending: list[ir.Operation] = [product.multiply.operation]
    slots = [position.slot for position in product.positions]
    pending += [
        view.operation
        for view in body.operations
        if isinstance(view, BarrierWaitOp) and view.slot in slots
    ]
    while pending:
        op = pending.pop()
        if op in needed:
            continue
        scalar = op.name.startswith("arith.") and not any(is_tile(v) for v in op.operands)
        if not scalar and not isinstance(op.opview, _EARLY_OPS):
            return f"the first product depends on '{op.name}' in its iteration"
        needed.add(op)
        for value in op.operands:
            owner = value.owner
            if isinstance(owner, ir.Block):
                number = ir.BlockArgument(value).arg_number
                if owner == body and number and number - 1 not in counters:
                    return "the first product depends on the iteration before"
            elif owner.operation.block == body:
                pending.append(owner.operation)
    return [view.operation for view in body.operations if view.operation in needed]


_EARLY_OPS = (RingPositionOp, SlotOp, ViewOp, BarrierWaitOp, WgmmaFenceOp, WgmmaOp)


def _carried_number(product: _Product, body: ir.Block) -> int:
    """Of the accumulator whose next value a product computes; -1 if it is none."""
    uses = list(product.wait.result.uses)
    last = terminator(body)
    if len(uses) != 1 or uses[0].owner.operation != last:
        return -1
    return uses[0].operand_number


class _Rewrite:
    """Rewrites one loop."""

    def __init__(self, loop: ir.Operation, rotation: _Rotation) -> None:
        self._loop, self._rotation = loop, rotation
        self._lower, self._upper, self._step, *self._inits = loop.operands
        self._body = loop.regions[0].blocks[0]
        first = rotation.first
        gone = {*rotation.early, first.wait.operation, *(r.operation for r in first.releases)}
        *ops, self._yield = [view.operation for view in self._body.operations]
        used = {op for op in gone if any(_outside(use, gone) for r in op.results for use in r.uses)}
        # Ring positions and constants also serve the rest of the body.
        self._rest = [op for op in ops if op not in gone or (op in used and _is_free(op))]

    def run(self) -> None:
        """A branch for at least one iteration: the first product, the loop, the last iteration."""
        with ir.InsertionPoint(self._loop), self._loop.location:
            branch = ir.Operation.create(
                "scf.if",
                results=[result.type for result in self._loop.results],
                operands=[_less(self._lower, self._upper)],
                regions=2,
            )
            with ir.InsertionPoint(branch.regions[0].blocks.append()):
                ir.Operation.create("scf.yield", operands=self._iterations())
            with ir.InsertionPoint(branch.regions[1].blocks.append()):
                ir.Operation.create("scf.yield", operands=self._inits)
        for old, new in zip(self._loop.results, branch.results, strict=True):
            old.replace_all_uses_with(new)
        self._loop.erase()

    def _iterations(self) -> list[ir.Value]:
        scores = self._start(
            dict(zip(self._body.arguments, [self._lower, *self._inits], strict=True))
        )
        carried = list(self._inits)
        second, number = self._rotation.second, self._rotation.number
        if second is not None:
            with second.fence.operation.location:
                carried[number] = WgmmaFenceOp.build(carried[number])
        shorter = _binary("arith.subi", self._upper, self._step)
        inits = [*carried, scores, self._lower]
        loop = ir.Operation.create(
            "scf.for",
            results=[value.type for value in inits],
            operands=[self._lower, shorter, self._step, *inits],
            attributes=dict(self._loop.attributes.items()),
            regions=1,
        )
        types = [self._lower.type, *(value.type for value in inits)]
        block = loop.regions[0].blocks.append(*types, arg_locs=[self._loop.location] * len(types))
        with ir.InsertionPoint(block):
            self._steady(list(block.arguments))
        *carried, scores, last = loop.results
        mapped = dict(zip(self._body.arguments, [last, *carried], strict=True))
        mapped[self._rotation.first.wait.result] = scores
        if second is not None:
            argument = self._body.arguments[1 + number]
            mapped[argument] = self._finish(carried[number], argument.type, pending=0)
            self._release(second, mapped, _less(self._lower, shorter))
        self._clone(self._rest, mapped)
        return [mapped.get(value, value) for value in self._yield.operands]

    def _start(self, mapped: dict[ir.Value, ir.Value]) -> ir.Value:
        """The first product, waited for, its slots given back."""
        first = self._rotation.first
        self._clone(self._rotation.early, mapped)
        self._clone([first.wait.operation, *(r.operation for r in first.releases)], mapped)
        return mapped[first.wait.result]

    def _steady(self, arguments: list[ir.Value]) -> None:
        induction, *carried, scores, _ = arguments
        first, second = self._rotation.first, self._rotation.second
        following = _binary("arith.addi", induction, self._step)
        ahead = {self._body.arguments[0]: following}
        for number, step in self._rotation.counters.items():
            constant = _constant(carried[number].type, step)
            ahead[self._body.arguments[1 + number]] = _binary(
                "arith.addi", carried[number], constant
            )
        self._clone(self._rotation.early, ahead)
        mapped = dict(zip(self._body.arguments, [induction, *carried], strict=True))
        mapped[first.wait.result] = scores
        if second is None:
            self._clone(self._rest, mapped)
        else:
            self._clone_second(mapped, _less(self._lower, induction))
        issued = ahead[first.multiply.result]
        ahead[first.wait.result] = self._finish(
            issued, first.wait.result.type, pending=1 if second is not None else 0
        )
        self._clone([r.operation for r in first.releases], ahead)
        yielded = [mapped.get(value, value) for value in self._yield.operands]
        ir.Operation.create("scf.yield", operands=[*yielded, ahead[first.wait.result], following])

    def _clone_second(self, mapped: dict[ir.Value, ir.Value], later: ir.Value) -> None:
        """The rest of an iteration, its second product left in flight for the next one."""
        second, number = self._rotation.second, self._rotation.number
        assert second is not None
        argument = self._body.arguments[1 + number]
        flying = mapped.pop(argument)
        left_out = {second.wait.operation, *(r.operation for r in second.releases)}
        for op in self._rest:
            if argument not in mapped and _reads(op, argument):
                mapped[argument] = self._finish(flying, argument.type, pending=1)
                self._release(second, mapped, later)
            if op not in left_out:
                self._clone([op], mapped)
        mapped[second.wait.result] = mapped[second.multiply.result]

    def _finish(self, flying: ir.Value, tile: ir.Type, *, pending: int) -> ir.Value:
        return WgmmaWaitOp.build(flying, results=[tile], pending=pending)

    def _release(
        self, product: _Product, mapped: dict[ir.Value, ir.Value], exists: ir.Value
    ) -> None:
        """Gives the slots of the iteration before back, where there was one."""
        branch = ir.Operation.create("scf.if", operands=[exists], regions=2)
        with ir.InsertionPoint(branch.regions[0].blocks.append()):
            earlier = dict(mapped)
            for number, step in self._rotation.counters.items():
                argument = self._body.arguments[1 + number]
                constant = _constant(argument.type, step)
                earlier[argument] = _binary("arith.subi", mapped[argument], constant)
            self._clone([p.operation for p in product.positions], earlier)
            self._clone([r.operation for r in product.releases], earlier)
            ir.Operation.create("scf.yield")

    def _clone(self, ops: Sequence[ir.Operation], mapped: dict[ir.Value, ir.Value]) -> None:
        for op in ops:
            clone_mapped(op, mapped)


def _outside(use: ir.OpOperand, ops: set[ir.Operation]) -> bool:
    return use.owner.operation not in ops


def _is_free(op: ir.Operation) -> bool:
    """Whether doing an op twice changes nothing."""
    return op.name.startswith("arith.") or isinstance(op.opview, (RingPositionOp, SlotOp, ViewOp))


def _reads(op: ir.Operation, value: ir.Value) -> bool:
    """Whether an op or one inside it has `value` as an operand."""
    return any(
        use.owner.operation == op or any(is_inside(r, op) for r in use.owner.results)
        for use in value.uses
    )


def _binary(name: str, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    return ir.Operation.create(name, results=[lhs.type], operands=[lhs, rhs]).results[0]


def _constant(type_: ir.Type, value: int) -> ir.Value:
    return ir.Operation.create(
        "arith.constant", results=[type_], attributes={"value": ir.IntegerAttr.get(type_, value)}
    ).results[0]


def _less(lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    less = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 2)
    return ir.Operation.create(
        "arith.cmpi",
        results=[ir.IntegerType.get_signless(1)],
        operands=[lhs, rhs],
        attributes={"predicate": less},
    ).results[0]
