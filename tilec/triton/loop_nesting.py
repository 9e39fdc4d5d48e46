"""Writes a loop that is two in one as two (`flat_loops.py` says how, and finds them)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from tilec.records import dataclass
from tilec.triton.cyclic_counters import FIRST, LAST, Counting, Factor
from tilec.triton.effects import CHANGES, effect_of
from tilec.triton.op_facts import constant_integer
from tilec.triton.program import Block, Op, Type, Value, defining, walk
from tilec.triton.region_copies import RegionCopy, read_from_outside
from tilec.triton.signs import Signs


class StaysFlat(Exception):
    """Why a loop stays as it is."""


@dataclass
class Choice:
    """What a select or branch gives at the place of its event (`then`) and elsewhere."""

    kind: str
    then: Value
    otherwise: Value


@dataclass
class FlatLoop:
    """A loop that is two in one. `period`, `tiles`: the factors of its bound, None where the period
    is none; `choices`: by result; `moved`: the branches that go in front of the inner loop or
    behind it, each with the side that happens there and the other."""

    loop: Op
    counting: Counting
    period: Factor | None
    tiles: list[Factor]
    choices: dict[Value, Choice] = field(default_factory=dict)
    moved: dict[Op, tuple[str, Block, Block]] = field(default_factory=dict)


class Nesting:
    """Nests one flat loop of a function's `body`.

    `states`: what it carries but its counter; `ends`: what each is behind an iteration; `after`:
    the same before the last place sets it anew; `steady`: what is the same in all of the inner
    loop; `passed`: of what the inner loop carries on its own account what it is in the flat one.
    """

    def __init__(self, flat: FlatLoop, signs: Signs, body: Block) -> None:
        self.flat, self.loop, self.signs = flat, flat.loop, signs
        self.ops = self.loop.regions[0].ops[:-1]
        self.variable, *carried = self.loop.regions[0].arguments
        self.states = [state for state in carried if state is not flat.counting.carried]
        self.inside = {self.variable, *carried}
        for op in walk(self.loop.regions[0]):
            self.inside |= {*op.results, *(v for region in op.regions for v in region.arguments)}
        ends = self.loop.regions[0].terminator.operands
        self.ends = {state: ends[state.number - 1] for state in carried}
        self.after = {state: self._after(self.ends[state]) for state in self.states}
        used = {value for op in walk(body) for value in op.operands}
        self.used = {s for s in carried if self.loop.results[s.number - 1] in used}
        self.top = RegionCopy(Block("", None), set(), {})

    def _after(self, end: Value) -> Value:
        choice = self.flat.choices.get(end)
        return self._after(choice.otherwise) if choice and choice.kind == LAST else end

    def nest(self) -> dict[Value, Value]:
        """Puts the two in the place of the one; gives what its results are now. StaysFlat where
        that cannot be, and nothing is changed."""
        self._check()
        block = self.loop.block
        assert block is not None
        self.zero, self.one = self._factor(0), self._factor(1)
        self.period = self._factor(self.flat.period or 0)
        outer = self._for(self._tiles(), self.states, [self._init(s) for s in self.states])
        front = self._front(outer)
        self._inner(front)
        self._back(front.block)
        self.top.block.ops.append(outer)
        for op in self.top.block.ops:
            op.block = block
        at = block.ops.index(self.loop)
        block.ops[at : at + 1] = self.top.block.ops
        before = [self.loop.results[state.number - 1] for state in self.states]
        return dict(zip(before, outer.results, strict=True))

    def _check(self) -> None:
        """Whether what happens at the ends may go past what happens in between."""
        if self.flat.period is None:
            raise StaysFlat("its bound is no product of its counter's period")
        if self.flat.counting.carried in self.used:
            raise StaysFlat("what its counter comes to is read behind it")
        for op, (kind, side, _) in self.flat.moved.items():
            at = self.ops.index(op)
            passed = self.ops[:at] if kind == FIRST else self.ops[at + 1 :]
            staying = [one for one in passed if self.flat.moved.get(one, ("",))[0] != kind]
            effects = effect_of(side.ops), effect_of(staying)
            if all(effects) and CHANGES in effects:
                raise StaysFlat(f"memory is accessed in the wrong order around {op.location}")

    def _factor(self, factor: Factor) -> Value:
        """A factor of the bound; of a number, one."""
        return factor if isinstance(factor, Value) else self._number(factor, self.variable.type)

    def _number(self, number: int, kind: Type) -> Value:
        return self.top.add("arith.constant", kind, self.loop, text=f"{number} : {kind}")

    def _tiles(self) -> Value:
        """How often the outer loop runs: not, where the inner one does not."""
        kind, (product, *factors) = self.variable.type, map(self._factor, self.flat.tiles or [1])
        for factor in factors:
            product = self.top.add("arith.muli", kind, self.loop, product, factor)
        if isinstance(self.flat.period, int):
            return product
        tiles = [factor for factor in self.flat.tiles if isinstance(factor, Value)]
        if not self.signs.value(self.period) and not all(map(self.signs.value, tiles)):
            raise StaysFlat("both of the counts whose product its bound is may be negative")
        runs = self.top.add(
            "arith.cmpi", kind.with_element("i1"), self.loop, self.period, self.zero, word="sgt"
        )
        return self.top.add("arith.select", kind, self.loop, runs, product, self.zero)

    def _for(self, high: Value, carried: Sequence[Value], inits: Iterable[Value]) -> Op:
        """A loop from 0 with an empty body."""
        loop = Op("scf.for", [self.zero, high, self.one, *inits], self.loop.location)
        body = Block("", loop)
        body.arguments = [
            Value(v.name, v.type, body, n) for n, v in enumerate((self.variable, *carried))
        ]
        loop.regions = [body]
        loop.results = [Value(v.name, v.type, loop, n) for n, v in enumerate(carried)]
        return loop

    def _init(self, state: Value) -> Value:
        return self.loop.operands[2 + state.number]

    def _begins_again(self, state: Value) -> bool:
        """Whether the last place sets a state to what it was at the start of all."""
        choice = self.flat.choices.get(self.ends[state])
        if choice is None or choice.kind != LAST:
            return False
        one, two = choice.then, self._init(state)
        texts = [op and (op.text, str(op.result.type)) for op in map(_constant, (one, two))]
        return one is two or (texts[0] == texts[1] is not None)

    def _front(self, outer: Op) -> RegionCopy:
        """What the first place does, and all that it needs."""
        (body,), counting = outer.regions, self.flat.counting
        turn, *arguments = body.arguments
        front = RegionCopy(body, self.inside, {})
        for state, argument in zip(self.states, arguments, strict=True):
            front.known[state] = self._init(state) if self._begins_again(state) else argument
        front.known.update(dict.fromkeys(counting.quotients, turn))
        self.begin = front.add("arith.muli", turn.type, self.loop, turn, self.period)
        front.known[self.variable] = self.begin
        front.known[counting.counter] = self._counted(front, None)
        for op in self.ops:
            self._at_end(op, front, FIRST)
        self.steady = self._steady(front)
        return front

    def _counted(self, part: RegionCopy, place: Value | None) -> Value:
        """The counter at a place, None for the first."""
        counting, first = self.flat.counting, self.flat.counting.first
        kind = counting.counter.type
        if isinstance(first, Value):
            self._reach(part, first)
        start = self._number(first, kind) if isinstance(first, int) else part.value(first)
        if place is None:
            return start
        if kind != place.type:
            is_wider = kind.element == "i64"
            place = part.add("arith.extsi" if is_wider else "arith.trunci", kind, self.loop, place)
        if counting.step != 1:
            step = self._number(counting.step, kind)
            place = part.add("arith.muli", kind, self.loop, place, step)
        origin = _constant(start)
        if origin is not None and constant_integer(origin) == 0:
            return place
        return part.add("arith.addi", kind, self.loop, start, place)

    def _at_end(self, op: Op, part: RegionCopy, kind: str) -> None:
        """Copies an op in front of the inner loop or behind it: what happens at that end, and
        arithmetic, whose inputs are there."""
        moved, side, _ = self.flat.moved.get(op, ("", None, None))
        if moved == kind and side is not None:
            for one in side.ops[:-1]:
                if not part.copy(one):
                    raise StaysFlat(f"what {one.location} needs no {kind} place has")
        chosen = [result for result in op.results if result in self.flat.choices]
        for result in chosen:
            choice = self.flat.choices[result]
            if choice.kind == kind and not part.has(result) and part.has(choice.then):
                part.known[result] = part.value(choice.then)
        if not moved and not chosen and not effect_of([op]):
            part.copy(op)

    def _steady(self, front: RegionCopy) -> dict[Value, Value]:
        """What is the same in all of the inner loop, by its value there."""
        found = {s: front.value(s) for s in self.states if self.after[s] is s}
        found.update((value, front.value(value)) for value in self.flat.counting.quotients)
        for result, choice in self.flat.choices.items():
            is_kept = choice.kind == FIRST and self.after.get(choice.otherwise) is result
            if is_kept and front.has(result):
                found[result] = front.value(result)
        for op in self.ops:
            read = [value for value in read_from_outside(op) if value in self.inside]
            if not effect_of([op]) and op not in self.flat.moved and all(v in found for v in read):
                found.update((v, front.value(v)) for v in op.results if front.has(v))
        return found

    def _inner(self, front: RegionCopy) -> None:
        """The loop between, at the end of `front`."""
        set_first = [
            result
            for result, choice in self.flat.choices.items()
            if choice.kind == FIRST and result not in self.steady and front.has(result)
        ]
        moving = [state for state in self.states if state not in self.steady]
        carried = [*set_first, *moving]
        loop = self._for(self.period, carried, map(front.value, carried))
        (body,) = loop.regions
        place, *arguments = body.arguments
        inner = RegionCopy(body, self.inside, dict(self.steady))
        inner.known.update(zip(carried, arguments, strict=True))
        at = inner.add("arith.addi", place.type, self.loop, self.begin, place)
        inner.known[self.variable] = at
        inner.known[self.flat.counting.counter] = self._counted(inner, place)
        for op in self.ops:
            self._between(op, inner)
        missing = next((s for s in moving if not inner.has(self.after[s])), None)
        if missing is not None:
            raise StaysFlat(f"what it carries as {missing.name} comes from the last place alone")
        following = RegionCopy(body, self.inside, dict(self.steady))
        following.known.update((s, inner.value(self.after[s])) for s in self.states)
        ends = [self._next(result, following) for result in set_first]
        ends += [inner.value(self.after[state]) for state in moving]
        self._yield(body, ends)
        front.block.ops.append(loop)
        loop.block = front.block
        behind = zip(moving, loop.results[len(set_first) :], strict=True)
        self.results = {self.after[s]: r for s, r in behind if self.after[s] in self.inside}
        for result, value in zip(set_first, loop.results, strict=False):
            otherwise = self.flat.choices[result].otherwise
            if otherwise in self.after:
                self.results[self.after[otherwise]] = value

    def _between(self, op: Op, inner: RegionCopy) -> None:
        """Copies an op into the inner loop; of a branch that is moved, the arithmetic of its other
        side."""
        _, _, other = self.flat.moved.get(op, ("", None, None))
        if other is not None:
            for one in other.ops[:-1]:
                inner.copy(one)
        elif not inner.copy(op) and effect_of([op]):
            raise StaysFlat(f"what {op.location} needs the ends of a round alone have")

    def _next(self, result: Value, following: RegionCopy) -> Value:
        """What a choice of the first place is in the next iteration."""
        otherwise = self.flat.choices[result].otherwise
        if not self._reach(following, otherwise):
            raise StaysFlat(f"how {result.name} goes on, no argument tells")
        return following.value(otherwise)

    def _reach(self, part: RegionCopy, value: Value) -> bool:
        """Copies the arithmetic that a value needs; whether it is there then."""
        op = value.owner
        if part.has(value):
            return True
        if not isinstance(op, Op) or effect_of([op]) or op in self.flat.moved:
            return False
        return all(self._reach(part, one) for one in read_from_outside(op)) and part.copy(op)

    def _yield(self, body: Block, values: list[Value]) -> None:
        body.ops.append(Op("scf.yield", values, self.loop.location, block=body))

    def _back(self, outer: Block) -> None:
        """What the last place does, and all that it needs; and what the outer loop carries on."""
        back = RegionCopy(outer, self.inside, {**self.results, **self.steady})
        last = back.add("arith.subi", self.period.type, self.loop, self.period, self.one)
        at = back.add("arith.addi", last.type, self.loop, self.begin, last)
        counting = self.flat.counting
        back.known[self.variable] = at
        back.known[counting.counter] = self._counted(back, last)
        back.known.update(dict.fromkeys(counting.wrapped, self._counted(back, None)))
        for op in self.ops:
            self._at_end(op, back, LAST)
        read = {value for op in walk(outer) for value in op.operands}
        ends = []
        for state, argument in zip(self.states, outer.arguments[1:], strict=True):
            is_read = state in self.used or argument in read
            if is_read and not back.has(self.ends[state]):
                raise StaysFlat(f"what it carries as {state.name} no last place has")
            ends.append(back.value(self.ends[state]) if back.has(self.ends[state]) else argument)
        self._yield(outer, ends)


def _constant(value: Value) -> Op | None:
    return defining(value, "arith.constant")
