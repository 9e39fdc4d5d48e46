"""Reductions and scans with any associative combination of n values at once, and histograms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir import ir

from tilec.dialects.attributes import BOOL, INT
from tilec.dialects.constraints import TILE
from tilec.dialects.op import Attribute, Operand, Region, Result
from tilec.dialects.tile.dialect import Op
from tilec.dialects.traits import Groups, Sources
from tilec.dialects.types import element, shape, show, with_shape


def check_combination(inputs: Sequence[ir.Value], axis: int, body: ir.Block) -> str | None:
    """The rules of a combining region: 2n scalars in, n out, for n inputs of one shape."""
    shapes = [shape(v) for v in inputs]
    if len(set(shapes)) > 1:
        return f"input shapes differ: {', '.join(map(show, shapes))}"
    if not 0 <= axis < len(shapes[0]):
        return f"axis {axis} is out of range for rank {len(shapes[0])}"
    expected = [element(v) for v in inputs]
    if [a.type for a in body.arguments] != expected * 2:
        return f"region must take {', '.join(map(str, expected * 2))}"
    *_, last = body.operations
    if [v.type for v in last.operands] != expected:
        return f"region must yield {', '.join(map(str, expected))}"
    return None


def check_counted(values: ir.Value, mask: ir.Value) -> str | None:
    """The rules of what is counted: integers, and which of them."""
    kind = element(values)
    if not isinstance(kind, ir.IntegerType) or kind.width == 1:
        return f"values must be i8, i16, i32 or i64, found {kind}"
    if str(element(mask)) != "i1":
        return f"mask must be i1, found {element(mask)}"
    if shape(mask) != shape(values):
        return f"mask is {show(shape(mask))}, values {show(shape(values))}"
    return None


class Combining(Op, pure=True):
    """An op that combines elements along an axis as its region says."""

    inputs = Operand(TILE, variadic=True, mixed=True)
    outputs = Result(TILE, variadic=True, mixed=True)
    axis = Attribute(INT)
    body = Region()

    def combines_as(self, other: Combining) -> bool:
        """Whether another op combines the same elements along the same axis by the same region."""
        same = list(self.inputs) == list(other.inputs) and self.axis == other.axis
        return same and _numbered(self.body) == _numbered(other.body)


def _numbered(body: ir.Block) -> list[tuple[Any, ...]]:
    """What the ops of a region are, and where each operand comes from: equal for equal regions."""
    known = {value: number for number, value in enumerate(body.arguments)}
    found = []
    for view in body.operations:
        op = view.operation
        # What comes from outside is itself.
        operands = [known.get(value, value) for value in op.operands]
        found.append((op.name, operands, dict(op.attributes.items()), [r.type for r in op.results]))
        known |= {result: len(known) + number for number, result in enumerate(op.results)}
    return found


class ReduceOp(Combining, name="reduce"):
    """Combines all elements along `axis`, in any order; the region must be associative.

    n values combine as (first..., second...) -> combined...; argmax is a reduction of two inputs.
    Of several inputs, all but the first have one type.

    Example:
        %m = "tile.reduce"(%x) ({
        ^bb0(%p: f32, %q: f32):
          %r = arith.maximumf %p, %q : f32
          gpu.yield %r : f32
        }) {axis = 1 : i32} : (tensor<64x128xf32>) -> tensor<64xf32>
    """

    @classmethod
    def infer_types(cls, inputs: Sequence[ir.Value], *, axis: int, **_: Any) -> list[ir.Type]:
        return [with_shape(v, shape(v)[:axis] + shape(v)[axis + 1 :]) for v in inputs]

    def alike(self) -> Groups:
        """See `OpTraits`."""
        return [self.inputs, self.outputs]

    def stripes(self, axis: int) -> Sources:
        """See `OpTraits`."""
        return [(source, axis + (axis >= self.axis)) for source in self.inputs]

    def check(self) -> str | None:
        wrong = check_combination(self.inputs, self.axis, self.body)
        if wrong:
            return wrong
        for source, result in zip(self.inputs, self.outputs, strict=False):
            expected = shape(source)[: self.axis] + shape(source)[self.axis + 1 :]
            if shape(result) != expected or element(result) != element(source):
                return f"result must be {show(expected)} of {element(source)}, found {result.type}"
        if len(self.inputs) != len(self.outputs):
            return f"{len(self.inputs)} inputs but {len(self.outputs)} results"
        return None


class ScanOp(Combining, name="scan", one_layout=True):
    """Inclusive scan along `axis`; same region as `reduce`.

    With `reverse` it starts at the last element, and combines what it has met with the element
    before: flip, scan, flip.

    Example:
        %s = "tile.scan"(%x) ({
        ^bb0(%p: f32, %q: f32):
          %r = arith.addf %p, %q : f32
          gpu.yield %r : f32
        }) {axis = 0 : i32, reverse = false} : (tensor<128xf32>) -> tensor<128xf32>
    """

    reverse = Attribute(BOOL, default=False)

    @classmethod
    def infer_types(cls, inputs: Sequence[ir.Value], **_: Any) -> list[ir.Type]:
        return [v.type for v in inputs]

    def check(self) -> str | None:
        if [v.type for v in self.inputs] != [v.type for v in self.outputs]:
            return "results must have the inputs' types"
        return check_combination(self.inputs, self.axis, self.body)


class HistogramOp(Op, name="histogram", pure=True, lowered=False):
    """Counts how many of `values` are j, for each j of the result's [0, bins).

    What is masked off, negative or not below the number of bins is not counted.

    Example:
        %h = "tile.histogram"(%v, %ok) : (tensor<64x37xi32>, tensor<64x37xi1>) -> tensor<100xi32>
    """

    values = Operand(TILE)
    mask = Operand(TILE)
    result = Result(TILE)

    def alike(self) -> Groups:
        """See `OpTraits`."""
        return [[self.values, self.mask]]

    def check(self) -> str | None:
        wrong = check_counted(self.values, self.mask)
        if wrong:
            return wrong
        if len(shape(self.result)) != 1 or str(element(self.result)) != "i32":
            return f"result must have one dimension, of i32, found {self.result.type}"
        return None
