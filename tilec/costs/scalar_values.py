"""The scalar integers of a kernel that sizes decide, bounds of loops mostly: read once from its IR,
evaluated for any sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any

from mlir import ir

from tilec.dialects.def_use import defining_op
from tilec.dialects.integers import function_of
from tilec.dialects.tile import NumProgramsOp, ProgramIdOp
from tilec.executable.grid import Grid
from tilec.records import dataclass


@dataclass(frozen=True)
class Point:
    """What the integers depend on. `arguments`: a shape or a number for each argument of the
    kernel. `program`: of `grid`, because loops may be longer in some than in others."""

    arguments: tuple[Any, ...]
    grid: Grid
    program: Grid


Numbers = Sequence[int | None]
"""Of the integers read so far, at one point; None for what is known only on the device."""
_Rule = Callable[[Point, Numbers], int | None]


@dataclass(frozen=True)
class Scalars:
    """Integers in the order in which they were read, so that each finds its operands before it.

    Where only the device knows which of two numbers is chosen it is the larger: a loop that some
    programs skip is as long as in those that do not. `choices`: places of the condition and of the
    two numbers.
    """

    rules: tuple[_Rule, ...]
    choices: tuple[tuple[int, int, int], ...]

    @cached_property
    def numbers(self) -> Callable[[Point], Numbers]:
        """Lists all of them, at a point; of a few points remembers them: one call's launches are
        ranked in parts and in clusters."""
        return lru_cache(maxsize=8)(self._numbers)

    def _numbers(self, point: Point) -> Numbers:
        found: list[int | None] = []
        for rule in self.rules:
            found.append(rule(point, found))
        return tuple(found)

    def skips(self, numbers: Numbers) -> bool:
        """Whether one of two numbers between which only the device chooses is 0."""
        for condition, *two in self.choices:
            known = [number for place in two if (number := numbers[place]) is not None]
            if numbers[condition] is None and len(known) == 2 and min(known) == 0:
                return True
        return False


class ScalarReader:
    """Reads integers of one kernel, each once."""

    def __init__(self) -> None:
        self._rules: list[_Rule] = []
        self._places: dict[ir.Value, int] = {}
        self._choices: list[tuple[int, int, int]] = []

    def found(self) -> Scalars:
        """All that were read."""
        return Scalars(tuple(self._rules), tuple(self._choices))

    def place(self, value: ir.Value) -> int:
        """Where the number of an SSA value will be; reads what it depends on, too."""
        if value not in self._places:
            rule = self._rule(value)
            self._rules.append(rule)
            self._places[value] = len(self._rules) - 1
        return self._places[value]

    def bind(self, value: ir.Value, place: int) -> None:
        """Gives a value, as a loop's variable, a place in the list of numbers."""
        self._places[value] = place

    def _rule(self, value: ir.Value) -> _Rule:
        op = defining_op(value)
        if op is None:
            return _argument(value)
        view = op.opview
        if isinstance(view, ProgramIdOp):
            return lambda point, _, axis=view.axis: point.program[axis]
        if isinstance(view, NumProgramsOp):
            return lambda point, _, axis=view.axis: point.grid[axis]
        if op.name == "arith.constant":
            attribute = op.attributes["value"]
            number = attribute.value if isinstance(attribute, ir.IntegerAttr) else None
            return lambda _, __: number
        places = [self.place(operand) for operand in _scalars(op)]
        if op.name == "memref.dim":
            return _size(op.operands[0], places[-1])
        if op.name == "arith.select" and len(places) == 3:
            self._choices.append((places[0], places[1], places[2]))
            return _chosen(*places)
        return _computed(function_of(op), places)


def _unknown(_: Point, __: Numbers) -> None:
    """What only the device knows, a value that a loop carries among others."""


def _argument(value: ir.Value) -> _Rule:
    """A scalar argument of the kernel."""
    block = ir.BlockArgument(value)
    if block.owner.owner.operation.name != "func.func":
        return _unknown
    number = int(block.arg_number)

    def rule(point: Point, _: Numbers) -> int | None:
        given = point.arguments[number]
        return int(given) if isinstance(given, int) and not isinstance(given, bool) else None

    return rule


def _size(array: ir.Value, place: int) -> _Rule:
    """The size of an argument along the axis at `place`."""
    if defining_op(array) is not None:
        return _unknown
    number = int(ir.BlockArgument(array).arg_number)

    def rule(point: Point, numbers: Numbers) -> int | None:
        axis = numbers[place]
        return None if axis is None else int(point.arguments[number][axis])

    return rule


def _computed(function: Callable[..., int] | None, places: Sequence[int]) -> _Rule:
    """What an op makes of the numbers at `places`."""
    if function is None:
        return _unknown

    def rule(_: Point, numbers: Numbers) -> int | None:
        given = [numbers[place] for place in places]
        if None in given:
            return None
        try:
            return function(*given)
        except (ZeroDivisionError, ValueError):
            return None

    return rule


def _chosen(condition: int, yes: int, no: int) -> _Rule:
    """The number that a condition chooses, the larger one where only the device knows it."""

    def rule(_: Point, numbers: Numbers) -> int | None:
        first, second = numbers[yes], numbers[no]
        if first is None or second is None:
            return None
        if numbers[condition] is None:
            return max(first, second)
        return first if numbers[condition] else second

    return rule


def _scalars(op: ir.Operation) -> list[ir.Value]:
    return [v for v in op.operands if isinstance(v.type, (ir.IntegerType, ir.IndexType))]
