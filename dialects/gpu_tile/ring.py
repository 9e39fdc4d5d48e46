"""Rings: slots that some threads fill in turn, and others empty behind them.

A ring is a value. Whoever fills its n-th turn acquires the slot n mod slots, fills it and publishes
it; whoever reads it waits for the same turn and releases the slot. Turns are counted by an i32 that
either side carries through its loops. A turn's slot is an SSA value of the op that gave access to
it, so what belongs to a turn is found by its uses, and `passes/checks/verify_rings.py` checks the
protocol. expand-rings makes mbarriers of rings (`mbarrier.py`), in the end.
"""

from __future__ import annotations

from typing import Any, ClassVar

from mlir import ir

from tilec.dialects.attributes import BOOL, INT, one_of, options
from tilec.dialects.constraints import I1, I32, RING
from tilec.dialects.gpu_tile.buffer import BufferView
from tilec.dialects.gpu_tile.dialect import Op
from tilec.dialects.gpu_tile.mbarrier import (
    BARRIER_BYTES,
    BY_THREADS,
    COPIES,
    MOST_ARRIVALS,
    PRODUCTS,
    BarrierInitOp,
    wrong_bytes,
)
from tilec.dialects.gpu_tile.types import any_buffer_of, ring_type
from tilec.dialects.op import Attribute, Operand, Result
from tilec.dialects.traits import Place
from tilec.hardware.target import Feature

THREADS = ("thread", "warp", "warpgroup", "once")
"""Who arrives, where threads do: each, the first of each warp or warpgroup, or one for a role
(`barrier_arrive`)."""


class RingOp(Op, lowered=False):
    """An op that speaks of a ring; by the lowering mbarriers speak in its place (expand-rings)."""


class MakeRingOp(RingOp, name="make_ring", in_cta=True, common=True, placed="ring"):
    """A ring of `slots` slots, each free at first.

    A slot is full when it was published `fills` times and all announced bytes are there; it is free
    again when it was released `releases` times. 0: something else orders that side (groups of
    cp.async, syncs), and nobody acquires, or waits for, a slot. Stands at the kernel's entry.
    `options.offset` (bytes of shared memory) is filled in by allocate-shared.

    Example:
        %ring = "gpu_tile.make_ring"() {slots = 3 : i32, fills = 1 : i32, releases = 2 : i32, options = {}} : () -> !gpu_tile.ring
    """

    result = Result(RING)
    slots = Attribute(INT)
    fills = Attribute(INT)
    releases = Attribute(INT)
    options = Attribute(options(offset=INT), default={})
    ALIGNMENT = BARRIER_BYTES

    @classmethod
    def infer_types(cls, *_: Any, **__: Any) -> list[ir.Type]:
        return [ring_type()]

    @property
    def bytes(self) -> int:
        """The shared memory that its mbarriers take: those of full slots, then those of free
        ones."""
        return (bool(self.fills) + bool(self.releases)) * self.slots * BARRIER_BYTES

    def feature(self) -> Feature | None:
        """See `OpTraits`."""
        return Feature.MBARRIER if self.bytes else None

    def check(self) -> str | None:
        if self.slots < 1:
            return f"slots must be positive, found {self.slots}"
        for name, count in (("fills", self.fills), ("releases", self.releases)):
            if not 0 <= count <= MOST_ARRIVALS:
                return f"{name} must be 0 to {MOST_ARRIVALS}, found {count}"
        offset = self.options.get("offset", 0)
        if offset < 0 or offset % BARRIER_BYTES:
            return f"offset {offset} is no multiple of {BARRIER_BYTES}"
        return None


class RingTurn(RingOp, one_thread=True, in_cta=True, least=0):
    """An op that names a turn of a ring and gives its slot."""

    ring = Operand(RING)
    count = Operand(I32)
    slot = Result(I32)

    @classmethod
    def infer_types(cls, *_: Any, **__: Any) -> list[ir.Type]:
        return [ir.IntegerType.get_signless(32)]

    @property
    def slots(self) -> int:
        """The number of the ring's slots."""
        return self.ring.owner.slots

    @property
    def known_slots(self) -> int:
        """The same; 0 where a program does not say which ring it is, or how long."""
        made = self.ring.owner
        return (_number_of(made.slots) if isinstance(made, MakeRingOp) else None) or 0


class RingSlotOp(RingTurn, name="ring_slot", pure=True):
    """The slot of turn `count`, as a number; waits for nothing.

    Example:
        %slot = "gpu_tile.ring_slot"(%ring, %count) : (!gpu_tile.ring, i32) -> i32
    """


