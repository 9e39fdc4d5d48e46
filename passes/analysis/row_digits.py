"""Index tiles as digits of consecutive numbers: of pixels that are counted through, say.

    pixel = m + tl.arange(BM)[:, None]
    image, p, q = pixel // width // height, pixel // width % height, pixel % width

`p` is a digit of the row `pixel`: what is left of it by `width`, modulo `height`; so is
`pixel % (width * height) // width`. An index tile may be a digit times a number, plus scalars, plus
a number; or follow a dimension of the tile instead.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.def_use import defining_op
from tilec.dialects.gpu_tile import ConvertLayoutOp
from tilec.dialects.predicates import predicate_of
from tilec.dialects.types import is_index, number_type, shape
from tilec.passes.analysis.divisibility import constant_of, number_of
from tilec.passes.rewriting.walk import is_of
from tilec.records import dataclass

QUOTIENTS = ("arith.floordivsi", "arith.divsi", "arith.divui")
"""Of numbers that are not negative all the same."""


class Row(NamedTuple):
    """Consecutive numbers along dimension `dim` of a tile, which begin at the sum of `scalars` and
    `number`."""

    dim: int
    scalars: tuple[ir.Value, ...]
    number: int


Factors = tuple[tuple[ir.Value, ...], int]
"""A product of scalars and a number, all of them positive."""


class Digit(NamedTuple):
    """A digit of a row's numbers: what is left of them by `divisor`, modulo `modulo`, if that is
    not None."""

    row: Row
    divisor: Factors
    modulo: Factors | None


def product(one: Factors, other: Factors) -> Factors:
    """The product of two."""
    return (*one[0], *other[0]), one[1] * other[1]


def quotient(product: Factors, divisor: Factors) -> Factors | None:
    """What a product has beside the factors of a divisor; None where it has not all of these."""
    left = list(product[0])
    for scalar in divisor[0]:
        if scalar not in left:
            return None
        left.remove(scalar)
    return None if product[1] % divisor[1] else (tuple(left), product[1] // divisor[1])


@dataclass(frozen=True)
class IndexSum:
    """An index tile: `factor` times a digit, or along dimension `digit` of the tile, if there is
    one, plus scalars, plus a number. `wide`: computed in 64 bits, since 32 might not hold it."""

    digit: Digit | int | None
    factor: int
    scalars: tuple[ir.Value, ...]
    number: int
    wide: bool = False


def index_sum(value: ir.Value, dims: tuple[int, ...]) -> IndexSum | None:
    """An index tile whose dimensions are `dims` of the gather's, as a sum."""
    known = number_of(value)
    if known is not None:
        return IndexSum(None, 0, (), known)
    op, value, dims = seen_through(value, dims)
    if op is None:
        return None
    if op.name == "tensor.splat":
        return _scalar_sum(op.operands[0])
    if is_of(op, tile.IotaOp):
        repeated = shape(value)[op.opview.axis] == 1
        return IndexSum(None, 0, (), 0) if repeated else IndexSum(dims[op.opview.axis], 1, (), 0)
    if not _is_exact(value):
        return None
    if op.name in ("arith.addi", "arith.subi", "arith.muli"):
        found = _combined(op.name, *(index_sum(operand, dims) for operand in op.operands))
        narrow = is_index(number_type(value))
        return found if narrow or found is None else replace(found, wide=True)
    return _digit_sum(op, dims)


def _scalar_sum(value: ir.Value) -> IndexSum:
    """A scalar that all elements have, its number apart."""
    known, op = constant_of(value), defining_op(value)
    if known is not None:
        return IndexSum(None, 0, (), known)
    if op is not None and op.name in ("arith.addi", "arith.subi"):
        found = _combined(op.name, *map(_scalar_sum, op.operands))
        if found is not None:
            return found
    return IndexSum(None, 0, (value,), 0)


def _is_exact(tile: ir.Value) -> bool:
    """Whether sums of indices do not wrap in a type: authors compute in i32."""
    kind = number_type(tile)
    return is_index(kind) or ir.IntegerType(kind).width > 32


def _combined(name: str, one: IndexSum | None, other: IndexSum | None) -> IndexSum | None:
    """A sum, a difference from a number, or a product with one."""
    if one is None or other is None:
        return None
    if name == "arith.addi":
        if one.digit is not None and other.digit is not None:
            return None
        first = other if one.digit is None else one
        scalars = one.scalars + other.scalars
        wide = one.wide or other.wide
        return replace(first, scalars=scalars, number=one.number + other.number, wide=wide)
    if name == "arith.muli" and _is_number(one):
        one, other = other, one
    if not _is_number(other):
        return None
    if name == "arith.subi":
        return replace(one, number=one.number - other.number)
    if one.scalars:
        return None
    return replace(one, factor=one.factor * other.number, number=one.number * other.number)


