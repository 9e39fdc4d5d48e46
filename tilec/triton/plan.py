"""What becomes of a kernel's pointers: `plan_kernel` looks at all accesses before ops are built.

tt.func @k(%x: !tt.ptr<f16>, %n: i32)    ->    x: f16 at x + 0, sizes [n], strides [1]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from tilec.messages.diagnostics import Location
from tilec.records import dataclass
from tilec.triton.array_rule import ArrayRule
from tilec.triton.forms import Forms
from tilec.triton.grid_axes import number_alone
from tilec.triton.joined_pointers import Group, joined
from tilec.triton.live import Live
from tilec.triton.narrow_quotients import choose_unsigned
from tilec.triton.normalize import normalized
from tilec.triton.pointer_numbers import PRESENT
from tilec.triton.pointer_roots import why_no_argument
from tilec.triton.polynomial import ONE, ZERO
from tilec.triton.program import Function, Op, Value, walk
from tilec.triton.program_numbers import parts_of
from tilec.triton.raising import NotRaised, Raised, Raising, is_volatile, stored
from tilec.triton.settled import Open, find_open, settle
from tilec.triton.signs import Signs

ACCESSES = (
    "tt.load",
    "tt.store",
    "tt.descriptor_load",
    "tt.descriptor_store",
    "tt.atomic_rmw",
    "tt.atomic_cas",
)


@dataclass(frozen=True)
class Plan:
    """What becomes of a kernel's pointers.

    `arrays`: the rules, in the order of the parameters; `of`: the number of the array that an
    access goes to; `raised`: the accesses that are rectangles of it, all others are gathers and
    scatters; `kept`: why they are; `written`: the numbers of arrays that are; `live`: what is
    built; `asked`: scalars that are not negative in any program, as the launch has to make sure
    (`program_numbers.py`); `open`: what it may look at, too, and has to have looked at where that
    is settled (`settled.py`).
    """

    function: Function
    forms: Forms
    arrays: tuple[ArrayRule, ...]
    of: Mapping[Op, int]
    raised: Mapping[Op, Raised]
    kept: tuple[tuple[Location, str], ...]
    written: frozenset[int]
    live: Live
    asked: tuple[Value, ...]
    open: tuple[Open, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The arrays' names as parameters: that of the pointer, with a number from the second."""
        seen: dict[str, int] = {}
        names = []
        for rule in self.arrays:
            seen[rule.root] = seen.get(rule.root, 0) + 1
            names.append(rule.root if seen[rule.root] == 1 else f"{rule.root}_{seen[rule.root]}")
        return tuple(names)

    @property
    def scalars(self) -> tuple[Value, ...]:
        """The arguments that are numbers."""
        return tuple(a for a in self.function.arguments if a.type.pointee is None)

    @property
    def deciding(self) -> frozenset[str]:
        """The arguments that decide what the arrays are, and what the launch looks at: all others
        are numbers to the kernel alone."""
        forms = [form for rule in self.arrays for form in rule.forms]
        found = {symbol.value for form in forms for symbol in form.arguments}
        todo, seen = [*self.asked, *(v for one in self.open for v in one.looked_at)], set[Value]()
        while todo:
            value = todo.pop()
            if value not in seen:
                seen.add(value)
                todo += parts_of(value)
        return frozenset(a.name for a in self.function.arguments if a in found | seen)


