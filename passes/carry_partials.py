"""carry-partials: a loop that adds up to a number, or a row, carries what each thread has summed.

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

A thread then holds one register for the sum, not one for each of its elements, so more programs
share a multiprocessor. A loop may also reduce each block itself and add the results up,

          %next = arith.addf(arith.mulf(%acc, %factor), tensor.extract("tile.reduce"(%x)))

where all warps wait for each other in every iteration: it carries parts, too, and they meet behind
it. So does a loop that adds rows of blocks to a row, as attention to one query does with values:

          %rows = "tile.reduce"(%weighted) ({ addf }) {axis = 0} : (tensor<16x128xf32, #L>) -> ...
          %next = arith.addf(arith.mulf(%acc, %factors), %rows)          (%acc: tensor<128xf32, #R>)

It carries tensor<8x128xf32, #P>, a part for each of the threads that hold elements of one column.

1. A carried value goes through ops to where it is yielded, and nothing else uses it on this way:
   combined with others by the op that the reduction combines by, or, of sums, scaled by one number.
2. It is a tile that is reduced behind the loop, of which threads hold several elements along the
   axis. Or what it is combined with are reductions of tiles of one layout, or such results scaled,
   widened or in another layout: of a number across warps, of a tile across threads that hold
   `MOST_CARRIED` columns at most.
3. It starts as zero where it is a sum; a maximum or minimum may start as any number.

Elements of a sum are added in any order (`tl.sum`), those of other iterations included, and
factors, which are the same for all, are applied to parts. `simplify` drops what is left over.
Does not handle: while loops; values that branches or inner loops combine; numbers reduced inside
warps in each iteration, which cost a few shuffles alone; sums in less than 32 bits, which would
lose by it, unless they are widened before they are added up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir import ir

from tilec.dialects import gpu_tile, tile
from tilec.dialects.def_use import constant_element, defining_op, only_use, only_user
from tilec.dialects.gpu_tile.types import layout_attr, layout_of
from tilec.dialects.types import bit_width, element, is_tile, number_type, shape, with_element
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
from tilec.passes.rewriting.scalars import constant, create, is_zero
from tilec.passes.rewriting.values import again
from tilec.passes.rewriting.walk import is_of
from tilec.records import dataclass

SUMS = ("arith.addf", "arith.addi")
IDEMPOTENT = (
    *("arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf"),
    *("arith.maxsi", "arith.minsi", "arith.maxui", "arith.minui"),
)
"""What a number may be combined by more than once."""
WIDENING = "arith.extf"
PASSING = ("tensor.extract", "gpu_tile.convert_layout", WIDENING)
"""What a reduction's result goes through to where it is combined, element by element."""
FACTORS = {"arith.addf": "arith.mulf", "arith.addi": "arith.muli"}
"""What a sum is scaled by."""
LEAST_BITS = 32
"""Of elements of a sum: narrower floats lose other bits where they are added in another order."""
MOST_CARRIED = 32
"""Registers of a thread for its part of a row; a thread has a column's alone otherwise."""


@tile_pass(
    requires=Level.LAYOUTS,
    behind={"remove-layout-conversions": "that decides which layout a carried tile has"},
)
def carry_partials(module: ir.Module, context: PassContext) -> None:
    """Loops carry what each thread has added up, and threads meet behind them."""
    for loop in find_loops(module):
        number = 0
        while number < len(loop.results):
            found = _of_tile(loop, number) or _of_reductions(loop, number)
            if found is not None:
                loop = _carry(loop, number, found, context)
            number += 1


@dataclass
class _Carried:
    """A value that a loop carries. `way`: the ops from it to its yield, each with the number of the
    operand that it is; `combined`: the op that combines; `like`: a reduction by that; `partial`:
    the type of what threads have; `is_behind`: `like` stands behind the loop, which carries the
    tile that it reduces."""

    way: list[tuple[ir.Operation, int]]
    combined: str
    like: tile.ReduceOp
    partial: ir.Type
    is_behind: bool


def _of_tile(loop: ir.Operation, number: int) -> _Carried | None:
    """A tile that is reduced behind the loop."""
    view = only_user(loop.results[number], tile.ReduceOp)
    if view is None or (combined := _combined(view)) is None:
        return None
    partial = _partial_type(view, element(view.inputs[0]))
    way = _way(loop, number, combined)
    if partial is None or way is None or not _starts(combined, loop.operands[3 + number]):
        return None
    factors = [op.operands[1 - at] for op, at in way if op.name != combined]
    if any(_uniform(value) is None for value in (loop.operands[3 + number], *factors)):
        return None
    is_smaller = layout_of(partial).num_values < layout_of(view.inputs[0]).num_values
    return _Carried(way, combined, view, partial, True) if is_smaller else None


