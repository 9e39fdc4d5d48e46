"""count-loops: a while loop around products whose end is known ahead becomes a for loop.

Before:   %r:2 = scf.while (%k = %low, %acc = %zero) {
            %inside = arith.cmpi slt, %k, %high   scf.condition(%inside) %k, %acc
          } do {
            ^bb0(%k, %acc):   ... "tile.dot"(..., %acc) ...
            %next = arith.addi %k, %step   scf.yield %next, %sum
          }
After:    %r = scf.for %k = %low to %high step %step iter_args(%acc = %zero) {
            ... "tile.dot"(..., %acc) ...   scf.yield %sum
          }
Where memory, or a computation, says when it ends:
          %trips = scf.while (%k = %low, %n = 0) { the condition, %k + %step, %n + 1 } do { }
          %end = %low + %trips * %step                            (or %high, if that is less)
          %r = scf.for %k = %low to %end step %step ...

A loop whose trips are known is pipelined, its products overlap and its copies run ahead. Of a while
loop nobody knows whether there is another iteration.

1. A `break` in front of all that an iteration does is part of the condition, made so first.
2. A condition that compares a value that grows by a positive step with one from outside is the
   bounds of the for loop.
3. Else, in a loop with products of its own, the scalars that the condition follows from are
   computed ahead, in a loop of their own that counts, of a few iterations at once. They must need
   no tile, and nothing in the kernel may write what they load.
4. The for loop runs over the value that grows by a step; without one, from 0.

Does not handle: loops without products, which may be searches; conditions that need a tile. The
report says why a loop of products stays.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.tile import DotOp
from tilec.passes.analysis.dependence import needed_inside
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.programs.loop_ends import (
    Counter,
    find_bound,
    find_counter,
    passed_on,
    test_break_ahead,
)
from tilec.passes.rewriting.control import for_loop, while_loop
from tilec.passes.rewriting.free_ops import is_total
from tilec.passes.rewriting.loops import clone_mapped, innermost_loop, terminator
from tilec.passes.rewriting.scalars import as_type, binary, constant, select
from tilec.passes.rewriting.walk import find_ops, kernel_of, ops_named
from tilec.passes.roles.program_slice import Slice


@tile_pass(requires=Level.TILE)
def count_loops(module: ir.Module, context: PassContext) -> None:
    """Makes for loops of while loops around products."""
    for loop in ops_named(module.operation, ["scf.while"]):
        if dots := find_ops(loop, DotOp):
            _count(loop, any(innermost_loop(dot) == loop for dot in dots), context)


def _count(loop: ir.Operation, multiplies: bool, context: PassContext) -> None:
    """Makes a for loop of one, where that can be; `multiplies`: whether it has products of its
    own."""
    if multiplies:
        test_break_ahead(loop)
    counter = find_counter(loop)
    bound = None if counter is None else find_bound(loop, counter)
    high = None if bound is None else bound.high
    if bound is not None and bound.alone:
        _Counted(loop, counter, high, None).write()
        return
    if not multiplies:
        return
    condition = Slice(kernel_of(loop), [loop], within=loop, what="end")
    if condition.refusal is not None:
        why = f"{condition.refusal}; {_INSTEAD}"
        context.report.add("loop", loop, "no end known ahead", why)
        return
    context.report.add("loop", loop, "counted ahead", "its copies need to know where it ends")
    with ir.InsertionPoint(loop), loop.location:
        trips = _count_ahead(loop, condition)
    _Counted(loop, counter, high, trips).write()


_INSTEAD = "a 'for' to the most there can be copies ahead, its products under an 'if'"


AT_ONCE = 4
"""Iterations whose conditions are asked together, so that what they load comes together: in a
product of 4096^3, 64 iterations a program, the search took 12 % one by one, so 7 % (H200)."""


def _count_ahead(loop: ir.Operation, condition: Slice) -> ir.Value:
    """The number of a loop's iterations, found by a loop of its condition alone."""
    numbers, none = condition.carried_by(loop), constant(ir.IndexType.get(), 0)
    inits = [*(loop.operands[n] for n in numbers), none]
    search, before, body = while_loop(inits, [init.type for init in inits])
    with ir.InsertionPoint(before):
        *values, trips = before.arguments
        going = None
        for _ in range(AT_ONCE if all(map(is_total, condition.ops)) else 1):
            holds, values = condition.clone_turn(loop, values)
            going = holds if going is None else binary("arith.andi", going, holds)
            more = binary("arith.addi", trips, 1)
            trips = select(going, more, trips)
        ir.Operation.create("scf.condition", operands=[going, *values, trips])
    with ir.InsertionPoint(body):
        ir.Operation.create("scf.yield", operands=list(body.arguments))
    return search.results[len(numbers)]


