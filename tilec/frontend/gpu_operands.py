"""Operands and attributes of the ops that `tilec.language.gpu` offers, from a kernel's values.

What an op wants is read from its class: an operand's constraint and an attribute's kind decide
which values will do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mlir import ir

from tilec.dialects.attributes import BOOL, INT, INTS, AttributeKind
from tilec.dialects.constraints import (
    ANY,
    ARRAY,
    BARRIER,
    BUFFER,
    COUNTED,
    I1,
    I32,
    INDEX,
    PENDING,
    RING,
    TENSOR_MAP,
    TILE,
    Constraint,
)
from tilec.dialects.gpu_tile.types import any_buffer_of, is_tensor_buffer, tile_of
from tilec.dialects.op import Attribute, Operand
from tilec.dialects.types import element, shape
from tilec.frontend.arrays import as_tuple
from tilec.frontend.branches import as_condition
from tilec.frontend.conversion import materialize, to_index
from tilec.frontend.frame import Frame
from tilec.frontend.values import (
    Array,
    Mistake,
    Resource,
    Scalar,
    Tile,
    describe,
    show_shape,
)
from tilec.passes.analysis.coordinates import as_copy_coordinate
from tilec.terms.dtypes import BY_MLIR, DType, i1, i32, i64, index

_I32_LIMIT = 1 << 31
"""One past the largest i32: two's complement."""


def operand(frame: Frame, field: Operand, value: Any) -> Any:
    """The SSA value (or list of them) for a declared operand. Mistake naming what was expected."""
    convert = _coordinate if field.name == "coordinates" else _OPERANDS[field.constraint]
    if field.optional and value is None:
        return None
    if not field.variadic:
        return convert(frame, value, field.name)
    parts = as_tuple(frame.builder, value)
    return [convert(frame, part, field.name) for part in ((value,) if parts is None else parts)]


def _array(frame: Frame, value: Any, name: str) -> ir.Value:
    if not isinstance(value, Array):
        raise Mistake(
            f"{name} must be an array parameter of the kernel, found {describe(value)}",
            argument=name,
        )
    return value.value


def _resource(kinds: str, words: str) -> Callable[[Frame, Any, str], ir.Value]:
    def convert(frame: Frame, value: Any, name: str) -> ir.Value:
        if not isinstance(value, Resource) or value.kind not in kinds.split():
            raise Mistake(f"{name} must be {words}, found {describe(value)}", argument=name)
        return value.value

    return convert


def _pending(frame: Frame, value: Any, name: str) -> ir.Value:
    """A pending accumulator, whose registers go from op to op: each is used once."""
    found = _resource("pending", "a pending accumulator (gpu.wgmma_fence)")(frame, value, name)
    if next(iter(found.uses), None) is not None:
        raise Mistake(
            f"{name} is used a second time: its registers belong to what it was given to",
            "help: go on with that function's result",
            argument=name,
        )
    return found


def _tile(frame: Frame, value: Any, name: str) -> ir.Value:
    if not isinstance(value, Tile):
        raise Mistake(f"{name} must be a tile, found {describe(value)}", argument=name)
    if value.layout is None:
        raise Mistake(
            f"{name} has no layout: {describe(value)}",
            "help: make it with gpu.load, gpu.zeros or gpu.full, or give it one with "
            "gpu.convert_layout",
            argument=name,
        )
    refuse_unsigned(value.dtype, name, name)
    return value.value


def refuse_unsigned(dtype: DType, what: str, name: str) -> None:
    """Mistake for elements whose sign the explicit ops would lose: IR has none."""
    if dtype.is_unsigned:
        raise Mistake(
            f"{what} has no unsigned elements here, found {dtype}",
            f"help: use tl.{dtype.in_ir}; tl.bitcast(x, dtype) gives the same bits the other name",
            argument=name,
        )


def _tile_or_buffer(frame: Frame, value: Any, name: str) -> ir.Value:
    if isinstance(value, Resource) and value.kind == "buffer":
        return value.value
    return _tile(frame, value, name)


def _i32(frame: Frame, value: Any, name: str) -> ir.Value:
    to_index_check = isinstance(value, Scalar) and value.dtype.is_integer
    if isinstance(value, bool) or not (isinstance(value, int) or to_index_check):
        raise Mistake(f"{name} must be an integer scalar, found {describe(value)}", argument=name)
    return materialize(frame.builder, value, i32, None)


