"""Constants, sums, comparisons that passes write, at the current insertion point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir import ir

from tilec.dialects.def_use import constant_attribute, constant_element
from tilec.dialects.predicates import predicate_attribute
from tilec.dialects.types import element, is_float, is_tile, number_type, with_element


def create(name: str, operands: Sequence[ir.Value], result: ir.Type, **attributes: Any) -> ir.Value:
    """An op with one result."""
    return ir.Operation.create(
        name, results=[result], operands=operands, attributes=attributes
    ).result


def binary(name: str, lhs: ir.Value, rhs: ir.Value | int) -> ir.Value:
    """An op of two operands whose result has their type."""
    return create(name, [lhs, _like(lhs, rhs)], lhs.type)


def _like(value: ir.Value, other: ir.Value | int) -> ir.Value:
    return constant(value.type, other) if isinstance(other, int) else other


def constant(type_: ir.Type, value: Any) -> ir.Value:
    """A constant of a scalar type, of a number or an attribute (an integer's is retyped); of a tile
    type, a tile full of it."""
    of = element(type_) if is_tile(type_) else type_
    if isinstance(value, ir.IntegerAttr):
        value = value.value
    if not isinstance(value, ir.Attribute):
        if is_float(of):
            value = ir.FloatAttr.get(of, float(value))
        else:
            value = ir.IntegerAttr.get(of, int(value))
    if is_tile(type_):
        value = ir.DenseElementsAttr.get_splat(type_, value)
    return create("arith.constant", [], type_, value=value)


def i32_constant(value: int) -> ir.Value:
    """An i32 constant."""
    return constant(ir.IntegerType.get_signless(32), value)


def i1_constant(value: bool) -> ir.Value:
    """A constant truth value, an i1."""
    return constant(ir.IntegerType.get_signless(1), value)


def negated(flag: ir.Value) -> ir.Value:
    """The other truth value."""
    return binary("arith.xori", flag, i1_constant(True))


def less(lhs: ir.Value, rhs: ir.Value | int) -> ir.Value:
    """Compares: lhs < rhs, signed."""
    return compare("slt", lhs, rhs)


def equal(lhs: ir.Value, rhs: ir.Value | int) -> ir.Value:
    """Compares: lhs == rhs."""
    return compare("eq", lhs, rhs)


def compare(predicate: str, lhs: ir.Value, rhs: ir.Value | int) -> ir.Value:
    """Makes an `arith.cmpi` or `arith.cmpf`; tiles element by element."""
    i1 = ir.IntegerType.get_signless(1)
    result = with_element(lhs, i1) if is_tile(lhs) else i1
    name = "arith.cmpf" if is_float(number_type(lhs)) else "arith.cmpi"
    return create(
        name, [lhs, _like(lhs, rhs)], result, predicate=predicate_attribute(name, predicate)
    )


def truth_of(value: ir.Value) -> bool | None:
    """The constant that a truth value is known to be, else None."""
    known = constant_attribute(value)
    return None if known is None else bool(known.value)


def is_zero(value: ir.Value) -> bool:
    """Whether a number, or each of a tile, is a constant zero, no negative one."""
    number = constant_element(value)
    return number is not None and number.value == 0 and not str(number).startswith("-")


def resized(value: ir.Value, integer: ir.Type, *, signed: bool = True) -> ir.Value:
    """An integer in another width; i1 counts as 0 or 1."""
    width = value.type.width
    if width == integer.width:
        return value
    if width > integer.width:
        return create("arith.trunci", [value], integer)
    name = "arith.extsi" if signed and width > 1 else "arith.extui"
    return create(name, [value], integer)


def as_type(value: ir.Value, type_: ir.Type) -> ir.Value:
    """An integer or index, or a tile of them, as one of another type, of which one may be index."""
    return value if value.type == type_ else create("arith.index_cast", [value], type_)


def as_signed(bits: int, width: int) -> int:
    """The number that so many bits are in two's complement."""
    return bits - (1 << width) if bits >> (width - 1) else bits


def both(first: ir.Value | None, second: ir.Value | None) -> ir.Value | None:
    """Makes the conjunction of two conditions; None means "certain"."""
    if first is None or second is None:
        return second if first is None else first
    if first == second:
        return first
    return binary("arith.andi", first, second)


def select(condition: ir.Value | None, if_true: ir.Value, if_false: ir.Value) -> ir.Value:
    """Makes an `arith.select`; a certain condition (None) picks the first."""
    if condition is None:
        return if_true
    return create("arith.select", [condition, if_true, if_false], if_true.type)
