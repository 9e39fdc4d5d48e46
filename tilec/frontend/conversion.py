"""Casts, broadcasts, and turning any value into the SSA value an op needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir import ir

from tilec.dialects.predicates import predicate_attribute
from tilec.dialects.tile import BroadcastOp
from tilec.frontend.builder import Builder, constant_dtype
from tilec.frontend.code_floats import code_to_bf16, refuse_narrowing
from tilec.frontend.habits import LEFT_OUT, MISSING_AXIS, READ_AN_ARRAY, WHOLE, number_help
from tilec.frontend.tile_layouts import expanded_layout
from tilec.frontend.values import (
    Array,
    Mistake,
    Scalar,
    Tile,
    Undefined,
    check_shape,
    describe,
    is_number,
    is_runtime,
    show_shape,
)
from tilec.terms.dtypes import DType, bf16, f32, i1, i32, i64, index, u64

UNSIGNED_INDEX = u64
"""What has the numbers of an `index` and those behind, but no negative ones."""
FAR_OUTSIDE = 2**63 - 2**16
"""An index behind every array. A tile that starts there does not wrap, and a multiple of 2**16 that
stands for a coordinate keeps what divides it."""


def dtype_of(value: Any) -> DType | None:
    """The dtype of a run-time value; None for a constant, which adapts."""
    return value.dtype if is_runtime(value) else None


def shape_of(value: Any) -> tuple[int, ...]:
    """The shape of a tile; () for a number."""
    return value.shape if isinstance(value, Tile) else ()


def check_numeric(value: Any, argument: str | None = None) -> None:
    """Mistake unless this is a number, a scalar or a tile."""
    if isinstance(value, Undefined):
        raise Mistake(value.message, *value.notes, argument=argument)
    if not is_number(value) and not is_runtime(value):
        notes = (READ_AN_ARRAY,) if isinstance(value, Array) else ()
        if isinstance(value, Array) and value.rank == 0:
            notes = (number_help(value.name),)
        if value is None:
            notes = (LEFT_OUT,)
        raise Mistake(
            f"expected a number or a tile, found {describe(value)}", *notes, argument=argument
        )


def as_runtime(builder: Builder, value: Any) -> Scalar | Tile:
    """A number as a scalar of its default dtype; run-time values as they are."""
    check_numeric(value)
    if is_runtime(value):
        return value
    dtype = constant_dtype(value)
    return Scalar(builder.constant(value, dtype), dtype)


def common_shape(values: Sequence[Any]) -> tuple[int, ...] | None:
    """The shape that the values broadcast to by NumPy's rule; None where all are scalars (or rank
    0)."""
    result: tuple[int, ...] = ()
    for value in values:
        shape = shape_of(value)
        if not shape or shape == result:
            continue
        rank = max(len(shape), len(result))
        left, right = (1,) * (rank - len(result)) + result, (1,) * (rank - len(shape)) + shape
        for a, b in zip(left, right, strict=True):
            if a != b and 1 not in (a, b):
                raise Mistake(
                    f"shapes {show_shape(result)} and {show_shape(shape)} do not broadcast: "
                    f"{a} and {b} differ and neither is 1",
                    *([MISSING_AXIS] * _fit_from_the_left(result, shape)),
                )
        result = tuple(b if a == 1 else a for a, b in zip(left, right, strict=True))
    return check_shape(result, argument=None) if result else None


def _fit_from_the_left(one: tuple[int, ...], two: tuple[int, ...]) -> bool:
    """Whether shapes of unlike rank would broadcast with their first axes side by side."""
    pairs = zip(one, two, strict=False)
    return len(one) != len(two) and all(a == b or 1 in (a, b) for a, b in pairs)


def broadcast(builder: Builder, tile: Tile, shape: tuple[int, ...]) -> Tile:
    """Repeats `tile` to `shape`, aligned from the right. Mistake if it does not fit."""
    if tile.shape == shape:
        return tile
    missing = len(shape) - len(tile.shape)
    fits = missing >= 0 and all(
        a in (1, b) for a, b in zip(tile.shape, shape[missing:], strict=True)
    )
    if not fits:
        raise Mistake(f"{describe(tile)} does not broadcast to {show_shape(shape)}")
    return place(builder, tile, shape, tuple(range(missing, len(shape))))


def place(builder: Builder, tile: Tile, shape: tuple[int, ...], dims: tuple[int, ...]) -> Tile:
    """A broadcast that puts dimension i of `tile` at `dims[i]`."""
    value, layout = tile.value, expanded_layout(tile, shape, dims)
    if tile.source is not None:
        value, inner = tile.source
        dims = tuple(dims[d] for d in inner)
    builder.count()
    result = BroadcastOp.build(value, results=[builder.type(tile.dtype, shape, layout)], dims=dims)
    return Tile(result, tile.dtype, shape, source=(value, dims))


def cast(builder: Builder, value: Any, dtype: DType) -> Any:
    """A value in another dtype; constants stay constants where they keep their kind."""
    if is_number(value):
        return _cast_constant(builder, value, dtype)
    if value.dtype == dtype:
        return value
    shape = value.shape if isinstance(value, Tile) else None
    converted = _convert(builder, value.value, value.dtype, dtype, shape)
    return Scalar(converted, dtype) if shape is None else Tile(converted, dtype, shape)


def _cast_constant(builder: Builder, value: bool | int | float, dtype: DType) -> Scalar:
    if dtype.is_bool:
        number: Any = bool(value)
    elif dtype.is_integer and isinstance(value, float):
        try:
            number = int(value)
        except (ValueError, OverflowError):
            raise Mistake(f"the constant {value} does not fit {dtype}") from None
    else:
        number = value
    return Scalar(builder.constant(number, dtype), dtype)


def _convert(
    builder: Builder, value: ir.Value, source: DType, target: DType, shape: tuple[int, ...] | None
) -> ir.Value:
    """The cast op (or two) from one dtype to another."""

    def to(name: str, dtype: DType, operand: ir.Value = value) -> ir.Value:
        return builder.value(name, builder.type(dtype, shape), operand)

    if target.is_code:
        refuse_narrowing(target)
    if source.is_code:
        wide = code_to_bf16(value, source)
        return wide if target == bf16 else _convert(builder, wide, bf16, target, shape)
    if target.is_bool:
        return _is_nonzero(builder, value, source, shape)
    if source.is_float and target.is_float:
        if source.bits != target.bits:
            return to("arith.truncf" if source.bits > target.bits else "arith.extf", target)
        return to("arith.truncf", target, to("arith.extf", f32))  # bf16 <-> f16, fp8 <-> fp8
    if source.is_float:
        wide = to("arith.extf", f32) if source.is_fp8 else value
        if target == index:
            return to("arith.index_cast", index, to("arith.fptosi", i64, wide))
        return to("arith.fptoui" if target.is_unsigned else "arith.fptosi", target, wide)
    if target.is_float:
        return _to_float(builder, value, source, target, shape)
    return _convert_integer(builder, value, source, target, shape)


def _convert_integer(
    builder: Builder, value: ir.Value, source: DType, target: DType, shape: tuple[int, ...] | None
) -> ir.Value:
    """Converts an integer as C does: to fewer bits it loses the highest, to more its sign decides,
    if it has one."""
    kind = builder.type(target, shape)
    if target == index and source.is_unsigned:
        # In 32 bits an index has not all of u32: as i64 it is known to need more.
        value = _convert_integer(builder, value, source, i64, shape)
        source = i64
    if index in (source, target):
        name = "arith.index_castui" if source.is_bool else "arith.index_cast"
    elif source.bits == target.bits:
        return value
    elif source.bits > target.bits:
        name = "arith.trunci"
    else:
        name = "arith.extui" if source.is_bool or source.is_unsigned else "arith.extsi"
    return builder.value(name, kind, value)


def _to_float(
    builder: Builder, value: ir.Value, source: DType, target: DType, shape: tuple[int, ...] | None
) -> ir.Value:
    if target.is_fp8:
        wide = _to_float(builder, value, source, f32, shape)
        return builder.value("arith.truncf", builder.type(target, shape), wide)
    if source == index:
        value = builder.value("arith.index_cast", builder.type(i64, shape), value)
    name = "arith.uitofp" if source.is_bool or source.is_unsigned else "arith.sitofp"
    return builder.value(name, builder.type(target, shape), value)


def _is_nonzero(
    builder: Builder, value: ir.Value, source: DType, shape: tuple[int, ...] | None
) -> ir.Value:
    if source.is_fp8:
        value = builder.value("arith.extf", builder.type(f32, shape), value)
        source = f32
    zero = builder.constant(0, source, shape)
    return compare_values(builder, "!=", value, zero, source, shape)


_PREDICATES = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
"""Without what goes in front: of what is compared ordered, signed or unsigned."""


def compare_values(
    builder: Builder,
    symbol: str,
    lhs: ir.Value,
    rhs: ir.Value,
    dtype: DType,
    shape: tuple[int, ...] | None,
) -> ir.Value:
    """Makes an `arith.cmpf` or `arith.cmpi` of two values of one type."""
    if dtype.is_float:
        name, kind = "arith.cmpf", "u" if symbol == "!=" else "o"  # NaN differs from all
    elif symbol in ("==", "!="):
        name, kind = "arith.cmpi", ""
    else:
        name, kind = "arith.cmpi", "u" if dtype.is_bool or dtype.is_unsigned else "s"
    predicate = predicate_attribute(name, kind + _PREDICATES[symbol])
    return builder.value(name, builder.type(i1, shape), lhs, rhs, predicate=predicate)


def materialize(
    builder: Builder, value: Any, dtype: DType, shape: tuple[int, ...] | None
) -> ir.Value:
    """The SSA value of `value` as a tile of `dtype` and `shape`, or as a scalar (shape None)."""
    if is_number(value):
        return builder.constant(value, dtype, shape)
    if shape is None:
        return cast(builder, to_scalar(builder, value), dtype).value
    value = cast(builder, value, dtype)
    if isinstance(value, Scalar):
        return builder.value("tensor.splat", builder.type(dtype, shape), value.value)
    return broadcast(builder, value, shape).value


def to_scalar(builder: Builder, value: Scalar | Tile) -> Scalar:
    """A scalar, or the one element of a rank-0 tile. Mistake for any other tile."""
    if isinstance(value, Scalar):
        return value
    if value.shape != ():
        raise Mistake(f"expected a scalar, found {describe(value)}")
    element = builder.value("tensor.extract", builder.element(value.dtype), value.value)
    return Scalar(element, value.dtype)


def wrap(value: ir.Value, dtype: DType, shape: tuple[int, ...] | None) -> Scalar | Tile:
    """An SSA value as a scalar (shape None) or tile."""
    return Scalar(value, dtype) if shape is None else Tile(value, dtype, shape)


def as_signed(builder: Builder, value: Any) -> Any:
    """A number of an unsigned dtype in a signed one; any other value as it is.

    For the ops that read signed positions. Of u64 what i64 has not becomes negative, which is as
    far outside of everything.
    """
    dtype = None if is_number(value) else value.dtype
    if dtype is None or not dtype.is_unsigned:
        return value
    return cast(builder, value, i32 if dtype.bits < i32.bits else i64)


def check_integer(value: Any, what: str, argument: str | None = None) -> None:
    """Mistake naming `what` where a value is no integer scalar."""
    if isinstance(value, Undefined):
        raise Mistake(value.message, *value.notes, argument=argument)
    integer = isinstance(value, int) and not isinstance(value, bool)
    dtype = dtype_of(value)
    if not integer and (dtype is None or not dtype.is_integer or shape_of(value)):
        is_float = isinstance(value, float) or (dtype is not None and dtype.is_float)
        raise Mistake(
            f"{what} must be an integer scalar, found {describe(value)}",
            *((WHOLE,) if is_float and not shape_of(value) else ()),
            argument=argument,
        )


def to_index(builder: Builder, value: Any, what: str, argument: str | None = None) -> ir.Value:
    """An integer scalar as an `index`, of u64 what i64 does not have as `FAR_OUTSIDE`.

    A tile that begins there lies outside as a whole; one that began at -1 would not. Mistake naming
    `what` where it is no integer scalar.
    """
    check_integer(value, what, argument)
    if dtype_of(value) == u64:
        number = materialize(builder, value, u64, None)
        most = builder.constant(FAR_OUTSIDE, u64)
        value = Scalar(builder.value("arith.minui", number.type, number, most), u64)
    return materialize(builder, value, index, None)
