"""A loop over the steps of tiles becomes a loop over tiles around one over steps.

Before:   for _ in range(steps * tiles):               k = -1 in front
              k = where(k == steps - 1, 0, k + 1)
              if k == 0: tile += programs; at = ...
              acc = dot(load(a, at, k), ..., acc)
              if k == steps - 1: store(c, at, acc); acc = zeros
After:    for t in range(tiles if steps > 0 else 0):
              tile += programs; at = ...
              for k in range(steps): acc = dot(load(a, at, k), ..., acc)
              store(c, at, acc); acc = zeros

So authors of kernels whose programs stay have their compiler pipeline one loop. Here two tell more:
`at` is the same in all of the inner loop, so that the loads in it are rectangles.

1. A counter that goes round, and whose period is a factor of the loop's bound
   (`cyclic_counters.py`), counts the inner loop.
2. What happens at its first place alone stands in front of the inner loop, what happens at the last
   behind it; what both need of the body is computed again.
3. What the body chooses by the place is what came of these: a value that is set at the first place
   and kept is the same in all of the inner loop, one that is set and goes on is carried by it, one
   that is set at the last place is what the outer loop carries.

A product of counts is taken to be exact, as addresses are. Loops that store nothing at the last
place stay as they are. Does not handle counts that both may be negative, nor what either place
needs of what the body loads or has computed of that, unless the loop carries it; nor effects that
would pass each other: such a loop stays, too, and the report says why.
"""

from __future__ import annotations

from dataclasses import replace

from tilec.messages.diagnostics import Location
from tilec.triton.cyclic_counters import LAST, Counters, Counting, chosen, parts_of_bound
from tilec.triton.effects import CHANGES, effect_of
from tilec.triton.forms import Forms
from tilec.triton.loop_nesting import Choice, FlatLoop, Nesting, StaysFlat
from tilec.triton.op_facts import constant_integer
from tilec.triton.program import Block, Function, Op, Value, defining, replace_values, walk
from tilec.triton.signs import Signs

Note = tuple[Location, str]


def nest_flat_loops(function: Function, nonnegative: frozenset[str]) -> list[Note]:
    """Nests the flat loops of a function of one block; says which it nested, and of which it did
    not why. `nonnegative`: the numbers that are not negative."""
    notes: list[Note] = []
    (body,) = function.blocks
    for loop in [op for op in walk(body) if op.name == "scf.for" and _may_be_flat(op)]:
        forms = Forms(function)
        for counting in Counters(loop, forms).found():
            flat = _flat(loop, counting, forms)
            if flat is None:
                continue
            try:
                signs = Signs(forms, nonnegative, trusts=False)
                replace_values(body, Nesting(flat, signs, body).nest())
            except StaysFlat as why:
                notes.append((loop.location, f"two in one, and stays so ({why})"))
                continue
            notes.append((loop.location, "two in one: nested"))
            break
    return notes


def _may_be_flat(loop: Op) -> bool:
    """Whether a loop counts from 0 by 1, and chooses something."""
    low, step = (defining(loop.operands[n], "arith.constant") for n in (0, 2))
    if low is None or step is None or "unsigned" in loop.words:
        return False
    plain = constant_integer(low) == 0 and constant_integer(step) == 1
    return plain and any(op.name in ("scf.if", "arith.select") for op in walk(loop.regions[0]))


def _flat(loop: Op, counting: Counting, forms: Forms) -> FlatLoop | None:
    """The loop as two, by one of its counters; None where nothing leaves it at the last place."""
    parts = parts_of_bound(loop.operands[1], counting, forms)
    period = counting.period
    if parts is not None and isinstance(parts[0], Value):
        period = forms.integer(parts[0])
    counters, counting = Counters(loop, forms), replace(counting, period=period)
    flat = FlatLoop(loop, counting, *(parts or (None, [])))
    for op in loop.regions[0].ops:
        if op.name not in ("scf.if", "arith.select"):
            continue
        event = counters.event(_flag(op), counting)
        if event is None or counting.counter in op.results:
            continue
        if op.name == "scf.if":
            sides = [*op.regions, Block("", op)]
            side, other = (sides[1], sides[0]) if event.negated else (sides[0], sides[1])
            if effect_of(other.ops):
                continue
            flat.moved[op] = event.kind, side, other
        for result in op.results:
            one, two = chosen(op, result.number)
            then, otherwise = (two, one) if event.negated else (one, two)
            flat.choices[result] = Choice(event.kind, then, otherwise)
    ends = (side for kind, side, _ in flat.moved.values() if kind == LAST)
    return flat if any(effect_of(side.ops) == CHANGES for side in ends) else None


def _flag(op: Op) -> Value:
    """What a select or branch looks at; of a tile of flags that are the same, the one."""
    splat = defining(op.operands[0], "tt.splat")
    return splat.operands[0] if splat else op.operands[0]
