"""The place of an extreme (`tl.argmax`, `tl.argmin`): two reductions by one instruction each.

Before:   %v, %i = tt.reduce(%x, %at) { of two pairs the one with the greater element, of equals the
                                        one with the lower place }
After:    %m = tile.reduce(%x) (maxnumf)      %holds = arith.cmpf uge %x, %m
          %i = tile.reduce(select(%holds, %at, most)) (minsi)

The first is `tl.max` of the same tile where somebody asks for that, too. A NaN that neither the
author's comparisons choose nor leave alike is among those that hold the extreme, so that some
element always does. Where somebody reads %v it has to be the element at %i: it is %m (maximumf), of
which NaNs are the greatest, and the lowest place holds it (arith.cmpf oeq, or a NaN). Does not
handle: the lower place without comparing places; elements that are compared otherwise.
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


_ORDERED = {"arith.maxnumf": "arith.maximumf", "arith.minnumf": "arith.minimumf"}
"""What gives the extreme where it is read: a NaN wherever one is among the elements."""
_ELEMENTS = ("f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64")
_WORDS = {*_SEARCHES, *(row[1] for row in _SEARCHES.values())}


def extreme_and_place(builder: Builder, op: Op) -> list[ir.Value] | None:
    """Builds the extremes, if they are read, and the places that a reduction of pairs finds; None
    where it is another."""
    better = _better(op) if len(op.operands) == 2 else None
    if better is None or op.operands[0].type.element not in _ELEMENTS:
        return None
    extreme = _SEARCHES[better][2]
    if op.results[0] in builder.plan.live.values:
        extreme = _ORDERED.get(extreme, extreme)
    whole, places = (builder.get(operand) for operand in op.operands)
    sizes, axis = op.operands[0].type.shape, op.number("axis")
    assert sizes is not None
    found = _reduced(builder, extreme, whole, axis)
    if op.results[0].type.shape is None:
        spread = builder.splat(scalar_of(builder, found), sizes)
    else:
        spread = builder.broadcast(found, [d for d in range(len(sizes)) if d != axis], sizes)
    there = _holding(builder, better, extreme, whole, spread)
    most = (1 << (places.type.element_type.width - 1)) - 1
    nowhere = builder.constant(most, places.type)
    chosen = builder.op("arith.select", places.type, there, places, nowhere)
    return [found, _reduced(builder, "arith.minsi", chosen, axis)]


def _holding(
    builder: Builder, better: str, extreme: str, whole: ir.Value, spread: ir.Value
) -> ir.Value:
    """Which elements hold the extreme, as it was found."""
    compare, _, _, holds = _SEARCHES[better]
    flags = builder.typed("i1", whole.type.shape)

    def asked(predicate: str, other: ir.Value) -> ir.Value:
        attribute = predicate_attribute(compare, predicate)
        return builder.op(compare, flags, whole, other, predicate=attribute)

    if extreme not in _ORDERED.values():
        return asked(holds, spread)
    return builder.op("arith.ori", flags, asked("oeq", spread), asked("une", whole))


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
