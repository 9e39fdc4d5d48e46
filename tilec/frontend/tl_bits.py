"""`tl` functions of the bits of integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tilec.language as tl
from tilec.dialects.tile import InlinePtxOp
from tilec.frontend.conversion import (
    cast,
    check_numeric,
    common_shape,
    compare_values,
    materialize,
    wrap,
)
from tilec.frontend.frame import Frame
from tilec.frontend.promotion import promote
from tilec.frontend.statements import refuse_effects
from tilec.frontend.values import Mistake, Scalar, Tile
from tilec.terms.dtypes import DType, i32, index

Value = Scalar | Tile

_LETTERS = {32: "r", 64: "l"}
"""By the bits that PTX's instructions have: LLVM's letter of such a register."""


def _bits_dtype(values: list[Any], name: str, widths: tuple[int, ...] = (8, 16, 32, 64)) -> DType:
    """The dtype that integers meet in. Mistake for others, or another width."""
    for value in values:
        check_numeric(value)
    dtype = promote(values)
    if not dtype.is_integer or dtype == index or dtype.bits not in widths:
        raise Mistake(
            f"{name} is not defined for {dtype}",
            f"help: it takes integers of {', '.join(map(str, widths))} bits; cast first",
        )
    return dtype


def _count(frame: Frame, value: Any, dtype: DType, shape: tuple[int, ...] | None) -> Value:
    """A number of bits as i32; it was found in `dtype`, whose least has room for 127."""
    return cast(frame.builder, wrap(value, dtype, shape), i32)


def _counting(name: str, op: str) -> Callable[..., Value]:
    def implementation(frame: Frame, x: Any) -> Value:
        dtype, shape = _bits_dtype([x], name), common_shape([x])
        bits = materialize(frame.builder, x, dtype, shape)
        found = frame.builder.value(op, frame.builder.type(dtype, shape), bits)
        return _count(frame, found, dtype, shape)

    return implementation


def find_first_set(frame: Frame, x: Any) -> Value:
    """Implements `tl.ffs`: the lowest bit that is set stands behind the zeros below it, where there
    is one."""
    builder = frame.builder
    dtype, shape = _bits_dtype([x], "ffs"), common_shape([x])
    kind, bits = builder.type(dtype, shape), materialize(builder, x, dtype, shape)
    below = builder.value("math.cttz", kind, bits)
    place = builder.value("arith.addi", kind, below, builder.constant(1, dtype, shape))
    zero = builder.constant(0, dtype, shape)
    some = compare_values(builder, "!=", bits, zero, dtype, shape)
    return _count(frame, builder.value("arith.select", kind, some, place, zero), dtype, shape)


def reverse(frame: Frame, x: Any) -> Value:
    """`tl.brev`."""
    dtype = _bits_dtype([x], "brev", tuple(_LETTERS))
    refuse_effects(frame, "brev")
    return _instruction(frame, f"brev.b{dtype.bits}", [x], dtype)


def multiply_high(frame: Frame, x: Any, y: Any) -> Value:
    """`tl.umulhi`."""
    dtype, shape = _bits_dtype([x, y], "umulhi"), common_shape([x, y])
    kind = frame.builder.type(dtype, shape)
    operands = [materialize(frame.builder, value, dtype, shape) for value in (x, y)]
    product = frame.builder.op("arith.mului_extended", [kind, kind], operands)
    return wrap(product.results[1], dtype, shape)


def permute_bytes(frame: Frame, x: Any, y: Any, selector: Any) -> Value:
    """`tl.byte_perm`."""
    dtype = _bits_dtype([x, y], "byte_perm", (32,))
    _bits_dtype([selector], "the selector of byte_perm", (32,))
    refuse_effects(frame, "byte_perm")
    return _instruction(frame, "prmt.b32", [x, y, selector], dtype)


def _instruction(frame: Frame, name: str, values: list[Any], dtype: DType) -> Value:
    """Issues one instruction of PTX on registers of one width."""
    builder, shape = frame.builder, common_shape(values)
    operands, kinds = builder.agree(
        [materialize(builder, value, dtype, shape) for value in values],
        [builder.type(dtype, shape)],
    )
    registers = ", ".join(f"${number}" for number in range(len(values) + 1))
    letter = _LETTERS[dtype.bits]
    constraints = ",".join([f"={letter}", *[letter] * len(values)])
    (result,) = InlinePtxOp.build(
        list(operands),
        results=kinds,
        text=f"{name} {registers};",
        constraints=constraints,
        pure=True,
    )
    return wrap(result, dtype, shape)


BUILTINS: Mapping[Any, Callable[..., Value]] = {
    tl.popc: _counting("popc", "math.ctpop"),
    tl.clz: _counting("clz", "math.ctlz"),
    tl.ffs: find_first_set,
    tl.brev: reverse,
    tl.umulhi: multiply_high,
    tl.byte_perm: permute_bytes,
}
