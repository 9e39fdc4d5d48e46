"""`tl.dot`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tilec.language as tl
from tilec.dialects.tile import DotOp
from tilec.dialects.tile.matmul import ACCUMULATORS, PRECISIONS
from tilec.frontend.builder import Builder
from tilec.frontend.code_floats import code_to_bf16
from tilec.frontend.frame import Frame
from tilec.frontend.statements import refuse_effects
from tilec.frontend.tl_shape import as_dtype
from tilec.frontend.values import Mistake, Tile, check_shape, describe, is_number, show_shape
from tilec.passes.dots.code_floats import unpack
from tilec.terms.dtypes import BY_MLIR, DType, f8e4m3, f8e8m0


def dot(
    frame: Frame,
    a: Any,
    b: Any,
    acc: Any = None,
    precision: Any = "ieee",
    dtype: Any = None,
) -> Tile:
    """`tl.dot` and `a @ b`."""
    refuse_effects(frame, "dot")
    if frame.builder.explicit:
        raise Mistake(
            "a kernel that uses tilec.language.gpu chooses its instructions itself",
            "help: multiply with gpu.mma or gpu.wgmma",
        )
    lhs = _as_fp8(frame.builder, _operand(a, "a"), -1)
    rhs = _as_fp8(frame.builder, _operand(b, "b"), -2)
    shape = _result_shape(lhs, rhs)
    kind = _input_kind(lhs, rhs)
    result = _accumulator_dtype(kind, acc, dtype)
    start = accumulator(frame.builder, acc, result, shape)
    options = _precision(kind, precision)
    value = DotOp.build(lhs.value, rhs.value, start, options=options)
    return Tile(value, result, shape)


def _operand(value: Any, argument: str) -> Tile:
    if not isinstance(value, Tile) or len(value.shape) < 2:
        raise Mistake(
            f"dot expects tiles of at least 2 dimensions, found {describe(value)}",
            argument=argument,
        )
    return value


def _as_fp8(builder: Builder, tile: Tile, k_dim: int) -> Tile:
    """Numbers of 4 or 6 bits as f8e4m3, which holds them all; pairs stand along `k_dim`."""
    if not tile.dtype.is_code or tile.dtype == f8e8m0:
        return tile
    value, shape = tile.value, list(tile.shape)
    if tile.dtype.is_pair:
        axis = len(shape) + k_dim
        shape[axis] *= 2
        wide = unpack(value, axis)
    else:
        wide = code_to_bf16(value, tile.dtype)
    sizes = check_shape(tuple(shape), argument=None)
    narrow = builder.value("arith.truncf", builder.type(f8e4m3, sizes), wide)
    return Tile(narrow, f8e4m3, sizes)


def _result_shape(lhs: Tile, rhs: Tile) -> tuple[int, ...]:
    if len(lhs.shape) != len(rhs.shape) or lhs.shape[:-2] != rhs.shape[:-2]:
        raise Mistake(f"batch dimensions differ: {show_shape(lhs.shape)} @ {show_shape(rhs.shape)}")
    if lhs.shape[-1] != rhs.shape[-2]:
        turned = (
            ("the second", lhs.shape[-1], rhs.shape[-1]),
            ("the first", lhs.shape[-2], rhs.shape[-2]),
        )
        fits = [which for which, left, right in turned if left == right]
        raise Mistake(
            f"contraction sizes differ: {show_shape(lhs.shape)} @ {show_shape(rhs.shape)}, "
            f"{lhs.shape[-1]} is not {rhs.shape[-2]}",
            *([f"help: {fits[0]} transposed fits: x.T"] if fits else []),
        )
    return check_shape((*lhs.shape[:-1], rhs.shape[-1]), argument=None)


def _input_kind(lhs: Tile, rhs: Tile) -> DType:
    if lhs.dtype != rhs.dtype and not (lhs.dtype.is_fp8 and rhs.dtype.is_fp8):
        raise Mistake(
            f"dot needs inputs of one dtype, found {lhs.dtype} and {rhs.dtype}",
            "help: convert one of them with .to(...)",
        )
    if lhs.dtype.mlir not in ACCUMULATORS:
        known = ", ".join(BY_MLIR[name].name for name in ACCUMULATORS)
        raise Mistake(f"dot is not defined for {lhs.dtype}; expected one of {known}")
    return lhs.dtype


def _accumulator_dtype(kind: DType, acc: Any, dtype: Any) -> DType:
    allowed = [BY_MLIR[name] for name in ACCUMULATORS[kind.mlir]]
    wanted = allowed[0] if dtype is None else as_dtype(dtype)
    argument = "dtype"
    if isinstance(acc, Tile):
        if dtype is not None and wanted != acc.dtype:
            raise Mistake(f"acc is {acc.dtype}, dtype is {wanted}", argument="dtype")
        wanted, argument = acc.dtype, "acc"
    if wanted not in allowed:
        raise Mistake(
            f"a dot of {kind} accumulates in {' or '.join(map(str, allowed))}, not {wanted}",
            argument=argument,
        )
    return wanted


def accumulator(builder: Builder, acc: Any, dtype: DType, shape: tuple[int, ...]) -> Any:
    """The SSA value of an accumulator that the author gave, or zeros."""
    if acc is None or (is_number(acc) and acc == 0):
        return builder.constant(0, dtype, shape)
    if not isinstance(acc, Tile):
        raise Mistake(f"acc must be a tile, found {describe(acc)}", argument="acc")
    if acc.shape != shape:
        raise Mistake(
            f"acc must have shape {show_shape(shape)}, found {describe(acc)}", argument="acc"
        )
    return acc.value


def _precision(kind: DType, precision: Any) -> dict[str, str]:
    if precision not in PRECISIONS:
        words = " or ".join(map(repr, PRECISIONS))
        raise Mistake(
            f"precision must be {words}, found {describe(precision)}", argument="precision"
        )
    if kind.mlir == "f32":
        return {"precision": precision}
    if precision != "ieee":
        raise Mistake(
            f"precision {precision!r} is for f32 inputs, found {kind}", argument="precision"
        )
    return {}


BUILTINS: Mapping[Any, Callable[..., Any]] = {tl.dot: dot}
