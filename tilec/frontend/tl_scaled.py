"""`tl.dot_scaled` and `tl.unpack`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tilec.language as tl
from tilec.dialects.tile import DotScaledOp
from tilec.dialects.tile.matmul import FORMATS as OPERANDS
from tilec.frontend import code_floats
from tilec.frontend.frame import Frame
from tilec.frontend.statements import refuse_effects
from tilec.frontend.tl_matmul import accumulator
from tilec.frontend.values import Mistake, Tile, check_shape, describe
from tilec.passes.dots.code_floats import unpack as unpack_pairs
from tilec.terms.dtypes import DType, bf16, f8e4m3, f8e5m2, f8e8m0, f16, f32, i8

_FORMATS: Mapping[DType, str] = {
    f8e4m3: "e4m3",
    f8e5m2: "e5m2",
    f16: "f16",
    bf16: "bf16",
    **{dtype: name for dtype, name in code_floats.FORMATS.items() if dtype != f8e8m0},
}
_SCALES = (f8e8m0, f8e4m3, i8)
_BLOCK = 32
"""Numbers that share a scale of 1 where neither side has scales (OCP Microscaling Formats v1.0)."""


def dot_scaled(frame: Frame, a: Any, a_scale: Any, b: Any, b_scale: Any, acc: Any = None) -> Tile:
    """`tl.dot_scaled`."""
    refuse_effects(frame, "dot_scaled")
    if frame.builder.explicit:
        raise Mistake(
            "a kernel that uses tilec.language.gpu chooses its instructions itself",
            "help: multiply with gpu.mma_scaled or gpu.tcgen05_mma_scaled",
        )
    lhs, rhs = _operand(a, "a"), _operand(b, "b")
    left, right = (_FORMATS[tile.dtype] for tile in (lhs, rhs))
    depth = lhs.shape[1] * OPERANDS[left].pack
    if depth != rhs.shape[0] * OPERANDS[right].pack:
        raise Mistake(
            f"contraction sizes differ: a has {depth} numbers a row, b has "
            f"{rhs.shape[0] * OPERANDS[right].pack} a column"
        )
    shape = check_shape((lhs.shape[0], rhs.shape[1]), argument=None)
    blocks = _blocks(a_scale, b_scale, depth)
    sides = (
        (a_scale, b_scale, (shape[0], blocks), "a_scale"),
        (b_scale, a_scale, (blocks, shape[1]), "b_scale"),
    )
    scales = [
        _ones(frame, other, sizes) if scale is None else _scale(scale, sizes, depth, argument)
        for scale, other, sizes, argument in sides
    ]
    start = accumulator(frame.builder, acc, f32, shape)
    value = DotScaledOp.build(
        lhs.value, rhs.value, start, *scales, lhs_format=left, rhs_format=right
    )
    return Tile(value, f32, shape)


def _operand(value: Any, argument: str) -> Tile:
    if not isinstance(value, Tile) or len(value.shape) != 2:
        raise Mistake(
            f"dot_scaled expects tiles of 2 dimensions, found {describe(value)}", argument=argument
        )
    if value.dtype not in _FORMATS:
        known = ", ".join(map(str, _FORMATS))
        raise Mistake(
            f"dot_scaled is not defined for {value.dtype}; expected one of {known}",
            argument=argument,
        )
    return value


def _blocks(a_scale: Any, b_scale: Any, depth: int) -> int:
    """The number of scales along k of the side that has some."""
    if isinstance(a_scale, Tile) and len(a_scale.shape) == 2:
        return a_scale.shape[1]
    if isinstance(b_scale, Tile) and len(b_scale.shape) == 2:
        return b_scale.shape[0]
    return max(1, depth // _BLOCK)


def _ones(frame: Frame, other: Any, shape: tuple[int, int]) -> Any:
    """Scales of 1 of the other side's kind, which one instruction can then read."""
    floats = isinstance(other, Tile) and other.dtype == f8e4m3
    return frame.builder.constant(1.0, f8e4m3 if floats else f8e8m0, shape)


def _scale(value: Any, shape: tuple[int, int], depth: int, argument: str) -> Any:
    if not isinstance(value, Tile) or value.dtype not in _SCALES:
        known = ", ".join(map(str, _SCALES))
        raise Mistake(
            f"scales are a tile of {known}, or None; found {describe(value)}", argument=argument
        )
    axis = 1 if argument == "a_scale" else 0
    fits = len(value.shape) == 2 and value.shape[1 - axis] == shape[1 - axis]
    if not fits or depth % value.shape[axis]:
        raise Mistake(
            f"{argument} must have a scale per {'row of a' if axis else 'column of b'} and block "
            f"of the {depth} numbers along k, found {describe(value)}",
            argument=argument,
        )
    return value.value


def unpack(frame: Frame, x: Any, axis: Any = -1) -> Tile:
    """`tl.unpack`."""
    refuse_effects(frame, "unpack")
    if not isinstance(x, Tile) or not x.dtype.is_pair or not x.shape:
        raise Mistake(f"unpack expects a tile of pairs, found {describe(x)}", argument="x")
    rank = len(x.shape)
    if not isinstance(axis, int) or not -rank <= axis < rank:
        raise Mistake(f"axis must be from {-rank} to {rank - 1}, found {axis}", argument="axis")
    axis %= rank
    sizes = check_shape((*x.shape[:axis], 2 * x.shape[axis], *x.shape[axis + 1 :]), argument=None)
    return Tile(unpack_pairs(x.value, axis), bf16, sizes)


BUILTINS: Mapping[Any, Callable[..., Any]] = {tl.dot_scaled: dot_scaled, tl.unpack: unpack}
