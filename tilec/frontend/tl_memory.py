"""`tl` functions that touch arrays: load, store, gather, scatter, atomics, fence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from mlir import ir

import tilec.language as tl
from tilec.dialects.tile import (
    AtomicCasOp,
    AtomicRmwOp,
    FenceOp,
    GatherOp,
    LoadOp,
    ScatterOp,
    StoreOp,
)
from tilec.dialects.tile.memory import CACHE_HINTS, KINDS, ORDERS, SCOPES
from tilec.frontend.arrays import as_tuple
from tilec.frontend.conversion import (
    as_signed,
    cast,
    check_numeric,
    common_shape,
    materialize,
    shape_of,
    to_index,
)
from tilec.frontend.frame import Frame
from tilec.frontend.promotion import promote
from tilec.frontend.values import (
    Array,
    ArrayList,
    Mistake,
    Tile,
    check_axis,
    check_shape,
    describe,
    is_number,
    is_runtime,
)
from tilec.terms.dtypes import DType, i1, i64, index

FENCE_ORDERS = ("acq_rel", "seq_cst")


def load(
    frame: Frame, array: Any, offsets: Any, shape: Any, dims: Any, padding: Any, cache: Any
) -> Tile:
    """`tl.load`."""
    array = _array(frame, array, "load")
    coordinates = _offsets(frame, array, offsets)
    sizes = check_shape(as_tuple(frame.builder, shape) or shape)
    axes = _dims(array, dims, len(sizes))
    if not is_number(padding):
        raise Mistake(
            f"padding must be a constant number, found {describe(padding)}", argument="padding"
        )
    fill = _constant(frame, padding, array.dtype, "padding")
    kind = frame.builder.type(array.dtype, sizes)
    value = LoadOp.build(
        array.value, coordinates, results=[kind], dims=axes, padding=fill, options=_options(cache)
    )
    return Tile(value, array.dtype, sizes)


def store(frame: Frame, array: Any, offsets: Any, tile: Any, dims: Any, cache: Any) -> None:
    """`tl.store`."""
    array = _array(frame, array, "store")
    coordinates = _offsets(frame, array, offsets)
    shape = shape_of(tile)
    axes = _dims(array, dims, len(shape))
    value = _element_value(frame, array, tile, shape, "tile")
    StoreOp.build(value, array.value, coordinates, dims=axes, options=_options(cache))


def gather(frame: Frame, array: Any, indices: Any, mask: Any, other: Any, cache: Any) -> Tile:
    """`tl.gather`."""
    array = _array(frame, array, "gather")
    tiles = _indices(frame, array, indices)
    shape = _common([*tiles, mask, other])
    mask_value = _mask(frame, mask, shape)
    fill = _element_value(frame, array, other, shape, "other")
    places = _index_values(frame, tiles, shape)
    (mask_value, fill, *places), _ = frame.builder.agree([mask_value, fill, *places])
    value = GatherOp.build(array.value, mask_value, fill, places, options=_options(cache))
    return Tile(value, array.dtype, shape)


def scatter(frame: Frame, array: Any, indices: Any, value: Any, mask: Any, cache: Any) -> None:
    """`tl.scatter`."""
    array = _array(frame, array, "scatter")
    tiles = _indices(frame, array, indices)
    shape = _placed(tiles, value, mask)
    mask_value = _mask(frame, mask, shape)
    element = _element_value(frame, array, value, shape, "value")
    places = _index_values(frame, tiles, shape)
    (mask_value, element, *places), _ = frame.builder.agree([mask_value, element, *places])
    ScatterOp.build(element, array.value, mask_value, places, options=_options(cache))


def _atomic(
    name: str, floating: str | None, integer: str, unsigned: str | None = None
) -> Callable[..., Tile]:
    """The implementation of one atomic: its kind per element type, None where there is no floating
    one, or the unsigned one is the integers'."""

    def atomic(
        frame: Frame, array: Any, indices: Any, value: Any, mask: Any, order: Any, scope: Any
    ) -> Tile:
        array = _array(frame, array, name)
        kind = (array.dtype.is_unsigned and unsigned) or integer
        kind = floating if array.dtype.is_float else kind
        if kind is None or array.dtype.is_narrow or array.dtype == i1:
            raise Mistake(f"{name} is not defined for {array.dtype}", argument="array")
        _word(order, ORDERS, "order")
        _word(scope, SCOPES, "scope")
        tiles = _indices(frame, array, indices)
        shape = _placed(tiles, value, mask)
        element = _element_value(frame, array, value, shape, "value")
        mask_value, places = _mask(frame, mask, shape), _index_values(frame, tiles, shape)
        (mask_value, element, *places), _ = frame.builder.agree([mask_value, element, *places])
        old = AtomicRmwOp.build(
            element, array.value, mask_value, places, kind=kind, order=order, scope=scope
        )
        return Tile(old, array.dtype, shape)

    assert integer in KINDS
    return atomic