class RingAcquireOp(RingTurn, name="ring_acquire"):
    """Waits until whoever read the slot of turn `count` before has released it; it may be filled.

    Example:
        %slot = "gpu_tile.ring_acquire"(%ring, %count) : (!gpu_tile.ring, i32) -> i32
    """

    def check(self) -> str | None:
        made = self.ring.owner
        unreleased = isinstance(made, MakeRingOp) and not made.releases
        return "nobody releases slots of this ring" if unreleased else None

    def waits_at(self) -> Place:
        """See `OpTraits`."""
        return self.ring, "free"


class RingWaitOp(RingTurn, name="ring_wait"):
    """Waits until the slot of turn `count` is full; it may be read.

    `previous`: until it was full the turn before, which passes at once where there was none.

    Example:
        %slot = "gpu_tile.ring_wait"(%ring, %count) {previous = false} : (!gpu_tile.ring, i32) -> i32
    """

    previous = Attribute(BOOL, default=False)

    def check(self) -> str | None:
        made = self.ring.owner
        unpublished = isinstance(made, MakeRingOp) and not made.fills
        return "nobody publishes slots of this ring" if unpublished else None

    def waits_at(self) -> Place:
        """See `OpTraits`."""
        return self.ring, "full"


class RingArrival(RingOp):
    """An op that is counted until a slot is full, or free."""

    ring = Operand(RING)
    slot = Operand(I32)


class RingAnnounceOp(RingArrival, name="ring_announce", one_thread=True, in_cta=True):
    """One thread publishes a slot for its part, and announces `bytes` that copies will bring it.

    Example:
        "gpu_tile.ring_announce"(%ring, %slot) {bytes = 32768 : i32} : (!gpu_tile.ring, i32) -> ()
    """

    bytes = Attribute(INT)

    def check(self) -> str | None:
        return wrong_bytes(self.bytes)


class RingHandover(RingArrival):
    """An op that passes a slot on to the ring's other side; `by` and `mask` as `ring_publish`
    says."""

    mask = Operand(I32, optional=True)
    by: ClassVar[Attribute]
    SIDE: ClassVar[str]

    def feature(self) -> Feature | None:
        """See `OpTraits`."""
        if self.by == PRODUCTS:
            return Feature.TCGEN05
        return Feature.CLUSTERS if self.mask is not None else None

    def by_one_thread(self) -> bool:
        """See `OpTraits`."""
        return self.by in ("once", PRODUCTS)

    def reaches_others(self) -> bool:
        """See `OpTraits`."""
        return self.mask is not None

    def arrives_at(self) -> tuple[Place, str]:
        """See `OpTraits`."""
        return (self.ring, self.SIDE), self.by if self.by in (COPIES, PRODUCTS) else BY_THREADS


class RingPublishOp(RingHandover, name="ring_publish", alone=True):
    """Publishes a slot: whoever waits for it sees what these threads did before.

    `by`: once a thread, warp, warpgroup or role; or when each thread's copies ("copies") or this
    thread's products ("products") so far are done. With `mask` in every CTA of the cluster that it
    has: bit r for rank r.

    Example:
        "gpu_tile.ring_publish"(%ring, %slot) {by = "warp"} : (!gpu_tile.ring, i32) -> ()
    """

    by = Attribute(one_of(*THREADS, COPIES, PRODUCTS))
    SIDE = "full"

    def check(self) -> str | None:
        copied = self.by == COPIES and self.mask is not None
        return "copies arrive in their own CTA" if copied else None


class RingReleaseOp(RingHandover, name="ring_release", alone=True):
    """Releases a slot, which these threads, or products, have read: it may be filled again.

    `by`, `mask`: as in `ring_publish`.

    Example:
        "gpu_tile.ring_release"(%ring, %slot) {by = "warpgroup"} : (!gpu_tile.ring, i32) -> ()
    """

    by = Attribute(one_of(*THREADS, PRODUCTS))
    SIDE = "free"


class RingPositionOp(Op, name="ring_position", pure=True, one_thread=True, in_cta=True, least=0):
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
    made = None if barrier is None else barrier.owner
    return _number_of(made.slots) if isinstance(made, BarrierInitOp) else None


def _number_of(slots: Any) -> int | None:
    """What a ring says that it has; None for what is no number, which its own op reports."""
    return slots if isinstance(slots, int) else None


class SlotOp(BufferView, name="slot"):
    """One slot of a ring: the buffer without its leading dimension.

    Example:
        %s = "gpu_tile.slot"(%ring, %i) : (!gpu_tile.buffer<tensor<3x64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>, i32) -> !gpu_tile.buffer<tensor<64x64xf32>, #gpu_tile.shared<"(64,64):(68,1)">>
    """

    index = Operand(I32)

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
        turn = self.index.owner
        if isinstance(turn, RingTurn) and turn.known_slots > ring.slots:
            return f"the buffer has {ring.slots} slots, the ring {turn.known_slots}"
        return None if slot == ring.slot() else f"result must be {ring.slot().type()}"
