"""Gives a function structured control flow: branches between blocks become `scf.if`.

Before:   cf.cond_br %c, ^bb1(%x), ^bb2     ^bb1(%v): ... cf.br ^bb3(%w)     ^bb2: tt.return
After:    %done, %w = scf.if %c { ... yield false, %w } else { yield true, poison }
          scf.if %done { } else { ... }

1. Where both sides of a branch reach one block, that is where they meet: what stands there follows
   the `scf.if`, and what it is passed are results.
2. A side that returns before says so by a flag, under which the rest runs.
3. Sides that never meet contain all that follows them.

Regions of several blocks (`tt.map_elementwise`) alike. Does not handle loops made of branches, nor
branches that meet crosswise; a block that only returns may be reached from anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from tilec.records import dataclass
from tilec.triton.program import Block, Function, Op, Type, Value, replace_values, walk

_RETURNS = ("tt.return", "tt.map_elementwise.return")


def lift(function: Function) -> Function:
    """The same function with one block, which ends in a return. CompileError for what is not
    handled."""
    if not function.blocks:
        raise function.error("it has no body")
    first, *following = function.blocks
    first.following = following
    for block in function.blocks:
        for op in walk(block):
            for region in op.regions:
                lift_region(region)
    lift_region(first)
    return replace(function, blocks=[first])


def lift_region(first: Block) -> None:
    """Makes the blocks of a region its first."""
    if not first.following:
        return
    blocks = {block.label: block for block in first.following}
    lifting = _Lifting(blocks)
    entry = _Part(Block(first.label, first.parent, first.arguments))
    outcome = lifting.follow(first, None, entry)
    last = Op(lifting.returns.name, outcome.returned, lifting.returns.location, block=entry.block)
    entry.block.ops.append(last)
    first.ops, first.following = entry.block.ops, []
    for op in first.ops:
        op.block = first
    replace_values(first, lifting.passed)


@dataclass
class _Part:
    """A block as it grows."""

    block: Block

    def add(self, op: Op) -> Op:
        """Appends an op."""
        op.block = self.block
        self.block.ops.append(op)
        return op

    def made(self, name: str, kind: Type, at: Op, text: str = "") -> Value:
        """The result of a new op without operands."""
        op = self.add(Op(name, [], at.location, text=text))
        op.results = [Value("made", kind, op, 0)]
        return op.results[0]


@dataclass
class _Outcome:
    """Where following blocks led: to the block where others join, being passed `values`; or to the
    end of the region, which gives `returned`. `left`: whether it was the end; a value where that is
    known only when it runs."""

    left: bool | Value
    values: list[Value] = field(default_factory=list)
    returned: list[Value] = field(default_factory=list)


@dataclass
class _Lifting:
    """`passed`: what the blocks' arguments are; `returns`: a return of the region."""

    blocks: Mapping[str, Block]
    passed: dict[Value, Value] = field(default_factory=dict)
    moved: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.reached: dict[str, frozenset[str]] = {}
        for label in self.blocks:
            self._reach(label, ())

    @property
    def returns(self) -> Op:
        """One of the region's returns; all give values of the same types."""
        found = (block.ops[-1] for block in self.blocks.values() if block.ops)
        return next(op for op in found if op.name in _RETURNS)

    def _reach(self, label: str, before: tuple[str, ...]) -> frozenset[str]:
        """The blocks that a block may lead to, itself among them, without those that only return.
        CompileError for a loop."""
        block = self.blocks[label]
        if label in before:
            raise block.ops[-1].error("a loop made of branches")
        if label not in self.reached:
            own = {label} if not _only_returns(block) else set()
            for target, _ in block.ops[-1].successors:
                own |= self._reach(target, (*before, label))
            self.reached[label] = frozenset(own)
        return self.reached[label]

    def follow(self, block: Block, stop: str | None, part: _Part) -> _Outcome:
        """Puts a block and what follows it into `part`, up to the block `stop`."""
        while True:
            for op in block.ops[:-1]:
                part.add(op)
            last = block.ops[-1]
            if last.name in _RETURNS:
                return _Outcome(True, [], list(last.operands))
            if last.name == "cf.cond_br":
                outcome, target = self._branch(last, stop, part)
                if target is None:
                    return outcome
                label, values = target, outcome.values
                if outcome.left is not False:
                    return self._rest(last, outcome, (label, stop), part)
            elif last.name == "cf.br":
                label, values = last.successors[0]
            else:
                raise last.error("a block ends in a branch or a return")
            if label == stop:
                return _Outcome(False, values)
            block = self._entered(last, label, values)

    def _entered(self, branch: Op, label: str, values: list[Value]) -> Block:
        block = self.blocks[label]
        if _only_returns(block):
            last = block.ops[-1]
            known = dict(zip(block.arguments, values, strict=True))
            given = [known.get(value, value) for value in last.operands]
            return Block(label, None, [], [Op(last.name, given, last.location)])
        if label in self.moved:
            raise branch.error("branches meet crosswise")
        self.moved.add(label)
        self.passed.update(zip(block.arguments, values, strict=True))
        return block

    def _branch(self, branch: Op, stop: str | None, part: _Part) -> tuple[_Outcome, str | None]:
        """An `scf.if` for a branch, what came of it, and the block to go on with."""
        (one, _), (two, _) = branch.successors
        meeting = self._meeting(one, two)
        inner = meeting or stop
        made = Op("scf.if", branch.operands[:1], branch.location)
        outcomes, parts = [], []
        for label, values in branch.successors:
            inside = _Part(Block("", made))
            if label == inner:
                outcomes.append(_Outcome(False, values))
            else:
                entered = self._entered(branch, label, values)
                outcomes.append(self.follow(entered, inner, inside))
            parts.append(inside)
            made.regions.append(inside.block)
        part.add(made)
        outcome = self._joined(made, parts, outcomes)
        return outcome, meeting if meeting != stop else None

    def _meeting(self, one: str, two: str) -> str | None:
        """The first block that both sides reach, all others behind it."""
        both = self.reached[one] & self.reached[two]
        return max(both, key=lambda label: len(self.reached[label] & both), default=None)

    def _rest(
        self, branch: Op, outcome: _Outcome, way: tuple[str, str | None], part: _Part
    ) -> _Outcome:
        """What runs only where no side has returned: from one block to another."""
        label, stop = way
        assert isinstance(outcome.left, Value)
        made = Op("scf.if", [outcome.left], branch.location)
        parts = [_Part(Block("", made)), _Part(Block("", made))]
        made.regions = [one.block for one in parts]
        entered = self._entered(branch, label, outcome.values)
        after = self.follow(entered, stop, parts[1])
        part.add(made)
        return self._joined(made, parts, [_Outcome(True, [], outcome.returned), after])

    def _joined(self, made: Op, parts: list[_Part], outcomes: list[_Outcome]) -> _Outcome:
        """Ends both sides of an `scf.if`, whose results are what either came to."""
        always = [outcome.left for outcome in outcomes]
        same = all(left is True for left in always) or all(left is False for left in always)
        kinds = [
            _longest([[v.type for v in getattr(outcome, name)] for outcome in outcomes])
            for name in ("values", "returned")
        ]
        for part, outcome in zip(parts, outcomes, strict=True):
            flags = [] if same else [_flag(part, outcome.left, made)]
            passed = [
                *_or_poison(part, outcome.values, kinds[0], made),
                *_or_poison(part, outcome.returned, kinds[1], made),
            ]
            part.add(Op("scf.yield", [*flags, *passed], made.location))
        types = [*([] if same else [Type("i1")]), *kinds[0], *kinds[1]]
        made.results = [Value(f"if{n}", kind, made, n) for n, kind in enumerate(types)]
        found = list(made.results)
        left: bool | Value = bool(always[0]) if same else found.pop(0)
        return _Outcome(left, found[: len(kinds[0])], found[len(kinds[0]) :])


def _only_returns(block: Block) -> bool:
    return len(block.ops) == 1 and block.ops[0].name in _RETURNS


def _longest(lists: list[list[Type]]) -> list[Type]:
    return max(lists, key=len)


def _flag(part: _Part, left: bool | Value, at: Op) -> Value:
    if isinstance(left, Value):
        return left
    return part.made("arith.constant", Type("i1"), at, "true" if left else "false")


def _or_poison(part: _Part, values: list[Value], kinds: list[Type], at: Op) -> list[Value]:
    """What a side passes on; where it goes elsewhere, values that nobody reads."""
    return values or [part.made("ub.poison", kind, at) for kind in kinds]
