"""What a kernel may ask of an array, or of a list of them: its sizes."""

from __future__ import annotations

from typing import Any

from tilec.frontend.builder import Builder
from tilec.frontend.values import Array, ArrayList, ArrayShape, Scalar, check_axis
from tilec.terms.dtypes import index


def array_size(builder: Builder, array: Array, axis: int) -> int | Scalar:
    """Gives one size of an array: a constant where the specialisation fixes it, else an index
    scalar."""
    axis = check_axis(axis, array.rank, "index")
    known = array.sizes[axis]
    if known is not None:
        return known
    number = builder.constant(axis, index)
    return Scalar(builder.value("memref.dim", builder.element(index), array.value, number), index)


def list_length(builder: Builder, arrays: ArrayList) -> Scalar:
    """Gives the number of arrays of a list."""
    first = builder.constant(0, index)
    return Scalar(builder.value("memref.dim", builder.element(index), arrays.value, first), index)


def as_tuple(builder: Builder, value: Any) -> tuple[Any, ...] | None:
    """A tuple or an array's shape as a tuple; None for anything else."""
    if isinstance(value, ArrayShape):
        array = value.array
        return tuple(array_size(builder, array, axis) for axis in range(array.rank))
    return value if isinstance(value, tuple) else None
