"""`tl` functions that make, move or rename elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import groupby
from math import prod
from typing import Any

import tilec.language as tl
from tilec.dialects.tile import IotaOp, JoinOp, ReshapeOp, SplitOp, TakeOp, TransposeOp
from tilec.frontend import conversion
from tilec.frontend.conversion import (
    as_runtime,
    check_numeric,
    common_shape,
    materialize,
    wrap,
)
from tilec.frontend.frame import Frame
from tilec.frontend.habits import FULL, PERMUTE, dtype_help
from tilec.frontend.operators import truth
from tilec.frontend.promotion import promote
from tilec.frontend.tile_layouts import keep_layout
from tilec.frontend.values import (
    Mistake,
    Scalar,
    Tile,
    check_axis,
    check_shape,
    describe,
    is_runtime,
)
from tilec.terms.dtypes import DType, i1, i32


def as_dtype(value: Any, argument: str = "dtype") -> DType:
    """A dtype argument. Mistake otherwise."""
    if not isinstance(value, DType):
        raise Mistake(
            f"{argument} must be a dtype such as tl.f32, found {describe(value)}",
            *dtype_help(value),
            argument=argument,
        )
    return value


def _tile(frame: Frame, value: Any, name: str, argument: str = "x") -> Tile:
    """A tile; scalars count as tiles of shape ()."""
    if isinstance(value, Tile):
        return value
    if not is_runtime(value):
        raise Mistake(f"{name} expects a tile, found {describe(value)}", argument=argument)
    return Tile(materialize(frame.builder, value, value.dtype, ()), value.dtype, ())


def _no_tiles(frame: Frame, name: str) -> None:
    if frame.builder.in_combine:
        raise Mistake(f"'{name}' is not possible in a combine function, which sees scalars")


def full(frame: Frame, shape: Any, value: Any, dtype: Any) -> Tile:
    """`tl.full`."""
    _no_tiles(frame, "full")
    if isinstance(value, tuple) and not isinstance(shape, tuple):
        raise Mistake(f"value must be a scalar, found {describe(value)}", FULL, argument="value")
    sizes = check_shape(shape)
    check_numeric(value, "value")
    if conversion.shape_of(value):
        raise Mistake(f"value must be a scalar, found {describe(value)}", argument="value")
    kind = promote([value]) if dtype is None else as_dtype(dtype)
    if is_runtime(value):
        value = conversion.cast(frame.builder, value, kind)
    return Tile(materialize(frame.builder, value, kind, sizes), kind, sizes)


def zeros(frame: Frame, shape: Any, dtype: Any) -> Tile:
    """`tl.zeros`."""
    return full(frame, shape, 0, as_dtype(dtype))


def arange(frame: Frame, start: Any, stop: Any, dtype: Any) -> Tile:
    """`tl.arange`."""
    _no_tiles(frame, "arange")
    first, last = (0, start) if stop is None else (start, stop)
    if isinstance(dtype, int):
        raise Mistake("arange has no step", "help: multiply it, as in tl.arange(n) * step")
    kind = i32 if dtype is None else as_dtype(dtype)
    for value, name in ((first, "start"), (last, "start" if stop is None else "stop")):
        if isinstance(value, bool) or not isinstance(value, int):
            raise Mistake(
                f"arange needs constant integers, found {describe(value)}",
                "help: add a run-time start to it: start + tl.arange(n)",
                argument=name,
            )
    if last <= first:
        raise Mistake(f"arange is empty: {first} to {last}")
    if not kind.is_integer:
        raise Mistake(f"arange makes integers, not {kind}", argument="dtype")
    shape = check_shape((last - first,), argument=None)
    frame.builder.number(first, kind)
    frame.builder.number(last - 1, kind)
    value = IotaOp.build(results=[frame.builder.type(kind, shape)], axis=0)
    if first:
        start_value = frame.builder.constant(first, kind, shape)
        value = frame.builder.value(
            "arith.addi", frame.builder.type(kind, shape), value, start_value
        )
    return Tile(value, kind, shape)


def broadcast_to(frame: Frame, x: Any, shape: Any) -> Tile:
    """`tl.broadcast_to`."""
    _no_tiles(frame, "broadcast_to")
    sizes = check_shape(shape)
    value = as_runtime(frame.builder, x)
    return Tile(materialize(frame.builder, value, value.dtype, sizes), value.dtype, sizes)


def expand_dims(frame: Frame, x: Any, axis: Any) -> Tile:
    """`tl.expand_dims`."""
    tile = _tile(frame, x, "expand_dims")
    axes = axis if isinstance(axis, tuple) else (axis,)
    rank = len(tile.shape) + len(axes)
    new = {check_axis(a, rank) for a in axes}
    if len(new) != len(axes):
        raise Mistake(f"axis must be distinct, found {axes}", argument="axis")
    kept = tuple(i for i in range(rank) if i not in new)
    sizes = [1] * rank
    for i, size in zip(kept, tile.shape, strict=True):
        sizes[i] = size
    return conversion.place(frame.builder, tile, check_shape(tuple(sizes), argument=None), kept)


def reshape(frame: Frame, x: Any, shape: Any) -> Tile:
    """`tl.reshape`."""
    tile = _tile(frame, x, "reshape")
    wanted = shape if isinstance(shape, tuple) else (shape,)
    if any(isinstance(size, int) and size == -1 for size in wanted):
        wanted = _inferred(tile, wanted)
    sizes = check_shape(wanted)
    if prod(sizes) != prod(tile.shape):
        raise Mistake(
            f"{describe(tile)} has {prod(tile.shape)} elements, shape {sizes} has {prod(sizes)}",
            argument="shape",
        )
    if sizes == tile.shape:
        return tile
    kind = frame.builder.type(tile.dtype, sizes)
    return Tile(ReshapeOp.build(tile.value, results=[kind]), tile.dtype, sizes)


def _inferred(tile: Tile, wanted: tuple[Any, ...]) -> tuple[Any, ...]:
    known = [size for size in wanted if not (isinstance(size, int) and size == -1)]
    check_shape(tuple(known))
    if len(known) != len(wanted) - 1 or prod(tile.shape) % prod(known):
        raise Mistake(f"{describe(tile)} does not reshape to {wanted}", argument="shape")
    return tuple(prod(tile.shape) // prod(known) if size == -1 else size for size in wanted)


def permute(frame: Frame, x: Any, axes: Any) -> Tile:
    """`tl.permute`."""
    tile = _tile(frame, x, "permute")
    rank = len(tile.shape)
    order = tuple(
        check_axis(axis, rank, "axes") for axis in (axes if isinstance(axes, tuple) else (axes,))
    )
    if sorted(order) != list(range(rank)):
        raise Mistake(f"axes {axes} are no permutation of {rank} dimensions", argument="axes")
    if order == tuple(range(rank)):
        return tile
    value = TransposeOp.build(tile.value, permutation=order)
    keep_layout(value, tile.layout, lambda layout: layout.permute(order))
    return Tile(value, tile.dtype, tuple(tile.shape[a] for a in order))


def transpose(frame: Frame, x: Any, axis1: Any, axis2: Any) -> Tile:
    """`tl.transpose`."""
    tile = _tile(frame, x, "transpose")
    rank = len(tile.shape)
    if isinstance(axis1, tuple):
        raise Mistake("transpose swaps two axes, axis1 and axis2", PERMUTE, argument="axis1")
    first, second = check_axis(axis1, rank, "axis1"), check_axis(axis2, rank, "axis2")
    order = list(range(rank))
    order[first], order[second] = order[second], order[first]
    return permute(frame, tile, tuple(order))


def _tiles(frame: Frame, values: Any, name: str) -> list[Tile]:
    if not isinstance(values, tuple) or not values:
        raise Mistake(
            f"{name} expects a tuple of tiles, found {describe(values)}", argument="tiles"
        )
    tiles = [_tile(frame, value, name, "tiles") for value in values]
    dtypes = {tile.dtype for tile in tiles}
    if len(dtypes) > 1:
        shown = ", ".join(sorted(map(str, dtypes)))
        raise Mistake(f"{name} needs tiles of one dtype, found {shown}", argument="tiles")
    return tiles


def cat(frame: Frame, tiles: Any, axis: Any) -> Tile:
    """`tl.cat`."""
    parts = _tiles(frame, tiles, "cat")
    along = check_axis(axis, len(parts[0].shape))
    first = parts[0].shape
    for part in parts:
        shape = part.shape
        same_rank = len(shape) == len(first)
        if not same_rank or (*shape[:along], *shape[along + 1 :]) != (
            *first[:along],
            *first[along + 1 :],
        ):
            raise Mistake(
                f"sizes off axis {along} differ: {describe(parts[0])} and {describe(part)}",
                argument="tiles",
            )
    total = sum(part.shape[along] for part in parts)
    shape = check_shape((*first[:along], total, *first[along + 1 :]), argument=None)
    value = parts[0].value
    # One join takes tiles of one size behind a first of any size.
    for _, run in groupby(parts[1:], key=lambda part: part.shape):
        value = JoinOp.build([value, *(part.value for part in run)], axis=along)
    return Tile(value, parts[0].dtype, shape)


def join(frame: Frame, tiles: Any, axis: Any) -> Tile:
    """`tl.join`."""
    parts = _tiles(frame, tiles, "join")
    if len({part.shape for part in parts}) > 1:
        raise Mistake("join needs tiles of one shape; tl.cat concatenates", argument="tiles")
    along = check_axis(axis, len(parts[0].shape) + 1)
    return cat(frame, tuple(expand_dims(frame, part, along) for part in parts), along)


def split(frame: Frame, x: Any, parts: Any, axis: Any) -> tuple[Tile, ...]:
    """`tl.split`."""
    tile = _tile(frame, x, "split")
    along = check_axis(axis, len(tile.shape))
    if isinstance(parts, bool) or not isinstance(parts, int) or parts < 1:
        raise Mistake(
            f"parts must be a positive constant, found {describe(parts)}", argument="parts"
        )
    size = tile.shape[along]
    if size % parts:
        raise Mistake(f"size {size} does not split into {parts} equal parts", argument="parts")
    shape = (*tile.shape[:along], size // parts, *tile.shape[along + 1 :])
    kinds = [frame.builder.type(tile.dtype, shape)] * parts
    values = SplitOp.build(tile.value, results=kinds, axis=along)
    return tuple(Tile(value, tile.dtype, shape) for value in values)


def take(frame: Frame, x: Any, indices: Any, axis: Any) -> Tile:
    """`tl.take`."""
    tile = _tile(frame, x, "take")
    index = _tile(frame, indices, "take", "indices")
    along = check_axis(axis, len(tile.shape))
    if not index.dtype.is_integer:
        raise Mistake(f"indices must be integers, found {describe(index)}", argument="indices")
    fits = len(index.shape) == len(tile.shape) and all(
        a == b or i == along for i, (a, b) in enumerate(zip(index.shape, tile.shape, strict=True))
    )
    if not fits:
        raise Mistake(
            f"indices may differ from the tile's shape {tile.shape} only along axis {along}, "
            f"found {index.shape}",
            argument="indices",
        )
    places = conversion.as_signed(frame.builder, index)
    return Tile(TakeOp.build(tile.value, places.value, axis=along), tile.dtype, index.shape)


def where(frame: Frame, condition: Any, x: Any, y: Any) -> Tile | Scalar:
    """`tl.where`."""
    for value, name in ((condition, "condition"), (x, "x"), (y, "y")):
        check_numeric(value, name)
    dtype = promote([x, y])
    shape = common_shape([condition, x, y])
    if conversion.shape_of(condition) == ():
        # A scalar condition selects whole tiles.
        test = truth(frame.builder, condition).value
    elif promote([condition]) != i1:
        raise Mistake(
            f"the condition must be i1, found {describe(condition)}",
            "help: compare it, e.g. condition != 0",
            argument="condition",
        )
    else:
        test = materialize(frame.builder, condition, i1, shape)
    a = materialize(frame.builder, x, dtype, shape)
    b = materialize(frame.builder, y, dtype, shape)
    kind = frame.builder.type(dtype, shape)
    return wrap(frame.builder.value("arith.select", kind, test, a, b), dtype, shape)


def cast(frame: Frame, x: Any, dtype: Any) -> Any:
    """`tl.cast` and `x.to`."""
    check_numeric(x, "x")
    return conversion.cast(frame.builder, x, as_dtype(dtype))


def bitcast(frame: Frame, x: Any, dtype: Any) -> Any:
    """`tl.bitcast`."""
    value = as_runtime(frame.builder, x)
    kind = as_dtype(dtype)
    if value.dtype == kind:
        return value
    if value.dtype.mlir == "index" or kind.mlir == "index" or value.dtype.bits != kind.bits:
        raise Mistake(
            f"bitcast needs dtypes of one width, found {value.dtype} and {kind}", argument="dtype"
        )
    shape = value.shape if isinstance(value, Tile) else None
    result = frame.builder.type(kind, shape)
    if frame.builder.element(value.dtype) == frame.builder.element(kind):
        return wrap(value.value, kind, shape)
    return wrap(frame.builder.value("arith.bitcast", result, value.value), kind, shape)


BUILTINS: Mapping[Any, Callable[..., Any]] = {
    tl.full: full,
    tl.zeros: zeros,
    tl.arange: arange,
    tl.broadcast_to: broadcast_to,
    tl.expand_dims: expand_dims,
    tl.reshape: reshape,
    tl.permute: permute,
    tl.transpose: transpose,
    tl.cat: cat,
    tl.join: join,
    tl.split: split,
    tl.take: take,
    tl.where: where,
    tl.cast: cast,
    tl.bitcast: bitcast,
}
