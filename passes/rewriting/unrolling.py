"""Several iterations of the author's loop, one behind the other: in bodies of loops, or in its
place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mlir import ir

from tilec.dialects.def_use import constant_attribute
from tilec.passes.rewriting.control import either, for_loop
from tilec.passes.rewriting.loops import clone_mapped, terminator
from tilec.passes.rewriting.scalars import binary, constant, less


def unroll(loop: ir.Operation, times: int) -> ir.Operation:
    """Puts a loop in front of `loop` (scf.for) that does `times` of its iterations in each of its
    own, as often as there are so many; `loop` does the rest, fewer. Gives the loop in front."""
    lower, upper, step, *inits = loop.operands
    body = loop.regions[0].blocks[0]
    with ir.InsertionPoint(loop), loop.location:
        span = _steps(step, times)
        # Up to the counter behind the last one. Rounded towards zero, so that a loop without
        # iterations has none in either part.
        left = binary("arith.addi", binary("arith.subi", upper, lower), step)
        turns = binary("arith.divsi", binary("arith.subi", left, 1), span)
        end = binary("arith.addi", lower, binary("arith.muli", turns, span))
        main, block = for_loop([lower, end, span], inits, loop)
    with ir.InsertionPoint(block), loop.location:
        _clone_iterations(body, step, list(block.arguments), times)
    for number, value in enumerate((end, *main.results)):
        loop.operands[number + 2 if number else 0] = value
    return main


def write_out(
    loop: ir.Operation,
    times: int,
    known: Callable[[Sequence[ir.Value]], Sequence[Mapping[ir.Value, ir.Value]]],
) -> None:
    """Replaces a loop of at most `times` iterations by these, more than half of them or half as
    many again; those that need not be there stand each behind a branch. `known`: writes in front of
    all of them what of each is known there; from their counters, as values of the body."""
    lower, upper, step, *inits = loop.operands

    def after(number: int) -> ir.Value:
        return binary("arith.addi", lower, _steps(step, number)) if number else lower

    def iterations(least: int, most: int) -> Sequence[ir.Value]:
        counters = [after(number) for number in range(most)]
        carried = list(inits)
        for number, (at, values) in enumerate(zip(counters, known(counters), strict=True)):
            condition = None if number < least else less(at, upper)
            carried = _one(loop, at, carried, values, condition)
        return carried

    def at_most(most: int) -> Sequence[ir.Value]:
        if not most:
            return inits
        fewer = most // 2
        is_more = less(after(fewer), upper)
        return either(is_more, lambda: iterations(fewer + 1, most), lambda: at_most(fewer))

    with ir.InsertionPoint(loop), loop.location:
        results = at_most(times)
    for old, new in zip(loop.results, results, strict=True):
        old.replace_all_uses_with(new)
    loop.erase()


def _steps(step: ir.Value, number: int) -> ir.Value:
    """So many steps: a constant if one is, as offsets from one value tell tiles apart."""
    known = constant_attribute(step)
    if isinstance(known, ir.IntegerAttr):
        return constant(step.type, known.value * number)
    return binary("arith.muli", step, number)


def _one(
    loop: ir.Operation,
    at: ir.Value,
    carried: Sequence[ir.Value],
    known: Mapping[ir.Value, ir.Value],
    condition: ir.Value | None,
) -> list[ir.Value]:
    """The iteration at `at` where there is one, and what is carried on behind it."""
    body = loop.regions[0].blocks[0]

    def iteration() -> list[ir.Value]:
        return _clone_iteration(body, [at, *carried], known)

    return iteration() if condition is None else either(condition, iteration, lambda: carried)


def _clone_iterations(
    body: ir.Block, step: ir.Value, arguments: list[ir.Value], times: int
) -> None:
    """Writes `times` iterations of `body` at the insertion point, and what they carry on."""
    at, *carried = arguments
    for number in range(times):
        if number:
            at = binary("arith.addi", at, step)
        carried = _clone_iteration(body, [at, *carried], {})
    ir.Operation.create(terminator(body).name, operands=carried)


def _clone_iteration(
    body: ir.Block, arguments: Sequence[ir.Value], known: Mapping[ir.Value, ir.Value]
) -> list[ir.Value]:
    """Writes an iteration of `body` at the insertion point, but for what is `known`; gives what it
    carries on."""
    mapped = {**dict(zip(body.arguments, arguments, strict=True)), **known}
    *ops, last = body.operations
    for op in ops:
        if not any(result in known for result in op.operation.results):
            clone_mapped(op.operation, mapped)
    return [mapped.get(value, value) for value in last.operation.operands]
