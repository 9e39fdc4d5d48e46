"""What values are made of, and what becomes of them, through loops and branches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from mlir import ir

from tilec.dialects.def_use import defining_op
from tilec.passes.rewriting.loops import terminator
from tilec.passes.rewriting.op_tables import OpSet, address
from tilec.passes.rewriting.walk import blocks_in, uses_behind


def ops_behind(
    values: Iterable[ir.Value], beyond: Callable[[ir.Operation], bool] = lambda op: True
) -> Iterator[ir.Operation]:
    """Finds every op that has a part in computing `values`, each once; what loops carry included.
    Where `beyond` refuses an op, nothing that this one reads is followed."""
    values_seen: set[ir.Value] = set()
    ops_seen: set[int] = set()
    todo = list(values)
    while todo:
        value = todo.pop()
        if value in values_seen:
            continue
        values_seen.add(value)
        op = defining_op(value)
        if op is None:
            todo += _behind_argument(ir.BlockArgument(value))
            continue
        place = address(op)
        if place in ops_seen:
            continue
        ops_seen.add(place)
        yield op
        if not beyond(op):
            continue
        todo += op.operands
        for block in blocks_in(op):
            todo += terminator(block).operands


def needed_inside(values: Iterable[ir.Value], block: ir.Block) -> list[ir.Operation]:
    """The ops of a block that values follow from, in order."""
    needed, pending = OpSet(), list(values)
    while pending:
        op = defining_op(pending.pop())
        if op is None or op.block != block:
            continue
        if op not in needed:
            needed.add(op)
            pending += op.operands
    return [view.operation for view in block.operations if view.operation in needed]


def _behind_argument(argument: ir.BlockArgument) -> list[ir.Value]:
    """Finds what the value of a loop's block argument is made of: the loop's bounds, its first
    value, and what an iteration gives."""
    loop = argument.owner.owner
    number = argument.arg_number
    if loop.name == "scf.while":
        before, after = (terminator(region.blocks[0]) for region in loop.regions)
        if argument.owner == loop.regions[1].blocks[0]:
            return [before.operands[0], before.operands[1 + number]]
        return [loop.operands[number], after.operands[number]]
    if loop.name != "scf.for":
        return []
    bounds = list(loop.operands)[:3]
    if not number:
        return bounds
    return [*bounds, loop.operands[2 + number], terminator(argument.owner).operands[number - 1]]


def is_read(value: ir.Value) -> bool:
    """Whether a value reaches, in the end, anything but arithmetic, loops and branches: a store,
    say. If not, the program is the same without it."""
    uses = uses_behind(value, lambda use: _following(use) or ())
    return any(_following(use) is None for use in uses)


def _following(use: ir.OpOperand) -> list[ir.Value] | None:
    """The values that an op makes of an operand; None where it does more with it than compute, as a
    store does."""
    op, number = use.owner.operation, use.operand_number
    if op.name.startswith("arith."):
        return list(op.results)
    if op.name == "scf.yield" and op.parent.name in ("scf.for", "scf.if"):
        around = op.parent
        given = [around.results[number]]
        return [*given, _argument(around, number)] if around.name == "scf.for" else given
    if op.name == "scf.for" and number > 2:
        return [op.results[number - 3], _argument(op, number - 3)]
    return None


def _argument(loop: ir.Operation, number: int) -> ir.Value:
    return loop.regions[0].blocks[0].arguments[1 + number]
