"""Constants, sums, comparisons that passes write, at the current insertion point."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.dialects.def_use import constant_attribute, constant_element
from tilec.dialects.types import element, is_tile, with_element

SLT = 2
"""A predicate of arith.cmpi: less, signed."""


def scalar_op(name: str, operands: Sequence[ir.Value], type_: ir.Type) -> ir.Value:
    """The one result of an op."""
    return ir.Operation.create(name, results=[type_], operands=list(operands)).results[0]


def binary(name: str, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    """An op of two operands whose result has their type."""
    return scalar_op(name, [lhs, rhs], lhs.type)


def constant(type_: ir.Type, number: float) -> ir.Value:
    """A constant of a scalar type; of a tile type, a tile full of it."""
    of = element(type_) if is_tile(type_) else type_
    attribute: ir.Attribute = (
        ir.FloatAttr.get(of, number)
        if isinstance(of, ir.FloatType)
        else ir.IntegerAttr.get(of, int(number))
    )
    if is_tile(type_):
        attribute = ir.DenseElementsAttr.get_splat(type_, attribute)
    return ir.Operation.create(
        "arith.constant", results=[type_], attributes={"value": attribute}
    ).results[0]


def i32_constant(value: int) -> ir.Value:
    """An i32 constant."""
    return constant(ir.IntegerType.get_signless(32), value)


def i1_constant(value: bool) -> ir.Value:
    """A constant truth value, an i1."""
    return constant(ir.IntegerType.get_signless(1), value)


def negated(flag: ir.Value) -> ir.Value:
    """The other truth value."""
    return binary("arith.xori", flag, i1_constant(True))


def less(lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    """Compares: lhs < rhs, signed."""
    return _compare(SLT, lhs, rhs)


def at_least(lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    """Compares: lhs >= rhs, signed."""
    return _compare(5, lhs, rhs)


def equal(lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    """Compares: lhs == rhs."""
    return _compare(0, lhs, rhs)


def _compare(number: int, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    """Compares by the predicate of this number (see `arith.cmpi`); tiles element by element."""
    predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)
    i1 = ir.IntegerType.get_signless(1)
    return ir.Operation.create(
        "arith.cmpi",
        results=[with_element(lhs, i1) if is_tile(lhs) else i1],
        operands=[lhs, rhs],
        attributes={"predicate": predicate},
    ).results[0]


def truth_of(value: ir.Value) -> bool | None:
    """The constant that a truth value is known to be, else None."""
    known = constant_attribute(value)
    return None if known is None else bool(known.value)


def is_zero(value: ir.Value) -> bool:
    """Whether a number, or each of a tile, is a constant zero, no negative one."""
    number = constant_element(value)
    return number is not None and number.value == 0 and not str(number).startswith("-")
