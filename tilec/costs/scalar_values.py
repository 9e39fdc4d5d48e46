"""Evaluates the scalar integers of a kernel for given arguments: bounds of loops, mostly."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mlir import ir

from tilec.dialects.def_use import defining_op
from tilec.dialects.tile import AssumeOp, NumProgramsOp, ProgramIdOp
from tilec.executable.grid import Grid


def _truncated(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


_BINARY: Mapping[str, Callable[[int, int], int]] = {
    "arith.addi": operator.add,
    "arith.subi": operator.sub,
    "arith.muli": operator.mul,
    "arith.divsi": _truncated,
    "arith.floordivsi": operator.floordiv,
    "arith.ceildivsi": lambda x, y: -(-x // y),
    "arith.remsi": lambda x, y: x - y * _truncated(x, y),
    "arith.minsi": min,
    "arith.maxsi": max,
    "arith.shli": operator.lshift,
    "arith.shrsi": operator.rshift,
    "arith.andi": operator.and_,
    "arith.ori": operator.or_,
    "arith.xori": operator.xor,
}
_CASTS = ("arith.index_cast", "arith.extsi", "arith.trunci")
_COMPARISONS = (
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
)
"""By the number of arith.cmpi's predicate; the unsigned ones behind them do not occur."""


class ScalarValues:
    """The scalars of a kernel for given arguments. `evaluate(value)`: the number, or None where it
    is known only on the device.

    Where only the device knows which of two numbers is chosen it is the larger: a loop that some
    programs skip is as long as in those that do not. `skips`: whether the other one was 0.

    `arguments`: a shape or a number for each argument of the kernel. `program`: of `grid`, because
    loops may be longer in some than in others.
    """

    def __init__(self, arguments: Sequence[Any], grid: Grid, program: Grid) -> None:
        self._arguments = arguments
        self._grid = grid
        self._program = program
        self._known: dict[ir.Value, int | None] = {}
        self.skips = False

    def evaluate(self, value: ir.Value) -> int | None:
        """The integer of an SSA value."""
        if value not in self._known:
            self._known[value] = None  # a loop's own value is no constant of it
            self._known[value] = self._evaluate(value)
        return self._known[value]

    def bind(self, value: ir.Value, number: int | None) -> None:
        """Says what a value is, a loop's variable for one."""
        self._known[value] = number

    def _evaluate(self, value: ir.Value) -> int | None:
        op = defining_op(value)
        if op is None:
            return self._argument(value)
        view = op.opview
        if isinstance(view, ProgramIdOp):
            return self._program[view.axis]
        if isinstance(view, NumProgramsOp):
            return self._grid[view.axis]
        if op.name == "arith.constant":
            attribute = op.attributes["value"]
            return attribute.value if isinstance(attribute, ir.IntegerAttr) else None
        numbers = [self.evaluate(operand) for operand in _scalars(op)]
        if op.name == "memref.dim":
            return self._size(op.operands[0], numbers[-1])
        if op.name == "arith.select" and len(numbers) == 3 and numbers[0] is None:
            first, second = numbers[1:]
            if first is None or second is None:
                return None
            self.skips = self.skips or min(first, second) == 0
            return max(first, second)
        if None in numbers:
            return None
        return _apply(op, [int(number) for number in numbers if number is not None])

    def _argument(self, value: ir.Value) -> int | None:
        block = ir.BlockArgument(value)
        parent = block.owner.owner.operation
        if parent.name != "func.func":
            return None
        number = self._arguments[block.arg_number]
        is_whole = isinstance(number, int) and not isinstance(number, bool)
        return int(number) if is_whole else None

    def _size(self, array: ir.Value, axis: int | None) -> int | None:
        if axis is None or defining_op(array) is not None:
            return None
        shape = self._arguments[ir.BlockArgument(array).arg_number]
        return int(shape[axis])


def _scalars(op: ir.Operation) -> list[ir.Value]:
    return [v for v in op.operands if isinstance(v.type, (ir.IntegerType, ir.IndexType))]


def _apply(op: ir.Operation, numbers: list[int]) -> int | None:
    if op.name in _CASTS or isinstance(op.opview, AssumeOp):
        return numbers[0]
    if op.name == "arith.cmpi":
        predicate = op.attributes["predicate"].value
        if predicate < len(_COMPARISONS):
            return int(_COMPARISONS[predicate](*numbers))
    if op.name == "arith.select" and len(numbers) == 3:
        return numbers[1] if numbers[0] else numbers[2]
    rule = _BINARY.get(op.name)
    if rule is None or len(numbers) != 2:
        return None
    try:
        return rule(*numbers)
    except (ZeroDivisionError, ValueError):
        return None
