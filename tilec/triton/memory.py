"""Rules for accesses: rectangles of arrays where they were raised, gathers otherwise."""

from __future__ import annotations

from typing import Any

from mlir import ir

from tilec.dialects.tile import (
    AssumeOp,
    AtomicCasOp,
    AtomicRmwOp,
    GatherOp,
    LoadOp,
    ReshapeOp,
    ScatterOp,
    StoreOp,
)
from tilec.dialects.tile.memory import ORDERS, SCOPES
from tilec.dialects.types import shape
from tilec.triton.blocks import MADE
from tilec.triton.build import Builder
from tilec.triton.descriptor_arguments import NAN_PADDING
from tilec.triton.elementwise import Rule
from tilec.triton.live import constant_behind
from tilec.triton.program import Op, Value, defining
from tilec.triton.raising import Raised, is_volatile, stored
from tilec.triton.shapes import scalar_of

_KINDS = {
    "fadd": "addf",
    "add": "addi",
    "max": "maxs",
    "min": "mins",
    "umax": "maxu",
    "umin": "minu",
    "and": "andi",
    "or": "ori",
    "xor": "xori",
    "exch": "exchange",
    "fmax": "maxf",
    "fmin": "minf",
}
"""tile.atomic_rmw's names for Triton's, which has none for floats but by descriptor."""
_EVICTION = {"evict_first": "evict_first", "evict_last": "evict_last"}
"""Hints that both have; others are left out."""


def _load(builder: Builder, op: Op, build: Any) -> None:
    if is_volatile(op):
        builder.set(op, _volatile(builder, op))
        return
    raised = builder.plan.raised.get(op)
    mask, other = (op.operands[n] if len(op.operands) > n else None for n in (1, 2))
    if op.operands[0].type.block is not None:
        mask = other = None
    if raised is None:
        builder.set(op, _gathered(builder, op, mask, other))
        return
    kind = op.result.type
    element = ir.Type.parse(kind.element)
    padding = _nan(op, element) or _number(other, element)
    sizes = tuple((kind.shape or ())[axis] for axis in raised.axes)
    value = LoadOp.build(
        builder.array(op),
        _coordinates(builder, raised),
        results=[builder.typed(element, sizes)],
        dims=list(raised.dims),
        padding=_zero(element) if padding is None else padding,
        options=_hints(op),
    )
    if kind.shape is None:
        value = scalar_of(builder, value)
    elif kind.shape != sizes:
        value = builder.broadcast(value, raised.axes, kind.shape)
    if other is not None and padding is None:
        mask_value = builder.get(mask) if mask else None
        value = builder.op("arith.select", value.type, mask_value, value, builder.get(other))
    builder.set(op, value)


def _coordinates(builder: Builder, raised: Raised) -> list[ir.Value]:
    """Where in its array a tile begins. What was proven of Triton's integers is said of them."""
    found = [builder.computed(offset) for offset in raised.offsets]
    for offset, value, negative in zip(raised.offsets, found, raised.negative, strict=True):
        if not negative and offset.has("value"):
            AssumeOp.build(value, facts={"min": 0})
    return found


def _zero(element: ir.Type) -> ir.Attribute:
    is_integer = isinstance(element, ir.IntegerType)
    return ir.IntegerAttr.get(element, 0) if is_integer else ir.FloatAttr.get(element, 0.0)


def _number(other: Value | None, element: ir.Type) -> ir.Attribute | None:
    """The one number that stands where a mask is false; None where it is no constant."""
    if other is None:
        return _zero(element)
    constant = constant_behind(other)
    if constant is None:
        return None
    text = constant.text if " : " in constant.text else f"{constant.text.strip()} : i1"
    found = ir.Attribute.parse(text)
    return found.get_splat_value() if isinstance(found, ir.DenseElementsAttr) else found


def _nan(op: Op, element: ir.Type) -> ir.Attribute | None:
    """NaN, where a block pointer's load, or a descriptor, asks for it outside the array."""
    wants = op if op.name == "tt.load" else defining(op.operands[0], "tt.make_tensor_descriptor")
    asked = (wants.attributes if wants else {}).get("padding", "").partition(":")[0].strip()
    return ir.FloatAttr.get(element, float("nan")) if asked == NAN_PADDING else None


def _hints(op: Op) -> dict[str, str]:
    """How the cache shall treat what is accessed, as far as tilec has words for it."""
    found = _EVICTION.get(op.words.get("evictionPolicy", ""))
    return {} if found is None else {"cache": found}


