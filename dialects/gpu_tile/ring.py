"""Rings of buffers: which slot an iteration uses."""

from __future__ import annotations

from typing import Any

from mlir import ir

from tilec.dialects.attributes import INT
from tilec.dialects.constraints import BUFFER, I1, I32
from tilec.dialects.gpu_tile.dialect import Op
from tilec.dialects.gpu_tile.mbarrier import BarrierInitOp
from tilec.dialects.gpu_tile.types import any_buffer_of
from tilec.dialects.op import Attribute, Operand, Result


class RingPositionOp(Op, name="ring_position", pure=True):
    """Slot and phase parity of the `count`-th use of a ring: (count mod slots, count / slots odd).

    Example:
        %slot, %parity = "gpu_tile.ring_position"(%count) {slots = 3 : i32} : (i32) -> (i32, i1)
    """

    count = Operand(I32)
    slot = Result(I32)
    parity = Result(I1)
    slots = Attribute(INT)

    @classmethod
    def infer_types(cls, *_: Any, **__: Any) -> list[ir.Type]:
        return [ir.IntegerType.get_signless(32), ir.IntegerType.get_signless(1)]

    def check(self) -> str | None:
        if self.slots < 1:
            return f"slots must be positive, found {self.slots}"
        for use in self.slot.uses:
            most = _slots_of(use.owner.opview)
            if most is not None and self.slots > most:
                return f"counts {self.slots} slots, '{use.owner.name}' has a ring of {most}"
        return None


def _slots_of(user: ir.OpView) -> int | None:
    """The length of the ring that an op takes a slot of, None where that is not known here."""
    if isinstance(user, SlotOp):
        try:
            return any_buffer_of(user.src).slots
        except ValueError:  # which the op says itself
            return None
    barrier = getattr(user, "barrier", None)
    if barrier is None or isinstance(barrier.owner, ir.Block):
        return None
    made = barrier.owner.opview
    return made.slots if isinstance(made, BarrierInitOp) else None


class SlotOp(Op, name="slot", pure=True):
    """One slot of a ring: the buffer without its leading dimension.

    Example:
        %s = "gpu_tile.slot"(%ring, %i) : (!gpu_tile.buffer<tensor<3x64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>, i32) -> !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
    """

    src = Operand(BUFFER)
    index = Operand(I32)
    result = Result(BUFFER)

    @classmethod
    def infer_types(cls, src: Any, index: Any) -> list[ir.Type]:
        return [any_buffer_of(src).slot().type()]

    def check(self) -> str | None:
        try:
            ring, slot = any_buffer_of(self.src), any_buffer_of(self.result)
        except ValueError as error:
            return str(error)
        if len(ring.shape) != len(ring.layout.dims) + 1:
            return f"expected a ring of buffers, found {self.src.type}"
        return None if slot == ring.slot() else f"result must be {ring.slot().type()}"
