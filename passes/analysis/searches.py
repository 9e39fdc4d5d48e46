"""Searches for the place of an extreme: two reductions of one tile, which `tl.argmax` is made of.

    %m = "tile.reduce"(%x) ({ maximumf })           %s = "tile.broadcast"(%m)
    %holds = arith.cmpf oeq, %x, %s                 (or uge, or with elements that are NaN)
    %c = arith.select %holds, %places, %most
    %i = "tile.reduce"(%c) ({ minsi })

What a part of a row finds is the extreme of that part and the least place of those that hold it.
Of several parts the extreme is that of theirs, and its place the least that parts have found whose
extreme holds it. Where an element is NaN and the extreme is none, its place may be that of a part
which has no such element.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from tilec.dialects.def_use import constant_element, defining_op, made_by, users
from tilec.dialects.gpu_tile import ConvertLayoutOp
from tilec.dialects.predicates import predicate_of
from tilec.dialects.tile import BroadcastOp, ReduceOp
from tilec.dialects.types import with_element
from tilec.passes.rewriting.scalars import constant, select
from tilec.passes.rewriting.values import again, replace_op
from tilec.records import dataclass

_HOLDS = {
    **dict.fromkeys(("arith.maximumf", "arith.maxnumf"), ("oeq", "ueq", "uge")),
    **dict.fromkeys(("arith.minimumf", "arith.minnumf"), ("oeq", "ueq", "ule")),
    **dict.fromkeys(("arith.maxsi", "arith.maxui", "arith.minsi", "arith.minui"), ("eq",)),
}
"""By what gives an extreme: how its elements are compared with it."""
_NAN = ("une", "uno")
"""How an element that is NaN is compared with itself."""


@dataclass(frozen=True)
class Search:
    """The reductions for an `extreme` and for its `place`, what lies between them in their order,
    and the `spread` extreme that elements are compared with."""

    extreme: ReduceOp
    place: ReduceOp
    spread: ir.Value
    between: tuple[ir.Operation, ...]

    @property
    def axis(self) -> int:
        """Along which both reduce."""
        return self.place.axis

    @property
    def places(self) -> ir.Value:
        """Of all elements, of which the least is chosen."""
        return self.between[-1].operands[1]

    @property
    def spreading(self) -> ir.Operation:
        """What reads the extreme to spread it."""
        owner = self.spread.owner.operation
        read = defining_op(owner.operands[0], "tensor.extract")
        return owner if read is None else read

    @property
    def moved(self) -> list[ir.Operation]:
        """What hands the extreme on to others: in another layout, or as a number."""
        found = users(self.extreme.outputs[0], ConvertLayoutOp)
        number = [] if self.spreading == self.spread.owner.operation else [self.spreading]
        return [*(view.operation for view in found), *number]

    def readers(self) -> list[ir.Operation]:
        """Who else reads the extreme, however it is handed on."""
        moved = self.moved
        known = [*self.between, self.spread.owner.operation, *moved]
        values = [self.extreme.outputs[0], *(op.results[0] for op in moved)]
        found = [use.owner.operation for value in values for use in value.uses]
        return [op for op in found if op not in known]

    def end_at(self, extreme: ir.Value, place: ir.Value) -> None:
        """Has these stand for the results, and drops what nobody reads any more."""
        replace_op(self.place, place)
        moved, spread = self.moved, self.spread.owner.operation
        for op in (*reversed(self.between), spread):
            op.erase()
        for op in moved:
            if list(op.results[0].uses):
                op.move_after(extreme.owner.operation)
            else:
                op.erase()
        replace_op(self.extreme, extreme)

    def chosen(self, elements: ir.Value, extremes: ir.Value, places: ir.Value) -> ir.Value:
        """Of `places` those whose elements hold the extremes, made anew; of others none."""
        comparisons, choice = self.between[:-1], self.between[-1]
        made = {self.extreme.inputs[0]: elements, self.spread: extremes}
        for op in comparisons:
            flags = with_element(elements, ir.IntegerType.get_signless(1))
            made[op.results[0]] = again(op, [made[value] for value in op.operands], flags)
        nowhere = constant(places.type, constant_element(choice.operands[2]))
        return select(made[choice.operands[0]], places, nowhere)


def search_of(place: ReduceOp) -> Search | None:
    """The search that ends in this reduction, if one does."""
    if len(place.inputs) != 1 or _combines_by(place) != "arith.minsi":
        return None
    choice = defining_op(place.inputs[0], "arith.select")
    if choice is None or constant_element(choice.operands[2]) is None:
        return None
    comparisons = list(_comparisons(choice.operands[0]))
    for op in comparisons:
        for spread in op.operands:
            extreme = _spread_extreme(spread)
            if extreme is None or extreme.axis != place.axis:
                continue
            search = Search(extreme, place, spread, (*comparisons, choice))
            asks = all(_asks(one, extreme, spread, comparisons) for one in comparisons)
            if asks and _is_alone(search):
                return search
    return None


def _is_alone(search: Search) -> bool:
    """Whether nothing but the search reads what lies between its reductions."""
    spread = search.spread.owner.operation
    known = [*search.between, spread, search.place.operation]
    ours = [spread.results[0], *(op.results[0] for op in search.between)]
    return all(use.owner.operation in known for value in ours for use in value.uses)


def _comparisons(flags: ir.Value) -> Iterator[ir.Operation]:
    """The ops that flags come from, in their order, as far as they are `or`."""
    op = defining_op(flags, "arith.cmpf", "arith.cmpi", "arith.ori")
    if op is None:
        return
    if op.name == "arith.ori":
        for operand in op.operands:
            yield from _comparisons(operand)
    yield op


def _asks(
    op: ir.Operation, extreme: ReduceOp, spread: ir.Value, others: list[ir.Operation]
) -> bool:
    """Whether a comparison asks if elements hold the extreme, or are NaN; of an `or`, whether that
    is of such."""
    operands = list(op.operands)
    if op.name == "arith.ori":
        return all(defining_op(value) in others for value in operands)
    (elements,) = extreme.inputs
    if operands == [elements, elements]:
        return predicate_of(op) in _NAN
    holds = _HOLDS[_combines_by(extreme) or ""]
    return operands == [elements, spread] and predicate_of(op) in holds


def _spread_extreme(value: ir.Value) -> ReduceOp | None:
    """The reduction whose one result this tile repeats, if it is of an extreme."""
    made = made_by(value, BroadcastOp)
    number = defining_op(value, "tensor.splat")
    if made is not None:
        value = made.src
    elif number is not None:
        read = defining_op(number.operands[0], "tensor.extract")
        if read is None or len(read.operands) > 1:
            return None
        value = read.operands[0]
    reduce = made_by(value, ReduceOp)
    if reduce is None or len(reduce.inputs) != 1 or _combines_by(reduce) not in _HOLDS:
        return None
    if made is not None:
        rank = len(made.dims) + 1
        if list(made.dims) != [axis for axis in range(rank) if axis != reduce.axis]:
            return None
    return reduce


def _combines_by(reduce: ReduceOp) -> str | None:
    """The one op that a reduction combines two elements by, in any order; None if there are
    more."""
    ops = [op.operation for op in reduce.body.operations]
    whole = len(ops) == 2 and set(ops[0].operands) == set(reduce.body.arguments)
    return ops[0].name if whole and ops[1].operands[0] == ops[0].results[0] else None
