"""Quotients and remainders by groups: elements that lie between two multiples have one quotient.

    %x = addi (splat %at), %range      (%at a multiple of 1024, %n of 16)
Before:   %row = arith.divsi %x, %n             %column = arith.remsi %x, %n
After:    %g = arith.shrsi %x, 4                %m = arith.shrsi %n, 4
          %row = arith.divsi %g, %m             %column = (arith.remsi %g, %m) * 16 + %x & 15

Sixteen elements in a row have one %g then, and columns follow each other: what is loaded and stored
at such places are neighbours (`passes/analysis/index_runs.py`), as when rows are joined, repeated
or put into pages. The elements have to be 0 or more, as far as they are exact; what n and the
beginning are multiples of, arguments say (`tt.divisibility`), which every launch makes sure of.

A remainder of a range that the divisor is no less than is the range. Another whose quotient nobody
asks for is one that wraps (`demanded.py`): it gets the attribute GROUP, and is written so where it
is built (`elementwise.py`). Does not handle divisors that are tiles.
"""

from __future__ import annotations

from dataclasses import field
from math import gcd

from tilec.hardware.sizes import VECTOR_BYTES
from tilec.records import dataclass
from tilec.triton.forms import Forms
from tilec.triton.op_facts import constant_integer
from tilec.triton.polynomial import Monomial
from tilec.triton.program import Block, Function, Op, Type, Value, defining, replace_values, walk
from tilec.triton.signs import Signs

GROUP = "tilec.group"
"""How many bits the place in a group has."""
_MOVES = ("arith.extsi", "tt.expand_dims", "tt.broadcast")
"""What elements may go through in front of the division."""
_ANY = 1 << 30
"""Stands for a divisor of 0; a power of two."""


def group_quotients(function: Function) -> None:
    """Rewrites the quotients and remainders of a function of one block."""
    given = zip(function.arguments, function.given, strict=True)
    known = {a: int(g.get("tt.divisibility", "1").partition(":")[0]) for a, g in given}
    forms = Forms(function)
    groups = _Groups(forms, Signs(forms, frozenset(), trusts=False), known)
    for block in function.blocks:
        groups.quotients = {op.operands[0] for op in walk(block) if op.name == "arith.divsi"}
        found: dict[Value, Value] = {}
        groups.block(block, found)
        replace_values(block, found)


