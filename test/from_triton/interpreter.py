"""What a kernel of Triton's means, by NumPy: its TTIR interpreted, program after program.

It shares the reader with the importer, and nothing else. Pointers are (array, element number),
tiles NumPy arrays of the width that they have there, so that integers wrap; an access outside its
array is an IndexError, an op that is not known here a KeyError. Programs run in their order: of
those that race nothing is said, unless the pointers have a `Watch`, which raises `Race`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from interpreter_blocks import BLOCK_RULES
from interpreter_rules import RULES, Pointer, numpy_of

from tilec.triton.normalize import normalized
from tilec.triton.program import Block, Function, Op, Value

Grid = tuple[int, int, int]
MOST_ITERATIONS = 10_000
"""Of a loop: arguments drawn at random may ask for more than anybody waits for."""


def run(function: Function, arguments: Sequence[Any], grid: Sequence[int]) -> None:
    """Runs all programs; arrays among the arguments (flat, or a `Pointer`) are changed in place.
    The function is changed by being normalized."""
    (block,) = normalized(function).blocks
    x, y, z = (*grid, 1, 1)[:3]
    for number in range(x * y * z):
        place = number % x, number // x % y, number // (x * y)
        given = [
            _given(formal, argument)
            for formal, argument in zip(function.arguments, arguments, strict=True)
        ]
        for pointer in given:
            if isinstance(pointer, Pointer) and pointer.watch is not None:
                pointer.watch.program = number
        with np.errstate(all="ignore"):
            _Program(place, (x, y, z)).block(block, given)


def _given(formal: Value, argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        return Pointer(argument, 0)
    return argument if isinstance(argument, Pointer) else numpy_of(formal.type)(argument)


class _Program:
    """One program: the values that its ops have given."""

    def __init__(self, place: Grid, grid: Grid) -> None:
        self.place, self.grid = place, grid
        self.values: dict[Value, Any] = {}

    def block(self, block: Block, given: Sequence[Any]) -> list[Any]:
        """Runs a block; what its end passes on."""
        self.values.update(zip(block.arguments, given, strict=True))
        for op in block.ops:
            operands = [self.values[operand] for operand in op.operands]
            if op.name in _ENDS:
                return operands
            found = self._op(op, operands)
            results = found if isinstance(found, list) else [found]
            self.values.update(zip(op.results, results, strict=False))
        return []

    def _op(self, op: Op, operands: list[Any]) -> Any:
        own = _CONTROL.get(op.name)
        if own is not None:
            return own(self, op, *operands)
        rule = BLOCK_RULES.get(op.name) or RULES[op.name]
        return rule(op, *operands)

    def program_id(self, op: Op) -> Any:
        """tt.get_program_id."""
        return np.int32(self.place["xyz".index(next(iter(op.words)))])

    def num_programs(self, op: Op) -> Any:
        """tt.get_num_programs."""
        return np.int32(self.grid["xyz".index(next(iter(op.words)))])

    def for_loop(self, op: Op, low: Any, high: Any, step: Any, *carried: Any) -> list[Any]:
        """scf.for. IndexError for one that takes too long."""
        kept = list(carried)
        steps = range(int(low), int(high), int(step))
        if len(steps) > MOST_ITERATIONS:
            raise IndexError(f"{len(steps)} iterations")
        for i in steps:
            kept = self.block(op.regions[0], [type(low)(i), *kept])
        return kept

    def while_loop(self, op: Op, *carried: Any) -> list[Any]:
        """scf.while. IndexError for one that takes too long."""
        kept = list(carried)
        for _ in range(MOST_ITERATIONS):
            again, *passed = self.block(op.regions[0], kept)
            if not again:
                return passed
            kept = self.block(op.regions[1], passed)
        raise IndexError("a loop does not end")

    def branch(self, op: Op, condition: Any) -> list[Any]:
        """scf.if."""
        number = 0 if condition else 1
        return self.block(op.regions[number], []) if number < len(op.regions) else []

    def reduce(self, op: Op, *tiles: Any) -> list[Any]:
        """tt.reduce, from the first element on."""
        axis = op.number("axis")
        parts = [np.moveaxis(tile, axis, 0) for tile in tiles]
        kept = [part[0] for part in parts]
        for number in range(1, len(parts[0])):
            kept = self.block(op.regions[0], [*kept, *(part[number] for part in parts)])
        return kept

    def scan(self, op: Op, *tiles: Any) -> list[Any]:
        """tt.scan, from the first element on, or from the last."""
        axis = op.number("axis")
        backwards = op.attributes.get("reverse", "false") == "true"
        parts = [np.moveaxis(tile, axis, 0) for tile in tiles]
        parts = [part[::-1] for part in parts] if backwards else parts
        kept = [part[0] for part in parts]
        rows = [kept]
        for number in range(1, len(parts[0])):
            kept = self.block(op.regions[0], [*kept, *(part[number] for part in parts)])
            rows.append(kept)
        whole = [np.stack([row[n] for row in rows]) for n in range(len(tiles))]
        whole = [tile[::-1] for tile in whole] if backwards else whole
        return [np.moveaxis(tile, 0, axis) for tile in whole]


_ENDS = ("scf.yield", "scf.condition", "tt.reduce.return", "tt.scan.return")
_CONTROL: dict[str, Any] = {
    "tt.get_program_id": _Program.program_id,
    "tt.get_num_programs": _Program.num_programs,
    "scf.for": _Program.for_loop,
    "scf.while": _Program.while_loop,
    "scf.if": _Program.branch,
    "tt.reduce": _Program.reduce,
    "tt.scan": _Program.scan,
}
