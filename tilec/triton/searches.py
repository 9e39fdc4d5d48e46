"""The place of an extreme (`tl.argmax`, `tl.argmin`): two reductions by one instruction each.

Before:   %v, %i = tt.reduce(%x, %at) { of two pairs the one with the greater element, of equals the
                                        one with the lower place }, of which nobody reads %v
After:    %m = tile.reduce(%x) (maxnumf)      %holds = arith.cmpf uge %x, %m
          %i = tile.reduce(select(%holds, %at, most)) (minsi)

The first is `tl.max` of the same tile where somebody asks for that, too. A NaN that neither the
author's comparisons choose nor leave alike is among those that hold the extreme, so that some
element always does. Does not handle: the lower place without comparing places; elements that are
compared otherwise.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.predicates import predicate_attribute
from tilec.dialects.tile import ReduceOp
from tilec.triton.build import Builder
from tilec.triton.program import Op, Value, defining
from tilec.triton.shapes import scalar_of

_SEARCHES = {
    "ogt": ("arith.cmpf", "oeq", "arith.maxnumf", "uge"),
    "olt": ("arith.cmpf", "oeq", "arith.minnumf", "ule"),
    "sgt": ("arith.cmpi", "eq", "arith.maxsi", "eq"),
    "slt": ("arith.cmpi", "eq", "arith.minsi", "eq"),
    "ugt": ("arith.cmpi", "eq", "arith.maxui", "eq"),
    "ult": ("arith.cmpi", "eq", "arith.minui", "eq"),
}
"""By what makes one pair the better: the comparison, when elements are equal, what gives the
extreme, and which elements hold it."""


_ELEMENTS = ("f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64")
_WORDS = {*_SEARCHES, *(row[1] for row in _SEARCHES.values())}


def place_of_extreme(builder: Builder, op: Op) -> ir.Value | None:
    """Builds the places that a reduction of pairs finds; None where it is another."""
    if len(op.operands) != 2 or op.results[0] in builder.plan.live.values:
        return None
    better = _better(op)
    if better is None or op.operands[0].type.element not in _ELEMENTS:
        return None
    compare, _, extreme, holds = _SEARCHES[better]
    whole, places = (builder.get(operand) for operand in op.operands)
    sizes, axis = op.operands[0].type.shape, op.number("axis")
    assert sizes is not None
    found = _reduced(builder, extreme, whole, axis)
    if op.results[0].type.shape is None:
        spread = builder.splat(scalar_of(builder, found), sizes)
    else:
        spread = builder.broadcast(found, [d for d in range(len(sizes)) if d != axis], sizes)
    predicate = predicate_attribute(compare, holds)
    there = builder.op(compare, builder.typed("i1", sizes), whole, spread, predicate=predicate)
    most = (1 << (places.type.element_type.width - 1)) - 1
    nowhere = builder.constant(most, places.type)
    chosen = builder.op("arith.select", places.type, there, places, nowhere)
    return _reduced(builder, "arith.minsi", chosen, axis)


def _reduced(builder: Builder, name: str, value: ir.Value, axis: int) -> ir.Value:
    element = value.type.element_type

    def body(one: ir.Value, two: ir.Value) -> list[ir.Value]:
        return [builder.op(name, element, one, two)]

    return ReduceOp.build([value], body=body, body_types=[element] * 2, axis=axis)[0]


def _better(op: Op) -> str | None:
    """The predicate by which a pair is the better, None where the region does something else."""
    block = op.regions[0]
    element, place, other, there = block.arguments
    value, found = block.terminator.operands
    takes = defining(value, "arith.select"), defining(found, "arith.select")
    if takes[0] is None or takes[1] is None or not place.type.is_integer:
        return None
    condition = takes[0].operands[0]
    if takes[0].operands[1:] != [element, other] or takes[1].operands != [condition, place, there]:
        return None
    either = defining(condition, "arith.ori")
    sides = [] if either is None else [either.operands, either.operands[::-1]]
    for greater, tied in sides:
        both = defining(tied, "arith.andi")
        words = {_word(v, element, other) for v in both.operands} if both is not None else set()
        lower = both is not None and any(_word(v, place, there) == "slt" for v in both.operands)
        better = _word(greater, element, other)
        if lower and better in _SEARCHES and _SEARCHES[better][1] in words:
            return better
    return None


def _word(value: Value, lhs: Value, rhs: Value) -> str | None:
    """How a value compares two others; None of one that does not."""
    op = defining(value, "arith.cmpf", "arith.cmpi")
    if op is None or op.operands != [lhs, rhs]:
        return None
    return next((word for word in op.words if word in _WORDS), None)
