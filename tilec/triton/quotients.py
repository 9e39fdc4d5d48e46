"""Divides where programs begin, not each element, where a tile lies between two multiples.

    %at = muli %pid, 512 ; %x = addi (splat %at), %range      (512 elements, a divisor of 2048)
Before:   %row = arith.divsi %x, dense<2048>      %column = arith.remsi %x, dense<2048>
After:    %q = arith.divsi %at, 2048              %r = arith.remsi %at, 2048
          %row = tt.splat %q                      %column = addi (splat %r), %range

Every element is in the row of the first one then, and columns follow each other: the access is one
of a row, which is raised as such (`raising.py`). With k the greatest divisor that where the tile
begins (0 or more) and the divisor have in common, the elements behind have to be 0 to k - 1. A
remainder whose quotient nobody asks for is one that wraps (`demanded.py`), and stays, unless every
program begins with a row.

Does not handle divisors that are no constants, and tiles of several rows.
"""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from tilec.triton.forms import Forms
from tilec.triton.program import (
    Block,
    Function,
    Op,
    Type,
    Value,
    defining,
    replace_values,
    walk,
)
from tilec.triton.signs import Signs

_MOVES = ("arith.extsi", "tt.expand_dims", "tt.broadcast")
"""What a sum may go through in front of the division: each is one of its parts, too."""


def split_quotients(function: Function) -> None:
    """Rewrites the quotients and remainders of a function of one block."""
    signs = Signs(Forms(function), frozenset(), trusts=False)
    for block in function.blocks:
        quotients = {op.operands[0] for op in walk(block) if op.name == "arith.divsi"}
        found: dict[Value, Value] = {}
        _block(block, signs, quotients, found)
        replace_values(block, found)


def _block(block: Block, signs: Signs, quotients: set[Value], found: dict[Value, Value]) -> None:
    ops: list[Op] = []
    for op in block.ops:
        for region in op.regions:
            _block(region, signs, quotients, found)
        if op.name in ("arith.divsi", "arith.remsi") and op.result.type.shape is not None:
            made = _Division(op, signs, op.operands[0] in quotients).split()
            ops += made
            if made:
                found[op.result] = made[-1].result
                continue
        ops.append(op)
    block.ops = ops
    for op in ops:
        op.block = block


class _Division:
    """A quotient or a remainder, and the ops that it becomes. `has_quotient`: whether it is one, or
    belongs to one."""

    def __init__(self, op: Op, signs: Signs, has_quotient: bool) -> None:
        self.op, self.signs, self.has_quotient = op, signs, has_quotient
        self.made = list[Op]()

    def split(self) -> list[Op]:
        """Its ops, the last of which gives its result; none where it stays as it is."""
        moves, total = list[Op](), self.op.operands[0]
        while (move := defining(total, *_MOVES)) is not None:
            moves.insert(0, move)
            total = move.operands[0]
        summed = defining(total, "arith.addi")
        divisor = self.signs.forms.integer(self.op.operands[1])
        number = divisor and divisor.constant
        if summed is None or not number or number < 0:
            return []
        for first, rest in (summed.operands, summed.operands[::-1]):
            begins = defining(first, "tt.splat")
            if begins and self._stays_between(begins.operands[0], rest, number):
                self._write(begins.operands[0], rest, moves, number)
                break
        return self.made

    def _write(self, begin: Value, rest: Value, moves: list[Op], number: int) -> None:
        kind = self.op.result.type
        scalar = Type(kind.element)
        if begin.type != scalar:
            begin = self._add(Op("arith.extsi", [begin], self.op.location), scalar)
        divisor = Op("arith.constant", [], self.op.location, text=f"{number} : {scalar}")
        divided = Op(self.op.name, [begin, self._add(divisor, scalar)], self.op.location)
        of_tile = Op("tt.splat", [self._add(divided, scalar)], self.op.location)
        value = self._add(of_tile, kind)
        if self.op.name == "arith.remsi":
            for move in moves:
                rest = self._add(replace(move, operands=[rest]), move.result.type)
            self._add(Op("arith.addi", [value, rest], self.op.location), kind)

    def _add(self, op: Op, kind: Type) -> Value:
        op.results = [Value("quotient", kind, op, 0)]
        self.made.append(op)
        return op.result

    def _stays_between(self, begin: Value, rest: Value, divisor: int) -> bool:
        """Whether the elements of `begin` + `rest` have one quotient."""
        integer = self.signs.forms.integer
        start, along = integer(begin), integer(rest)
        if start is None or along is None or not self.signs.value(begin):
            return False
        common = gcd(divisor, *start.terms.values())
        if common < divisor and not self.has_quotient:
            return False
        least = most = along.terms.get((), 0)
        for monomial, factor in along.terms.items():
            for symbol in monomial:
                if len(monomial) > 1 or symbol.kind != "coordinate":
                    return False
                end = factor * ((rest.type.shape or ())[symbol.axis] - 1)
                least, most = least + min(0, end), most + max(0, end)
        return least >= 0 and most < common
