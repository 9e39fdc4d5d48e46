"""Matrix products of tiles."""

from __future__ import annotations

from typing import Any

from mlir import ir

from tilec.dialects.attributes import STRING, one_of, options
from tilec.dialects.constraints import TILE
from tilec.dialects.op import Attribute, Operand, Result
from tilec.dialects.tile.dialect import Op
from tilec.dialects.types import element, shape, show

ACCUMULATORS = {
    "f64": ("f64",),
    "f32": ("f32",),
    "f16": ("f32", "f16"),
    "bf16": ("f32",),
    "f8E4M3FN": ("f32", "f16"),
    "f8E5M2": ("f32", "f16"),
    "i8": ("i32",),
}
"""Accumulator element types allowed per input element type."""

PRECISIONS = ("tf32", "ieee")


class DotOp(Op, name="dot", pure=True):
    """Matrix multiply-accumulate: result = lhs @ rhs + acc; leading dimensions are a batch.

    `options.precision` says how f32 inputs multiply: "tf32" rounds them to 10 mantissa bits for the
    tensor cores, "ieee" (the default) keeps all 23. `options.instruction` is filled in by
    select-mma.

    Example:
        %d = "tile.dot"(%a, %b, %c) {options = {}} : (tensor<128x64xf16>, tensor<64x128xf16>, tensor<128x128xf32>) -> tensor<128x128xf32>
    """

    lhs = Operand(TILE)
    rhs = Operand(TILE)
    acc = Operand(TILE)
    result = Result(TILE)
    options = Attribute(options(precision=one_of(*PRECISIONS), instruction=STRING), default={})

    @classmethod
    def infer_types(cls, lhs: Any, rhs: Any, acc: Any, **_: Any) -> list[ir.Type]:
        return [acc.type]

    def check(self) -> str | None:
        if self.result.type != self.acc.type:
            return f"result type {self.result.type} differs from the accumulator's {self.acc.type}"
        return self._check_shapes() or self._check_elements()

    def _check_shapes(self) -> str | None:
        lhs, rhs, acc = shape(self.lhs), shape(self.rhs), shape(self.acc)
        if not len(lhs) == len(rhs) == len(acc) >= 2:
            found = ", ".join(map(show, (lhs, rhs, acc)))
            return f"lhs, rhs and acc must have one rank of at least 2: {found}"
        if not lhs[:-2] == rhs[:-2] == acc[:-2]:
            return f"batch sizes differ: {show(lhs[:-2])}, {show(rhs[:-2])}, {show(acc[:-2])}"
        if lhs[-1] != rhs[-2]:
            return f"contraction sizes differ: lhs has K={lhs[-1]}, rhs has K={rhs[-2]}"
        if (lhs[-2], rhs[-1]) != acc[-2:]:
            return f"accumulator must be {lhs[-2]}x{rhs[-1]}, found {show(acc[-2:])}"
        return None

    def _check_elements(self) -> str | None:
        lhs, rhs, acc = (str(element(v)) for v in (self.lhs, self.rhs, self.acc))
        eight_bit_floats = {"f8E4M3FN", "f8E5M2"}
        if lhs != rhs and not {lhs, rhs} <= eight_bit_floats:
            return f"lhs and rhs element types differ: {lhs}, {rhs}"
        if lhs not in ACCUMULATORS:
            return f"no dot for {lhs}; known: {', '.join(ACCUMULATORS)}"
        if acc not in ACCUMULATORS[lhs]:
            return f"{lhs} accumulates in {' or '.join(ACCUMULATORS[lhs])}, not {acc}"
        if "precision" in self.options and lhs != "f32":
            return f"option 'precision' is for f32 inputs, found {lhs}"
        return None
