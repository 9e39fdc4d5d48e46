"""`tl` reductions, scans and histograms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

from mlir import ir

import tilec.language as tl
from tilec.dialects.tile import HistogramOp, IotaOp, ReduceOp, ScanOp
from tilec.frontend import conversion
from tilec.frontend.calls import apply_builtin, call_function
from tilec.frontend.conversion import as_runtime, check_numeric, compare_values
from tilec.frontend.frame import Frame
from tilec.frontend.operators import binary
from tilec.frontend.promotion import promote, refuse_fp8
from tilec.frontend.tile_layouts import keep_layout
from tilec.frontend.tl_arithmetic import maximum, minimum
from tilec.frontend.tl_shape import expand_dims, reshape
from tilec.frontend.values import (
    LambdaFunction,
    Mistake,
    Scalar,
    Tile,
    check_axis,
    check_shape,
    describe,
    is_runtime,
)
from tilec.language.builtin import Function
from tilec.terms.dtypes import i1, i32, i64, index, u32

Combine = Callable[[list[Scalar], list[Scalar]], Sequence[Any]]


def _combined(
    frame: Frame, tiles: list[Tile], combine: Combine, op: Any, **attributes: Any
) -> list[ir.Value]:
    """Builds a reduce or scan whose region is `combine` on scalars."""
    if frame.builder.in_combine:
        raise Mistake("a reduction is not possible in a combine function, which sees scalars")
    _check_types(tiles)
    elements = [frame.builder.element(tile.dtype) for tile in tiles]

    def body(*arguments: ir.Value) -> list[ir.Value]:
        dtypes = [tile.dtype for tile in tiles] * 2
        scalars = [Scalar(v, d) for v, d in zip(arguments, dtypes, strict=True)]
        with frame.builder.combining():
            results = combine(scalars[: len(tiles)], scalars[len(tiles) :])
            return _combined_values(frame, tiles, results)

    return op.build(
        [tile.value for tile in tiles], body=body, body_types=elements * 2, **attributes
    )


def _check_types(tiles: list[Tile]) -> None:
    """The op's operands behind the first have one type: a limit of MLIR's dynamic ops."""
    if len({tile.dtype for tile in tiles[1:]}) > 1:
        shown = ", ".join(str(tile.dtype) for tile in tiles)
        raise Mistake(
            f"of the tiles combined only the first may have a dtype of its own, found {shown}",
            "help: put it first, or convert with .to(...)",
            argument="x",
        )


def _combined_values(frame: Frame, tiles: list[Tile], results: Sequence[Any]) -> list[ir.Value]:
    if len(results) != len(tiles):
        raise Mistake(
            f"the combine function must give {len(tiles)} values, found {len(results)}",
            argument="combine",
        )
    values = []
    for tile, result in zip(tiles, results, strict=True):
        check_numeric(result, "combine")
        if is_runtime(result) and result.dtype != tile.dtype:
            raise Mistake(
                f"the combine function gives {describe(result)} where the tile holds {tile.dtype}",
                "help: convert with .to(...) in the combine function, or the tile before",
                argument="combine",
            )
        values.append(conversion.materialize(frame.builder, result, tile.dtype, None))
    return values


def _user_combine(frame: Frame, function: Any) -> Combine:
    """The author's combine: a plain function, a lambda, or a two-argument `tl` function."""
    if isinstance(function, Function):
        function = function.fn
    inline = isinstance(function, LambdaFunction)
    builtin = callable(function) and not inline and function in frame.rules.builtins
    if not builtin and not isinstance(function, (FunctionType, LambdaFunction)):
        raise Mistake(f"combine must be a function, found {describe(function)}", argument="combine")

    def combine(left: list[Scalar], right: list[Scalar]) -> Sequence[Any]:
        if builtin:
            result = apply_builtin(frame, function, [*left, *right], {})
        else:
            result = call_function(frame, frame.current, function, [*left, *right])
        return result if isinstance(result, tuple) else (result,)

    return combine


def _inputs(frame: Frame, x: Any) -> list[Tile]:
    parts = x if isinstance(x, tuple) else (x,)
    tiles = []
    for part in parts:
        if not isinstance(part, Tile):
            raise Mistake(f"expected a tile, found {describe(part)}", argument="x")
        tiles.append(part)
    if not tiles:
        raise Mistake("expected a tile, found an empty tuple", argument="x")
    shapes = {tile.shape for tile in tiles}
    if len(shapes) > 1:
        raise Mistake(
            f"the tiles must have one shape, found {', '.join(map(str, shapes))}", argument="x"
        )
    return tiles


