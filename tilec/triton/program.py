"""Triton's IR (TTIR) as a plain tree: functions, blocks, ops and values, each with a position.

Nothing here knows what an op means. `reader.py` makes the tree of text, `lift.py` gives it
structured control flow, and everything behind that reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import Any

from tilec.messages.diagnostics import CompileError, Location
from tilec.records import dataclass

POINTER = "!tt.ptr<"


@dataclass(frozen=True)
class Type:
    """A scalar (`shape` is None) or a tile. `element`: MLIR's name, or `!tt.ptr<f32>`."""

    element: str
    shape: tuple[int, ...] | None = None

    @property
    def pointee(self) -> str | None:
        """What a pointer to elements points to; None of all else."""
        found = self.element.startswith(POINTER) and self.block is None
        return self.element[len(POINTER) : -1].partition(",")[0] if found else None

    @property
    def block(self) -> tuple[int, ...] | None:
        """The shape of the tiles that a block pointer or a descriptor is for; None of all else."""
        match = re.match(r"!tt\.(?:ptr|tensordesc)<tensor<((?:\d+x)+)", self.element)
        return tuple(map(int, match[1].split("x")[:-1])) if match else None

    @property
    def is_integer(self) -> bool:
        """Whether the elements are integers of any width."""
        return self.element.startswith("i") and self.element[1:].isdigit()

    @property
    def rank(self) -> int:
        """Dimensions; 0 of a scalar."""
        return len(self.shape or ())

    def with_element(self, element: str) -> Type:
        """The same shape of other elements."""
        return Type(element, self.shape)

    def __str__(self) -> str:
        if self.shape is None:
            return self.element
        return f"tensor<{''.join(f'{size}x' for size in self.shape)}{self.element}>"


@dataclass(eq=False)
class Value:
    """A result of an op, or an argument of a block, which is its `owner`; `number`: its place among
    the owner's results or arguments."""

    name: str
    type: Type
    owner: Op | Block
    number: int


@dataclass(eq=False)
class Block:
    """Ops in a row. `parent`: the op around it, None of a function's body. `following`: of a
    region's first block as it is read, the others; `lift.py` leaves none."""

    label: str
    parent: Op | None
    arguments: list[Value] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    following: list[Block] = field(default_factory=list)

    @property
    def terminator(self) -> Op:
        """The last op."""
        return self.ops[-1]


@dataclass(eq=False)
class Op:
    """One op as it is written.

    `words`: bare words and `key = value` pairs of its syntax in their order (a word's value is
    ""). `attributes`: texts by name. `types`: the types it is written with, before an arrow.
    `successors`: of a branch, a label and values each.
    """

    name: str
    operands: list[Value]
    location: Location
    words: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    types: list[Type] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)
    regions: list[Block] = field(default_factory=list)
    successors: list[tuple[str, list[Value]]] = field(default_factory=list)
    text: str = ""
    block: Block | None = None

    @property
    def result(self) -> Value:
        """The one result."""
        (only,) = self.results
        return only

    def number(self, name: str) -> int:
        """An attribute that is an integer, as `axis = 1 : i32`."""
        return int(self.attributes[name].partition(":")[0])

    def error(self, why: str, *notes: str) -> CompileError:
        """The error that this op cannot be imported, at its line."""
        return CompileError(f"cannot import '{self.name}': {why}", self.location, notes)


@dataclass(eq=False)
class Function:
    """A `tt.func`. `given`: the attributes of each argument; `blocks`: the body's; `module`: the
    functions beside it, by name, which it may call; `contracts`: whether a product and a sum may be
    one rounding; `notes`: what became of its loops, for reports."""

    name: str
    location: Location
    arguments: list[Value]
    given: list[Mapping[str, str]]
    blocks: list[Block]
    is_public: bool
    module: Mapping[str, Function] = field(default_factory=dict)
    contracts: bool = True
    notes: list[tuple[Location, str]] = field(default_factory=list)

    def error(self, why: str) -> CompileError:
        """An error about the function as a whole."""
        return CompileError(f"cannot import kernel '{self.name}': {why}", self.location)


def walk(block: Block) -> Iterator[Op]:
    """Every op of a block and of what is inside, an op before its regions."""
    for op in block.ops:
        yield op
        for region in op.regions:
            yield from walk(region)


def replace_values(block: Block, found: Mapping[Value, Value]) -> None:
    """Puts other values in the place of operands, in a block and in what is inside."""
    for op in walk(block):
        op.operands = [_replaced(value, found) for value in op.operands]


def _replaced(value: Value, found: Mapping[Value, Value]) -> Value:
    while value in found:
        value = found[value]
    return value


def defining(value: Value, *names: str) -> Op | None:
    """The op that gives `value`, if it has one of these names."""
    owner: Any = value.owner
    return owner if isinstance(owner, Op) and owner.name in names else None


def is_inside(value: Value, loop: Op) -> bool:
    """Whether a value is made in a region of `loop`."""
    block = value.owner.block if isinstance(value.owner, Op) else value.owner
    while block is not None and block.parent is not None:
        if block.parent is loop:
            return True
        block = block.parent.block
    return False


def copied(function: Function) -> Function:
    """The same function again, and those beside it: ops, blocks and values of their own."""
    beside: dict[str, Function] = {}
    for name, other in {**function.module, function.name: function}.items():
        copy = _Copy()
        blocks = [copy.block(block, None) for block in other.blocks]
        arguments = blocks[0].arguments if blocks else other.arguments
        given = list(other.given)
        beside[name] = replace(other, arguments=arguments, given=given, blocks=blocks)
    for other in beside.values():
        other.module = beside
    return beside[function.name]


class _Copy:
    """Copies blocks whose values are made in front of their uses, as in a text."""

    def __init__(self) -> None:
        self._values: dict[Value, Value] = {}

    def block(self, block: Block, parent: Op | None) -> Block:
        new = Block(block.label, parent)
        new.arguments = [self._made(value, new) for value in block.arguments]
        new.ops = [self._op(op, new) for op in block.ops]
        new.following = [self.block(other, parent) for other in block.following]
        return new

    def _op(self, op: Op, block: Block) -> Op:
        new = replace(op, block=block)
        new.operands = [self._values[value] for value in op.operands]
        new.words, new.attributes, new.types = dict(op.words), dict(op.attributes), list(op.types)
        new.successors = [(to, [self._values[v] for v in values]) for to, values in op.successors]
        new.regions = [self.block(region, new) for region in op.regions]
        new.results = [self._made(value, new) for value in op.results]
        return new

    def _made(self, value: Value, owner: Op | Block) -> Value:
        new = self._values[value] = Value(value.name, value.type, owner, value.number)
        return new