def _of_reductions(loop: ir.Operation, number: int) -> _Carried | None:
    """A number, or a tile, that the results of reductions are combined with."""
    init, body = loop.operands[3 + number], loop.regions[0].blocks[0]
    if _uniform(init) is None:
        return None
    for combined in (*SUMS, *IDEMPOTENT):
        way = _way(loop, number, combined)
        if not way or not _starts(combined, init):
            continue
        terms = [op.operands[1 - at] for op, at in way if op.name == combined]
        factors = [op.operands[1 - at] for op, at in way if op.name != combined]
        found = [_reductions(term, combined, body) for term in terms]
        views = [view for each in found for view in each or ()]
        if None in found or any(_uniform(factor) is None for factor in factors):
            continue
        partials = {_partial_type(view, number_type(init)) for view in views}
        if len(partials) == 1 and None not in partials:
            return _Carried(way, combined, views[0], partials.pop(), False)
    return None


def _way(loop: ir.Operation, number: int, combined: str) -> list[tuple[ir.Operation, int]] | None:
    """The ops from a carried value to its yield, each with the number of its operand that comes
    along; None where it goes another way."""
    body = loop.regions[0].blocks[0]
    value: ir.Value = body.arguments[1 + number]
    way: list[tuple[ir.Operation, int]] = []
    while True:
        use = only_use(value)
        if use is None:
            return None
        op, at = use.owner.operation, use.operand_number
        if op == terminator(body):
            return way if way and at == number else None
        if op.block != body or op.name not in (combined, FACTORS.get(combined)):
            return None
        way.append((op, at))
        value = op.results[0]


def _reductions(
    value: ir.Value, combined: str, body: ir.Block, *, is_widened: bool = False
) -> list[tile.ReduceOp] | None:
    """The reductions that a number or tile is combined of, in one iteration; None where it is of
    more. `is_widened`: their results are extended to more bits before they are added up."""
    op = defining_op(value)
    if op is None or op.block != body or only_use(value) is None:
        return None
    if is_of(op, tile.ReduceOp):
        is_like = _combined(op.opview, is_widened=is_widened) == combined
        return [op.opview] if is_like and _is_worthwhile(op.opview) else None
    if op.name in PASSING:
        is_widened = is_widened or op.name == WIDENING
        return _reductions(op.operands[0], combined, body, is_widened=is_widened)
    if op.name not in (combined, FACTORS.get(combined)):
        return None
    found = [_reductions(v, combined, body, is_widened=is_widened) for v in op.operands]
    views = [view for each in found for view in each or ()]
    if op.name == combined:
        return None if None in found else views
    rest = [v for v, each in zip(op.operands, found, strict=True) if each is None]
    return views if len(rest) == 1 and _uniform(rest[0]) is not None else None


def _is_worthwhile(view: tile.ReduceOp) -> bool:
    """Whether threads meet in a reduction that had better do so once: warps wait for each other,
    and each element of a row takes shuffles of its own."""
    layout = layout_of(view.inputs[0])
    if len(shape(view.inputs[0])) == 1:
        return is_spread_over_warps(layout, view.axis)
    partial = _partial_type(view, element(view.inputs[0]))
    places = {level.place for level in axis_levels(layout, view.axis)}
    few = partial is not None and layout_of(partial).num_values <= MOST_CARRIED
    return few and places != {Place.VALUE}


def _combined(view: tile.ReduceOp, *, is_widened: bool = False) -> str | None:
    """The op that a reduction of one tile combines by, if it is one alone that may be carried."""
    first, *rest = (each.operation for each in view.body.operations)
    if len(view.inputs) != 1 or len(rest) != 1 or list(rest[0].operands) != list(first.results):
        return None
    if set(first.operands) != set(view.body.arguments):
        return None
    is_narrow = first.name in SUMS and bit_width(element(view.inputs[0])) < LEAST_BITS
    may = is_widened or not is_narrow
    return first.name if first.name in (*SUMS, *IDEMPOTENT) and may else None


