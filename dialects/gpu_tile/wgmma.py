"""Warpgroup matrix instructions: operands in shared memory, results in registers, later (PTX ISA
9.0, "Asynchronous warpgroup level matrix instructions")."""

from __future__ import annotations

from typing import Any

from mlir import ir

from tilec.dialects.attributes import INT, STRING
from tilec.dialects.constraints import ANY, BUFFER, PENDING, TILE
from tilec.dialects.gpu_tile.dialect import Op
from tilec.dialects.gpu_tile.types import (
    buffer_of,
    is_buffer,
    is_pending,
    layout_of,
    pending_type,
    tile_of,
)
from tilec.dialects.op import Attribute, Operand, Result
from tilec.dialects.traits import Until
from tilec.dialects.types import element, shape, show
from tilec.hardware.mma_instruction import MmaInstruction
from tilec.hardware.mma_shapes import find_instruction
from tilec.hardware.target import Feature
from tilec.hardware.warpgroup_tiles import (
    SharedOperand,
    WarpgroupTiles,
    shared_operand,
    warpgroup_tiles,
)


class WgmmaFenceOp(Op, name="wgmma_fence", needs=Feature.WGMMA):
    """Hands an accumulator's registers to the tensor cores; only `wgmma_wait` gives them back.

    Example:
        %p = "gpu_tile.wgmma_fence"(%acc) : (tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>) -> !gpu_tile.pending<tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>>
    """

    acc = Operand(TILE)
    result = Result(PENDING)

    @classmethod
    def infer_types(cls, acc: Any) -> list[ir.Type]:
        return [pending_type(acc.type)]

    def check(self) -> str | None:
        same = tile_of(self.result) == self.acc.type
        return None if same else f"result must be pending {self.acc.type}"


