"""Building an op of `gpu_tile` from a kernel's values, as an author asks for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlir import ir

from tilec.dialects import gpu_tile
from tilec.dialects.constraints import ANY, BUFFER
from tilec.dialects.gpu_tile.types import BufferType, TensorBuffer, any_buffer_of
from tilec.dialects.op import TileOp
from tilec.dialects.types import show
from tilec.frontend.frame import Frame
from tilec.frontend.gpu_operands import attribute, operand, wrapped
from tilec.frontend.statements import refuse_effects
from tilec.frontend.tile_layouts import current_warps
from tilec.frontend.values import Mistake, Resource, check_shape, describe
from tilec.hardware.shared_layout import SharedLayout
from tilec.hardware.tensor_memory import TensorMemoryLayout
from tilec.terms.tile_sizes import LARGEST_TILE


def emit(
    frame: Frame,
    op: type[TileOp],
    given: Mapping[str, Any],
    results: Sequence[ir.Type] | None = None,
) -> Any:
    """Builds an op from arguments by name, checks it, and gives its results as kernel values."""
    enter(frame, op.MNEMONIC)
    for field in op.OPERANDS if op is not gpu_tile.SlotOp else ():
        value = given[field.name]
        is_buffer = isinstance(value, Resource) and value.kind == "buffer"
        if is_buffer and field.constraint in (ANY, BUFFER):
            buffer_of_value(value, field.name)
    _check_slot(given)
    operands = [operand(frame, field, given[field.name]) for field in op.OPERANDS]
    written = {
        field.name: attribute(field, given[field.name])
        for field in op.ATTRIBUTES
        if field.name in given
    }
    frame.builder.count()
    try:
        made = op.build(*operands, results=results, **written)
    except ValueError as error:  # from infer_types, about the operands
        raise Mistake(str(error)) from None
    values = made if isinstance(made, list) else [made]
    view = made if isinstance(made, TileOp) else values[0].owner.opview
    wrong = view.check()
    if wrong:
        raise Mistake(wrong)
    if not op.RESULTS:
        return None
    first, *more = (wrapped(value) for value in values)
    return (first, *more) if more else first


def _check_slot(given: Mapping[str, Any]) -> None:
    """Mistake for a constant slot that the ring does not have."""
    name = "slot" if "slot" in given else "index"
    ring = given.get("barrier", given.get("ring")) if name == "slot" else given.get("src")
    at = given.get(name)
    if not isinstance(ring, Resource) or not isinstance(at, int):
        return
    if ring.kind == "buffer":
        slots = any_buffer_of(ring.value).slots
    else:
        slots = getattr(getattr(ring.value.owner, "opview", None), "slots", None)
    if slots is not None and not 0 <= at < slots:
        raise Mistake(f"slot {at} of a ring of {slots}", argument=name)


def enter(frame: Frame, name: str) -> None:
    """Marks the kernel as explicit. Mistake where its number of warps is not known."""
    refuse_effects(frame, f"gpu.{name}")
    current_warps(frame.builder)
    frame.builder.explicit = True


def buffer_sizes(
    shape: Any, slots: Any, layout: SharedLayout | TensorMemoryLayout, name: str
) -> tuple[int, ...]:
    """The shape of a buffer or ring of them. Mistake where its layout is for another one."""
    sizes = check_shape(shape)
    if layout.shape != sizes:
        raise Mistake(
            f"the layout is for {show(layout.shape)}, the buffer is {show(sizes)}",
            argument=name,
        )
    if slots is None:
        return sizes
    if isinstance(slots, bool) or not isinstance(slots, int) or slots < 1:
        raise Mistake(
            f"slots must be a positive constant, found {describe(slots)}", argument="slots"
        )
    if slots > LARGEST_TILE:
        raise Mistake(f"slots must be at most {LARGEST_TILE}, found {slots}", argument="slots")
    return (slots, *sizes)


def buffer_of_value(value: Any, name: str = "src") -> BufferType | TensorBuffer:
    """The type of one buffer. Mistake for a ring of them, or something else."""
    if not isinstance(value, Resource) or value.kind != "buffer":
        raise Mistake(
            f"{name} must be a buffer (gpu.alloc), found {describe(value)}", argument=name
        )
    found = any_buffer_of(value.value)
    if len(found.shape) > len(found.layout.dims):
        raise Mistake(
            f"{name} is a ring of {found.slots} buffers; take one with .slot(i)", argument=name
        )
    return found
