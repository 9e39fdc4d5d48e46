"""Pointers made of numbers are numbers: they are chosen, moved on and stored as such.

Before:   %p = tt.int_to_ptr %a ; %q = tt.int_to_ptr %b        (a and b: tiles of i64)
          %s = arith.select %c, %p, %q ; %n = tt.ptr_to_int %s
After:    %n = arith.select %c, %a, %b

An access by such a pointer is an error at its line: which array it goes to, and where that ends,
nothing says. Does not handle pointers that a branch or a loop passes on.
"""

from __future__ import annotations

from tilec.terms.dtypes import ELEMENT_BYTES
from tilec.triton.pointer_roots import OF_NO_ARRAY
from tilec.triton.program import Block, Function, Op, Type, Value, replace_values, walk

_NUMBER = "i64"
_SAME = ("tt.splat", "tt.broadcast", "tt.expand_dims", "tt.trans", "tt.reshape", "arith.select")
_ACCESSES = ("tt.load", "tt.store", "tt.atomic_rmw", "tt.atomic_cas")


def number_pointers(function: Function) -> None:
    """Rewrites a function of one block. CompileError where a pointer made of a number is more."""
    (body,) = function.blocks
    if any(op.name == "tt.int_to_ptr" for op in walk(body)):
        found: dict[Value, Value] = {}
        _Numbers(found).block(body)
        replace_values(body, found)


class _Numbers:
    """Goes over blocks. `found`: what values have become that were numbers before."""

    def __init__(self, found: dict[Value, Value]) -> None:
        self._found = found
        self._numbers: dict[Value, Value] = {}  # by the pointers that they are

    def block(self, block: Block) -> None:
        """Rewrites a block and what is inside."""
        kept: list[Op] = []
        for op in block.ops:
            for region in op.regions:
                self.block(region)
            kept += self._op(op)
        block.ops = kept
        for op in kept:
            op.block = block

    def _op(self, op: Op) -> list[Op]:
        """What stands in the place of an op."""
        if op.name == "tt.int_to_ptr":
            self._numbers[op.result] = op.operands[0]
            return []
        if not any(value in self._numbers for value in op.operands):
            return [op]
        numbers = [self._numbers.get(value, value) for value in op.operands]
        if op.name == "tt.ptr_to_int":
            self._found[op.result] = numbers[0]
            return []
        if op.name == "tt.bitcast":
            self._numbers[op.result] = numbers[0]
            return []
        if op.name == "tt.addptr":
            return self._moved(op, *numbers)
        if op.name not in _SAME or any(value.type.pointee for value in numbers):
            what = "an access" if op.name in _ACCESSES else f"'{op.name}'"
            loads = [one for value in numbers for one in _loads_behind(value)]
            notes = (f"the number is loaded at {loads[0].location}", OF_NO_ARRAY) if loads else ()
            raise op.error(f"{what} by a pointer that is made of a number, of no array", *notes)
        op.operands = numbers
        op.result.type = op.result.type.with_element(_NUMBER)
        self._numbers[op.result] = op.result
        return [op]

    def _moved(self, op: Op, start: Value, offset: Value) -> list[Op]:
        """A number and an offset in elements."""
        kind, made = start.type, []
        if offset.type.element != _NUMBER:
            made.append(_made("arith.extsi", [offset], kind, op))
            offset = made[-1].result
        each = ELEMENT_BYTES[op.result.type.pointee or ""]
        size = _made("arith.constant", [], kind, op)
        size.text = f"dense<{each}> : {kind}" if kind.shape else f"{each} : {kind}"
        scaled = _made("arith.muli", [offset, size.result], kind, op)
        total = _made("arith.addi", [start, scaled.result], kind, op)
        self._numbers[op.result] = total.result
        return [*made, size, scaled, total]


def _loads_behind(value: Value) -> list[Op]:
    """The loads that a number is computed of, as far as ops give it."""
    found, seen, todo = list[Op](), set[Value](), [value]
    while todo:
        one = todo.pop()
        if one in seen or not isinstance(one.owner, Op):
            continue
        seen.add(one)
        if one.owner.name == "tt.load":
            found.append(one.owner)
        elif one.type.pointee is None:
            todo += one.owner.operands
    return found


def _made(name: str, operands: list[Value], kind: Type, like: Op) -> Op:
    made = Op(name, operands, like.location)
    made.results = [Value("address", kind, made, 0)]
    return made
