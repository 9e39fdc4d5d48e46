"""What scalars come to in every program of a launch, where arguments and program ids decide them.

    pid_n = (pid % (8 * num_pid_n)) // min(num_pid_m - first_pid_m, 8)

Nothing in the kernel says that this is not negative: it follows from the grid, which a launch
knows. So the launch computes such a scalar for all of its programs, as the GPU would, and looks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tilec.executable.kernel import Grid
from tilec.triton.op_facts import constant_integer
from tilec.triton.program import Op, Value

MOST_PROGRAMS = 1 << 20
"""Of a grid whose programs are looked at one by one: their numbers take 8 MiB a scalar."""


def decides(value: Value) -> bool:
    """Whether arguments and program ids decide a scalar, by arithmetic known here."""
    if value.type.shape is not None or not value.type.is_integer:
        return False
    if not isinstance(value.owner, Op):
        return value.owner.parent is None
    op = value.owner
    return op.name in _RULES and all(map(decides, op.operands))


def never_negative(values: Iterable[Value], numbers: Mapping[str, Any], grid: Grid) -> bool:
    """Whether scalars that `decides` are 0 or more in all programs of a launch; no, where the grid
    has too many to look."""
    launch = _launch(numbers, grid)
    if launch is None:
        return False
    with np.errstate(all="ignore"):
        return all(bool(np.all(launch.value(value) >= 0)) for value in values)


def always_equal(
    pairs: Iterable[tuple[Value, Value]], numbers: Mapping[str, Any], grid: Grid
) -> bool:
    """Whether two scalars that `decides` are equal in all programs of a launch, for each pair; no,
    where the grid has too many to look."""
    launch = _launch(numbers, grid)
    if launch is None:
        return False
    with np.errstate(all="ignore"):
        return all(bool(np.all(launch.value(one) == launch.value(two))) for one, two in pairs)


def _launch(numbers: Mapping[str, Any], grid: Grid) -> _Launch | None:
    """All programs of a grid, None of one that has too many."""
    programs = grid[0] * grid[1] * grid[2]
    if programs > MOST_PROGRAMS:
        return None
    place = np.arange(programs)
    ids = (place % grid[0], place // grid[0] % grid[1], place // (grid[0] * grid[1]))
    return _Launch(numbers, grid, ids)


class _Launch:
    def __init__(self, numbers: Mapping[str, Any], grid: Grid, ids: tuple[Any, ...]) -> None:
        self.numbers, self.grid, self.ids = numbers, grid, ids
        self._known: dict[Value, Any] = {}

    def value(self, value: Value) -> Any:
        """One number a program, or one for all."""
        if value not in self._known:
            width = np.dtype(f"i{int(value.type.element[1:]) // 8 or 1}")
            self._known[value] = np.asarray(self._computed(value)).astype(width)
        return self._known[value].astype(np.int64)

    def _computed(self, value: Value) -> Any:
        if not isinstance(value.owner, Op):
            return np.int64(self.numbers[value.name])
        op = value.owner
        return _RULES[op.name](self, op, *(self.value(operand) for operand in op.operands))


def _axis(op: Op) -> int:
    return next(number for number, word in enumerate("xyz") if word in op.words)


def _quotient(one: Any, two: Any) -> Any:
    """Rounded towards 0; of a division by 0, which may give anything, a negative number."""
    found = np.abs(one) // np.where(two == 0, 1, np.abs(two))
    return np.where(two == 0, -1, np.where((one < 0) == (two < 0), found, -found))


def _remainder(one: Any, two: Any) -> Any:
    return np.where(two == 0, -1, one - two * _quotient(one, two))


_RULES: dict[str, Any] = {
    "arith.constant": lambda launch, op: np.int64(constant_integer(op) or 0),
    "tt.get_program_id": lambda launch, op: launch.ids[_axis(op)],
    "tt.get_num_programs": lambda launch, op: np.int64(launch.grid[_axis(op)]),
    "arith.addi": lambda launch, op, one, two: one + two,
    "arith.subi": lambda launch, op, one, two: one - two,
    "arith.muli": lambda launch, op, one, two: one * two,
    "arith.divsi": lambda launch, op, one, two: _quotient(one, two),
    "arith.remsi": lambda launch, op, one, two: _remainder(one, two),
    "arith.minsi": lambda launch, op, one, two: np.minimum(one, two),
    "arith.maxsi": lambda launch, op, one, two: np.maximum(one, two),
    "arith.extsi": lambda launch, op, one: one,
    "arith.trunci": lambda launch, op, one: one,
}
