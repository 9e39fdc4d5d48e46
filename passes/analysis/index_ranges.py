"""Which numbers the integers of a `tile` program can be: an interval a value.

Facts: how large arrays and grids are, constants, types, `tile.assume`, and the arithmetic between
them, which is exact here: a result that its type does not hold wraps, and may be anything. What a
loop carries is looked at until nothing changes; what still grows then may be anything, too.

The program is read once (`integer_program.py`), and its intervals are computed for any bounds of a
launch, so that one can ask up to which a value stays small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilec.dialects import tile
from tilec.dialects.predicates import predicate_of
from tilec.passes.analysis.integer_program import TERMINATORS, Block, IntegerProgram, Step
from tilec.passes.analysis.intervals import Interval, holds, hull
from tilec.passes.rewriting.walk import is_of
from tilec.records import dataclass

_ROUNDS = 2
"""How often a loop's carried values are looked at before what still grows counts as anything: once
from the first values, and once to see which of them stay."""


@dataclass(frozen=True)
class Launch:
    """The largest launch to compile for: at most so many programs along x, sizes of arrays and
    values computed from sizes."""

    programs: int
    size: int
    computed: int


@dataclass(frozen=True)
class Ranges:
    """The intervals of a kernel's integers. `of`: that of each value, by its number. `limits`:
    expressions of `tilec.executable.grid` over sizes of arrays, each with the largest value (or
    most negative one) that the intervals allow for; a launch in which one exceeds it is not
    covered."""

    of: list[Interval]
    limits: tuple[tuple[str, int], ...]


def find_ranges(program: IntegerProgram, launch: Launch) -> Ranges:
    """The interval of each integer of a kernel in launches no larger than `launch`."""
    evaluation = _Evaluation(program, launch)
    known = evaluation.run(program.body)
    limited = sorted(evaluation.limited.items())
    return Ranges(known, tuple((program.texts[number], most) for number, most in limited))


class _Evaluation:
    """The intervals of a program for one number of programs."""

    def __init__(self, program: IntegerProgram, launch: Launch) -> None:
        self.program, self.launch = program, launch
        self.full, self.assumed = program.full, program.assumed
        self.known = list(program.full)
        self.limited: dict[int, int] = {}

    def run(self, body: Block) -> list[Interval]:
        self._bind(body.arguments, [None] * len(body.arguments))
        self._block(body)
        return self.known

    def _block(self, block: Block) -> list[Interval | None]:
        """Runs a block; what its terminator passes on."""
        passed: list[Interval | None] = []
        for step in block.steps:
            if step.name in TERMINATORS:
                passed = [None if n is None else self.known[n] for n in step.operands]
            elif step.blocks:
                self._regions(step)
            else:
                self._plain(step)
        return passed

    def _plain(self, step: Step) -> None:
        for result in step.results:
            if result is None:
                continue
            first = self.program.of_grid.get(result)
            if first is not None:
                self._set(result, (first, self.launch.programs - 1 + first))
            elif step.rule is None:
                self._set(result, self.full[result])
            else:
                operands = [self.known[n] for n in step.operands if n is not None]
                self._set(result, step.rule(operands))

    def _set(self, number: int, interval: Interval) -> None:
        low, high = self.full[number]
        if interval[0] < low or interval[1] > high:
            interval = low, high
        if number in self.assumed:
            least, most = self.assumed[number]
            interval = max(interval[0], least), min(interval[1], most)
            if interval[0] > interval[1]:
                interval = self.assumed[number]
        if interval[0] != interval[1] and number in self.program.texts:
            is_size = number in self.program.sizes
            most = self.launch.size if is_size else self.launch.computed
            if not holds((-most, most), interval):
                self.limited[number] = most
                interval = max(interval[0], -most), min(interval[1], most)
        self.known[number] = interval

    def _regions(self, step: Step) -> None:
        if step.name == "scf.for":
            self._for(step)
        elif step.name == "scf.while":
            self._while(step)
        elif step.name == "scf.if":
            passed = [self._block(block) for block in step.blocks]
            self._bind(step.results, [hull(many) for many in zip(*passed, strict=True)])
        elif is_of(step.op, tile.Combining):
            self._combine(step)
        else:
            for block in step.blocks:
                self._bind(block.arguments, [None] * len(block.arguments))
                self._block(block)
            self._bind(step.results, [None] * len(step.results))

    def _bind(self, numbers: Sequence[int | None], values: Sequence[Interval | None]) -> None:
        for number, value in zip(numbers, values, strict=True):
            if number is not None:
                self._set(number, self.full[number] if value is None else value)

    def _for(self, step: Step) -> None:
        (body,) = step.blocks
        lower, upper, _, *inits = step.operands
        induction, *carried = body.arguments
        assert lower is not None
        assert upper is not None
        assert induction is not None
        low, high = self.known[lower][0], self.known[upper][1] - 1
        self._set(induction, (low, max(low, high)))

        def once(values: list[Interval | None]) -> list[Interval | None]:
            self._bind(carried, values)
            return self._block(body)

        values = self._steady(carried, [None if n is None else self.known[n] for n in inits], once)
        self._bind(step.results, values)

    def _while(self, step: Step) -> None:
        before, after = step.blocks
        passed: list[Interval | None] = []

        def once(values: list[Interval | None]) -> list[Interval | None]:
            nonlocal passed
            self._bind(before.arguments, values)
            _, *passed = self._block(before)
            self._bind(after.arguments, passed)
            self._refine(before, after)
            return self._block(after)

        inits = [None if n is None else self.known[n] for n in step.operands]
        self._steady(before.arguments, inits, once)
        self._bind(step.results, passed)

    def _combine(self, step: Step) -> None:
        """Gives the results of a reduction or scan the interval of elements and of what combining
        them any number of times gives."""
        (body,) = step.blocks

        def once(values: list[Interval | None]) -> list[Interval | None]:
            self._bind(body.arguments, values * 2)
            return self._block(body)

        elements = [None if n is None else self.known[n] for n in step.operands]
        self._bind(step.results, self._steady(step.results, elements, once))

    def _steady(
        self,
        numbers: Sequence[int | None],
        values: list[Interval | None],
        once: Callable[[list[Interval | None]], list[Interval | None]],
    ) -> list[Interval | None]:
        """The intervals of carried values that begin as `values`: `once` runs an iteration."""
        patience = _ROUNDS
        while True:
            after = [hull(pair) for pair in zip(values, once(values), strict=True)]
            grown = [
                number is not None and new != old
                for number, new, old in zip(numbers, after, values, strict=True)
            ]
            if not any(grown):
                return after
            patience -= 1
            values = [
                None if many and patience <= 0 else new
                for many, new in zip(grown, after, strict=True)
            ]

    def _refine(self, before: Block, after: Block) -> None:
        """What the condition of a while says of the values it passes on."""
        made = {n: step for step in before.steps for n in step.results if n is not None}
        values = before.steps[-1].operands
        pending = values[:1]
        while pending:
            number = pending.pop()
            step = None if number is None else made.get(number)
            if step is None:
                continue
            if step.name == "arith.andi":
                pending += step.operands
            elif step.name == "arith.cmpi" and None not in step.operands:
                self._compared(step, values[1:], after.arguments)

    def _compared(
        self, step: Step, passed: Sequence[int | None], arguments: Sequence[int | None]
    ) -> None:
        found = _BELOW.get(predicate_of(step.op))
        if found is None:
            return
        left, right = step.operands if found[0] else reversed(step.operands)
        assert left is not None
        assert right is not None
        gap = found[1]
        for number, argument in zip(passed, arguments, strict=True):
            if argument is None:
                continue
            low, high = self.known[argument]
            if number == left:
                self._set(argument, (low, max(low, min(high, self.known[right][1] - gap))))
            elif number == right:
                self._set(argument, (min(high, max(low, self.known[left][0] + gap)), high))


_BELOW = {"slt": (True, 1), "sle": (True, 0), "sgt": (False, 1), "sge": (False, 0)}
"""Of arith.cmpi's predicates: whether the left is the smaller, and by how much at least."""