def _reduce(
    frame: Frame, tiles: list[Tile], axis: Any, combine: Combine, keepdims: Any = False
) -> tuple[Tile, ...]:
    """Reduces along one axis, or along all where `axis` is None."""
    if not isinstance(keepdims, bool):
        raise Mistake("keepdims must be True or False", argument="keepdims")
    shape = tiles[0].shape
    if axis is None and tiles[0].layout is not None:
        for along in reversed(range(len(shape))):  # a reshape might move elements
            tiles = list(_reduce(frame, tiles, along, combine))
        every = tuple(range(len(shape)))
        return tuple(expand_dims(frame, t, every) if keepdims else t for t in tiles)
    if axis is None:
        result = [reshape(frame, tile, (-1,)) if len(shape) != 1 else tile for tile in tiles]
        along = 0
    else:
        result, along = tiles, check_axis(axis, len(shape))
    values = _combined(frame, result, combine, ReduceOp, axis=along)
    for value, tile in zip(values, result, strict=True):
        keep_layout(value, tile.layout, lambda layout: layout.slice(along))
    left = result[0].shape[:along] + result[0].shape[along + 1 :]
    reduced = tuple(
        Tile(value, tile.dtype, left) for value, tile in zip(values, result, strict=True)
    )
    if not keepdims:
        return reduced
    if axis is None:
        return tuple(expand_dims(frame, t, tuple(range(len(shape)))) for t in reduced)
    return tuple(expand_dims(frame, tile, along) for tile in reduced)


def _scan(
    frame: Frame, tiles: list[Tile], axis: Any, combine: Combine, reverse: Any
) -> tuple[Tile, ...]:
    if not isinstance(reverse, bool):
        raise Mistake("reverse must be True or False", argument="reverse")
    along = check_axis(axis, len(tiles[0].shape))
    values = _combined(frame, tiles, combine, ScanOp, axis=along, reverse=reverse)
    return tuple(Tile(v, t.dtype, t.shape) for v, t in zip(values, tiles, strict=True))


def reduce(frame: Frame, x: Any, axis: Any, combine: Any) -> Any:
    """`tl.reduce`."""
    results = _reduce(frame, _inputs(frame, x), axis, _user_combine(frame, combine))
    return results if isinstance(x, tuple) else results[0]


def associative_scan(frame: Frame, x: Any, axis: Any, combine: Any, reverse: Any) -> Any:
    """`tl.associative_scan`."""
    tiles = _inputs(frame, x)
    results = _scan(frame, tiles, axis, _user_combine(frame, combine), reverse)
    return results if isinstance(x, tuple) else results[0]


def _one(function: Callable[[Frame, Any, Any], Any]) -> Callable[[Frame], Combine]:
    """A combine of one value from a function of two."""
    return lambda frame: lambda left, right: [function(frame, left[0], right[0])]


_ADD = _one(lambda frame, a, b: binary(frame.builder, "+", a, b))
_MULTIPLY = _one(lambda frame, a, b: binary(frame.builder, "*", a, b))
_OR = _one(lambda frame, a, b: binary(frame.builder, "|", a, b))
_AND = _one(lambda frame, a, b: binary(frame.builder, "&", a, b))


def _numeric_tile(frame: Frame, x: Any, name: str) -> Tile:
    """The tile to reduce; scalars reduce to themselves through shape ()."""
    check_numeric(x, "x")
    value = as_runtime(frame.builder, x)
    refuse_fp8(value.dtype, name)
    if isinstance(value, Scalar):
        raise Mistake(f"{name} expects a tile, found {describe(value)}", argument="x")
    return value


def _accumulated(frame: Frame, x: Any, name: str) -> Tile:
    tile = _numeric_tile(frame, x, name)
    small = tile.dtype.is_bool or (tile.dtype.is_integer and tile.dtype.bits < 32)
    wider = u32 if tile.dtype.is_unsigned else i32
    return conversion.cast(frame.builder, tile, wider) if small else tile


def _reduction(
    name: str, combine: Callable[[Frame], Combine], prepare: Callable[[Frame, Any, str], Tile]
) -> Callable[..., Tile]:
    def implementation(frame: Frame, x: Any, axis: Any, keepdims: Any) -> Tile:
        return _reduce(frame, [prepare(frame, x, name)], axis, combine(frame), keepdims)[0]

    return implementation


def _truths(frame: Frame, x: Any, name: str) -> Tile:
    return conversion.cast(frame.builder, _numeric_tile(frame, x, name), i1)


