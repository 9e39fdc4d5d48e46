"""What the loops of a kernel walk along: rows of arrays, whole ones or those that memory begins."""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from tilec.dialects.def_use import defining_op
from tilec.dialects.tile import LoadOp
from tilec.passes.analysis.dependence import ops_behind
from tilec.passes.analysis.divisibility import constant_of


@dataclass(frozen=True)
class Walk:
    """What a loop walks along: an axis of the array that is parameter `number`. `ends`: the number
    of the array that says where rows end, which lie one behind the other along the axis, and
    `is_chained` whether it says where they begin, too; None where a row is the whole axis."""

    number: int
    axis: int
    ends: int | None = None
    is_chained: bool = False


def walk_of(loop: ir.Operation) -> Walk | None:
    """What an `scf.for` walks along from end to end; None where that is no row of an array.

    Of rows that begin and end where memory says, as those of sparse matrices, the array is the one
    whose tiles the loop loads at its counter.
    """
    low, high = list(loop.operands)[:2]
    owner = defining_op(high)
    if constant_of(low) == 0 and owner is not None and owner.name == "memref.dim":
        number, axis = _number(owner.operands[0]), constant_of(owner.operands[1])
        return None if number is None or axis is None else Walk(number, axis)
    first, end = _read_from(low), _read_from(high)
    if first is None or end is None:
        return None
    counter = loop.regions[0].blocks[0].arguments[0]
    for use in counter.uses:
        view = use.owner.opview
        if isinstance(view, LoadOp) and view.dims and view.offsets[view.dims[-1]] == counter:
            number = _number(view.src)
            return None if number is None else Walk(number, view.dims[-1], end, first == end)
    return None


def _read_from(bound: ir.Value) -> int | None:
    """The number of the only array that a bound is computed from."""
    loads = [op.opview for op in ops_behind([bound]) if isinstance(op.opview, LoadOp)]
    arrays = {_number(load.src) for load in loads}
    return arrays.pop() if len(arrays) == 1 else None


def _number(array: ir.Value) -> int | None:
    """The number of the parameter that an array is."""
    if defining_op(array) is not None:
        return None
    return int(ir.BlockArgument(array).arg_number)
