"""Ops that make, move or rename elements without computing on them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from mlir import ir

from tilec.dialects.attributes import INT, INTS
from tilec.dialects.constraints import TILE
from tilec.dialects.op import Attribute, Operand, Result
from tilec.dialects.tile.dialect import Op
from tilec.dialects.traits import Groups, Sources
from tilec.dialects.types import element, is_integer, shape, show, with_shape


def _check_axis(axis: int, rank: int) -> str | None:
    return None if 0 <= axis < rank else f"axis {axis} is out of range for rank {rank}"


def _check_same_element(source: ir.Value, result: ir.Value) -> str | None:
    if element(source) == element(result):
        return None
    return f"element types differ: {element(source)}, {element(result)}"


class IotaOp(Op, name="iota", pure=True, in_thread=True):
    """Each element's coordinate along `axis`.

    Example:
        %i = "tile.iota"() {axis = 0 : i32} : () -> tensor<128xi32>
    """

    result = Result(TILE)
    axis = Attribute(INT)

    def check(self) -> str | None:
        if not is_integer(element(self.result)):
            return f"elements must be integers, found {element(self.result)}"
        return _check_axis(self.axis, len(shape(self.result)))

    def stripes(self, axis: int) -> Sources:
        """See `OpTraits`."""
        return []


class BroadcastOp(Op, name="broadcast", pure=True, in_thread=True, moves=True):
    """Source dimension i becomes result dimension dims[i]; elements repeat along all others.

    Example:
        %b = "tile.broadcast"(%r) {dims = array<i32: 0>} : (tensor<64xf32>) -> tensor<64x128xf32>
    """

    src = Operand(TILE)
    result = Result(TILE)
    dims = Attribute(INTS)

    def check(self) -> str | None:
        source, result, dims = shape(self.src), shape(self.result), self.dims
        if len(dims) != len(source):
            return f"'dims' must name one result dimension per source dimension ({len(source)})"
        if len(set(dims)) != len(dims) or any(not 0 <= d < len(result) for d in dims):
            return (
                f"'dims' must be distinct result dimensions below {len(result)}, found {list(dims)}"
            )
        for i, d in enumerate(dims):
            if source[i] not in (1, result[d]):
                return (
                    f"source dimension {i} of size {source[i]} does not fit result size {result[d]}"
                )
        return _check_same_element(self.src, self.result)

    def stripes(self, axis: int) -> Sources:
        """See `OpTraits`; of what is repeated, nothing."""
        sizes = shape(self.src)
        return [(self.src, at) for at, to in enumerate(self.dims) if to == axis and sizes[at] > 1]


class ReshapeOp(Op, name="reshape", pure=True, in_thread=True, moves=True):
    """The same elements in row-major order under another shape.

    Example:
        %y = "tile.reshape"(%x) : (tensor<4x32xf32>) -> tensor<128xf32>
    """

    src = Operand(TILE)
    result = Result(TILE)

    def check(self) -> str | None:
        source, result = shape(self.src), shape(self.result)
        if prod(source) != prod(result):
            return f"element counts differ: {show(source)} and {show(result)}"
        return _check_same_element(self.src, self.result)

    def kept_axes(self) -> list[tuple[int, int]]:
        """The axes of source and result, those of one element left out, that are the same; none
        where elements get other coordinates."""
        source, result = (
            [(axis, size) for axis, size in enumerate(shape(value)) if size > 1]
            for value in (self.src, self.result)
        )
        if [size for _, size in source] != [size for _, size in result]:
            return []
        return [(own, other) for (own, _), (other, _) in zip(source, result, strict=True)]

    def stripes(self, axis: int) -> Sources | None:
        """See `OpTraits`."""
        return [(self.src, own) for own, to in self.kept_axes() if to == axis] or None


class TransposeOp(Op, name="transpose", pure=True, in_thread=True, moves=True):
    """Result dimension i is source dimension permutation[i].

    Example:
        %y = "tile.transpose"(%x) {permutation = array<i32: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
    """

    src = Operand(TILE)
    result = Result(TILE)
    permutation = Attribute(INTS)

    @classmethod
    def infer_types(cls, src: Any, *, permutation: Sequence[int]) -> list[ir.Type]:
        return [with_shape(src, [shape(src)[p] for p in permutation])]

    def check(self) -> str | None:
        source, result = shape(self.src), shape(self.result)
        if sorted(self.permutation) != list(range(len(source))):
            return f"{list(self.permutation)} is no permutation of {len(source)} dimensions"
        expected = tuple(source[p] for p in self.permutation)
        if result != expected:
            return f"result must be {show(expected)}, found {show(result)}"
        return _check_same_element(self.src, self.result)

    def stripes(self, axis: int) -> Sources:
        """See `OpTraits`."""
        return [(self.src, self.permutation[axis])]


class JoinOp(Op, name="join", pure=True, in_thread=True, moves=True):
    """Concatenates tiles along `axis`; the inverse of `split` for inputs of one type.

    The first input may have another size along the axis than the rest, which have one type: what
    concatenates more sizes chains joins of two.

    Example:
        %y = "tile.join"(%a, %b) {axis = 0 : i32} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    """

    inputs = Operand(TILE, variadic=True, mixed=True)
    result = Result(TILE)
    axis = Attribute(INT)

    @classmethod
    def infer_types(cls, inputs: Sequence[ir.Value], *, axis: int) -> list[ir.Type]:
        sizes = list(shape(inputs[0]))
        sizes[axis] = sum(shape(v)[axis] for v in inputs)
        return [with_shape(inputs[0], sizes)]

    def alike(self) -> Groups:
        """See `OpTraits`; the first where it is of the rest's size."""
        first, *rest = self.inputs
        return [[*rest, *(v for v in [first] if rest and v.type == rest[0].type)]]

    def stripes(self, axis: int) -> Sources | None:
        """See `OpTraits`."""
        return None if axis == self.axis else [(one, axis) for one in self.inputs]

    def check(self) -> str | None:
        result, axis = shape(self.result), self.axis
        wrong = _check_axis(axis, len(result))
        if wrong:
            return wrong
        for value in self.inputs:
            size = shape(value)
            if (
                len(size) != len(result)
                or size[:axis] + size[axis + 1 :] != result[:axis] + result[axis + 1 :]
            ):
                return f"sizes off the axis differ: {show(size)} and {show(result)}"
            if element(value) != element(self.result):
                return _check_same_element(value, self.result)
        total = sum(shape(v)[axis] for v in self.inputs)
        if total != result[axis]:
            return f"sizes along the axis add up to {total}, result has {result[axis]}"
        return None


class SplitOp(Op, name="split", pure=True, moves=True):
    """Cuts a tile into equal parts along `axis`.

    Example:
        %a, %b = "tile.split"(%x) {axis = 0 : i32} : (tensor<8x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
    """

    src = Operand(TILE)
    parts = Result(TILE, variadic=True)
    axis = Attribute(INT)

    def alike(self) -> Groups:
        """See `OpTraits`."""
        return [self.parts]

    def stripes(self, axis: int) -> Sources | None:
        """See `OpTraits`."""
        return None if axis == self.axis else [(self.src, axis)]

    def check(self) -> str | None:
        source, axis = shape(self.src), self.axis
        wrong = _check_axis(axis, len(source))
        if wrong:
            return wrong
        if not self.parts or source[axis] % len(self.parts):
            return f"size {source[axis]} does not split into {len(self.parts)} equal parts"
        expected = (*source[:axis], source[axis] // len(self.parts), *source[axis + 1 :])
        for part in self.parts:
            if shape(part) != expected:
                return f"parts must be {show(expected)}, found {show(shape(part))}"
            if element(part) != element(self.src):
                return _check_same_element(self.src, part)
        return None


class TakeOp(Op, name="take", pure=True, lowered=False):
    """Gathers inside a tile: the element whose coordinate along `axis` is the index.

    The other coordinates stay; an index outside the tile gives an unspecified element.

    Example:
        %y = "tile.take"(%x, %i) {axis = 0 : i32} : (tensor<8x4xf32>, tensor<16x4xi32>) -> tensor<16x4xf32>
    """

    src = Operand(TILE)
    indices = Operand(TILE)
    result = Result(TILE)
    axis = Attribute(INT)

    @classmethod
    def infer_types(cls, src: Any, indices: Any, *, axis: int) -> list[ir.Type]:
        return [with_shape(src, shape(indices))]

    def alike(self) -> Groups:
        """See `OpTraits`."""
        return [[self.result, self.indices]]

    def check(self) -> str | None:
        source, index, axis = shape(self.src), shape(self.indices), self.axis
        wrong = _check_axis(axis, len(source))
        if wrong:
            return wrong
        if not is_integer(element(self.indices)):
            return f"indices must be integers, found {element(self.indices)}"
        if shape(self.result) != index:
            return (
                f"result shape {show(shape(self.result))} differs from the indices' {show(index)}"
            )
        if (
            len(index) != len(source)
            or index[:axis] + index[axis + 1 :] != source[:axis] + source[axis + 1 :]
        ):
            return (
                f"indices {show(index)} may differ from the source {show(source)} "
                f"only along axis {axis}"
            )
        return _check_same_element(self.src, self.result)


class ExchangeOp(Op, name="exchange", pure=True, one_layout=True, moves=True):
    """Elements change places: each becomes the one whose coordinate along `axis` differs in the
    bits of `mask`.

    What sorting networks and butterflies are made of: inside a warp it is a shuffle, inside a
    thread nothing. The size along the axis is a multiple of twice the mask's highest bit.

    Example:
        %y = "tile.exchange"(%x) {axis = 1 : i32, mask = 3 : i32} : (tensor<3x8xf32>) -> tensor<3x8xf32>
    """

    src = Operand(TILE)
    result = Result(TILE)
    axis = Attribute(INT)
    mask = Attribute(INT)

    @classmethod
    def infer_types(cls, src: Any, *, axis: int, mask: int) -> list[ir.Type]:
        return [src.type]

    def check(self) -> str | None:
        if self.src.type != self.result.type:
            return "operand and result must have one type"
        wrong = _check_axis(self.axis, len(shape(self.src)))
        if wrong:
            return wrong
        if self.mask < 1:
            return f"'mask' must be positive, found {self.mask}"
        size, whole = shape(self.src)[self.axis], 1 << self.mask.bit_length()
        if size % whole:
            return f"size {size} is no multiple of {whole}, whose elements mask {self.mask} moves"
        return None