def _scanning(name: str, combine: Callable[[Frame], Combine]) -> Callable[..., Tile]:
    def implementation(frame: Frame, x: Any, axis: Any, reverse: Any) -> Tile:
        return _scan(frame, [_accumulated(frame, x, name)], axis, combine(frame), reverse)[0]

    return implementation


def _extreme(name: str, choose: Callable[..., Any]) -> Callable[..., Any]:
    """Makes the implementation of max or min; with `return_indices` a pair, the position as
    `_position_of` has it."""
    reduction = _reduction(name, _one(choose), _numeric_tile)
    position = _position_of(f"arg{name}", choose)

    def implementation(
        frame: Frame, x: Any, axis: Any, keepdims: Any, return_indices: Any = False
    ) -> Any:
        if not isinstance(return_indices, bool):
            raise Mistake("return_indices must be True or False", argument="return_indices")
        extreme = reduction(frame, x, axis, keepdims)
        return (extreme, position(frame, x, axis, keepdims)) if return_indices else extreme

    return implementation


def _position_of(name: str, choose: Callable[..., Any]) -> Callable[..., Tile]:
    """Makes the implementation of argmax or argmin: the lowest position of those that hold the
    extreme, of NaNs where it is one.

    Two reductions by one instruction each, of which `max` or `min` of the same tile is the first:
    one of pairs would take a dozen instructions to combine two, and comparisons to tell equals.
    """

    def implementation(frame: Frame, x: Any, axis: Any, keepdims: Any) -> Tile:
        builder = frame.builder
        tile = _numeric_tile(frame, x, name)
        if axis is None and len(tile.shape) != 1:
            raise Mistake(
                f"{name} wants an axis of a tile of {len(tile.shape)} dimensions", argument="axis"
            )
        along = 0 if axis is None else check_axis(axis, len(tile.shape))
        (extreme,) = _reduce(frame, [tile], along, _one(choose)(frame), keepdims=True)
        shape, dtype = tile.shape, tile.dtype
        spread = conversion.broadcast(builder, extreme, shape).value
        holds = compare_values(builder, "==", tile.value, spread, dtype, shape)
        if dtype.is_float:
            is_nan = compare_values(builder, "!=", tile.value, tile.value, dtype, shape)
            holds = builder.value("arith.ori", builder.type(i1, shape), holds, is_nan)
        kind = builder.type(i32, shape)
        here = IotaOp.build(results=[kind], axis=along)
        nowhere = builder.constant(i32.limits[1], i32, shape)
        found = Tile(builder.value("arith.select", kind, holds, here, nowhere), i32, shape)
        return _reduce(frame, [found], along, _one(minimum)(frame), keepdims)[0]

    return implementation


def histogram(frame: Frame, values: Any, bins: Any, mask: Any) -> Tile:
    """`tl.histogram`."""
    builder = frame.builder
    if builder.in_combine:
        raise Mistake("a histogram is not possible in a combine function, which sees scalars")
    if not isinstance(values, Tile) or not (values.dtype.is_integer or values.dtype == i1):
        raise Mistake(f"expected a tile of integers, found {describe(values)}", argument="values")
    if isinstance(bins, bool) or not isinstance(bins, int):
        raise Mistake(f"bins must be a constant, found {describe(bins)}", argument="bins")
    (count,) = check_shape(bins, "bins", "bins")
    check_numeric(mask, "mask")
    if promote([mask]) != i1:
        raise Mistake(f"a mask must be i1, found {describe(mask)}", argument="mask")
    wider = {i1: i32, index: i64}.get(values.dtype, values.dtype)
    counted = conversion.as_signed(builder, conversion.cast(builder, values, wider))
    which = conversion.materialize(builder, mask, i1, values.shape)
    result = HistogramOp.build(counted.value, which, results=[builder.type(i32, (count,))])
    return Tile(result, i32, (count,))


BUILTINS: Mapping[Any, Callable[..., Any]] = {
    tl.reduce: reduce,
    tl.associative_scan: associative_scan,
    tl.sum: _reduction("sum", _ADD, _accumulated),
    tl.prod: _reduction("prod", _MULTIPLY, _accumulated),
    tl.max: _extreme("max", maximum),
    tl.min: _extreme("min", minimum),
    tl.any: _reduction("any", _OR, _truths),
    tl.all: _reduction("all", _AND, _truths),
    tl.argmax: _position_of("argmax", maximum),
    tl.argmin: _position_of("argmin", minimum),
    tl.cumsum: _scanning("cumsum", _ADD),
    tl.cumprod: _scanning("cumprod", _MULTIPLY),
    tl.histogram: histogram,
}
