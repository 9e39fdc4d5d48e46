"""What divides an index value: the analysis behind vector widths and alignment.

Answers "by which power of two (at least) is this scalar divisible" for values of a `tile` program,
from argument facts (`tile.facts`), `tile.assume`, constants, and the arithmetic between them. A
loop's induction variable is divisible by what divides both its lower bound and its step, what it
carries by what divides what it begins with and, if it does, what it goes on with; what a branch
gives by what divides what both its sides give.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import Any

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.def_use import constant_attribute, constant_element, defining_op
from tilec.dialects.effects import whole_of
from tilec.dialects.integers import INDEX_BITS
from tilec.dialects.types import is_list
from tilec.passes.rewriting.loops import terminator
from tilec.passes.rewriting.walk import find_ops

UNLIMITED = 1 << 30
"""Stands for "divisible by anything" (the value 0); a power of two so that gcd keeps its
meaning."""


class Divisibility:
    """Divisors of the scalar integers of one function, memoised. Build it anew after a change."""

    def __init__(self, function: ir.Operation) -> None:
        self._known: dict[ir.Value, int] = {}
        self._assumed: dict[ir.Value, int] = {}
        self._arguments = _argument_facts(function)
        for op in find_ops(function, tile.AssumeOp):
            self._assumed[op.operands[0]] = op.opview.facts.get("multiple_of", 1)

    def of(self, value: ir.Value) -> int:
        """A divisor of `value`, at least 1; large where the value is known to be 0."""
        if value not in self._known:
            self._known[value] = 1  # cuts cycles through loop-carried values
            found = self._derive(value)
            assumed = self._assumed.get(value, 1)
            self._known[value] = found * assumed // gcd(found, assumed)
        return self._known[value]

    def of_array(self, array: ir.Value, kind: str, axis: int) -> int:
        """A divisor of an array's size or stride ("sizes" | "strides") along `axis`, in
        elements."""
        if is_list(array):  # of whose length nothing is known
            return 1
        static = _static(array, kind, axis)
        if static is not None:
            return static or UNLIMITED
        divisors = self._arguments.get(whole_of(array), {}).get(kind, ())
        return divisors[axis] if axis < len(divisors) else 1

    def alignment(self, array: ir.Value) -> int:
        """Bytes the array's pointer is known to be a multiple of (1 = unknown)."""
        return self._arguments.get(whole_of(array), {}).get("align", 1)

    def _derive(self, value: ir.Value) -> int:
        op = defining_op(value)
        if op is None:
            return self._of_argument(ir.BlockArgument(value))
        name, operands = op.name, op.operands
        if name == "arith.constant":
            number = constant_of(value)
            return 1 if number is None else abs(number) or UNLIMITED
        if name == "arith.muli":
            return min(self.of(operands[0]) * self.of(operands[1]), UNLIMITED)
        if name in _ONE_OR_SUM:
            first, second = list(operands)[-2:]
            return gcd(self.of(first), self.of(second))
        if name in ("arith.index_cast", "arith.extsi", "arith.extui", "arith.trunci"):
            return self.of(operands[0])
        if name in _BY_CONSTANT and (known := constant_of(operands[1])) is not None:
            return _BY_CONSTANT[name](self.of(operands[0]), known)
        if name == "arith.remsi":
            return gcd(self.of(operands[0]), self.of(operands[1]))
        if name in ("scf.if", "scf.for", "scf.while"):
            number = ir.OpResult(value).result_number
            return gcd(*(self.of(ends[number]) for ends in _ends(op)))
        if name == "memref.dim":
            axis = constant_of(operands[1])
            return 1 if axis is None else self.of_array(operands[0], "sizes", axis)
        return _of_part(op.opview, value)

    def _of_argument(self, argument: ir.BlockArgument) -> int:
        loop = argument.owner.owner
        if loop.name == "scf.for" and argument.arg_number == 0:
            lower, _, step = list(loop.operands)[:3]
            return gcd(self.of(lower), self.of(step))
        return self._carried(loop)[argument] if loop.name in ("scf.for", "scf.while") else 1

    def _carried(self, loop: ir.Operation) -> dict[ir.Value, int]:
        """What divides all that a loop carries: the most that holds in an iteration if it held in
        the one before."""
        sources = _sources(loop)
        before, found = self._known, dict.fromkeys(sources, UNLIMITED)
        while True:
            self._known = {**before, **found}
            after = {
                value: gcd(found[value], *map(self.of, given)) for value, given in sources.items()
            }
            if after == found:
                return found
            found = after


def _sources(loop: ir.Operation) -> dict[ir.Value, list[ir.Value]]:
    """The values that each value that an scf.for or scf.while carries is taken from."""
    first, last = (region.blocks[0] for region in (loop.regions[0], loop.regions[-1]))
    following = list(terminator(last).operands)
    if loop.name == "scf.for":
        taken = zip(list(loop.operands)[3:], following, strict=True)
        return dict(zip(list(first.arguments)[1:], map(list, taken), strict=True))
    taken = zip(loop.operands, following, strict=True)
    found = dict(zip(first.arguments, map(list, taken), strict=True))
    (passed,) = _ends(loop)
    return found | {a: [value] for a, value in zip(last.arguments, passed, strict=True)}


