"""Minima of which arguments alone make one side, and which are that side in every program of a
launch.

    rows = min(chunk, n - pid * chunk)        ->  chunk, where n is a whole number of chunks
    tl.load(p + i * stride, mask=i < rows)    ->  an array whose dimension has size chunk

As it stands, the bound of such a mask is known to each program alone, and arrays have the bounds of
a launch. So the launch computes both sides for all of its programs, and imports the kernel without
the minimum where that changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilec.executable.kernel import Grid
from tilec.records import dataclass
from tilec.triton.program import Function, Op, Value, replace_values, walk
from tilec.triton.program_numbers import always_equal, decides, parts_of


@dataclass(frozen=True)
class Minimum:
    """`value`: of an arith.minsi; `side`: the operand that arguments alone decide."""

    value: Value
    side: Value


def find_minima(function: Function) -> tuple[Minimum, ...]:
    """The scalar minima of a kernel that a launch can look at, and that no launch knows without."""
    found = []
    for block in function.blocks:
        for op in walk(block):
            if op.name == "arith.minsi" and decides(op.result):
                sides = [side for side in op.operands if not _asks_programs(side)]
                found += [Minimum(op.result, side) for side in sides if len(sides) == 1]
    return tuple(found)


def are_settled(minima: tuple[Minimum, ...], numbers: Mapping[str, Any], grid: Grid) -> bool:
    """Whether each is its side in all programs of a launch; no, where the grid has too many to
    look."""
    return always_equal([(one.value, one.side) for one in minima], numbers, grid)


def settle(function: Function, minima: tuple[Minimum, ...]) -> None:
    """Reads the sides in place of the minima."""
    for block in function.blocks:
        replace_values(block, {one.value: one.side for one in minima})


def _asks_programs(value: Value) -> bool:
    """Whether something that `decides` depends on which program runs, on how many, or on a loop."""
    op = value.owner
    if not isinstance(op, Op):
        return op.parent is not None
    asks = op.name in ("tt.get_program_id", "tt.get_num_programs")
    return asks or any(map(_asks_programs, parts_of(value)))