@dataclass
class _Groups:
    """`known`: what arguments are multiples of; `quotients`: what is divided; `columns`: of each
    remainder that was rewritten, the width of its groups."""

    forms: Forms
    signs: Signs
    known: dict[Value, int]
    quotients: set[Value] = field(default_factory=set)
    columns: dict[Value, int] = field(default_factory=dict)

    def block(self, block: Block, found: dict[Value, Value]) -> None:
        ops: list[Op] = []
        for op in block.ops:
            for region in op.regions:
                self.block(region, found)
            is_tile = bool(op.results) and op.results[0].type.shape is not None
            if is_tile and op.name == "arith.remsi" and self._is_below(*op.operands):
                found[op.result] = op.operands[0]
                continue
            width = self._width(op) if is_tile and op.name in ("arith.divsi", "arith.remsi") else 1
            bits = width.bit_length() - 1
            if bits and op.operands[0] not in self.quotients:
                op.attributes[GROUP] = f"{bits} : i32"
            if not bits or op.operands[0] not in self.quotients:
                ops.append(op)
                continue
            made = _Division(op, bits)
            found[op.result] = made.result()
            ops += made.ops
            if op.name == "arith.remsi":
                self.columns[op.result] = width
        block.ops = ops
        for op in ops:
            op.block = block

    def _is_below(self, dividend: Value, divisor: Value) -> bool:
        """Whether each element is known to be 0 or more and less than the divisor, by the tile's
        size."""
        form, limit = map(self.forms.integer, (dividend, divisor))
        if form is None or limit is None or limit.constant is None:
            return False
        least, most = 0, limit.constant
        for monomial, n in form.terms.items():
            if monomial and [s.kind for s in monomial] != ["coordinate"]:
                return False
            end = n * ((dividend.type.shape or ())[monomial[0].axis] - 1) if monomial else n
            least, most = least + min(0, end), most - max(0, end)
        return least >= 0 and most > 0

    def _width(self, op: Op) -> int:
        """Elements of a group; 1 of what stays as it is."""
        dividend, divisor = op.operands
        splat = defining(divisor, "tt.splat")
        if not splat and not defining(divisor, "arith.constant"):
            return 1
        return gcd(self._steps(dividend), self._divisor(splat.operands[0] if splat else divisor))

    def _steps(self, value: Value) -> int:
        """How wide groups are in which elements follow each other from a multiple of the width on,
        none of which is negative."""
        plain = value
        while plain not in self.columns and (move := defining(plain, *_MOVES)):
            plain = move.operands[0]
        if plain in self.columns:
            return self.columns[plain]
        form = self.forms.integer(value)
        if form is None or not self.signs.of(form):
            return 1
        terms = dict(form.terms)
        ones = [m for m, n in terms.items() if n == 1 and [s.kind for s in m] == ["coordinate"]]
        if len(ones) != 1:
            return 1
        (along,) = ones
        size = (value.type.shape or ())[along[0].axis]
        del terms[along]
        return gcd(VECTOR_BYTES, size, *(self._of_term(m, n) for m, n in terms.items()))

    def _of_term(self, monomial: Monomial, number: int) -> int:
        for symbol in monomial:
            if symbol.kind in ("argument", "value"):
                number *= self._divisor(symbol.value)
        return number

    def _divisor(self, value: Value, depth: int = 0) -> int:
        """What a scalar, or each element of a constant, is a multiple of."""
        if not isinstance(value.owner, Op):
            return self.known.get(value, 1)
        op, deeper = value.owner, depth + 1
        if op.name == "arith.constant":
            number = constant_integer(op)
            return 1 if number is None else abs(number) or _ANY
        if depth > _DEEPEST:
            return 1
        if op.name == "scf.if":
            ends = [region.terminator.operands[value.number] for region in op.regions]
            return gcd(*(self._divisor(end, deeper) for end in ends))
        parts = [self._divisor(operand, deeper) for operand in op.operands]
        if op.name == "arith.muli":
            return min(parts[0] * parts[1], _ANY)
        return gcd(*parts[-2:]) if op.name in _OF_PARTS else 1


_DEEPEST = 20
"""Ops that are looked through, one behind the other."""
_OF_PARTS = ("arith.addi", "arith.subi", "arith.minsi", "arith.maxsi", "arith.extsi",
             "arith.select", "arith.remsi")  # fmt: skip
"""Ops whose result is a multiple of what their last operands are."""


class _Division:
    """The ops that a quotient or a remainder becomes. `bits`: of a place in a group."""

    def __init__(self, op: Op, bits: int) -> None:
        self.op, self.bits, self.ops = op, bits, list[Op]()

    def result(self) -> Value:
        """Its value now."""
        dividend, divisor = self.op.operands
        kind = dividend.type
        group = self._add("arith.shrsi", kind, dividend, self._number(self.bits, kind))
        found = self._add(self.op.name, kind, group, self._shortened(divisor))
        self.ops[-1].attributes.update(self.op.attributes)
        if self.op.name == "arith.divsi":
            return found
        last = self._number((1 << self.bits) - 1, kind)
        place = self._add("arith.andi", kind, dividend, last)
        start = self._add("arith.muli", kind, found, self._number(1 << self.bits, kind))
        return self._add("arith.addi", kind, start, place)

    def _shortened(self, divisor: Value) -> Value:
        """How many groups it is."""
        splat = defining(divisor, "tt.splat")
        one = splat.operands[0] if splat else divisor
        short = self._add("arith.shrsi", one.type, one, self._number(self.bits, one.type))
        return self._add("tt.splat", divisor.type, short) if splat else short

    def _number(self, number: int, kind: Type) -> Value:
        text = f"{number} : {kind}" if kind.shape is None else f"dense<{number}> : {kind}"
        return self._add("arith.constant", kind, text=text)

    def _add(self, name: str, kind: Type, *operands: Value, text: str = "") -> Value:
        op = Op(name, list(operands), self.op.location, text=text)
        op.results = [Value("group", kind, op, 0)]
        self.ops.append(op)
        return op.result