def _ends(op: ir.Operation) -> list[list[ir.Value]]:
    """The values that each way out of an scf.if, scf.for or scf.while gives; of the second what it
    carries."""
    blocks = [region.blocks[0] for region in op.regions]
    if op.name == "scf.for":
        return [list(blocks[0].arguments)[1:]]
    if op.name == "scf.while":
        return [list(terminator(blocks[0]).operands)[1:]]
    return [list(terminator(block).operands) for block in blocks]


def _of_part(view: ir.OpView, value: ir.Value) -> int:
    """Parts of arrays begin at multiples of their elements; of any other op nothing is known."""
    is_start = isinstance(view, tile.FindPartOp) and value == view.start
    return view.elements if is_start else 1


def _divided(divisor: int, by: int) -> int:
    """Of a quotient: what is left of a divisor, where the division is exact."""
    if divisor == UNLIMITED:
        return UNLIMITED
    return divisor // by if by > 0 and divisor % by == 0 else 1


def _shifted_left(divisor: int, bits: int) -> int:
    """Of a number that is shifted: by more bits than an index has, to nothing known."""
    return min(divisor << bits, UNLIMITED) if 0 <= bits < INDEX_BITS else 1


def _shifted_right(divisor: int, bits: int) -> int:
    return _divided(divisor, 1 << bits) if 0 <= bits < INDEX_BITS else 1


_ONE_OR_SUM = (
    *("arith.addi", "arith.subi", "arith.select"),
    *("arith.maxsi", "arith.minsi", "arith.maxui", "arith.minui"),
)
"""Ops that give a sum or difference of their last two operands, or one of them."""
_BY_CONSTANT: dict[str, Callable[[int, int], int]] = {
    "arith.shrsi": _shifted_right,
    "arith.shli": _shifted_left,
    "arith.divsi": _divided,
    "arith.floordivsi": _divided,
    "arith.ceildivsi": _divided,
    "arith.andi": lambda divisor, mask: max(gcd(divisor, UNLIMITED), mask & -mask or UNLIMITED),
}
"""Divisors of what an op makes of a number and a constant, from that of the number."""


def constant_of(value: ir.Value) -> int | None:
    """The integer a scalar value is known to be, or None."""
    attribute = constant_attribute(value)
    return int(attribute.value) if isinstance(attribute, ir.IntegerAttr) else None


def value_and_constant(value: ir.Value) -> tuple[ir.Value, int]:
    """A scalar integer as another one and the constant that is added to it."""
    op = defining_op(value)
    if op is None or op.name not in ("arith.addi", "arith.subi"):
        return value, 0
    lhs, rhs = op.operands
    number, sign = constant_of(rhs), 1 if op.name == "arith.addi" else -1
    if number is None and sign > 0:
        lhs, number = rhs, constant_of(lhs)
    if number is None:
        return value, 0
    base, more = value_and_constant(lhs)
    return base, more + sign * number


def base_and_constant(value: ir.Value) -> tuple[tuple[ir.Value, ...], int]:
    """The same, where a constant is one behind nothing."""
    base, more = value_and_constant(value)
    number = constant_of(base)
    return ((base,), more) if number is None else ((), number + more)


def number_of(value: ir.Value) -> int | None:
    """The integer that a scalar, or each element of a tile, is known to be, or None."""
    number = constant_element(value)
    return int(number.value) if isinstance(number, ir.IntegerAttr) else None


def static_strides(array: ir.Value | ir.Type) -> list[int | None]:
    """The strides of an array, or of a type, in elements, one a dimension; None for one known at
    run time only."""
    strides, _ = _type(array).get_strides_and_offset()
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    return [None if stride == dynamic else stride for stride in strides]


def static_sizes(array: ir.Value | ir.Type) -> list[int | None]:
    """The sizes of an array, or of a type, one a dimension; None for one known at run time only."""
    kind = _type(array)
    return [None if kind.is_dynamic_dim(d) else kind.get_dim_size(d) for d in range(kind.rank)]


def unbounded_dims(array: ir.Value) -> tuple[int, ...]:
    """The dimensions of a kernel's argument along which every index is inside, by the author's
    word (`tile.unbounded`)."""
    whole = whole_of(array)
    written = list(whole.owner.owner.attributes.get("arg_attrs", ()))
    given: Any = written[ir.BlockArgument(whole).arg_number] if written else {}
    return tuple(given["tile.unbounded"]) if "tile.unbounded" in given else ()


def _type(array: Any) -> Any:
    return array if isinstance(array, ir.Type) else array.type


def _static(array: ir.Value, kind: str, axis: int) -> int | None:
    return (static_sizes(array) if kind == "sizes" else static_strides(array))[axis]


def _argument_facts(function: ir.Operation) -> dict[ir.Value, dict[str, Any]]:
    if "arg_attrs" not in function.attributes:
        return {}
    facts = {}
    entry = function.regions[0].blocks[0]
    for argument, attributes in zip(entry.arguments, function.attributes["arg_attrs"], strict=True):
        if "tile.facts" not in attributes:
            continue
        known = attributes["tile.facts"]
        facts[argument] = {
            "align": known["align"].value if "align" in known else 1,
            "sizes": tuple(known["sizes"]) if "sizes" in known else (),
            "strides": tuple(known["strides"]) if "strides" in known else (),
        }
    return facts
