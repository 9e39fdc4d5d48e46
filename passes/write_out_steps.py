"""write-out-steps: indices that a loop moves on are where they began, plus trips times the step.

Before:   scf.for %i = %c0 to %n step %c1 iter_args(%at = %first) -> (tensor<64x32xi32>) {
            "tile.gather"(%x, %mask, %padding, %at) ...
            %next = arith.addi %at, %c32     scf.yield %next
          }
After:    scf.for %i = %c0 to %n step %c1 {
            %gone = arith.muli %i, %c32      %by = tensor.splat %gone
            %at = arith.addi %first, %by
            "tile.gather"(%x, %mask, %padding, %at) ...
          }

What a loop carries may be anything to who looks at it. Written out it shows which elements are
neighbours in memory (`analysis/index_runs.py`), and an iteration's copies can be issued before the
one in front of it is done.

1. Find what a loop carries of whole numbers in tiles, whose next value is itself plus one number
   for all elements, the same in every iteration.
2. Where nothing behind the loop wants it, compute it of the loop's counter.
Does not handle: steps that differ between elements; loops of a step that is no constant; what is
read behind its loop.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.def_use import constant_attribute, defining_op
from tilec.dialects.types import element, is_tile
from tilec.passes.analysis.divisibility import constant_of
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.rewriting.loops import (
    find_loops,
    is_inside,
    terminator,
    without_iteration_argument,
)
from tilec.passes.rewriting.scalars import as_type, binary, constant


@tile_pass(requires=Level.TILE)
def write_out_steps(module: ir.Module, context: PassContext) -> None:
    """Computes the indices that loops carry of the loops' counters."""
    for loop in find_loops(module):
        if constant_of(loop.operands[2]) is None:
            continue
        for number in reversed(range(len(loop.results))):
            if not list(loop.results[number].uses):
                loop = _written_out(loop, number)


def _written_out(loop: ir.Operation, number: int) -> ir.Operation:
    """The loop without what it carries at `number`, if that can be written out."""
    block = loop.regions[0].blocks[0]
    carried, first = block.arguments[1 + number], loop.operands[3 + number]
    if not is_tile(carried) or not isinstance(element(carried), ir.IntegerType):
        return loop
    with ir.InsertionPoint.at_block_begin(block), loop.location:
        step = _step(terminator(block).operands[number], carried, loop)
        if step is None:
            return loop
        gone = binary("arith.muli", _trips(loop, block.arguments[0], step.type), step)
        by = ir.Operation.create("tensor.splat", results=[carried.type], operands=[gone])
        now = binary("arith.addi", first, by.results[0])
    carried.replace_all_uses_with(now)
    new = without_iteration_argument(loop, number)
    loop.erase()
    return new


def _step(after: ir.Value, carried: ir.Value, loop: ir.Operation) -> ir.Value | None:
    """What each element grows by in an iteration, at the current insertion point; None where that
    is not one number."""
    sum_ = defining_op(after, "arith.addi")
    if sum_ is None or carried not in list(sum_.operands):
        return None
    left, right = sum_.operands
    by = right if left == carried else left
    known = constant_attribute(by)
    if known is not None:
        return constant(element(by), known.get_splat_value().value) if known.is_splat else None
    splat = defining_op(by, "tensor.splat")
    if splat is None or is_inside(splat.operands[0], loop):
        return None
    return splat.operands[0]


def _trips(loop: ir.Operation, counter: ir.Value, type_: ir.Type) -> ir.Value:
    """How often a loop has gone round, as an integer of that type."""
    low, each = constant_of(loop.operands[0]), constant_of(loop.operands[2])
    trips = counter if low == 0 else binary("arith.subi", counter, loop.operands[0])
    if each != 1:
        trips = binary("arith.divui", trips, each or 1)
    return as_type(trips, type_)
