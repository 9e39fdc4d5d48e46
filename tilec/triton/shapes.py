"""Rules for ops that make, move or rename elements, and for products."""

from __future__ import annotations

import re
from typing import Any

from mlir import ir

from tilec.dialects.tile import (
    DotOp,
    DotScaledOp,
    HistogramOp,
    JoinOp,
    ReshapeOp,
    SplitOp,
    TakeOp,
    TransposeOp,
)
from tilec.dialects.tile.matmul import ACCUMULATORS, FORMATS
from tilec.dialects.types import shape
from tilec.triton.build import Builder
from tilec.triton.elementwise import Rule
from tilec.triton.op_facts import moved_axes_of
from tilec.triton.program import Op


def _range(builder: Builder, op: Op, build: Any) -> None:
    kind, start = builder.type(op.result.type), op.number("start")
    made = builder.iota(0, kind)
    if start:
        made = builder.op("arith.addi", kind, made, builder.constant(start, kind))
    builder.set(op, made)


def _splat(builder: Builder, op: Op, build: Any) -> None:
    if op.result.type.pointee is None:
        builder.set(op, builder.splat(builder.get(op.operands[0]), op.result.type.shape))


def _unsplat(builder: Builder, op: Op, build: Any) -> None:
    source = builder.get(op.operands[0])
    single = ReshapeOp.build(source, results=[builder.typed(op.result.type.element, ())])
    builder.set(op, scalar_of(builder, single))


def scalar_of(builder: Builder, single: ir.Value) -> ir.Value:
    """The element of a tile without dimensions."""
    return builder.op("tensor.extract", single.type.element_type, single)


def _broadcast(builder: Builder, op: Op, build: Any) -> None:
    kind = op.result.type
    if kind.pointee is None:
        assert kind.shape is not None
        builder.set(
            op, builder.broadcast(builder.get(op.operands[0]), range(kind.rank), kind.shape)
        )


def _expand(builder: Builder, op: Op, build: Any) -> None:
    kind, axis = op.result.type, op.number("axis")
    if kind.pointee is None:
        assert kind.shape is not None
        dims = [d for d in range(kind.rank) if d != axis]
        builder.set(op, builder.broadcast(builder.get(op.operands[0]), dims, kind.shape))


def _transpose(builder: Builder, op: Op, build: Any) -> None:
    if op.result.type.pointee is None:
        source = builder.get(op.operands[0])
        builder.set(op, TransposeOp.build(source, permutation=moved_axes_of(op)))


def _reshape(builder: Builder, op: Op, build: Any) -> None:
    kind = op.result.type
    if kind.pointee is None:
        builder.set(op, ReshapeOp.build(builder.get(op.operands[0]), results=[builder.type(kind)]))


def _join(builder: Builder, op: Op, build: Any) -> None:
    """Two tiles side by side along a new last axis."""
    source = op.operands[0].type
    sizes = (*(source.shape or ()), 1)
    parts = []
    for operand in op.operands:
        value = builder.get(operand)
        value = builder.splat(value, ()) if source.shape is None else value
        parts.append(builder.broadcast(value, range(source.rank), sizes))
    builder.set(op, JoinOp.build(parts, axis=source.rank))


def _concatenate(builder: Builder, op: Op, build: Any) -> None:
    builder.set(op, JoinOp.build([builder.get(operand) for operand in op.operands], axis=0))


def _split(builder: Builder, op: Op, build: Any) -> None:
    """The two halves of the last axis, which goes."""
    source, kind = op.operands[0].type, op.results[0].type
    assert source.shape is not None
    part = builder.typed(source.element, (*source.shape[:-1], 1))
    halves = SplitOp.build(builder.get(op.operands[0]), results=[part, part], axis=source.rank - 1)
    whole = builder.typed(kind.element, kind.shape or ())
    found = [ReshapeOp.build(half, results=[whole]) for half in halves]
    if kind.shape is None:
        found = [scalar_of(builder, one) for one in found]
    builder.set(op, *found)