def _gathered(builder: Builder, op: Op, mask: Value | None, other: Value | None) -> ir.Value:
    kind = op.result.type
    sizes = kind.shape or ()
    element = ir.Type.parse(kind.element)
    tile = builder.typed(element, sizes)
    fill = (
        builder.op(
            "arith.constant", tile, value=ir.DenseElementsAttr.get_splat(tile, _zero(element))
        )
        if other is None
        else builder.splat(builder.get(other), sizes)
    )
    index, flags = _indices(builder, op, mask)
    value = GatherOp.build(builder.array(op), flags, fill, [index], options=_hints(op))
    return scalar_of(builder, value) if kind.shape is None else value


def _indices(builder: Builder, op: Op, mask: Value | None) -> tuple[ir.Value, ir.Value]:
    """Index tile and mask of an access that is not raised; a scalar's have no dimensions."""
    pointer = next(operand for operand in op.operands if operand.type.pointee)
    sizes = pointer.type.shape or ()
    index = builder.splat(builder.offset(pointer), sizes)
    if mask is None:
        return index, builder.constant(1, builder.typed("i1", sizes))
    return index, builder.splat(builder.get(mask), sizes)


def _store(builder: Builder, op: Op, build: Any) -> None:
    mask = op.operands[2] if len(op.operands) > 2 else None
    sizes = op.operands[0].type.shape or ()
    sizes = stored(op).type.shape or sizes
    value = builder.splat(builder.get(stored(op)), sizes)
    raised = builder.plan.raised.get(op)
    if raised is None:
        index, flags = _indices(builder, op, mask)
        ScatterOp.build(value, builder.array(op), flags, [index], options=_hints(op))
        return
    kept = tuple(sizes[axis] for axis in raised.axes)
    if kept != shape(value):
        value = ReshapeOp.build(value, results=[builder.typed(value.type.element_type, kept)])
    StoreOp.build(
        value,
        builder.array(op),
        _coordinates(builder, raised),
        dims=list(raised.dims),
        options=_hints(op),
    )


def _volatile(builder: Builder, op: Op) -> ir.Value:
    """What others have written by now: an atomic update that changes nothing."""
    kind = op.result.type
    if kind.element not in ("i32", "i64"):
        raise op.error(f"a volatile load of {kind.element}; tilec has it for i32 and i64")
    mask, other = (op.operands[n] if len(op.operands) > n else None for n in (1, 2))
    index, flags = _indices(builder, op, mask)
    zeros = builder.constant(0, builder.typed(kind.element, kind.shape or ()))
    order: dict[str, Any] = {"order": "relaxed", "scope": "gpu"}
    value = AtomicRmwOp.build(zeros, builder.array(op), flags, [index], kind="ori", **order)
    if other is not None:
        padding = builder.splat(builder.get(other), kind.shape or ())
        value = builder.op("arith.select", value.type, flags, value, padding)
    return scalar_of(builder, value) if kind.shape is None else value


def _order(op: Op) -> dict[str, Any]:
    found = {
        "order": next((word for word in op.words if word in ORDERS), None),
        "scope": next((word for word in op.words if word in SCOPES), None),
    }
    if None in found.values():
        raise op.error("its order or scope is none of tilec's")
    return {**found}


def _atomic(builder: Builder, op: Op, build: Any) -> None:
    kind = next((row for word, row in _KINDS.items() if word in op.words), None)
    if kind is None:
        raise op.error(f"unknown kind of update: {', '.join(op.words)}")
    sizes = op.operands[0].type.shape
    value = builder.splat(builder.get(op.operands[1]), sizes or ())
    mask = op.operands[2] if len(op.operands) > 2 else None
    index, flags = _indices(builder, op, mask)
    old = AtomicRmwOp.build(value, builder.array(op), flags, [index], kind=kind, **_order(op))
    builder.set(op, scalar_of(builder, old) if sizes is None else old)


def _exchange(builder: Builder, op: Op, build: Any) -> None:
    sizes = op.operands[0].type.shape
    expected, value = (builder.splat(builder.get(v), sizes or ()) for v in op.operands[1:])
    index, flags = _indices(builder, op, None)
    old = AtomicCasOp.build(expected, value, builder.array(op), flags, [index], **_order(op))
    builder.set(op, scalar_of(builder, old) if sizes is None else old)


def _nothing(builder: Builder, op: Op, build: Any) -> None:
    """Pointer arithmetic is built where it is read."""


RULES: dict[str, Rule] = {
    "tt.load": _load,
    "tt.store": _store,
    "tt.descriptor_load": _load,
    "tt.descriptor_store": _store,
    "tt.atomic_rmw": _atomic,
    "tt.atomic_cas": _exchange,
    **dict.fromkeys(("tt.addptr", "tt.advance", *MADE), _nothing),
}
