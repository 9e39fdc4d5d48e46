"""Minima and wraps that change nothing in any program of a launch, as it finds when it looks.

    rows = min(chunk, n - pid * chunk)        ->  chunk, where n is a whole number of chunks
    tl.load(p + i * stride, mask=i < rows)    ->  an array whose dimension has size chunk

    i = (pid * 32 + range) % n                ->  pid * 32 + range, where n is a whole number of 32
    tl.load(p + i)                            ->  a rectangle

As it stands, the bound of such a mask is known to each program alone, and arrays have the bounds of
a launch; and of elements that wrap nobody knows where they are. So the launch computes what they
are made of for all of its programs, and imports the kernel without those that change nothing.

Does not handle wraps in loops whose trips they move with.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from tilec.executable.kernel import Grid
from tilec.records import dataclass
from tilec.triton.forms import Forms
from tilec.triton.polynomial import ONE, Polynomial
from tilec.triton.program import Function, Op, Value, replace_values, walk
from tilec.triton.program_numbers import always_equal, decides, never_below, parts_of

_WRAPPING = {"arith.remsi": 0, "arith.select": 1, "arith.minsi": None}
"""What may wrap, and which operand does; of a minimum it is the one that moves."""


@dataclass(frozen=True)
class Open:
    """`value`, which is `side` where a launch finds so: that both are equal, of a minimum, or that
    none of `rooms` is negative."""

    value: Value
    side: Value
    rooms: tuple[Polynomial, ...] = ()

    @property
    def looked_at(self) -> tuple[Value, ...]:
        """The scalars that the launch computes."""
        values = tuple(s.value for room in self.rooms for s in room.symbols)
        return values if self.rooms else (self.value, self.side)

    def holds(self, numbers: Mapping[str, Any], grid: Grid) -> bool:
        """Whether it is in all programs of a launch; no, where the grid has too many to look."""
        if self.rooms:
            return never_below(self.rooms, numbers, grid)
        return always_equal([(self.value, self.side)], numbers, grid)


def find_open(function: Function) -> tuple[Open, ...]:
    """The scalar minima and the wraps of a kernel that a launch can look at, and that no launch
    knows without."""
    forms, found = Forms(function), list[Open]()
    for block in function.blocks:
        for op in walk(block):
            if op.name == "arith.minsi" and decides(op.result):
                sides = [side for side in op.operands if not _asks_programs(side)]
                found += [Open(op.result, side) for side in sides if len(sides) == 1]
            elif op.name in _WRAPPING and op.result.type.shape is not None:
                found += _wrap(op, forms)
    return tuple(found)


def _wrap(op: Op, forms: Forms) -> Iterator[Open]:
    """A tile that wraps, where its first and last element say whether it does."""
    form = forms.integer(op.result)
    symbol = next(iter(form.symbols)) if form and len(form.terms) == 1 else None
    wrap = forms.wraps.get(symbol) if symbol else None
    number = _WRAPPING[op.name]
    sides = op.operands if number is None else [op.operands[number]]
    side = next((v for v in sides if wrap and forms.integer(v) == wrap.exact), None)
    if wrap is None or side is None:
        return
    ends = list(_ends(wrap.exact, op.result.type.shape or ()))
    rooms = (*ends, *(wrap.limit - ONE - end for end in ends))
    if all(s.kind in ("argument", "value") and decides(s.value) for r in rooms for s in r.symbols):
        yield Open(op.result, side, rooms)


def _ends(form: Polynomial, shape: Sequence[int]) -> Iterator[Polynomial]:
    """A form of the first element of a tile along its coordinate, and of the last."""
    at = {s for s in form.symbols if s.kind == "coordinate"}
    for end in (0, 1):
        yield form.replaced({s: Polynomial.of(end * (shape[s.axis] - 1)) for s in at})


def settle(function: Function, chosen: Collection[Open]) -> None:
    """Reads the sides in place of the values."""
    for block in function.blocks:
        replace_values(block, {one.value: one.side for one in chosen})


def _asks_programs(value: Value) -> bool:
    """Whether something that `decides` depends on which program runs, on how many, or on a loop."""
    op = value.owner
    if not isinstance(op, Op):
        return op.parent is not None
    asks = op.name in ("tt.get_program_id", "tt.get_num_programs")
    return asks or any(map(_asks_programs, parts_of(value)))
