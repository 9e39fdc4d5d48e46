"""Copies of a loop's ops, with other values in the place of some of those that they read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tilec.triton.program import Block, Op, Type, Value, walk


class RegionCopy:
    """Puts copies into `block`. `inside`: the values that have to be copied, or stand in `known`,
    to be there; all others are there as they are."""

    def __init__(self, block: Block, inside: set[Value], known: dict[Value, Value]) -> None:
        self.block, self.inside, self.known = block, inside, known

    def has(self, value: Value) -> bool:
        """Whether a value is there."""
        return value in self.known or value not in self.inside

    def value(self, value: Value) -> Value:
        """What a value, which is there, is now."""
        return self.known.get(value, value)

    def copy(self, op: Op) -> bool:
        """Copies an op whose results are not there yet; whether all that it reads is."""
        if op.results and all(map(self.has, op.results)):
            return True
        if not all(map(self.has, read_from_outside(op))):
            return False
        self.block.ops.append(_copied(op, self.block, self.known))
        return True

    def add(
        self, name: str, kind: Type, of: Op, *operands: Value, word: str = "", text: str = ""
    ) -> Value:
        """The result of a new op, at the place of `of`."""
        op = Op(name, list(operands), of.location, words={word: ""} if word else {}, text=text)
        op.block = self.block
        op.results = [Value("nested", kind, op, 0)]
        self.block.ops.append(op)
        return op.result


def read_from_outside(op: Op) -> Iterable[Value]:
    """What an op and the ops inside read, and none of them makes."""
    inner = [one for region in op.regions for one in walk(region)]
    made = {value for one in inner for value in one.results}
    made.update(value for region in op.regions for value in region.arguments)
    for one in inner:
        made.update(value for region in one.regions for value in region.arguments)
    return [value for one in (op, *inner) for value in one.operands if value not in made]


def _copied(op: Op, block: Block, known: dict[Value, Value]) -> Op:
    new = replace(op, block=block, words=dict(op.words), attributes=dict(op.attributes))
    new.operands = [known.get(value, value) for value in op.operands]
    new.regions = [_copied_region(region, new, known) for region in op.regions]
    new.results = [Value(v.name, v.type, new, v.number) for v in op.results]
    known.update(zip(op.results, new.results, strict=True))
    return new


def _copied_region(region: Block, parent: Op, known: dict[Value, Value]) -> Block:
    new = Block(region.label, parent)
    new.arguments = [Value(v.name, v.type, new, v.number) for v in region.arguments]
    known.update(zip(region.arguments, new.arguments, strict=True))
    new.ops = [_copied(op, new, known) for op in region.ops]
    return new
