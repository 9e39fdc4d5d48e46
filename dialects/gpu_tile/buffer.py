"""Buffers in shared and tensor memory: their allocation, views, and traffic with registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

from mlir import ir

from tilec.dialects.attributes import INT, INTS, options
from tilec.dialects.constraints import BUFFER, I32, TILE
from tilec.dialects.gpu_tile.dialect import Op
from tilec.dialects.gpu_tile.types import (
    TensorBuffer,
    any_buffer_of,
    buffer_of,
    is_tensor_buffer,
    layout_of,
)
from tilec.dialects.op import Attribute, Operand, Result
from tilec.dialects.tile.reduction import check_counted
from tilec.dialects.types import element, is_integer, shape, show
from tilec.hardware.shared_layout import is_dense, strided
from tilec.hardware.target import Feature
from tilec.hardware.tensor_access import plan_access


def _check_fits(tile: ir.Value, buffer: ir.Value) -> str | None:
    try:
        parsed = any_buffer_of(buffer)
        layout = layout_of(tile)
    except ValueError as error:
        return str(error)
    if shape(tile) != parsed.shape:
        return f"tile is {show(shape(tile))}, buffer {show(parsed.shape)}"
    if element(tile) != parsed.element:
        return f"element types differ: tile {element(tile)}, buffer {parsed.element}"
    if isinstance(parsed, TensorBuffer):
        try:
            plan_access(layout, parsed.layout, parsed.shape, parsed.bits)
        except ValueError as error:
            return str(error)
    return None


class AllocOp(Op, name="alloc", in_cta=True, common=True, placed="buffer"):
    """Memory of one CTA, shared or, by the buffer's attribute, tensor memory.

    `options.offset` is filled in by allocate-shared (bytes) or allocate-tensor-memory (columns).

    Example:
        %b = "gpu_tile.alloc"() {options = {}} : () -> !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
    """

    result = Result(BUFFER)
    options = Attribute(options(offset=INT), default={})

    def feature(self) -> Feature | None:
        """See `OpTraits`."""
        return Feature.TCGEN05 if is_tensor_buffer(self.result) else None

    def check(self) -> str | None:
        try:
            parsed = any_buffer_of(self.result)
        except ValueError as error:
            return str(error)
        if (
            parsed.slot().shape != parsed.layout.shape
            or len(parsed.shape) > len(parsed.layout.dims) + 1
        ):
            return f"layout is for {show(parsed.layout.shape)}, the tile is {show(parsed.shape)}"
        offset = self.options.get("offset", 0)
        step = 1 if isinstance(parsed, TensorBuffer) else parsed.alignment_bytes
        if offset < 0 or offset % step:
            return f"offset {offset} is no multiple of {step}"
        return None


class BufferView(Op, pure=True, one_thread=True, in_cta=True):
    """An op that gives a buffer or a part of it another type, without memory of its own."""

    src = Operand(BUFFER)
    result = Result(BUFFER)


class ViewOp(BufferView, name="view"):
    """A sub-tile of a buffer starting at `offsets` (elements, one per dimension), same layout.

    Example:
        %v = "gpu_tile.view"(%b, %i, %j) : (!gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>, i32, i32) -> !gpu_tile.buffer<tensor<64x8xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
    """

    offsets = Operand(I32, variadic=True)

    def check(self) -> str | None:
        try:
            source, result = any_buffer_of(self.src), any_buffer_of(self.result)
        except ValueError as error:
            return str(error)
        if len(self.offsets) != len(source.shape):
            rank, found = len(source.shape), len(self.offsets)
            return f"expected one offset per dimension ({rank}), found {found}"
        if source.layout != result.layout or source.element != result.element:
            return "a view keeps its buffer's layout and element type"
        if len(result.shape) != len(source.shape) or any(
            small > large for small, large in zip(result.shape, source.shape, strict=True)
        ):
            return f"view {show(result.shape)} does not fit in {show(source.shape)}"
        return None


class TransposeViewOp(BufferView, name="transpose_view"):
    """The same memory with its dimensions permuted: dimension i is source dimension permutation[i].

    Example:
        %v = "gpu_tile.transpose_view"(%b) {permutation = array<i32: 1, 0>} : (!gpu_tile.buffer<tensor<64x32xf32>, #gpu_tile.shared<"(64,32):(36,1)">>) -> !gpu_tile.buffer<tensor<32x64xf32>, #gpu_tile.shared<"(32,64):(1,36)">>
    """

    permutation = Attribute(INTS)

    @classmethod
    def infer_types(cls, src: Any, permutation: Sequence[int], **_: Any) -> list[ir.Type]:
        source = any_buffer_of(src)
        if len(source.shape) != len(source.layout.dims):
            raise ValueError(f"a ring of {source.slots} buffers is not transposed as a whole")
        if sorted(permutation) != list(range(len(source.shape))):
            raise ValueError(
                f"{list(permutation)} is no permutation of {len(source.shape)} dimensions"
            )
        sizes = tuple(source.shape[d] for d in permutation)
        layout = source.layout.permute(permutation)
        return [replace(source, shape=sizes, layout=layout).type()]

    def check(self) -> str | None:
        try:
            (expected,) = self.infer_types(self.src, self.permutation)
        except ValueError as error:
            return str(error)
        return None if self.result.type == expected else f"result must be {expected}"


class ReshapeViewOp(BufferView, name="reshape_view"):
    """The same memory under another shape. Both layouts are dense, the source's is row-major: what
    lies at a place of the result is what lies there in the source.

    Example:
        %v = "gpu_tile.reshape_view"(%b) : (!gpu_tile.buffer<tensor<8x64xf32>, #gpu_tile.shared<"(8,64):(64,1)">>) -> !gpu_tile.buffer<tensor<512xf32>, #gpu_tile.shared<"(512):(1)">>
    """

    def check(self) -> str | None:
        try:
            source, result = buffer_of(self.src), buffer_of(self.result)
        except ValueError as error:
            return str(error)
        strides = [prod(source.shape[d + 1 :]) for d in range(len(source.shape))]
        if source.layout != strided(source.shape, strides):
            return f"layout {source.layout} of {show(source.shape)} is not dense and row-major"
        if not is_dense(result.layout):
            return f"layout {result.layout} of {show(result.shape)} has gaps"
        if prod(source.shape) != prod(result.shape) or source.element != result.element:
            return f"{show(source.shape)} and {show(result.shape)} hold different elements"
        return None


class BufferLoadOp(Op, name="buffer_load"):
    """Reads a whole buffer into registers; the two layouts decide the instruction.

    From tensor memory it waits until the registers are there.

    Example:
        %t = "gpu_tile.buffer_load"(%b) : (!gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>) -> tensor<64x64xf32, #gpu_tile.layout<"T(16,8):(4@1,1@0) V(4,8):(1@1,8@0)">>
    """

    src = Operand(BUFFER, reads=True)
    result = Result(TILE)

    def check(self) -> str | None:
        return _check_fits(self.result, self.src)


class BufferStoreOp(Op, name="buffer_store", fills="loads and stores"):
    """Writes a tile from registers into a buffer; phantoms and second copies are not written.

    Into tensor memory it waits until the buffer has them.

    Example:
        "gpu_tile.buffer_store"(%t, %b) : (tensor<64x64xf32, #gpu_tile.layout<"T(16,8):(4@1,1@0) V(4,8):(1@1,8@0)">>, !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>) -> ()
    """

    value = Operand(TILE)
    dst = Operand(BUFFER, writes=True)

    def check(self) -> str | None:
        wrong = _check_fits(self.value, self.dst)
        if wrong or not is_tensor_buffer(self.dst):
            return wrong
        if any(not mode.stride for mode in layout_of(self.value).threads):
            return f"several threads hold copies of what goes to tensor memory: {self.value.type}"
        return None


class BufferGatherOp(Op, name="buffer_gather"):
    """Reads per result element the buffer element whose coordinate along `axis` is the index.

    An index outside the buffer reads an unspecified element of it.

    Example:
        %y = "gpu_tile.buffer_gather"(%b, %i) {axis = 0 : i32} : (!gpu_tile.buffer<tensor<64xf32>, #gpu_tile.shared<"(64):(1)">>, tensor<32xi32, #gpu_tile.layout<"T(32):(1@0) V():()">>) -> tensor<32xf32, #gpu_tile.layout<"T(32):(1@0) V():()">>
    """

    src = Operand(BUFFER, reads=True)
    indices = Operand(TILE)
    result = Result(TILE)
    axis = Attribute(INT)

    @classmethod
    def infer_types(cls, src: Any, indices: Any, **_: Any) -> list[ir.Type]:
        indices_type = indices.type
        return [
            ir.RankedTensorType.get(
                list(indices_type.shape), buffer_of(src).element, indices_type.encoding
            )
        ]

    def check(self) -> str | None:
        try:
            source = buffer_of(self.src)
        except ValueError as error:
            return str(error)
        if not 0 <= self.axis < len(source.shape):
            return f"axis {self.axis} is out of range for rank {len(source.shape)}"
        if not is_integer(element(self.indices)):
            return f"indices must be integers, found {element(self.indices)}"
        if shape(self.result) != shape(self.indices):
            return f"result is {show(shape(self.result))}, indices {show(shape(self.indices))}"
        if element(self.result) != source.element:
            return f"element types differ: buffer {source.element}, result {element(self.result)}"
        return None


class BufferCountOp(Op, name="buffer_count"):
    """Adds 1, atomically, to a row's element j for each of `values` that is j.

    The buffer's rows are for one warp each, or there is one for all. What is masked off, negative
    or not below the number of columns is not counted.

    Example:
        "gpu_tile.buffer_count"(%v, %ok, %b) : (tensor<64xi32, #gpu_tile.layout<"T(64):(1@0) V():()">>, tensor<64xi1, #gpu_tile.layout<"T(64):(1@0) V():()">>, !gpu_tile.buffer<tensor<2x100xi32>, #gpu_tile.shared<"(2,100):(100,1)">>) -> ()
    """

    values = Operand(TILE)
    mask = Operand(TILE)
    dst = Operand(BUFFER, reads=True, writes=True)

    def check(self) -> str | None:
        try:
            buffer = buffer_of(self.dst)
            same = layout_of(self.values) == layout_of(self.mask)
        except ValueError as error:
            return str(error)
        if len(buffer.shape) != 2 or str(buffer.element) != "i32":
            return f"buffer must have rows of i32, found {show(buffer.shape)} of {buffer.element}"
        wrong = check_counted(self.values, self.mask)
        if wrong is None and not same:
            return "values and mask must have one layout"
        return wrong
