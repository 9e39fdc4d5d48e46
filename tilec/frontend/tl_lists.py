"""Lists of arrays: one of them at a position, and the part of all of them that is a program's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mlir import ir

import tilec.language as tl
from tilec.dialects.def_use import defining_op
from tilec.dialects.predicates import predicate_attribute
from tilec.dialects.tile import ArrayAtOp, AssertOp, FindPartOp, ProgramIdOp
from tilec.dialects.tile.lists import MOST_PART
from tilec.frontend.arrays import list_length
from tilec.frontend.conversion import to_index
from tilec.frontend.frame import Frame
from tilec.frontend.statements import refuse_effects
from tilec.frontend.values import Array, ArrayList, Mistake, Scalar, describe
from tilec.terms.dtypes import i1, index


def array_at(frame: Frame, arrays: ArrayList, position: Any) -> Array:
    """`xs[i]`. A launch ends with an error where the list has no such position."""
    refuse_effects(frame, "an array out of a list")
    if isinstance(position, int) and position < 0:
        last = f"help: the last one is {arrays.name}[len({arrays.name}) - 1]"
        raise Mistake(f"positions in a list begin at 0, found {position}", last)
    place = to_index(frame.builder, position, "a position in a list")
    inside = _is_part_of(place, arrays)
    if not inside:
        _assert_inside(frame, arrays, place)
    value = ArrayAtOp.build(arrays.value, place, options={"inside": True} if inside else {})
    return Array(value, f"{arrays.name}[...]", arrays.dtype, arrays.sizes)


def _is_part_of(place: ir.Value, arrays: ArrayList) -> bool:
    """Whether a position is that of a part of this very list."""
    found = defining_op(place, FindPartOp.OPERATION_NAME)
    return found is not None and found.opview.src == arrays.value


def _assert_inside(frame: Frame, arrays: ArrayList, place: ir.Value) -> None:
    """No position is below 0: as a number without a sign it is beyond the list's end."""
    builder = frame.builder
    count = list_length(builder, arrays).value
    below = predicate_attribute("arith.cmpi", "ult")
    inside = builder.value("arith.cmpi", builder.element(i1), place, count, predicate=below)
    AssertOp.build(inside, message=f"{arrays.name} has no array at this position")


def part(frame: Frame, arrays: Any, elements: Any) -> tuple[Scalar, Scalar]:
    """`tl.part`."""
    refuse_effects(frame, "part")
    if not isinstance(arrays, ArrayList):
        raise Mistake(
            f"part takes a list of arrays, found {describe(arrays)}",
            "help: declare the parameter as xs: tl.arrays, or tl.flat_arrays",
            argument="arrays",
        )
    if arrays.rank != 1:
        raise Mistake(
            f"part takes a list of rows, arrays of '{arrays.name}' have {arrays.rank} dimensions",
            "help: tl.flat_arrays sees each array as a row of all its elements",
            argument="arrays",
        )
    if isinstance(elements, bool) or not isinstance(elements, int):
        raise Mistake(
            f"elements must be a constant, found {describe(elements)}", argument="elements"
        )
    if not 1 <= elements <= MOST_PART:
        raise Mistake(
            f"elements must be from 1 to {MOST_PART}, found {elements}", argument="elements"
        )
    number = ProgramIdOp.build(axis=0)
    position, start = FindPartOp.build(arrays.value, number, elements=elements)
    return Scalar(position, index), Scalar(start, index)


def parts(frame: Frame, arrays: Any, elements: Any) -> None:
    """`tl.parts`, which is no number to a kernel: its grid is."""
    raise Mistake("parts is for grid rules", "help: tl.num_programs(0) is how many parts there are")


BUILTINS: Mapping[Any, Callable[..., Any]] = {tl.part: part, tl.parts: parts}
