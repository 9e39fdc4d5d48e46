"""What the loops of a kernel walk along: rows of arrays, whole ones or those that memory begins."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.dialects.def_use import defining_op, users
from tilec.dialects.tile import LoadOp, WindowOp
from tilec.hardware.target import Target
from tilec.passes.analysis.dependence import ops_behind
from tilec.passes.analysis.divisibility import constant_of
from tilec.passes.copies.iterations_ahead import only_adds
from tilec.passes.rewriting.loops import find_loops
from tilec.passes.rewriting.walk import is_of, kernels
from tilec.passes.rows.stripes import is_kept
from tilec.records import dataclass

HeldAxis = tuple[int, int, int]
"""Of a parameter, by number: an axis, and how many elements it has at most."""


@dataclass(frozen=True)
class Walk:
    """What a loop walks along: an axis of the array that is parameter `number`. `ends`: the number
    of the array that says where rows end, which lie one behind the other along the axis, and
    `is_chained` whether it says where they begin, too; None where a row is the whole axis.
    `only_adds`: iterations hand on nothing but what they add up."""

    number: int
    axis: int
    ends: int | None = None
    is_chained: bool = False
    only_adds: bool = False


def walk_of(loop: ir.Operation) -> Walk | None:
    """What an `scf.for` walks along from end to end; None where that is no row of an array.

    Of rows that begin and end where memory says, as those of sparse matrices, the array is the one
    whose tiles the loop loads at its counter, or of which it is a window.
    """
    low, high = list(loop.operands)[:2]
    owner = defining_op(high)
    if constant_of(low) == 0 and owner is not None and owner.name == "memref.dim":
        number, axis = _number(owner.operands[0]), constant_of(owner.operands[1])
        return None if number is None or axis is None else Walk(number, axis)
    counter = loop.regions[0].blocks[0].arguments[0]
    for view in users(counter, LoadOp):
        axis = next((dim for dim in view.dims if view.offsets[dim] == counter), None)
        if axis is None:
            continue
        end = _read_from(high)
        if end is None:
            return None
        array, start = _windowed(view.src, axis)
        first = _read_from(low if start is None or constant_of(low) != 0 else start)
        number = _number(array)
        if number is None or first is None:
            return None
        return Walk(number, axis, end, first == end, only_adds(loop))
    return None


def _windowed(array: ir.Value, axis: int) -> tuple[ir.Value, ir.Value | None]:
    """The array that an array is a window of, and where that begins along `axis`; None where it is
    no window there, or one of another."""
    starts = []
    while (window := defining_op(array, WindowOp.OPERATION_NAME)) is not None:
        starts += [window.opview.start] if window.opview.dim == axis else []
        array = window.opview.src
    return array, starts[0] if len(starts) == 1 else None


def keeps_row(module: ir.Module, target: Target) -> bool:
    """Whether the programs of a tile-level module keep one row each, all of it."""
    with module.context:
        return any(is_kept(function, target) for function in kernels(module))


def one_turn_loops(
    function: ir.Operation, held: Sequence[HeldAxis]
) -> list[tuple[ir.Operation, Walk, int]]:
    """The loops of a kernel that go round once, as their steps hold the whole of these axes; what
    each walks along, and its step."""
    found = []
    for loop in find_loops(function) if held else ():
        walk, step = walk_of(loop), constant_of(loop.operands[2])
        if walk is None or walk.ends is not None or step is None:
            continue
        if any(on == [walk.number, walk.axis] and n <= step for *on, n in held):
            found.append((loop, walk, step))
    return found


def _read_from(bound: ir.Value) -> int | None:
    """The number of the only array that a bound is computed from."""
    loads = [op.opview for op in ops_behind([bound]) if is_of(op, LoadOp)]
    arrays = {_number(load.src) for load in loads}
    return arrays.pop() if len(arrays) == 1 else None


def _number(array: ir.Value) -> int | None:
    """The number of the parameter that an array is."""
    if defining_op(array) is not None:
        return None
    return int(ir.BlockArgument(array).arg_number)
