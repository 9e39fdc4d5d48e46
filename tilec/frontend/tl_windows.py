"""Windows: a part of an array, as an array of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import tilec.language as tl
from tilec.dialects.tile import WindowOp
from tilec.frontend.arrays import array_size, as_tuple
from tilec.frontend.builder import Builder
from tilec.frontend.conversion import to_index
from tilec.frontend.frame import Frame
from tilec.frontend.operators import plain
from tilec.frontend.statements import refuse_effects
from tilec.frontend.values import Array, ArrayList, Mistake, Scalar, describe
from tilec.terms.dtypes import index


def window(frame: Frame, array: Any, offsets: Any, sizes: Any) -> Array:
    """`tl.window`: an op a dimension that it cuts."""
    refuse_effects(frame, "window")
    if not isinstance(array, Array):
        notes = (f"help: {array.name}[i] is one of them",) if isinstance(array, ArrayList) else ()
        raise Mistake(f"window takes an array, found {describe(array)}", *notes, argument="array")
    starts = _per_dimension(frame, array, offsets, "offsets")
    wanted = (None,) * array.rank if sizes is None else _per_dimension(frame, array, sizes, "sizes")
    for dim, (start, size) in enumerate(zip(starts, wanted, strict=True)):
        if size is not None or not _is_zero(start):
            array = _along(frame.builder, array, dim, start, size)
    return array


def _along(builder: Builder, array: Array, dim: int, start: Any, size: Any) -> Array:
    """The window along one dimension."""
    first = to_index(builder, start, "an offset", "offsets")
    if isinstance(size, int) and not isinstance(size, bool) and size < 0:
        raise Mistake(f"a size must be 0 or more, found {size}", argument="sizes")
    if size is None:
        own, least = _rest(builder, array_size(builder, array, dim), start), None
    else:
        least = to_index(builder, size, "a size", "sizes")
        own = size if isinstance(size, int) else Scalar(least, index)
    value = WindowOp.build(array.value, first, least, dim=dim)
    known = (*array.sizes[:dim], own, *array.sizes[dim + 1 :])
    name = f"a window of {array.name.removeprefix('a window of ')}"
    return replace(array, value=value, name=name, sizes=known)


def _rest(builder: Builder, size: int | Scalar, start: Any) -> int | Scalar:
    """How many elements there are from `start` on."""
    if isinstance(size, int) and isinstance(start, int):
        return size - start
    return plain(builder, "-", size, start)


def _per_dimension(frame: Frame, array: Array, values: Any, argument: str) -> tuple[Any, ...]:
    parts = as_tuple(frame.builder, values)
    parts = (values,) if parts is None else parts
    if len(parts) != array.rank:
        example = ", ".join(["0"] * array.rank) + ("," if array.rank == 1 else "")
        raise Mistake(
            f"expected one of the {argument} per dimension of '{array.name}' ({array.rank}), found "
            f"{len(parts)}",
            f"help: give them as a tuple, such as ({example})",
            argument=argument,
        )
    return parts


def _is_zero(start: Any) -> bool:
    return isinstance(start, int) and not isinstance(start, bool) and start == 0


BUILTINS: Mapping[Any, Callable[..., Any]] = {tl.window: window}
