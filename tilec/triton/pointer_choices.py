"""Pointers chosen between several arguments: an access by one becomes an access by each.

Before:   %p = arith.select %c, %a, %b            (or scf.if %c, whose sides yield %a and %b)
          %q = tt.addptr %p, %o ; %x = tt.load %q, %m
After:    %x = scf.if %c { yield tt.load (%a + %o), %m } else { yield tt.load (%b + %o), %m }

1. What only computes moves out of a branch whose sides yield pointers from different arguments; a
   selection stands for it.
2. What is done to a selected pointer is done to both sides of the selection.
3. An access by a selection is one in each side of a branch; where elements have conditions of their
   own, it is two, of which the mask has the condition, or its opposite.

Pointers of one argument stay as they are. Does not handle pointers that a loop carries from one
argument to another, or that are computed of what one side of a branch loads, nor block pointers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilec.triton.pointer_roots import argument_of
from tilec.triton.program import Block, Function, Op, Type, Value, defining, replace_values, walk

_MOVES = ("tt.addptr", "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.trans", "tt.reshape",
          "tt.bitcast")  # fmt: skip
_SHAPING = ("tt.splat", "tt.broadcast", "tt.expand_dims", "tt.trans", "tt.reshape")
_COMPUTING = ("arith.", "math.", "tt.make_range", "tt.get_program_id", *_MOVES)
_MASK_AT = {"tt.load": 1, "tt.store": 2, "tt.atomic_rmw": 2}


def split_choices(function: Function) -> None:
    """Rewrites the accesses of a function of one block. What is not handled stays."""
    (body,) = function.blocks
    accessed = [op.operands[0] for op in walk(body) if op.name in _MASK_AT]
    if all(argument_of(value) for value in accessed if value.type.pointee):
        return
    for step in (_Hoisting, _Accesses):
        found: dict[Value, Value] = {}
        step(found).block(body)
        replace_values(body, found)


class _Rewriting:
    """Goes over blocks, and puts others in the place of ops. `found`: what values have become."""

    def __init__(self, found: dict[Value, Value]) -> None:
        self.found = found
        self.made: list[Op] = []

    def block(self, block: Block) -> None:
        """Rewrites a block and what is inside."""
        before, self.made = self.made, []
        for op in block.ops:
            op.operands = [self.now(value) for value in op.operands]
            for region in op.regions:
                self.block(region)
            self.op(op)
        block.ops, self.made = self.made, before
        for op in block.ops:
            op.block = block

    def now(self, value: Value) -> Value:
        """What a value has become."""
        while value in self.found:
            value = self.found[value]
        return value

    def op(self, op: Op) -> None:
        """Rewrites one op, whose regions are."""
        raise NotImplementedError

    def add(
        self, name: str, operands: Sequence[Value], kind: Type, like: Op, text: str = ""
    ) -> Value:
        """The result of a new op."""
        made = Op(name, list(operands), like.location, text=text)
        made.results = [Value("chosen", kind, made, 0)]
        self.made.append(made)
        return made.results[0]


class _Hoisting(_Rewriting):
    """Step 1."""

    def op(self, op: Op) -> None:
        pointers = [value for value in op.results if value.type.pointee]
        chosen = [value for value in pointers if argument_of(value) is None]
        if op.name != "scf.if" or not chosen or len(op.regions) < 2:
            self.made.append(op)
            return
        inside: set[Value] = set()
        for region in op.regions:
            region.ops = [*self._kept(region.ops[:-1], inside), region.terminator]
        self.made.append(op)
        for value in chosen:
            sides = [region.terminator.operands[value.number] for region in op.regions]
            if inside.isdisjoint(sides):
                operands = [op.operands[0], *sides]
                self.found[value] = self.add("arith.select", operands, value.type, op)

    def _kept(self, ops: Sequence[Op], inside: set[Value]) -> list[Op]:
        """What of a side stays; what only computes moves in front of the branch."""
        kept = []
        for op in ops:
            if op.name.startswith(_COMPUTING) and inside.isdisjoint(op.operands):
                self.made.append(op)
            else:
                kept.append(op)
                inside.update(op.results)
        return kept


class _Accesses(_Rewriting):
    """Steps 2 and 3."""

    def op(self, op: Op) -> None:
        choice = defining(op.operands[0], "arith.select") if op.operands else None
        if choice is None or not op.operands[0].type.pointee or argument_of(op.operands[0]):
            self.made.append(op)
        elif op.name in _MOVES:
            self._moved(op, choice)
        elif op.name in _MASK_AT:
            self._accessed(op, choice)
        else:
            self.made.append(op)

    def _moved(self, op: Op, choice: Op) -> None:
        condition = choice.operands[0]
        sides = [self._done(_again(op, [side, *op.operands[1:]])) for side in choice.operands[1:]]
        if condition.type.shape is not None and op.name in _SHAPING:
            shaped = _again(op, [condition, *op.operands[1:]])
            shaped.results[0].type = Type("i1", op.result.type.shape)
            self.made.append(shaped)
            condition = shaped.result
        values = [value for (value,) in sides]
        self.found[op.result] = self.add("arith.select", [condition, *values], op.result.type, op)

    def _accessed(self, op: Op, choice: Op) -> None:
        condition, *sides = choice.operands
        if condition.type.shape is None:
            found = self._branch(op, condition, sides)
        else:
            found = self._masked(op, condition, sides)
        self.found.update(zip(op.results, found, strict=True))

    def _branch(self, op: Op, condition: Value, sides: Sequence[Value]) -> list[Value]:
        """One access or the other."""
        made = Op("scf.if", [condition], op.location)
        for side in sides:
            inside = _Accesses(self.found)
            given = inside._done(_again(op, [side, *op.operands[1:]]))
            region = Block("", made, [], [*inside.made, Op("scf.yield", given, op.location)])
            for new in region.ops:
                new.block = region
            made.regions.append(region)
        made.results = [Value(v.name, v.type, made, n) for n, v in enumerate(op.results)]
        self.made.append(made)
        return made.results

    def _masked(self, op: Op, condition: Value, sides: Sequence[Value]) -> list[Value]:
        """Both, of elements each."""
        at, kind = _MASK_AT[op.name], condition.type
        ones = self.add("arith.constant", [], kind, op, text=f"dense<true> : {kind}")
        flags = [condition, self.add("arith.xori", [condition, ones], kind, op)]
        given = []
        for side, flag in zip(sides, flags, strict=True):
            operands = [side, *op.operands[1:]]
            if len(operands) > at:
                flag = self.add("arith.andi", [operands[at], flag], kind, op)
            operands[at : at + 1] = [flag]
            given += self._done(_again(op, operands))
        if not given:
            return []
        return [self.add("arith.select", [condition, *given], op.result.type, op)]

    def _done(self, op: Op) -> list[Value]:
        """What a new op gives: of another selection it is done to that one's sides in turn."""
        self.op(op)
        return [self.now(value) for value in op.results]


def _again(op: Op, operands: Sequence[Value]) -> Op:
    """The same op of other operands."""
    made = replace(op, operands=list(operands), results=[])
    made.results = [replace(value, owner=made) for value in op.results]
    return made
