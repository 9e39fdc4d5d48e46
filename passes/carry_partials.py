"""carry-partials: of what a loop adds up to one number, it carries what each thread has added up.

Before:   %total = scf.for ... iter_args(%acc = %zeros) -> (tensor<8192xf32, #L>) {
            %scaled = arith.mulf %acc, %factors          (%factors: one number, repeated)
            %next = arith.addf %scaled, %x
            scf.yield %next
          }
          %sum = "tile.reduce"(%total) ({ addf }) {axis = 0} : (tensor<8192xf32, #L>) -> tensor<f32>
After:    %partial = scf.for ... iter_args(%acc = %zeros) -> (tensor<256xf32, #P>) {
            %scaled = arith.mulf %acc, %factors
            %own = "gpu_tile.thread_reduce"(%x) ({ addf }) {axis = 0}        (one a thread)
            %next = arith.addf %scaled, %own
            scf.yield %next
          }
          %sum = "tile.reduce"(%partial) ({ addf }) {axis = 0} : (tensor<256xf32, #P>) -> ...

A thread holds one register for it then, not one for each of its elements: more programs share a
multiprocessor. It is the same where the loop reduces each block and adds the results up,

          %next = arith.addf(arith.mulf(%acc, %factor), tensor.extract("tile.reduce"(%x)))

which waits for all warps in every iteration; now they meet behind the loop.

1. A carried value goes through ops to where it is yielded, and nothing else uses it on this way:
   combined with others by the op that the reduction combines by, or, of sums, scaled by one number.
2. Of a tile, it is reduced behind the loop, and threads hold several elements along the axis. Of a
   number, what it is combined with are reductions across warps of tiles of one layout, or such
   results scaled.
3. It starts as zero where it is a sum; a maximum or minimum may start as any number.

Elements of a sum are added in any order (`tl.sum`), those of other iterations included, and
factors, which are the same for all, are applied to parts. `simplify` drops what is left over.
Does not handle: while loops; values that branches or inner loops combine; reductions inside warps
in each iteration, which cost shuffles alone; sums in less than 32 bits, which would lose by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mlir import ir

from tilec.dialects import gpu_tile, tile
from tilec.dialects.gpu_tile.types import layout_attr, layout_of
from tilec.dialects.types import bit_width, element, is_tile, shape
from tilec.dialects.types import tile as tile_type
from tilec.messages.diagnostics import InternalError
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.layouts.axis_levels import (
    Place,
    axis_levels,
    is_nested,
    is_spread_over_warps,
    num_partials,
    partial_layout,
)
from tilec.passes.rewriting.loops import (
    behind,
    find_loops,
    replace_yield,
    terminator,
    with_iteration_arguments,
)
from tilec.passes.rewriting.scalars import constant, is_zero, scalar_op

SUMS = ("arith.addf", "arith.addi")
IDEMPOTENT = (
    *("arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf"),
    *("arith.maxsi", "arith.minsi", "arith.maxui", "arith.minui"),
)
"""What a number may be combined by more than once."""
FACTORS = {"arith.addf": "arith.mulf", "arith.addi": "arith.muli"}
"""What a sum is scaled by."""
LEAST_BITS = 32
"""Of elements of a sum: narrower floats lose other bits where they are added in another order."""


@tile_pass(
    requires=Level.LAYOUTS,
    ensures=Level.LAYOUTS,
    behind={
        "remove-layout-conversions": "that decides which layout a carried tile has",
    },
)
def carry_partials(module: ir.Module, context: PassContext) -> None:
    """Loops carry what each thread has added up, and threads meet behind them."""
    for loop in find_loops(module):
        number = 0
        while number < len(loop.results):
            found = _of_tile(loop, number) or _of_number(loop, number)
            if found is not None:
                loop = _carry(loop, number, found, context)
            number += 1


@dataclass
class _Carried:
    """A value that a loop carries. `way`: the ops from it to its yield, each with the number of the
    operand that it is; `combined`: the op that combines; `like`: a reduction by that; `partial`:
    the type of what threads have."""

    way: list[tuple[ir.Operation, int]]
    combined: str
    like: tile.ReduceOp
    partial: ir.Type


def _of_tile(loop: ir.Operation, number: int) -> _Carried | None:
    """A tile that is reduced behind the loop."""
    users = [use.owner for use in loop.results[number].uses]
    view = users[0].opview if len(users) == 1 else None
    combined = _combined(view) if isinstance(view, tile.ReduceOp) else None
    if not isinstance(view, tile.ReduceOp) or combined is None:
        return None
    partial, way = _partial_type(view), _way(loop, number, combined)
    if partial is None or way is None or not _starts(combined, loop.operands[3 + number]):
        return None
    factors = [op.operands[1 - at] for op, at in way if op.name != combined]
    if any(_uniform(value) is None for value in (loop.operands[3 + number], *factors)):
        return None
    is_smaller = layout_of(partial).num_values < layout_of(view.inputs[0]).num_values
    return _Carried(way, combined, view, partial) if is_smaller else None


def _of_number(loop: ir.Operation, number: int) -> _Carried | None:
    """A number that the results of reductions are combined with."""
    init, body = loop.operands[3 + number], loop.regions[0].blocks[0]
    if is_tile(init):
        return None
    for combined in (*SUMS, *IDEMPOTENT):
        way = _way(loop, number, combined)
        if not way or not _starts(combined, init):
            continue
        terms = [op.operands[1 - at] for op, at in way if op.name == combined]
        found = [_reductions(term, combined, body) for term in terms]
        views = [view for each in found for view in each or ()]
        partials = {_partial_type(view) for view in views}
        if None not in found and len(partials) == 1 and None not in partials:
            return _Carried(way, combined, views[0], partials.pop())
    return None


def _way(loop: ir.Operation, number: int, combined: str) -> list[tuple[ir.Operation, int]] | None:
    """The ops from a carried value to its yield, each with the number of its operand that comes
    along; None where it goes another way."""
    body = loop.regions[0].blocks[0]
    value: ir.Value = body.arguments[1 + number]
    way: list[tuple[ir.Operation, int]] = []
    while True:
        uses = list(value.uses)
        if len(uses) != 1:
            return None
        op, at = uses[0].owner.operation, uses[0].operand_number
        if op == terminator(body):
            return way if way and at == number else None
        if op.block != body or op.name not in (combined, FACTORS.get(combined)):
            return None
        way.append((op, at))
        value = op.results[0]


def _reductions(value: ir.Value, combined: str, body: ir.Block) -> list[tile.ReduceOp] | None:
    """The reductions that a number is combined of, in one iteration; None where it is of more."""
    op = None if isinstance(value.owner, ir.Block) else value.owner.operation
    if op is None or op.block != body or len(list(value.uses)) != 1:
        return None
    if op.name == "tensor.extract":
        return _reductions(op.operands[0], combined, body)
    if isinstance(op.opview, tile.ReduceOp):
        source, axis = op.opview.inputs[0], op.opview.axis
        is_like = _combined(op.opview) == combined and len(shape(source)) == 1
        return [op.opview] if is_like and is_spread_over_warps(layout_of(source), axis) else None
    if op.name not in (combined, FACTORS.get(combined)):
        return None
    found = [each for v in op.operands if (each := _reductions(v, combined, body)) is not None]
    wanted = 2 if op.name == combined else 1
    return [view for each in found for view in each] if len(found) == wanted else None


def _combined(view: tile.ReduceOp) -> str | None:
    """The op that a reduction of one tile combines by, if it is one alone that may be carried."""
    first, *rest = (each.operation for each in view.body.operations)
    if len(view.inputs) != 1 or len(rest) != 1 or list(rest[0].operands) != list(first.results):
        return None
    if set(first.operands) != set(view.body.arguments):
        return None
    is_narrow = first.name in SUMS and bit_width(element(view.inputs[0])) < LEAST_BITS
    return first.name if first.name in (*SUMS, *IDEMPOTENT) and not is_narrow else None


def _starts(combined: str, init: ir.Value) -> bool:
    """Whether every thread may start with what the whole does."""
    return combined in IDEMPOTENT or is_zero(init)


def _uniform(value: ir.Value) -> Any:
    """The number that all elements of a tile are, a value or an attribute; None where they differ.
    A number is itself."""
    if not is_tile(value):
        return value
    op = None if isinstance(value.owner, ir.Block) else value.owner.operation
    if op is None or op.name not in ("tensor.splat", "arith.constant"):
        return None
    if op.name == "tensor.splat":
        return op.operands[0]
    attribute: Any = op.attributes["value"]
    return attribute.get_splat_value() if attribute.is_splat else None


def _partial_type(view: tile.ReduceOp) -> ir.Type | None:
    source = view.inputs[0]
    layout, sizes = layout_of(source), list(shape(source))
    kept = tuple(
        level for level in axis_levels(layout, view.axis) if level.place is not Place.VALUE
    )
    if not is_nested(kept):
        return None
    sizes[view.axis] = num_partials(sizes[view.axis], kept)
    return tile_type(sizes, element(source), layout_attr(partial_layout(layout, view.axis, kept)))


def _carry(loop: ir.Operation, number: int, found: _Carried, context: PassContext) -> ir.Operation:
    """The loop with partials in place of one value; what computed that goes unused."""
    with ir.InsertionPoint(loop), loop.location:
        init = _repeated(loop.operands[3 + number], found.partial)
    loop, (partial,) = with_iteration_arguments(loop, [init])
    body = loop.regions[0].blocks[0]
    last = terminator(body)
    with ir.InsertionPoint(last):
        for op, at in found.way:
            other = op.operands[1 - at]
            is_term = op.name == found.combined
            with op.location:
                own = _partial_of(other, found) if is_term else _repeated(other, found.partial)
            partial = _again(op, [own, partial] if at else [partial, own], found.partial)
    yielded = list(last.operands)[:-1]
    yielded[number] = body.arguments[1 + number]
    replace_yield(last, [*yielded, partial])
    total = loop.results[len(loop.results) - 1]
    if is_tile(loop.results[number]):
        found.like.operation.operands[0] = total
    else:
        with ir.InsertionPoint(behind(loop)), found.like.operation.location:
            reduced = _reduced(tile.ReduceOp, [total], found.like, found.like.outputs[0].type)
            scalar = scalar_op("tensor.extract", [reduced], element(reduced))
        loop.results[number].replace_all_uses_with(scalar)
    context.report.add(
        "carried through the loop",
        found.like.operation,
        f"one partial result a thread ({layout_of(found.partial)})",
        "threads meet behind it",
    )
    return loop


def _partial_of(value: ir.Value, found: _Carried) -> ir.Value:
    """What each thread has of a term: of a tile, or of the reductions that a number is made of."""
    op = None if isinstance(value.owner, ir.Block) else value.owner.operation
    if is_tile(value) and shape(value):
        return _reduced(gpu_tile.ThreadReduceOp, [value], found.like, found.partial)
    if op is None:
        raise InternalError("a term of a carried number is no reduction")
    if op.name == "tensor.extract":
        return _partial_of(op.operands[0], found)
    if isinstance(op.opview, tile.ReduceOp):
        return _partial_of(op.opview.inputs[0], found)
    body = op.block
    parts = [
        _repeated(v, found.partial)
        if _reductions(v, found.combined, body) is None
        else _partial_of(v, found)
        for v in op.operands
    ]
    return _again(op, parts, found.partial)


def _repeated(value: ir.Value, type_: ir.Type) -> ir.Value:
    """A tile full of the number that `value` is, or is full of."""
    number = _uniform(value)
    if isinstance(number, ir.Attribute):
        return constant(type_, number.value)
    return scalar_op("tensor.splat", [number], type_)


def _again(op: ir.Operation, operands: Sequence[ir.Value], type_: ir.Type) -> ir.Value:
    """The same op of other operands."""
    return ir.Operation.create(
        op.name,
        results=[type_],
        operands=list(operands),
        attributes=dict(op.attributes.items()),
        loc=op.location,
    ).results[0]


def _reduced(
    kind: type[tile.ReduceOp | gpu_tile.ThreadReduceOp],
    inputs: Sequence[ir.Value],
    like: tile.ReduceOp,
    type_: ir.Type,
) -> ir.Value:
    """The reduction of `inputs` as `like` combines."""
    (result,) = kind.build(inputs, results=[[type_]], axis=like.axis)
    copy = like.operation.clone()
    copy.regions[0].blocks[0].append_to(result.owner.regions[0])
    copy.erase()
    return result
