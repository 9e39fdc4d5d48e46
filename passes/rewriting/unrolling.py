"""Loops whose bodies hold several iterations of the author's loop, one behind the other."""

from __future__ import annotations

from mlir import ir

from tilec.passes.rewriting.control import for_loop
from tilec.passes.rewriting.loops import clone_mapped, terminator
from tilec.passes.rewriting.scalars import binary


def unroll(loop: ir.Operation, times: int) -> ir.Operation:
    """Puts a loop in front of `loop` (scf.for) that does `times` of its iterations in each of its
    own, as often as there are so many; `loop` does the rest. Gives the loop in front."""
    lower, upper, step, *inits = loop.operands
    body = loop.regions[0].blocks[0]
    with ir.InsertionPoint(loop), loop.location:
        span = binary("arith.muli", step, times)
        # Rounded towards zero, so that a loop without iterations has none in either part.
        turns = binary("arith.divsi", binary("arith.subi", upper, lower), span)
        end = binary("arith.addi", lower, binary("arith.muli", turns, span))
        main, block = for_loop([lower, end, span], inits, loop)
    with ir.InsertionPoint(block), loop.location:
        _clone_iterations(body, step, list(block.arguments), times)
    for number, value in enumerate((end, *main.results)):
        loop.operands[number + 2 if number else 0] = value
    return main


def _clone_iterations(
    body: ir.Block, step: ir.Value, arguments: list[ir.Value], times: int
) -> None:
    """Writes `times` iterations of `body` at the insertion point, and what they carry on."""
    at, *carried = arguments
    for number in range(times):
        if number:
            at = binary("arith.addi", at, step)
        mapped = dict(zip(body.arguments, [at, *carried], strict=True))
        *ops, last = body.operations
        for op in ops:
            clone_mapped(op.operation, mapped)
        carried = [mapped.get(value, value) for value in last.operation.operands]
    ir.Operation.create(terminator(body).name, operands=carried)
