"""Branches and loops (scf) that passes write, at the current insertion point."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from mlir import ir

from tilec.passes.rewriting.scalars import i1_constant


@contextmanager
def only_if(condition: ir.Value) -> Iterator[ir.Operation]:
    """Makes a branch that is taken where `condition` holds; what is written inside the `with` goes
    there. Gives the branch's end, for ops to be moved in front of."""
    made = ir.Operation.create("scf.if", operands=[condition], regions=2)
    with ir.InsertionPoint(made.regions[0].blocks.append()):
        end = ir.Operation.create("scf.yield")
    with ir.InsertionPoint(end):
        yield end


def run_only_if(condition: ir.Value, op: ir.Operation) -> None:
    """Lets an op without results run where `condition`, which is known in front of it, holds."""
    with ir.InsertionPoint(op), op.location, only_if(condition) as end:
        op.move_before(end)


def branch(condition: ir.Value | None, results: Sequence[ir.Type]) -> ir.Operation:
    """Makes an `scf.if` with two empty blocks; a certain condition (None) takes the first."""
    if condition is None:
        condition = i1_constant(True)
    op = ir.Operation.create("scf.if", results=list(results), operands=[condition], regions=2)
    for region in op.regions:
        region.blocks.append()
    return op


def either(
    condition: ir.Value | None,
    then: Callable[[], Sequence[ir.Value]],
    otherwise: Callable[[], Sequence[ir.Value]],
) -> list[ir.Value]:
    """Makes an `scf.if` of what two functions create at its insertion points and give."""
    # Nobody knows the types of results before the ops that give them exist.
    blocks = branch(condition, [])
    given = []
    for region, create_values in zip(blocks.regions, (then, otherwise), strict=True):
        with ir.InsertionPoint(region.blocks[0]):
            given.append(list(create_values()))
            ir.Operation.create("scf.yield", operands=given[-1])
    types = [value.type for value in given[0]]
    if not types:
        return []
    whole = ir.Operation.create("scf.if", results=types, operands=list(blocks.operands), regions=2)
    for region, filled in zip(whole.regions, blocks.regions, strict=True):
        filled.blocks[0].append_to(region)
    blocks.erase()
    return list(whole.results)


def for_loop(
    bounds: Sequence[ir.Value], inits: Sequence[ir.Value] = (), like: ir.Operation | None = None
) -> tuple[ir.Operation, ir.Block]:
    """Makes an `scf.for` from lower to upper bound by a step, which carries values that start as
    `inits`; gives it and its body, still empty. `like`: a loop whose attributes it takes."""
    types = [value.type for value in inits]
    loop = ir.Operation.create(
        "scf.for",
        results=types,
        operands=[*bounds, *inits],
        attributes={} if like is None else dict(like.attributes.items()),
        regions=1,
    )
    types = [bounds[0].type, *types]
    return loop, loop.regions[0].blocks.append(*types, arg_locs=[loop.location] * len(types))


def while_loop(
    inits: Sequence[ir.Value], results: Sequence[ir.Type]
) -> tuple[ir.Operation, ir.Block, ir.Block]:
    """Makes an `scf.while` that starts with `inits`; gives it with the block of its condition,
    which passes on values of the types `results`, and its body, both still empty."""
    loop = ir.Operation.create("scf.while", results=list(results), operands=list(inits), regions=2)
    before, body = (
        region.blocks.append(*types, arg_locs=[loop.location] * len(types))
        for region, types in zip(loop.regions, ([i.type for i in inits], results), strict=True)
    )
    return loop, before, body