def _take(builder: Builder, op: Op, build: Any) -> None:
    source, indices = (builder.get(operand) for operand in op.operands)
    builder.set(op, TakeOp.build(source, indices, axis=op.number("axis")))


def _histogram(builder: Builder, op: Op, build: Any) -> None:
    values = builder.get(op.operands[0])
    sizes = op.operands[0].type.shape
    mask = (
        builder.get(op.operands[1])
        if len(op.operands) > 1
        else builder.constant(1, builder.typed("i1", sizes))
    )
    builder.set(op, HistogramOp.build(values, mask, results=[builder.type(op.result.type)]))


def _dot(builder: Builder, op: Op, build: Any) -> None:
    """f32 operands are rounded to tf32 unless the author asks for more, as Triton has it."""
    left, right, acc = (operand.type.element for operand in op.operands)
    if acc not in ACCUMULATORS.get(left, ()):
        raise op.error(f"{left} times {right} summed in {acc} is no product that tilec has")
    precision = op.words.get("inputPrecision", "ieee")
    options = {}
    if left == "f32":
        options = {"precision": "tf32" if precision == "tf32" else "ieee"}
    operands = [builder.get(operand) for operand in op.operands]
    builder.set(op, DotOp.build(*operands, options=options))


_SCALED = re.compile(r"^(%[^,\s]+)( scale %[^,\s]+)?, (%[^,\s]+)( scale %[^,\s]+)?,")
_FORMATS = {"fp16": "f16"}
"""Triton's names of formats that tilec has under others."""
_SCALE_BLOCK = 32
"""Elements that have a scale (OCP Microscaling Formats v1.0, 5)."""
_NO_SCALE = 127
"""A scale of 1: an exponent with its bias."""


def _dot_scaled(builder: Builder, op: Op, build: Any) -> None:
    """An operand without scales has scales of 1. Triton has those of the rhs by columns."""
    match = _SCALED.match(op.text.strip())
    sizes = [operand.type.rank for operand in op.operands]
    if match is None or set(sizes) != {2}:
        raise op.error("expected matrices")
    if any(op.attributes.get(f"{side}_k_pack", "true") != "true" for side in ("lhs", "rhs")):
        raise op.error("numbers of 4 bits that are packed along the other axis than k")
    operands = list(op.operands)
    lhs = builder.get(operands.pop(0))
    lhs_scale = builder.get(operands.pop(0)) if match[2] else None
    rhs = builder.get(operands.pop(0))
    rhs_scale = builder.get(operands.pop(0)) if match[4] else None
    acc = builder.get(operands.pop(0))
    formats = [_FORMATS.get(op.words[side], op.words[side]) for side in ("lhs", "rhs")]
    depth = shape(lhs)[1] * FORMATS[formats[0]].pack
    i8 = ir.IntegerType.get_signless(8)
    blocks = depth // _SCALE_BLOCK
    if lhs_scale is None:
        lhs_scale = builder.constant(_NO_SCALE, builder.typed(i8, (shape(lhs)[0], blocks)))
    if rhs_scale is None:
        rhs_scale = builder.constant(_NO_SCALE, builder.typed(i8, (blocks, shape(rhs)[1])))
    else:
        rhs_scale = TransposeOp.build(rhs_scale, permutation=[1, 0])
    made = DotScaledOp.build(
        lhs, rhs, acc, lhs_scale, rhs_scale, lhs_format=formats[0], rhs_format=formats[1]
    )
    if wrong := made.owner.opview.check():
        raise op.error(wrong)
    builder.set(op, made)


RULES: dict[str, Rule] = {
    "tt.make_range": _range,
    "tt.splat": _splat,
    "tt.unsplat": _unsplat,
    "tt.broadcast": _broadcast,
    "tt.expand_dims": _expand,
    "tt.trans": _transpose,
    "tt.reshape": _reshape,
    "tt.join": _join,
    "tt.cat": _concatenate,
    "tt.split": _split,
    "tt.gather": _take,
    "tt.histogram": _histogram,
    "tt.dot": _dot,
    "tt.dot_scaled": _dot_scaled,
}
