"""Ops on tiles in registers that only exist once layouts are chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir import ir

from tilec.dialects.attributes import BOOL, INT
from tilec.dialects.constraints import TILE
from tilec.dialects.gpu_tile.dialect import Op
from tilec.dialects.gpu_tile.types import layout_of
from tilec.dialects.op import Attribute, Operand, Region, Result
from tilec.dialects.tile.reduction import check_combination
from tilec.dialects.types import element, shape, show


def _check_layouts(values: Sequence[ir.Value]) -> str | None:
    for value in values:
        try:
            layout_of(value)
        except ValueError as error:
            return str(error)
    return None


class ConvertLayoutOp(Op, name="convert_layout", pure=True, moves=True):
    """The same tile, held by other threads and registers.

    Example:
        %y = "gpu_tile.convert_layout"(%x) : (tensor<128xf32, #gpu_tile.layout<"T(32):(4@0) V(4):(1@0)">>) -> tensor<128xf32, #gpu_tile.layout<"T(32):(1@0) V(4):(32@0)">>
    """

    src = Operand(TILE)
    result = Result(TILE)

    def check(self) -> str | None:
        if shape(self.src) != shape(self.result) or element(self.src) != element(self.result):
            return f"a conversion keeps shape and element type: {self.src.type}, {self.result.type}"
        return _check_layouts([self.src, self.result])


class ScaleOp(Op, name="scale", pure=True, one_layout=True, in_thread=True):
    """A tile of sums times factors, by warps of which some thread has a factor that is not one;
    the others keep the sums, which are the same.

    Example:
        %y = "gpu_tile.scale"(%x, %f) : (tensor<64x32xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,4):(1@1,8@0,8@1)">>, tensor<64x32xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,4):(1@1,8@0,8@1)">>) -> tensor<64x32xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,4):(1@1,8@0,8@1)">>
    """

    sums = Operand(TILE)
    factors = Operand(TILE)
    result = Result(TILE)

    def check(self) -> str | None:
        if not self.sums.type == self.factors.type == self.result.type:
            return "operands and result must have one type"
        if element(self.sums) != ir.F32Type.get():
            return f"sums are f32, found {element(self.sums)}"
        return _check_layouts([self.result])


class ShiftVectorsOp(
    Op, name="shift_vectors", pure=True, one_layout=True, in_thread=True, moves=True
):
    """Of every two vectors put one behind the other, of `low` and of `high` at the same place along
    `axis`, the `width` elements from the one with number `first` on.

    Example:
        %y = "gpu_tile.shift_vectors"(%a, %b) {axis = 0 : i32, first = 3 : i32, width = 4 : i32} : (tensor<128xf32, #gpu_tile.layout<"T(32):(4@0) V(4):(1@0)">>, tensor<128xf32, #gpu_tile.layout<"T(32):(4@0) V(4):(1@0)">>) -> tensor<128xf32, #gpu_tile.layout<"T(32):(4@0) V(4):(1@0)">>
    """

    low = Operand(TILE)
    high = Operand(TILE)
    result = Result(TILE)
    axis = Attribute(INT)
    width = Attribute(INT)
    first = Attribute(INT)

    @classmethod
    def infer_types(cls, low: Any, high: Any, **_: Any) -> list[ir.Type]:
        return [low.type]

    def check(self) -> str | None:
        if not self.low.type == self.high.type == self.result.type:
            return "operands and result must have one type"
        wrong = _check_layouts([self.low])
        if wrong:
            return wrong
        if not 0 < self.first < self.width:
            return f"'first' must be 1 to {self.width - 1}, found {self.first}"
        layout, sizes = layout_of(self.low), shape(self.low)
        held = layout.values[0] if layout.values else None
        if held is None or (held.dim, held.stride) != (self.axis, 1) or held.size % self.width:
            return f"a thread must hold vectors of {self.width} along {self.axis}, found {layout}"
        if sizes[self.axis] % self.width:
            return f"{sizes[self.axis]} elements are no whole vectors of {self.width}"
        return None


class _PartOfReduction(Op, pure=True):
    """Reduces along `axis` as far as some threads go."""

    inputs = Operand(TILE, variadic=True, mixed=True)
    outputs = Result(TILE, variadic=True, mixed=True)
    axis = Attribute(INT)
    body = Region()

    def check(self) -> str | None:
        return _check_layouts([*self.inputs, *self.outputs]) or check_combination(
            self.inputs, self.axis, self.body
        )


class ThreadReduceOp(_PartOfReduction, name="thread_reduce"):
    """Reduces along `axis` inside each thread: the axis shrinks to the number of threads that share
    it.

    What a loop carries in place of a tile that is reduced behind it. Threads that hold phantoms
    alone have no partial result.

    Example:
        %p = "gpu_tile.thread_reduce"(%x) ({
        ^bb0(%a: f32, %b: f32):
          %c = arith.addf %a, %b : f32
          gpu.yield %c : f32
        }) {axis = 0 : i32} : (tensor<256xf32, #gpu_tile.layout<"T(32,2):(4@0,128@0) V(4):(1@0)">>) -> tensor<64xf32, #gpu_tile.layout<"T(64):(1@0) V():()">>
    """


class WarpReduceOp(_PartOfReduction, name="warp_reduce"):
    """Reduces along `axis` inside each warp: the axis shrinks to the number of warps that share it.

    First half of a reduction across warps; the partial results meet in shared memory. Warps that
    hold phantoms alone have no partial result.

    Example:
        %p = "gpu_tile.warp_reduce"(%x) ({
        ^bb0(%a: f32, %b: f32):
          %c = arith.addf %a, %b : f32
          gpu.yield %c : f32
        }) {axis = 0 : i32} : (tensor<256xf32, #gpu_tile.layout<"T(32,2):(4@0,128@0) V(4):(1@0)">>) -> tensor<2xf32, #gpu_tile.layout<"T(32,2):(0,1@0) V():()">>
    """


class WarpSpreadOp(Op, name="warp_spread", pure=True, in_thread=True, moves=True):
    """Each element becomes the partial result of what its warp holds of its row: the way back from
    `warp_reduce`.

    Example:
        %s = "gpu_tile.warp_spread"(%p) {axis = 0 : i32} : (tensor<2xf32, #gpu_tile.layout<"T(32,2):(0,1@0) V():()">>) -> tensor<256xf32, #gpu_tile.layout<"T(32,2):(4@0,128@0) V(4):(1@0)">>
    """

    src = Operand(TILE)
    result = Result(TILE)
    axis = Attribute(INT)

    def check(self) -> str | None:
        axis, (own, made) = self.axis, (shape(self.src), shape(self.result))
        if not 0 <= axis < len(made):
            return f"axis {axis} is out of range for rank {len(made)}"
        if own[:axis] + own[axis + 1 :] != made[:axis] + made[axis + 1 :]:
            return f"{show(own)} and {show(made)} differ off axis {axis}"
        if element(self.src) != element(self.result):
            return f"elements of {element(self.src)} become {element(self.result)}"
        return _check_layouts([self.src, self.result])


class WarpScanOp(Op, name="warp_scan", pure=True):
    """Inclusive scan along `axis` of each block: what one warp holds in a row.

    `totals`: what each block adds up to; their axis numbers the blocks in order (several a warp
    where outer registers repeat the warps).

    Example:
        %s, %t = "gpu_tile.warp_scan"(%x) ({
        ^bb0(%a: f32, %b: f32):
          %c = arith.addf %a, %b : f32
          gpu.yield %c : f32
        }) {axis = 0 : i32, reverse = false, resultSegmentSizes = array<i32: 1, 0, 1, 0>} : (tensor<256xf32, #gpu_tile.layout<"T(32,2):(4@0,128@0) V(4):(1@0)">>) -> (tensor<256xf32, #gpu_tile.layout<"T(32,2):(4@0,128@0) V(4):(1@0)">>, tensor<2xf32, #gpu_tile.layout<"T(32,2):(0,1@0) V():()">>)
    """

    inputs = Operand(TILE, variadic=True, mixed=True)
    outputs = Result(TILE, variadic=True, mixed=True)
    totals = Result(TILE, variadic=True, mixed=True)
    axis = Attribute(INT)
    reverse = Attribute(BOOL)
    body = Region()

    def check(self) -> str | None:
        if [v.type for v in self.inputs] != [v.type for v in self.outputs]:
            return "scanned results must have the inputs' types"
        if [element(v) for v in self.inputs] != [element(v) for v in self.totals]:
            return "totals must have the inputs' element types"
        return _check_layouts([*self.inputs, *self.totals]) or check_combination(
            self.inputs, self.axis, self.body
        )


class ScanCarryOp(Op, name="scan_carry", pure=True):
    """Folds into each block of a scan the totals of the blocks before it along `axis`.

    Every thread holds the totals of its rows whole.

    Example:
        %y = "gpu_tile.scan_carry"(%s, %t) ({
        ^bb0(%a: f32, %b: f32):
          %c = arith.addf %a, %b : f32
          gpu.yield %c : f32
        }) {axis = 0 : i32, reverse = false, operandSegmentSizes = array<i32: 1, 0, 1, 0>} : (tensor<256xf32, #gpu_tile.layout<"T(32,2):(4@0,128@0) V(4):(1@0)">>, tensor<2xf32, #gpu_tile.layout<"T(64):(0) V(2):(1@0)">>) -> tensor<256xf32, #gpu_tile.layout<"T(32,2):(4@0,128@0) V(4):(1@0)">>
    """

    inputs = Operand(TILE, variadic=True, mixed=True)
    totals = Operand(TILE, variadic=True, mixed=True)
    outputs = Result(TILE, variadic=True, mixed=True)
    axis = Attribute(INT)
    reverse = Attribute(BOOL)
    body = Region()

    def check(self) -> str | None:
        if [v.type for v in self.inputs] != [v.type for v in self.outputs]:
            return "results must have the scanned tiles' types"
        if [element(v) for v in self.inputs] != [element(v) for v in self.totals]:
            return "totals must have the inputs' element types"
        wrong = _check_layouts([*self.inputs, *self.totals])
        if wrong:
            return wrong
        layout = layout_of(self.totals[0])
        if any(mode.dim == self.axis for mode in layout.threads):
            return f"every thread must hold its rows' totals whole, found {layout}"
        return check_combination(self.inputs, self.axis, self.body)
