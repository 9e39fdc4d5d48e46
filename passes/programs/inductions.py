"""What a for loop adds an amount of its own to in every iteration follows from its variable.

Before:   %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%k = %first, ...) {
            ... %k ...   %next = arith.addi %k, %c64   scf.yield %next, ...
          }
After:    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%k = %first, ...) {
            %grown = arith.muli %i, %c64   %now = arith.addi %first, %grown
            ... %now ...   scf.yield %k, ...                  (canonicalize carries %k no longer)
          }

Nobody knows what divides a value that a loop carries, and copies that run ahead cannot compute it.
Integers wrap in the product as in the sums. A tile that grows by a constant is that of the
beginning and a number.

Does not handle: amounts that change in the loop; steps that are no constant, unless they are the
amount; an amount that is no multiple and no part of another constant step.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.def_use import defining_op
from tilec.dialects.types import is_index, is_tile, number_type
from tilec.passes.analysis.divisibility import constant_of, number_of
from tilec.passes.rewriting.loops import carried_by, inits_of, is_inside, terminator, yielded_by
from tilec.passes.rewriting.scalars import as_type, binary, create
from tilec.records import dataclass


def dissolve_inductions(loop: ir.Operation) -> bool:
    """Computes from an scf.for's variable what grows with it, and behind the loop from its ends.
    Whether there was any."""
    body = loop.regions[0].blocks[0]
    low, high, step = list(loop.operands)[:3]
    variable = body.arguments[0]
    if not is_index(variable):
        return False
    found = False
    carried = zip(carried_by(loop), inits_of(loop), yielded_by(loop), strict=True)
    for number, (value, init, following) in enumerate(carried):
        growth = _growth(value, following, loop, step)
        if growth is None:
            continue
        found, result = True, loop.results[number]
        if list(result.uses):
            with ir.InsertionPoint(loop), loop.location:
                length = binary("arith.maxsi", binary("arith.subi", high, low), 0)
                trips = binary("arith.ceildivsi", length, step)
                result.replace_all_uses_with(growth.of(init, binary("arith.muli", trips, step)))
        with ir.InsertionPoint.at_block_begin(body), loop.location:
            now = growth.of(init, binary("arith.subi", variable, low))
        value.replace_all_uses_with(now)
        terminator(body).operands[number] = value
    return found


@dataclass
class _Growth:
    """An op that adds or subtracts `times` of the `parts`-th part of what the variable grows by."""

    name: str
    times: ir.Value | int
    parts: int = 1

    def of(self, init: ir.Value, passed: ir.Value) -> ir.Value:
        """Gives `init` after the variable has grown by `passed`, a multiple of the step."""
        part = passed if self.parts == 1 else binary("arith.divsi", passed, self.parts)
        grown = binary("arith.muli", as_type(part, number_type(init)), self.times)
        if is_tile(init):
            grown = create("tensor.splat", [grown], init.type)
        return binary(self.name, init, grown)


def _growth(
    value: ir.Value, following: ir.Value, loop: ir.Operation, step: ir.Value
) -> _Growth | None:
    """How what a loop carries grows with its variable, if it does."""
    op = defining_op(following, "arith.addi", "arith.subi")
    if op is None:
        return None
    base, amount = op.operands
    if amount == value and op.name == "arith.addi":
        base, amount = amount, base
    each, known = constant_of(step), number_of(amount)
    if base != value or (known is None and (is_tile(amount) or is_inside(amount, loop))):
        return None
    if amount == step:
        return _Growth(op.name, 1)
    if each == 1:
        return _Growth(op.name, amount if known is None else known)
    if not each or not known:
        return None
    if known % each == 0:
        return _Growth(op.name, known // each)
    return _Growth(op.name, 1, each // known) if each % known == 0 else None