def atomic_cas(
    frame: Frame,
    array: Any,
    indices: Any,
    expected: Any,
    value: Any,
    mask: Any,
    order: Any,
    scope: Any,
) -> Tile:
    """`tl.atomic_cas`."""
    array = _array(frame, array, "atomic_cas")
    if array.dtype.bits not in (16, 32, 64):
        raise Mistake(f"atomic_cas is not defined for {array.dtype}", argument="array")
    _word(order, ORDERS, "order")
    _word(scope, SCOPES, "scope")
    tiles = _indices(frame, array, indices)
    shape = _placed(tiles, expected, value, mask)
    old_value = _element_value(frame, array, expected, shape, "expected")
    new_value = _element_value(frame, array, value, shape, "value")
    mask_value, places = _mask(frame, mask, shape), _index_values(frame, tiles, shape)
    (old_value, new_value, mask_value, *places), _ = frame.builder.agree(
        [old_value, new_value, mask_value, *places]
    )
    old = AtomicCasOp.build(
        old_value, new_value, array.value, mask_value, places, order=order, scope=scope
    )
    return Tile(old, array.dtype, shape)


def fence(frame: Frame, order: Any, scope: Any) -> None:
    """`tl.fence`."""
    _pure_only(frame, "fence")
    _word(order, FENCE_ORDERS, "order")
    _word(scope, SCOPES, "scope")
    FenceOp.build(order=order, scope=scope)


def _pure_only(frame: Frame, name: str) -> None:
    if frame.builder.in_combine:
        raise Mistake(f"'{name}' is not possible in a combine function")


def _array(frame: Frame, value: Any, name: str) -> Array:
    _pure_only(frame, name)
    if not isinstance(value, Array):
        notes = (f"help: {value.name}[i] is one of them",) if isinstance(value, ArrayList) else ()
        raise Mistake(
            f"{name} expects an array parameter of the kernel, found {describe(value)}",
            *notes,
            argument="array",
        )
    return value


def _coordinates(frame: Frame, array: Array, values: Any, argument: str) -> tuple[Any, ...]:
    parts = as_tuple(frame.builder, values)
    parts = (values,) if parts is None else parts
    if len(parts) != array.rank:
        what = "one offset" if argument == "offsets" else "one index"
        several = f"them as a tuple, such as ({', '.join(['0'] * array.rank)})"
        raise Mistake(
            f"expected {what} per dimension of '{array.name}' ({array.rank}), found {len(parts)}",
            f"help: give {several if array.rank > 1 else 'one number'}",
            argument=argument,
        )
    return parts


def _offsets(frame: Frame, array: Array, offsets: Any) -> list[ir.Value]:
    for part in offsets if isinstance(offsets, tuple) else (offsets,):
        if isinstance(part, Tile) and part.shape:
            raise Mistake(
                f"an offset must be an integer scalar, found {describe(part)}",
                "help: the order is array, offsets, then shape or tile; tl.gather and tl.scatter "
                "take tiles of indices",
                argument="offsets",
            )
    return [
        to_index(frame.builder, offset, "an offset", "offsets")
        for offset in _coordinates(frame, array, offsets, "offsets")
    ]


def _dims(array: Array, dims: Any, rank: int) -> tuple[int, ...]:
    """Says which array dimension each tile dimension runs along; the last ones by default."""
    if dims is None:
        if rank > array.rank:
            raise Mistake(
                f"a tile of {rank} dimensions does not fit '{array.name}', which has {array.rank}"
            )
        return tuple(range(array.rank - rank, array.rank))
    axes = dims if isinstance(dims, tuple) else (dims,)
    if len(axes) != rank:
        raise Mistake(
            f"dims must name one array dimension per tile dimension ({rank}), found {len(axes)}",
            argument="dims",
        )
    checked = tuple(check_axis(axis, array.rank, "dims") for axis in axes)
    if len(set(checked)) != len(checked):
        raise Mistake(f"dims must be distinct, found {axes}", argument="dims")
    return checked