class WgmmaOp(Op, name="wgmma", product=True, until=Until.PRODUCTS_WAITED):
    """result = lhs @ rhs + acc, all of k, as one committed group of `instruction`.

    `lhs` is a buffer or a tile in the instruction's fragments; `rhs` is a buffer. Which dimension of
    a buffer is contiguous makes it K- or MN-major; types of other than 16 bits are K-major.

    Example:
        %q = "gpu_tile.wgmma"(%a, %b, %p) {instruction = "wgmma.m64n64k16.f32.bf16.bf16"} : (!gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>, !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>, !gpu_tile.pending<tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>>) -> !gpu_tile.pending<tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>>
    """

    lhs = Operand(ANY, reads=True)
    rhs = Operand(BUFFER, reads=True)
    acc = Operand(PENDING)
    result = Result(PENDING)
    instruction = Attribute(STRING)

    @classmethod
    def infer_types(cls, lhs: Any, rhs: Any, acc: Any, **_: Any) -> list[ir.Type]:
        return [acc.type]

    def feature(self) -> Feature | None:
        """See `OpTraits`."""
        return find_instruction(self.instruction).feature

    def check(self) -> str | None:
        if self.result.type != self.acc.type:
            return f"result type {self.result.type} differs from the accumulator's {self.acc.type}"
        try:
            instruction = find_instruction(self.instruction)
            lhs, lhs_element = _operand(self.lhs)
            rhs, rhs_element = _operand(self.rhs)
            acc = tile_of(self.acc)
            layout_of(acc)
        except ValueError as error:
            return str(error)
        if not instruction.is_warpgroup:
            return f"{instruction.name} is no instruction of a warpgroup"
        if lhs[-1:] != rhs[-2:-1] or (*lhs[:-1], *rhs[-1:]) != shape(acc):
            return f"shapes do not multiply: {show(lhs)} by {show(rhs)} into {show(shape(acc))}"
        found = (str(lhs_element), str(rhs_element), str(element(acc)))
        if found != (instruction.lhs, instruction.rhs, instruction.acc):
            expected = f"{instruction.lhs}, {instruction.rhs} and {instruction.acc}"
            return f"{instruction.name} multiplies {expected}, found {', '.join(found)}"
        return self._check_parts(instruction)

    def _check_parts(self, instruction: MmaInstruction) -> str | None:
        """Says what keeps the operands from being made of whole instructions, or None."""
        acc = tile_of(self.acc)
        if not layout_of(acc).is_exact(shape(acc)):
            return f"the accumulator's layout does not fit {show(shape(acc))} exactly"
        name = "acc"
        try:
            parts = self.parts(instruction)
            name = "lhs"
            if is_buffer(self.lhs):
                if instruction.paired:
                    return f"{instruction.name} has rows in an order that only registers have"
                self.shared("lhs", instruction)
            else:
                lhs = warpgroup_tiles(layout_of(self.lhs), instruction.lhs_layout)
                if lhs.rows() != parts.rows():
                    return "the warpgroups' rows of lhs and accumulator differ"
                if lhs.columns() != set(range(0, shape(self.lhs)[1], instruction.k)):
                    return f"lhs: layout {layout_of(self.lhs)} does not hold all of k"
            name = "rhs"
            self.shared("rhs", instruction)
        except ValueError as error:
            return f"{name}: {error}"
        return None

    def parts(self, instruction: MmaInstruction) -> WarpgroupTiles:
        """Deals the accumulator out among warpgroups. ValueError if it is not made of fragments."""
        layout = layout_of(tile_of(self.acc))
        parts = warpgroup_tiles(layout, instruction.acc_layout)
        words = [n[i : i + 2] for n in parts.registers.values() for i in range(0, len(n), 2)]
        if instruction.acc == "f16" and any(a % 2 or b != a + 1 for a, b in words):
            raise ValueError(f"layout {layout} does not keep neighbouring columns in one register")
        return parts

    def shared(self, side: str, instruction: MmaInstruction) -> SharedOperand:
        """Says how the instruction reads the buffer `side` ("lhs" or "rhs"). ValueError if it
        cannot."""
        buffer = buffer_of(self.lhs if side == "lhs" else self.rhs)
        return shared_operand(
            instruction,
            self.parts(instruction),
            buffer.layout,
            buffer.element_bytes,
            buffer.shape,
            1 if side == "lhs" else 0,
        )


def _operand(value: ir.Value) -> tuple[tuple[int, ...], ir.Type]:
    if is_buffer(value):
        buffer = buffer_of(value)
        return buffer.shape, buffer.element
    if is_pending(value) or not isinstance(value.type, ir.RankedTensorType):
        raise ValueError(f"expected a buffer or a tile, found {value.type}")
    layout_of(value)
    return shape(value), element(value)


class WgmmaMeanwhileOp(Op, name="wgmma_meanwhile", needs=Feature.WGMMA):
    """Marks a point: what stands in front of it is done beside the tensor cores, in front of the
    next wait.

    ptxas takes a wait for a cheap instruction and would move it up, in front of that work.

    Example:
        "gpu_tile.wgmma_meanwhile"() : () -> ()
    """


class WgmmaWaitOp(Op, name="wgmma_wait", needs=Feature.WGMMA, ends=Until.PRODUCTS_WAITED):
    """Waits until at most `pending` of this warpgroup's groups are unfinished.

    The result is a tile where the group that wrote it is surely finished, else still pending.

    Example:
        %c = "gpu_tile.wgmma_wait"(%q) {pending = 0 : i32} : (!gpu_tile.pending<tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>>) -> tensor<64x64xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
    """

    acc = Operand(PENDING)
    result = Result(ANY)
    pending = Attribute(INT)

    def check(self) -> str | None:
        if not 0 <= self.pending <= 7:
            return f"pending must be 0 to 7, found {self.pending}"
        if self.result.type not in (self.acc.type, tile_of(self.acc)):
            return f"result must be {tile_of(self.acc)}, pending or not"
        return None
