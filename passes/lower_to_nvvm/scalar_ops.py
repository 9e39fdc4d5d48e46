"""Scalar ops at the current insertion point, as rules write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir import ir


def create(name: str, operands: Sequence[ir.Value], result: ir.Type, **attributes: Any) -> ir.Value:
    """An op with one result at the current insertion point."""
    return ir.Operation.create(
        name, results=[result], operands=operands, attributes=attributes
    ).result


def constant(type_: ir.Type, value: Any) -> ir.Value:
    """Makes an `arith.constant` of a Python number or an attribute (retyped to an integer
    `type_`)."""
    if isinstance(value, ir.IntegerAttr):
        value = value.value
    if isinstance(value, ir.Attribute):
        attribute = value
    elif isinstance(type_, ir.FloatType):
        attribute = ir.FloatAttr.get(type_, float(value))
    else:
        attribute = ir.IntegerAttr.get(type_, int(value))
    return create("arith.constant", [], type_, value=attribute)


_PREDICATES = {"eq": 0, "ne": 1, "slt": 2, "sle": 3, "sgt": 4, "sge": 5, "ult": 6, "ule": 7}


def compare(predicate: str, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    """Makes an `arith.cmpi`."""
    code = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _PREDICATES[predicate])
    return create("arith.cmpi", [lhs, rhs], ir.IntegerType.get_signless(1), predicate=code)


def resized(value: ir.Value, integer: ir.Type, *, signed: bool = True) -> ir.Value:
    """An integer in another width; i1 counts as 0 or 1."""
    width = value.type.width
    if width == integer.width:
        return value
    if width > integer.width:
        return create("arith.trunci", [value], integer)
    name = "arith.extsi" if signed and width > 1 else "arith.extui"
    return create(name, [value], integer)


def as_signed(bits: int, width: int) -> int:
    """The number that so many bits are in two's complement."""
    return bits - (1 << width) if bits >> (width - 1) else bits


def both(first: ir.Value | None, second: ir.Value | None) -> ir.Value | None:
    """Makes the conjunction of two conditions; None means "certain"."""
    if first is None or second is None:
        return second if first is None else first
    if first == second:
        return first
    return create("arith.andi", [first, second], first.type)


def select(condition: ir.Value | None, if_true: ir.Value, if_false: ir.Value) -> ir.Value:
    """Makes an `arith.select`; a certain condition (None) picks the first."""
    if condition is None:
        return if_true
    return create("arith.select", [condition, if_true, if_false], if_true.type)


def moved_pointer(pointer: ir.Value, by: ir.Value | int, bits: int) -> ir.Value:
    """A pointer moved by so many elements of so many bits."""
    known = isinstance(by, int)
    return create(
        "llvm.getelementptr",
        [pointer] if known else [pointer, by],
        pointer.type,
        elem_type=ir.TypeAttr.get(ir.IntegerType.get_signless(bits)),
        rawConstantIndices=ir.DenseI32ArrayAttr.get([by if known else -(2**31)]),
    )
