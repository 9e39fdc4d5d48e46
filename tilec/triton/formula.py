"""Arithmetic on tiles and scalars for functions written in terms of ops (`libdevice.py`)."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.dialects.predicates import predicate_attribute
from tilec.dialects.types import is_tile
from tilec.terms.dtypes import BY_MLIR
from tilec.triton.build import Builder
from tilec.triton.program import Op


class Formula:
    """Makes the ops of a function of floats in the place of `op`: all are of its operands' type,
    but where a method says otherwise."""

    def __init__(self, builder: Builder, op: Op) -> None:
        self.builder, self.op = builder, op
        self.kind = op.operands[0].type

    def like(self, element: str) -> ir.Type:
        """The operands' shape of other elements."""
        return self.builder.typed(element, self.kind.shape)

    def number(self, value: float, element: str = "") -> ir.Value:
        """A constant everywhere."""
        return self.builder.constant(value, self.like(element or self.kind.element))

    def math(self, name: str, *operands: ir.Value) -> ir.Value:
        """An op of MLIR's `math`."""
        return self.builder.op(f"math.{name}", operands[0].type, *operands)

    def arith(self, name: str, *operands: ir.Value) -> ir.Value:
        """An op of MLIR's `arith` whose result is of its operands' type."""
        return self.builder.op(f"arith.{name}", operands[0].type, *operands)

    def compare(self, predicate: str, one: ir.Value, two: ir.Value) -> ir.Value:
        """arith.cmpf, by the name of its predicate."""
        attribute = predicate_attribute("arith.cmpf", predicate)
        return self.builder.op("arith.cmpf", self.like("i1"), one, two, predicate=attribute)

    def is_infinite(self, value: ir.Value) -> ir.Value:
        """Whether a float is an infinity of either sign."""
        element = str(value.type.element_type if is_tile(value) else value.type)
        infinity = self.number(float("inf"), element)
        return self.compare("oeq", self.math("absf", value), infinity)

    def select(self, mask: ir.Value, one: ir.Value, two: ir.Value) -> ir.Value:
        """One where the mask is true."""
        return self.builder.op("arith.select", one.type, mask, one, two)

    def wide(self, value: ir.Value) -> ir.Value:
        """An operand as f64."""
        if self.kind.element == "f64":
            return value
        return self.builder.op("arith.extf", self.like("f64"), value)

    def narrow(self, value: ir.Value) -> ir.Value:
        """f64 rounded to the operands' elements."""
        if self.kind.element == "f64":
            return value
        return self.builder.op("arith.truncf", self.like(self.kind.element), value)

    def wide_number(self, value: float) -> ir.Value:
        """A constant of f64."""
        return self.number(value, "f64")

    def polynomial(self, x: ir.Value, coefficients: Sequence[float]) -> ir.Value:
        """Of f64, by Horner's rule, the highest power first."""
        total = self.wide_number(coefficients[0])
        for coefficient in coefficients[1:]:
            total = self.math("fma", total, x, self.wide_number(coefficient))
        return total

    def bits(self, value: ir.Value) -> ir.Value:
        """A float's bits, an integer of its width."""
        width = BY_MLIR[self.kind.element].bits
        return self.builder.op("arith.bitcast", self.like(f"i{width}"), value)

    def integer(self, value: ir.Value) -> ir.Value:
        """A float as an integer of the result's type, of an i1 0 or 1."""
        made = self.builder.type(self.op.result.type)
        element = str(value.type.element_type if is_tile(value) else value.type)
        name = "arith.extui" if element == "i1" else "arith.fptosi"
        return self.builder.op(name, made, value)

    def sign(self, value: ir.Value) -> ir.Value:
        """Whether a float's sign bit is set."""
        bits = self.bits(value)
        zero = self.builder.constant(0, bits.type)
        less = predicate_attribute("arith.cmpi", "slt")
        return self.builder.op("arith.cmpi", self.like("i1"), bits, zero, predicate=less)