class _Counted:
    """A while loop that becomes a for loop. `high`: what its counter stays below, `trips`: how many
    iterations there are; either may be None, but not both."""

    def __init__(
        self,
        loop: ir.Operation,
        counter: Counter | None,
        high: ir.Value | None,
        trips: ir.Value | None,
    ) -> None:
        self._loop, self._counter, self._high, self._trips = loop, counter, high, trips
        self._before, self._body = (region.blocks[0] for region in loop.regions)
        self._index = ir.IndexType.get(loop.context)
        passed = zip(passed_on(loop), loop.results, strict=True)
        used = [value for value, result in passed if list(result.uses)]
        read = [value for op in needed_inside(used, self._before) for value in op.operands]
        # Nobody carries the counter, which the loop's variable is, if only the body reads it.
        own = -1 if counter is None else counter.number
        behind = [*used, *read]
        arguments = self._before.arguments
        self._carried = [a for a in arguments if a.arg_number != own or a in behind]

    def write(self) -> None:
        """Replaces the loop."""
        loop = self._loop
        inits = [loop.operands[a.arg_number] for a in self._carried]
        with ir.InsertionPoint(loop), loop.location:
            new, block = for_loop(self._bounds(), inits)
        variable, *carried = block.arguments
        with ir.InsertionPoint(block), loop.location:
            given = self._pass_on(carried, variable)
        for argument, value in zip(self._body.arguments, given, strict=True):
            argument.replace_all_uses_with(value)
        last = terminator(self._body)
        following = [last.operands[a.arg_number] for a in self._carried]
        for view in list(self._body.operations):
            block.append(view.operation)
        with loop.location:
            ir.Operation.create("scf.yield", operands=following, ip=ir.InsertionPoint(last))
        last.erase()
        with ir.InsertionPoint(loop), loop.location:
            results = self._pass_on(list(new.results), None)
        for old, value in zip(loop.results, results, strict=True):
            if list(old.uses):
                old.replace_all_uses_with(value)
        loop.erase()

    def _bounds(self) -> list[ir.Value]:
        """The values at which the for loop begins and ends, and its step."""
        if self._counter is None:
            return [constant(self._index, 0), self._trips, constant(self._index, 1)]
        low = as_type(self._loop.operands[self._counter.number], self._index)
        step = as_type(self._counter.step, self._index)
        high = None if self._high is None else as_type(self._high, self._index)
        if self._trips is None:
            return [low, high, step]
        end = binary("arith.addi", low, binary("arith.muli", self._trips, step))
        return [low, end if high is None else binary("arith.minsi", end, high), step]

    def _pass_on(self, carried: list[ir.Value], variable: ir.Value | None) -> list[ir.Value]:
        """The values that the while's condition passed on, taken from those that the for loop
        carries or ends with. `variable`: the for loop's, in the counter's place."""
        mapped = dict(zip(self._carried, carried, strict=True))
        if self._counter is not None and variable is not None:
            own = self._before.arguments[self._counter.number]
            mapped[own] = as_type(variable, own.type)
        passed = passed_on(self._loop)
        for op in needed_inside(passed, self._before):
            if all(v in mapped or v.owner != self._before for v in op.operands):
                clone_mapped(op, mapped)
        return [mapped.get(value, value) for value in passed]