def plan_kernel(
    function: Function,
    nonnegative: frozenset[str] | None = None,
    flat: frozenset[str] = frozenset(),
    *,
    groups: tuple[Group, ...] = (),
    trusts: bool = True,
    settles: frozenset[int] = frozenset(),
    nan: frozenset[str] = frozenset(),
    alone: frozenset[str] = frozenset(),
) -> Plan:
    """Decides what each access becomes.

    `nonnegative`: the numbers that are not negative, None for all; `flat`: pointers whose accesses
    all go through one flat array, because arrays of theirs would overlap; `groups`: those that
    become one pointer (`joined_pointers.py`); `trusts`: whether the
    launch looks at `Plan.asked`; `settles`: which of `Plan.open` it has looked at, and found to
    hold; `nan`: descriptors padded with NaN; `alone`: axes of the grid along which there is one
    program. CompileError where a pointer comes from no argument.
    """
    if nonnegative is None:
        nonnegative = frozenset(a.name for a in function.arguments)
    number_alone(function, alone)
    function = joined(normalized(function, nan, nonnegative), groups)
    for argument in function.arguments:
        if argument.type.element.startswith("!") and argument.type.pointee is None:
            raise function.error(f"argument '{argument.name}' is {argument.type}")
    found = find_open(function)
    settle(function, [found[number] for number in settles])
    forms = Forms(function)
    choose_unsigned(function, Signs(forms, nonnegative, trusts=False))
    return _Planner(function, forms, Signs(forms, nonnegative, trusts), flat, found).plan()


@dataclass
class _Planner:
    function: Function
    forms: Forms
    signs: Signs
    flat: frozenset[str]
    open: tuple[Open, ...]
    arrays: list[ArrayRule] = field(default_factory=list)
    of: dict[Op, int] = field(default_factory=dict)
    raised: dict[Op, Raised] = field(default_factory=dict)
    kept: list[tuple[Location, str]] = field(default_factory=list)
    written: set[int] = field(default_factory=set)

    def plan(self) -> Plan:
        raising = Raising(self.forms, self.signs)
        for block in self.function.blocks:
            for op in walk(block):
                if op.name in ACCESSES:
                    self._access(op, raising)
        return Plan(
            self.function,
            self.forms,
            tuple(self.arrays),
            self.of,
            self.raised,
            tuple(self.kept),
            frozenset(self.written),
            Live(self.function.blocks[0], self.forms, self.raised),
            tuple(sorted(self.signs.asked, key=lambda value: value.name)),
            self.open,
        )

    def _access(self, op: Op, raising: Raising) -> None:
        kind = op.operands[0].type
        if kind.block is not None:
            tile = op.results[0].type if op.results else stored(op).type
            self.raised[op] = found = raising.block(op, tile)
            self._goes_to(op, found.rule)
            return
        if kind.pointee is None:
            raise op.error(f"expected pointers, found {kind}")
        pointer = self.forms.pointer(op.operands[0])
        if pointer is None:
            raise op.error(*why_no_argument(op.operands[0]))
        rule = ArrayRule(pointer.root.name, kind.pointee, ZERO, (None,), (ONE,))
        raised = op.name in ("tt.load", "tt.store") and not is_volatile(op)
        if raised and pointer.root.name not in self.flat:
            number = 2 if op.name == "tt.store" else 1
            mask = op.operands[number] if len(op.operands) > number else None
            try:
                found = raising.access(op, mask)
                self.raised[op], rule = found, found.rule
            except NotRaised as why:
                self.kept.append((op.location, str(why)))
        self._goes_to(op, rule)

    def _goes_to(self, op: Op, rule: ArrayRule) -> None:
        if rule not in self.arrays:
            self.arrays.append(rule)
        self.of[op] = self.arrays.index(rule)
        if op.name not in ("tt.load", "tt.descriptor_load") or is_volatile(op):
            self.written.add(self.of[op])


def divisors(plan: Plan) -> dict[str, int]:
    """What each argument is a multiple of, as Triton specialised the kernel: bytes of a pointer."""
    return {
        argument.name: int(given["tt.divisibility"].partition(":")[0])
        for argument, given in zip(plan.function.arguments, plan.function.given, strict=True)
        if "tt.divisibility" in given
    }


def present(plan: Plan) -> list[str]:
    """The pointers that the kernel asks for being there."""
    given = zip(plan.function.arguments, plan.function.given, strict=True)
    return [argument.name for argument, facts in given if PRESENT in facts]
