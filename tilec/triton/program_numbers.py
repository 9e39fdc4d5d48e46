"""What scalars come to in every program of a launch, where arguments and program ids decide them.

    pid_n = (pid % (8 * num_pid_n)) // min(num_pid_m - first_pid_m, 8)

Nothing in the kernel says that this is not negative: it follows from the grid, which a launch
knows. So the launch computes such a scalar for all of its programs, as the GPU would, and looks;
in loops whose trips are known to it in turn, as those over a program's tiles, for each trip.

Does not handle loops that carry more than sums of the same in every trip, nor those inside of
branches: what they hold is not decided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import prod
from typing import Any

import numpy as np

from tilec.executable.kernel import Grid
from tilec.triton.op_facts import constant_integer
from tilec.triton.polynomial import Polynomial
from tilec.triton.program import Block, Op, Value, is_inside

MOST_PROGRAMS = 1 << 20
"""Of a grid whose programs are looked at one by one, each trip of a loop counted: their numbers
take 8 MiB a scalar."""


def decides(value: Value) -> bool:
    """Whether arguments, program ids and trips of loops that these decide do so for a scalar, by
    arithmetic known here."""
    if value.type.shape is not None or not value.type.is_integer:
        return False
    return _is_known(value) and all(map(decides, parts_of(value)))


def parts_of(value: Value) -> list[Value]:
    """What a scalar is computed of: of what a loop carries, its start and what is added in every
    trip."""
    owner = value.owner
    if isinstance(owner, Op):
        return [owner.operands[0], *_ends(value)] if owner.name == "scf.if" else owner.operands
    loop = owner.parent
    if loop is None or value.number == 0:
        return [] if loop is None else loop.operands[:3]
    step = _step(value, loop)
    return [*loop.operands[:3], loop.operands[2 + value.number], *([step] if step else [])]


def _is_known(value: Value) -> bool:
    """Whether what a scalar is computed of decides it."""
    owner = value.owner
    if isinstance(owner, Block):
        loop = owner.parent
        if loop is None:
            return True
        counts = loop.name == "scf.for" and "unsigned" not in loop.words
        return counts and (value.number == 0 or _step(value, loop) is not None)
    if owner.name == "arith.cmpi":
        return any(word in owner.words for word in _COMPARISONS)
    return owner.name == "scf.if" or owner.name in _RULES


def _ends(value: Value) -> list[Value]:
    """What the sides of a branch give for one of its results."""
    regions = value.owner.regions if isinstance(value.owner, Op) else []
    return [region.terminator.operands[value.number] for region in regions]


def _step(value: Value, loop: Op) -> Value | None:
    """What a loop adds to what it carries, where that is the same in every trip."""
    after = loop.regions[0].terminator.operands[value.number - 1].owner
    if not isinstance(after, Op) or after.name != "arith.addi" or value not in after.operands:
        return None
    step = after.operands[after.operands[0] is value]
    return None if is_inside(step, loop) else step


def never_negative(values: Iterable[Value], numbers: Mapping[str, Any], grid: Grid) -> bool:
    """Whether scalars that `decides` are 0 or more in all programs of a launch; no, where the grid
    has too many to look."""
    return _holds(
        lambda launch, value: launch.value(value) >= 0, [(v,) for v in values], numbers, grid
    )


def never_below(forms: Iterable[Polynomial], numbers: Mapping[str, Any], grid: Grid) -> bool:
    """Whether polynomials of scalars that `decides` are 0 or more in all programs of a launch; no,
    where the grid has too many to look."""
    rows = [(form, *(s.value for s in form.symbols)) for form in forms]
    return _holds(lambda launch, form, *_: launch.form(form) >= 0, rows, numbers, grid)


def always_equal(
    pairs: Iterable[tuple[Value, Value]], numbers: Mapping[str, Any], grid: Grid
) -> bool:
    """Whether two scalars that `decides` are equal in all programs of a launch, for each pair; no,
    where the grid has too many to look."""
    return _holds(
        lambda launch, one, two: launch.value(one) == launch.value(two), pairs, numbers, grid
    )


def _holds(
    test: Callable[..., Any],
    groups: Iterable[tuple[Any, ...]],
    numbers: Mapping[str, Any],
    grid: Grid,
) -> bool:
    """Whether a test of scalars holds wherever they are computed."""
    launch = _launch(numbers, grid)
    if launch is None:
        return False
    try:
        with np.errstate(all="ignore"):
            return all(bool(np.all(test(launch, *g) | ~launch.runs(g))) for g in groups)
    except _TooManyError:
        return False


class _TooManyError(Exception):
    """There are more trips than are looked at."""


def _launch(numbers: Mapping[str, Any], grid: Grid) -> _Launch | None:
    """All programs of a grid, None of one that has too many."""
    programs = grid[0] * grid[1] * grid[2]
    if programs > MOST_PROGRAMS:
        return None
    place = np.arange(programs)
    ids = (place % grid[0], place // grid[0] % grid[1], place // (grid[0] * grid[1]))
    return _Launch(numbers, grid, ids)


class _Launch:
    """Numbers of all programs: arrays whose last dimension is these; in front of it is one for each
    loop around, that of the innermost first."""

    def __init__(self, numbers: Mapping[str, Any], grid: Grid, ids: tuple[Any, ...]) -> None:
        self.numbers, self.grid, self.ids = numbers, grid, ids
        self._known: dict[Value, Any] = {}
        self._trips: dict[Op, tuple[Any, Any]] = {}

    def value(self, value: Value) -> Any:
        """One number a program and trip, or one for all."""
        if value not in self._known:
            bits, found = int(value.type.element[1:]), np.asarray(self._computed(value))
            self._known[value] = found & 1 if bits == 1 else found.astype(f"i{bits // 8}")
        return self._known[value].astype(np.int64)

    def form(self, form: Polynomial) -> Any:
        """The same of a polynomial."""
        terms = form.terms.items()
        return sum(n * prod(self.value(symbol.value) for symbol in m) for m, n in terms)

    def runs(self, values: Iterable[Any]) -> Any:
        """In which programs and trips some values are computed: not in those trips that other
        programs alone have."""
        found: Any = np.bool_(True)
        around = [_loops_around(value) for value in values if isinstance(value, Value)]
        for loop in {loop for loops in around for loop in loops}:
            trip, count = self.trips(loop)
            found = found & (trip < count)
        return found

    def trips(self, loop: Op) -> tuple[Any, Any]:
        """The numbers of the trips of the programs that have the most, and how many each has."""
        if loop not in self._trips:
            low, high, step = map(self.value, loop.operands[:3])
            count = np.maximum(0, -((low - high) // np.maximum(step, 1)))
            around = _loops_around(loop.regions[0].arguments[0])
            most = int(np.max(count, initial=0))
            places = prod(len(self.trips(outer)[0]) for outer in around[1:]) * len(self.ids[0])
            if most * places > MOST_PROGRAMS or bool(np.any(step < 1)):
                raise _TooManyError
            self._trips[loop] = np.arange(most).reshape(-1, *(1,) * len(around)), count
        return self._trips[loop]

    def _computed(self, value: Value) -> Any:
        op = value.owner
        if isinstance(op, Block):
            return self._argument(value, op.parent)
        if op.name == "scf.if":
            return np.where(self.value(op.operands[0]) != 0, *map(self.value, _ends(value)))
        return _RULES[op.name](self, op, *(self.value(operand) for operand in op.operands))

    def _argument(self, value: Value, loop: Op | None) -> Any:
        if loop is None:
            return np.int64(self.numbers[value.name])
        trip, _ = self.trips(loop)
        if value.number == 0:
            return self.value(loop.operands[0]) + trip * self.value(loop.operands[2])
        *_, start, step = parts_of(value)
        return self.value(start) + trip * self.value(step)


def _loops_around(value: Value) -> list[Op]:
    """The loops that a value is computed in, inner ones first."""
    block = value.owner.block if isinstance(value.owner, Op) else value.owner
    found = []
    while block is not None and block.parent is not None:
        if block.parent.name == "scf.for":
            found.append(block.parent)
        block = block.parent.block
    return found


def _axis(op: Op) -> int:
    return next(number for number, word in enumerate("xyz") if word in op.words)


def _quotient(one: Any, two: Any) -> Any:
    """Rounded towards 0; of a division by 0, which may give anything, a negative number."""
    found = np.abs(one) // np.where(two == 0, 1, np.abs(two))
    return np.where(two == 0, -1, np.where((one < 0) == (two < 0), found, -found))


def _remainder(one: Any, two: Any) -> Any:
    return np.where(two == 0, -1, one - two * _quotient(one, two))


def _compared(op: Op, one: Any, two: Any) -> Any:
    return next(compare(one, two) for word, compare in _COMPARISONS.items() if word in op.words)


_COMPARISONS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "slt": np.less,
    "sle": np.less_equal,
    "sgt": np.greater,
    "sge": np.greater_equal,
}
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
    "arith.cmpi": lambda launch, op, one, two: _compared(op, one, two),
    "arith.select": lambda launch, op, flag, one, two: np.where(flag != 0, one, two),
    "arith.extsi": lambda launch, op, one: one if op.operands[0].type.element != "i1" else -one,
    "arith.trunci": lambda launch, op, one: one,
}
