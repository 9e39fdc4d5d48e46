"""Matrix instructions on register fragments."""

from __future__ import annotations

from typing import Any

from mlir import ir

from tilec.dialects.attributes import INT, STRING
from tilec.dialects.constraints import TILE
from tilec.dialects.gpu_tile.dialect import Op
from tilec.dialects.gpu_tile.types import layout_of
from tilec.dialects.op import Attribute, Operand, Result
from tilec.dialects.types import element, shape, show
from tilec.hardware.fragments import fragment_mismatch
from tilec.hardware.layout import normalize
from tilec.hardware.mma_instruction import MmaInstruction
from tilec.hardware.mma_shapes import find_instruction
from tilec.hardware.scale_fragments import scale_layout
from tilec.hardware.target import Feature


class MmaOp(Op, name="mma", product=True):
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
    def infer_types(cls, lhs: Any, rhs: Any, acc: Any, *_: Any, **__: Any) -> list[ir.Type]:
        return [acc.type]

    @property
    def fragments(self) -> tuple[ir.Value, ...]:
        """What it multiplies."""
        return self.lhs, self.rhs

    def feature(self) -> Feature | None:
        """See `OpTraits`."""
        return find_instruction(self.instruction).feature

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
        if instruction.is_scaled != isinstance(self, MmaScaledOp):
            return f"{instruction.name} {'takes' if instruction.is_scaled else 'has no'} scales"
        found = tuple(str(element(v)) for v in (self.lhs, self.rhs, self.acc))
        if found != (instruction.lhs, instruction.rhs, instruction.acc):
            expected = f"{instruction.lhs}, {instruction.rhs} and {instruction.acc}"
            return f"{instruction.name} multiplies {expected}, found {', '.join(found)}"
        return fragment_mismatch(instruction, layouts[0], layouts[1], layouts[2], len(acc))


class MmaScaledOp(MmaOp, name="mma_scaled"):
    """`mma` whose operands have a scale per row of `lhs` (column of `rhs`) and block of numbers
    along k, the first of them that number `block`.

    `lhs_scale`: (m, blocks), `rhs_scale`: (blocks, n), each as the instruction finds them in the
    lanes (`scale_fragments.py`): of "mx" exponents of 2 with a bias of 127, as i8, one per 32
    numbers, of "nv" f8E4M3FN, one per 16. Operands of 4 bits are i8, two numbers a byte along k.

    Example:
        %d = "gpu_tile.mma_scaled"(%a, %b, %c, %sa, %sb) {block = 0 : i32, instruction = "mma.mx.m16n8k32.f32.e4m3.e5m2"} : (tensor<16x32xf8E4M3FN, #gpu_tile.layout<"T(4,8):(4@1,1@0) V(4,2,2):(1@1,8@0,16@1)">>, tensor<32x8xf8E5M2, #gpu_tile.layout<"T(4,8):(4@0,1@1) V(4,2):(1@0,16@0)">>, tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>, tensor<16x2xi8, #gpu_tile.layout<"T(2,2,8):(8@0,0,1@0) V(2):(1@1)">>, tensor<2x8xi8, #gpu_tile.layout<"T(4,8):(0,1@1) V(2):(1@0)">>) -> tensor<16x8xf32, #gpu_tile.layout<"T(4,8):(2@1,1@0) V(2,2):(1@1,8@0)">>
    """

    lhs_scale = Operand(TILE)
    rhs_scale = Operand(TILE)
    block = Attribute(INT)

    @property
    def fragments(self) -> tuple[ir.Value, ...]:
        """What it multiplies."""
        return self.lhs, self.rhs, self.lhs_scale, self.rhs_scale

    def check(self) -> str | None:
        wrong = super().check()
        if wrong:
            return wrong
        if len(shape(self.acc)) != 2:
            return f"operands have two dimensions, found {show(shape(self.acc))}"
        row = find_instruction(self.instruction)
        if self.block < 0 or self.block % row.scale_blocks:
            return f"block must be a multiple of {row.scale_blocks}, found {self.block}"
        return self._check_scale("lhs_scale", self.lhs_scale, 0, row) or self._check_scale(
            "rhs_scale", self.rhs_scale, 1, row
        )

    def _check_scale(
        self, name: str, value: ir.Value, axis: int, row: MmaInstruction
    ) -> str | None:
        sizes = shape(value)
        end = self.block + shape(self.lhs)[1] * row.pack // row.scale_block
        if len(sizes) != 2 or sizes[axis] != shape(self.acc)[axis] or sizes[1 - axis] < end:
            rows = f"{shape(self.acc)[axis]} {'columns' if axis else 'rows'}"
            return f"{name} has {end} blocks or more of each of {rows}, found {show(sizes)}"
        if str(element(value)) != row.scale:
            return f"{name} is of {row.scale}, found {element(value)}"
        expected = scale_layout(row, layout_of(self.acc), sizes[1 - axis], axis)
        if normalize(layout_of(value)) != expected:
            return f"{name} lies as {expected} for {row.name}, found {layout_of(value)}"
        return None