def _coordinate(frame: Frame, value: Any, name: str) -> ir.Value:
    """Gives the copy engine's coordinate for an index: what 32 bits do not hold lies outside of any
    array."""
    if isinstance(value, Scalar) and value.dtype in (index, i64):
        return as_copy_coordinate(to_index(frame.builder, value, name, name))
    if isinstance(value, int) and not isinstance(value, bool):
        return as_copy_coordinate(to_index(frame.builder, value, name, name))
    return _i32(frame, value, name)


def _index(frame: Frame, value: Any, name: str) -> ir.Value:
    return to_index(frame.builder, value, name, name)


def _i1(frame: Frame, value: Any, name: str) -> ir.Value:
    try:
        truth = as_condition(frame, value)
    except Mistake as mistake:
        raise Mistake(mistake.message, *mistake.notes, argument=name) from None
    return materialize(frame.builder, truth, i1, None)


_OPERANDS: Mapping[Constraint, Callable[[Frame, Any, str], ir.Value]] = {
    ARRAY: _array,
    BUFFER: _resource("buffer", "a buffer (gpu.alloc)"),
    BARRIER: _resource("barrier", "a ring of barriers (gpu.barrier_init)"),
    RING: _resource("ring", "a ring (gpu.make_ring)"),
    COUNTED: _resource(
        "ring barrier", "a ring of barriers (gpu.barrier_init) or one of gpu.make_ring"
    ),
    TENSOR_MAP: _resource("tensor_map", "a tensor map (gpu.make_tensor_map)"),
    PENDING: _pending,
    TILE: _tile,
    ANY: _tile_or_buffer,
    I32: _i32,
    INDEX: _index,
    I1: _i1,
}


def attribute(field: Attribute, value: Any) -> ir.Attribute:
    """The attribute for a declared one, from a constant. Mistake naming what was expected."""
    kind, name = field.kind, field.name
    written = _written(kind, value)
    wrong = f"must be {kind.description}" if written is None else kind.check(written)
    if wrong:
        wrong = wrong.partition(", found")[0]
        raise Mistake(f"{name} {wrong}, found {describe(value)}", argument=name)
    assert written is not None
    return written


def _written(kind: AttributeKind, value: Any) -> ir.Attribute | None:
    """An attribute of that kind, None where the constant is of another Python type."""
    if kind is INT:
        return kind.write(value) if _is_int(value) else None
    if kind is BOOL:
        return kind.write(value) if isinstance(value, bool) else None
    if kind is INTS:
        parts = value if isinstance(value, tuple) else (value,)
        return kind.write(parts) if all(map(_is_int, parts)) else None
    if isinstance(value, dict):
        return kind.write(value)
    return kind.write(value) if isinstance(value, str) else None


def _is_int(value: Any) -> bool:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return whole and -_I32_LIMIT <= value < _I32_LIMIT


def wrapped(value: ir.Value) -> Any:
    """An op's result as a value of the kernel."""
    type_ = value.type
    if isinstance(type_, ir.RankedTensorType):
        return Tile(value, BY_MLIR[str(type_.element_type)], tuple(type_.shape))
    dtype = BY_MLIR.get(str(type_))
    return resource(value) if dtype is None else Scalar(value, dtype)


def resource(value: ir.Value) -> Resource:
    """A buffer, ring, ring of barriers, tensor map or pending tile."""
    kind = str(value.type).removeprefix("!gpu_tile.").partition("<")[0]
    if kind == "buffer":
        found = any_buffer_of(value)
        dtype = BY_MLIR[str(found.element)]
        where = " in tensor memory" if is_tensor_buffer(value) else ""
        return Resource(value, kind, f"a buffer {show_shape(found.shape)} of {dtype}{where}")
    if kind == "pending":
        tile = tile_of(value)
        dtype = BY_MLIR[str(element(tile))]
        return Resource(value, kind, f"a pending tile {show_shape(shape(tile))} of {dtype}")
    words = {"barrier": "a ring of barriers", "ring": "a ring", "tensor_map": "a tensor map"}
    return Resource(value, kind, words[kind])