def _starts(combined: str, init: ir.Value) -> bool:
    """Whether every thread may start with what the whole does."""
    return combined in IDEMPOTENT or is_zero(init)


def _uniform(value: ir.Value) -> Any:
    """The number that all elements of a tile are, a value or an attribute; None where they differ.
    A number is itself."""
    if not is_tile(value):
        return value
    op = defining_op(value, "tensor.splat", "arith.constant")
    if op is None:
        return None
    return op.operands[0] if op.name == "tensor.splat" else constant_element(value)


def _partial_type(view: tile.ReduceOp, kind: ir.Type) -> ir.Type | None:
    """The tile of what threads have reduced themselves, with elements of `kind`."""
    source = view.inputs[0]
    layout, sizes = layout_of(source), list(shape(source))
    kept = tuple(
        level for level in axis_levels(layout, view.axis) if level.place is not Place.VALUE
    )
    if not is_nested(kept):
        return None
    sizes[view.axis] = num_partials(sizes[view.axis], kept)
    return tile_type(sizes, kind, layout_attr(partial_layout(layout, view.axis, kept)))


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
            partial = again(op, [own, partial] if at else [partial, own], found.partial)
    yielded = list(last.operands)[:-1]
    yielded[number] = body.arguments[1 + number]
    replace_yield(last, [*yielded, partial])
    total = loop.results[len(loop.results) - 1]
    with ir.InsertionPoint(behind(loop)), found.like.operation.location:
        _replace(loop.results[number], total, found)
    context.report.add(
        "carried through the loop",
        found.like.operation,
        f"one partial result a thread ({layout_of(found.partial)})",
        "threads meet behind it",
    )
    return loop


def _replace(old: ir.Value, total: ir.Value, found: _Carried) -> None:
    """Has what used a carried value use the reduction of the parts that are carried now."""
    if found.is_behind:
        found.like.operation.operands[0] = total
        return
    result = with_element(found.like.outputs[0], element(total))
    new = _reduced(tile.ReduceOp, [total], found.like, result)
    if not is_tile(old):
        new = create("tensor.extract", [new], old.type)
    elif new.type != old.type:
        new = gpu_tile.ConvertLayoutOp.build(new, results=[old.type])
    old.replace_all_uses_with(new)


def _partial_of(value: ir.Value, found: _Carried) -> ir.Value:
    """What each thread has of a term: of a tile that is reduced behind the loop, or of the
    reductions that a term is made of."""
    if found.is_behind:
        return _reduced(gpu_tile.ThreadReduceOp, [value], found.like, found.partial)
    op = defining_op(value)
    if op is None:
        raise InternalError("a term of what is carried is no reduction")
    if is_of(op, tile.ReduceOp):
        source = op.opview.inputs[0]
        own = with_element(found.partial, element(source))
        return _reduced(gpu_tile.ThreadReduceOp, [source], op.opview, own)
    if op.name in PASSING:
        own = _partial_of(op.operands[0], found)
        return again(op, [own], found.partial) if op.name == WIDENING else own
    of = [_reductions(v, found.combined, op.block, is_widened=True) for v in op.operands]
    own = {n: _partial_of(v, found) for n, v in enumerate(op.operands) if of[n] is not None}
    type_ = next(iter(own.values())).type
    parts = [own[n] if n in own else _repeated(v, type_) for n, v in enumerate(op.operands)]
    return again(op, parts, type_)


def _repeated(value: ir.Value, type_: ir.Type) -> ir.Value:
    """A tile full of the number that `value` is, or is full of."""
    number = _uniform(value)
    if isinstance(number, ir.Attribute):
        return constant(type_, number.value)
    return create("tensor.splat", [number], type_)


def _reduced(
    kind: type[tile.ReduceOp | gpu_tile.ThreadReduceOp],
    inputs: Sequence[ir.Value],
    like: tile.ReduceOp,
    type_: ir.Type,
) -> ir.Value:
    """The reduction of `inputs` as `like` combines, whose elements may have fewer bits."""
    (result,) = kind.build(inputs, results=[[type_]], axis=like.axis)
    first, last = (view.operation for view in like.body.operations)
    numbers = [element(value) for value in inputs] * 2
    block = result.owner.regions[0].blocks.append(*numbers, arg_locs=[like.location] * len(numbers))
    with ir.InsertionPoint(block):
        both = again(first, list(block.arguments), numbers[0])
        ir.Operation.create(last.name, operands=[both], loc=last.location)
    return result