def _options(cache: Any) -> dict[str, str]:
    if cache is None:
        return {}
    _word(cache, CACHE_HINTS, "cache")
    return {"cache": cache}


def _word(value: Any, known: tuple[str, ...], argument: str) -> None:
    if not isinstance(value, str) or value not in known:
        words = ", ".join(repr(word) for word in known)
        raise Mistake(
            f"{argument} must be one of {words}; found {describe(value)}", argument=argument
        )


def _constant(frame: Frame, value: Any, dtype: DType, argument: str) -> ir.Attribute:
    try:
        return frame.builder.number(value, dtype)
    except Mistake as mistake:
        raise Mistake(f"{argument}: {mistake.message}", argument=argument) from None


def _element_value(
    frame: Frame, array: Array, value: Any, shape: tuple[int, ...], argument: str
) -> ir.Value:
    """A value to be written (or filled in): it must have the array's dtype.

    Constants adapt, and an index, which no array holds, widens to i64.
    """
    check_numeric(value, argument)
    if is_runtime(value) and value.dtype == index and array.dtype == i64:
        value = cast(frame.builder, value, i64)
    if is_runtime(value) and value.dtype != array.dtype:
        raise Mistake(
            f"'{array.name}' holds {array.dtype}, found {describe(value)}",
            f"help: convert with .to({array.name}.dtype)",
            argument=argument,
        )
    if is_number(value):
        _constant(frame, value, array.dtype, argument)
    return materialize(frame.builder, value, array.dtype, shape)


def _indices(frame: Frame, array: Array, indices: Any) -> tuple[Any, ...]:
    parts = _coordinates(frame, array, indices, "indices")
    for part in parts:
        check_numeric(part, "indices")
        if not promote([part]).is_integer:
            raise Mistake(
                f"an index must be an integer, found {describe(part)}", argument="indices"
            )
    return tuple(as_signed(frame.builder, part) for part in parts)


def _index_values(frame: Frame, indices: tuple[Any, ...], shape: tuple[int, ...]) -> list[ir.Value]:
    dtype = promote(indices)  # the ops want index tiles of one type
    return [materialize(frame.builder, part, dtype, shape) for part in indices]


def _placed(indices: tuple[Any, ...], *values: Any) -> tuple[int, ...]:
    """The shape of what is written; the indices say a place for each element of it."""
    shape, places = _common([*indices, *values]), _common(list(indices))
    if prod(places) != prod(shape):
        lost = len(shape) - len(places)
        axes = [i for i, size in enumerate(shape) if i < lost or places[i - lost] != size]
        where = f"dimension {axes[0]}" if len(axes) == 1 else f"dimensions {axes}"
        raise Mistake(
            f"the elements along {where} of a tile {shape} would all go to one place",
            "help: unlike tl.store's offsets, an index is every element's own: i + tl.arange(B)",
            argument="indices",
        )
    return shape


def _common(values: list[Any]) -> tuple[int, ...]:
    for value in values:
        check_numeric(value)
    return common_shape(values) or ()


def _mask(frame: Frame, mask: Any, shape: tuple[int, ...]) -> ir.Value:
    check_numeric(mask, "mask")
    if promote([mask]) != i1:
        raise Mistake(f"a mask must be i1, found {describe(mask)}", argument="mask")
    return materialize(frame.builder, mask, i1, shape)


BUILTINS: Mapping[Any, Callable[..., Any]] = {
    tl.load: load,
    tl.store: store,
    tl.gather: gather,
    tl.scatter: scatter,
    tl.atomic_add: _atomic("atomic_add", "addf", "addi"),
    tl.atomic_max: _atomic("atomic_max", "maxf", "maxs", "maxu"),
    tl.atomic_min: _atomic("atomic_min", "minf", "mins", "minu"),
    tl.atomic_and: _atomic("atomic_and", None, "andi"),
    tl.atomic_or: _atomic("atomic_or", None, "ori"),
    tl.atomic_xor: _atomic("atomic_xor", None, "xori"),
    tl.atomic_xchg: _atomic("atomic_xchg", "exchange", "exchange"),
    tl.atomic_cas: atomic_cas,
    tl.fence: fence,
}
