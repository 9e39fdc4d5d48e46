"""open-loops: where an inner loop goes round once, what is around it is a loop without one.

Before:   %sum = scf.for %image = %c0 to %images step %c1 iter_args(%a = %zeros) {
            %more = scf.for %p = %c0 to %places step %c1024 iter_args(%b = %a) {
              %t = "tile.load"(%x, %image, %p) ...    scf.yield %b + %t
            }
            scf.yield %more
          }
After:    %once = %places <= %c1024 && %c0 < %places
          %sum = scf.if (%once) {
            %all = scf.for %image = %c0 to %images step %c1 iter_args(%a = %zeros) {
              %t = "tile.load"(%x, %image, %c0) ...   scf.yield %a + %t
            }
            scf.yield %all
          } else { the loops as they were }

A loop has later iterations' tiles under way while it works on one's. A loop of one iteration has no
later ones, and what is around it waits for each by itself. Moments of 64 images of 200 x 784 f16,
in tiles of 1024, take 8.5 us for 35.5, of 32 of 300 x 3136 bf16 24.4 for 26.8, of 40 of 500 x 1021
f32 23.8 for 31.1 (H200).

1. A loop holds one other, whose bounds come from outside of both, and are no constants.
2. That loads tiles. Nothing is multiplied: products have rings, which turn on through nests.
Does not handle: inner loops that go round a few times; several of them; nests of three, but for the
inner two.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.def_use import constant_attribute
from tilec.dialects.tile import DotOp, LoadOp
from tilec.dialects.types import shape
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.rewriting.control import either, for_loop
from tilec.passes.rewriting.loops import (
    clone_mapped,
    find_loops,
    inits_of,
    is_inside,
    yielded_by,
)
from tilec.passes.rewriting.scalars import binary, both, compare, less
from tilec.passes.rewriting.walk import find_ops, ops_named


@kernel_pass(requires=Level.TILE, behind={"split-sums": "it splits loops, and none in branches"})
def open_loops(function: ir.Operation, context: PassContext) -> None:
    """Gives nests of loops whose inner one goes round once a loop without it."""
    for outer in find_loops(function):
        inner = _inner(outer)
        if inner is not None:
            context.report.add("loop", inner, "none where it goes round once", "loads come ahead")
            with ir.InsertionPoint(outer), outer.location:
                _open(outer, inner)


def _inner(outer: ir.Operation) -> ir.Operation | None:
    """The loop that a loop holds, if it may go round once, for all that is known in front of
    both; None where there are several, or products."""
    loops = [op for op in ops_named(outer, ("scf.for", "scf.while")) if op != outer]
    if find_ops(outer, DotOp):
        return None
    if len(loops) != 1 or loops[0].name != "scf.for" or loops[0].block != _body(outer):
        return None
    bounds = list(loops[0].operands)[:3]
    if any(is_inside(value, outer) for value in bounds) or constant_attribute(bounds[1]):
        return None
    loads = find_ops(loops[0], LoadOp)
    return loops[0] if any(shape(op.opview.result) for op in loads) else None


def _body(loop: ir.Operation) -> ir.Block:
    return loop.regions[0].blocks[0]


def _open(outer: ir.Operation, inner: ir.Operation) -> None:
    lower, upper, step = list(inner.operands)[:3]
    fits = compare("sle", binary("arith.subi", upper, lower), step)
    results = either(
        both(less(lower, upper), fits),
        lambda: list(_without(outer, inner).results),
        lambda: list(clone_mapped(outer, {}).results),
    )
    for before, after in zip(outer.results, results, strict=True):
        before.replace_all_uses_with(after)
    outer.erase()


def _without(outer: ir.Operation, inner: ir.Operation) -> ir.Operation:
    """A copy of a loop with one iteration of the inner one in place of that."""
    made, block = for_loop(list(outer.operands)[:3], inits_of(outer), outer)
    mapped = dict(zip(_body(outer).arguments, block.arguments, strict=True))
    with ir.InsertionPoint(block):
        for view in _body(outer).operations:
            if view.operation == inner:
                found = _once(inner, mapped)
                mapped.update(zip(inner.results, found, strict=True))
            else:
                clone_mapped(view.operation, mapped)
    return made


def _once(loop: ir.Operation, mapped: dict[ir.Value, ir.Value]) -> list[ir.Value]:
    """Writes one iteration of a loop; what it leaves."""
    starts = [loop.operands[0], *inits_of(loop)]
    for argument, value in zip(_body(loop).arguments, starts, strict=True):
        mapped[argument] = mapped.get(value, value)
    for view in list(_body(loop).operations)[:-1]:
        clone_mapped(view.operation, mapped)
    return [mapped.get(value, value) for value in yielded_by(loop)]
