"""Questions about builtin types that both dialects ask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir import ir


def shape(value: Any) -> tuple[int, ...]:
    """The static shape of a tile or array value (or of its type)."""
    return tuple(_type(value).shape)


def element(value: Any) -> ir.Type:
    """The element type of a tile or array value (or of its type)."""
    return _type(value).element_type


def number_type(value: Any) -> ir.Type:
    """The type of a scalar value, or of the elements of a tile."""
    return element(value) if is_tile(value) else _type(value)


def encoding(value: Any) -> ir.Attribute | None:
    """The layout attribute of a tile (or of its type), None at the `tile` level."""
    return _type(value).encoding


def is_tile(value: Any) -> bool:
    """Whether a value (or type) is a tile."""
    return isinstance(_type(value), ir.RankedTensorType)


def is_array(value: Any) -> bool:
    """Whether a value (or type) is an array in global memory."""
    return isinstance(_type(value), ir.MemRefType)


def is_index(value: Any) -> bool:
    """Whether a value (or type) is an index."""
    return isinstance(_type(value), ir.IndexType)


def is_vector(value: Any) -> bool:
    """Whether a value (or type) is a vector of LLVM's."""
    return isinstance(_type(value), ir.VectorType)


def is_list(value: Any) -> bool:
    """Whether a value (or type) is a list of arrays."""
    return is_array(value) and is_array(element(value))


def tile(
    shape: Sequence[int], element: ir.Type, encoding: ir.Attribute | None = None
) -> ir.RankedTensorType:
    """The type `tensor<shape x element, encoding>`."""
    return ir.RankedTensorType.get(list(shape), element, encoding, loc=ir.Location.current)


def with_shape(value: Any, shape: Sequence[int]) -> ir.RankedTensorType:
    """The tile type of `value` with another shape; its layout, if any, does not carry over."""
    return tile(shape, element(value))


def count_stripes(whole: tuple[int, ...], part: tuple[int, ...], axis: int) -> int:
    """How many tiles of one shape, side by side along an axis, are one of another; 0 if none."""
    if len(part) != len(whole) or not part[axis] or whole[axis] % part[axis]:
        return 0
    sizes = (*whole[:axis], part[axis], *whole[axis + 1 :])
    return whole[axis] // part[axis] if sizes == part else 0


def with_element(value: Any, element: ir.Type) -> ir.RankedTensorType:
    """The tile type of `value` with another element type, same layout."""
    return tile(shape(value), element, encoding(value))


def show(shape: Sequence[int]) -> str:
    """A shape as people write it: `128x64`, `scalar` for rank 0."""
    return "x".join(map(str, shape)) if shape else "scalar"


def is_float(element: ir.Type) -> bool:
    """Whether a scalar type is any floating-point type."""
    return isinstance(element, ir.FloatType)


def is_integer(element: ir.Type) -> bool:
    """Whether a scalar type is an integer or index."""
    return isinstance(element, (ir.IntegerType, ir.IndexType))


def bit_width(element: ir.Type) -> int:
    """Bits of a number type; index counts as 64."""
    return 64 if is_index(element) else element.width


def byte_width(element: ir.Type) -> int:
    """Bytes of a number in memory; i1 takes a whole one."""
    return max(1, bit_width(element) // 8)


def _type(value: Any) -> Any:
    # Most are values, and of MLIR's objects `isinstance` says no four times as slowly as yes.
    return value.type if isinstance(value, ir.Value) else value