def _is_number(one: IndexSum) -> bool:
    return one.digit is None and not one.scalars


def _digit_sum(op: ir.Operation, dims: tuple[int, ...]) -> IndexSum | None:
    """A quotient of a row, or its remainder, or one of these of the other."""
    parts = remainder_of(op.results[0])
    if parts is None and op.name not in QUOTIENTS:
        return None
    dividend, by = list(op.operands) if parts is None else parts
    digit, divisor = _digit(dividend, dims), _divisor(by)
    if digit is None or divisor is None:
        return None
    made = _remainder(digit, divisor) if parts is not None else _quotient(digit, divisor)
    return None if made is None else IndexSum(made, 1, (), 0)


def _digit(value: ir.Value, dims: tuple[int, ...]) -> Digit | None:
    """A row itself, or a digit of it."""
    found = index_sum(value, dims)
    if found is None:
        return None
    if isinstance(found.digit, int) and is_along(found):
        return Digit(Row(found.digit, found.scalars, found.number), ((), 1), None)
    plain = found.factor == 1 and not found.scalars and not found.number and not found.wide
    return found.digit if isinstance(found.digit, Digit) and plain else None


def _remainder(digit: Digit, divisor: Factors) -> Digit | None:
    if digit.modulo is not None and quotient(digit.modulo, divisor) is None:
        return None
    return digit._replace(modulo=divisor)


def _quotient(digit: Digit, divisor: Factors) -> Digit | None:
    modulo = None if digit.modulo is None else quotient(digit.modulo, divisor)
    if digit.modulo is not None and modulo is None:
        return None
    return Digit(digit.row, product(digit.divisor, divisor), modulo)


def _divisor(value: ir.Value) -> Factors | None:
    """The product that all elements of a tile are."""
    found = index_sum(value, ())
    if found is None or found.digit is not None or found.number < 0:
        return None
    if not found.scalars:
        return ((), found.number) if found.number else None
    return factors_of(found.scalars[0]) if len(found.scalars) == 1 and not found.number else None


def factors_of(value: ir.Value) -> Factors:
    """A scalar's factors."""
    known, op = constant_of(value), defining_op(value, "arith.muli")
    if known is not None and known > 0:
        return (), known
    if op is None:
        return (value,), 1
    one, other = map(factors_of, op.operands)
    return product(one, other)


def remainder_of(value: ir.Value) -> tuple[ir.Value, ir.Value] | None:
    """Dividend and divisor of a remainder, as of `x % y` of numbers that are not negative."""
    op = defining_op(value)
    if op is None:
        return None
    if op.name in ("arith.remsi", "arith.remui"):
        return op.operands[0], op.operands[1]
    if op.name != "arith.select":
        return None
    differ, other, remainder = op.operands
    divided, added = defining_op(remainder, "arith.remsi"), defining_op(other, "arith.addi")
    if divided is None or added is None:
        return None
    dividend, divisor = divided.operands
    if list(added.operands) != [remainder, divisor] or not _is_below(differ, remainder, divisor):
        return None
    return dividend, divisor


def _is_below(value: ir.Value, remainder: ir.Value, divisor: ir.Value) -> bool:
    """Whether something holds only where a remainder, or its divisor, is below 0."""
    op = defining_op(value)
    if op is None:
        return False
    if op.name == "arith.andi":
        return any(_is_below(operand, remainder, divisor) for operand in op.operands)
    if op.name == "arith.xori":
        return all(_is_below(operand, remainder, divisor) for operand in op.operands)
    if op.name != "arith.cmpi" or predicate_of(op) != "slt":
        return False
    asked = op.operands[0]
    return asked in (remainder, divisor) and number_of(op.operands[1]) == 0


def seen_through(
    value: ir.Value, dims: tuple[int, ...]
) -> tuple[ir.Operation | None, ir.Value, tuple[int, ...]]:
    """What gives a tile's numbers, behind casts, layouts and broadcasts."""
    op = defining_op(value)
    while op is not None:
        view = op.opview
        if isinstance(view, tile.BroadcastOp):
            dims = tuple(dims[d] for d in view.dims) if dims else ()
        elif not isinstance(view, ConvertLayoutOp) and op.name != "arith.index_cast":
            break
        value = op.operands[0]
        op = defining_op(value)
    return op, value, dims


def is_along(channels: IndexSum) -> bool:
    """Whether a tile's numbers follow each other along a dimension of it, and 32 bits hold them."""
    return isinstance(channels.digit, int) and channels.factor == 1 and not channels.wide
