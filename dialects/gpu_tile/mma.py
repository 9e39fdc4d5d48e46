"""Matrix instructions on register fragments."""

from __future__ import annotations

from typing import Any

from mlir import ir

from tilec.dialects.attributes import STRING
from tilec.dialects.constraints import TILE
from tilec.dialects.gpu_tile.dialect import Op
from tilec.dialects.gpu_tile.types import layout_of
from tilec.dialects.op import Attribute, Operand, Result
from tilec.dialects.types import element, shape, show
from tilec.fragments import fragment_mismatch
from tilec.layout import normalize
from tilec.mma_shapes import find_instruction


class MmaOp(Op, name="mma"):
    """result = lhs @ rhs + acc by `instruction`, each operand in that instruction's fragments.

    Example:
        %d = "gpu_tile.mma"(%a, %b, %c) {instruction = "mma.m16n8k16.f32.bf16.bf16"} : (tensor<16x16xbf16, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2,2):(1@1,8@0,8@1)">>, tensor<16x8xbf16, #gpu_tile.layout<"T(4,8):(2@0,1@1) V(2,2):(1@0,8@0)">>, tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>) -> tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>
    """

    lhs = Operand(TILE)
    rhs = Operand(TILE)
    acc = Operand(TILE)
    result = Result(TILE)
    instruction = Attribute(STRING)

    @classmethod
    def infer_types(cls, lhs: Any, rhs: Any, acc: Any, **_: Any) -> list[ir.Type]:
        return [acc.type]

    def check(self) -> str | None:
        lhs, rhs, acc = shape(self.lhs), shape(self.rhs), shape(self.acc)
        if self.result.type != self.acc.type:
            return f"result type {self.result.type} differs from the accumulator's {self.acc.type}"
        if lhs[-1:] != rhs[-2:-1] or (*lhs[:-1], *rhs[-1:]) != acc:
            return f"shapes do not multiply: {show(lhs)} by {show(rhs)} into {show(acc)}"
        try:
            instruction = find_instruction(self.instruction)
            layouts = [normalize(layout_of(v)) for v in (self.lhs, self.rhs, self.acc)]
        except ValueError as error:
            return str(error)
        found = tuple(str(element(v)) for v in (self.lhs, self.rhs, self.acc))
        if found != (instruction.lhs, instruction.rhs, instruction.acc):
            expected = f"{instruction.lhs}, {instruction.rhs} and {instruction.acc}"
            return f"{instruction.name} multiplies {expected}, found {', '.join(found)}"
        return fragment_mismatch(instruction, layouts[0], layouts[1], layouts[2], len(acc))
