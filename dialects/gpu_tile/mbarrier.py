"""Barriers in shared memory that threads, copies and tensor cores arrive at (PTX ISA 9.0,
"mbarrier")."""

from __future__ import annotations

from typing import Any, ClassVar

from mlir import ir

from tilec.dialects.attributes import INT, one_of, options
from tilec.dialects.constraints import BARRIER, I1, I32
from tilec.dialects.gpu_tile.dialect import Op
from tilec.dialects.gpu_tile.types import barrier_type
from tilec.dialects.op import Attribute, Operand, Result
from tilec.dialects.traits import Place, Until
from tilec.hardware.ring_stages import BARRIER_BYTES
from tilec.hardware.target import Feature

MOST_ARRIVALS = (1 << 20) - 1
"""Of a phase, and bytes that one announces (PTX ISA 9.0, "Contents of the mbarrier object": 2^20 -
1 each)."""
COPIES, PRODUCTS, BY_THREADS = "copies", "products", "threads"
"""What arrives: each thread's `cp_async`s so far, this thread's tcgen05 products, or threads."""


def wrong_bytes(count: int) -> str | None:
    """Says why nobody can announce so many bytes, or None."""
    if not 1 <= count <= MOST_ARRIVALS:
        return f"bytes must be 1 to {MOST_ARRIVALS}, found {count}"
    return None


class CountedCopy(Op, one_thread=True, until=Until.BYTES_COUNTED):
    """A copy whose bytes `barrier[slot]` counts, of mbarriers or of a ring: they make that slot
    full.

    `mask`: the CTAs of the cluster that get them, if not this one alone.
    """

    barrier: ClassVar[Operand]
    slot: ClassVar[Operand]
    mask: ClassVar[Operand | None] = None


class BarrierInitOp(Op, name="barrier_init", needs=Feature.MBARRIER, in_cta=True, placed="barrier"):
    """A ring of `slots` barriers; a phase of each completes after `count` arrivals and all
    announced bytes.

    A thread of each warp makes some: a `fence` of kind "barrier_init" and a sync stand before the
    first use.
    `options.offset` (bytes of shared memory) is filled in by allocate-shared.

    Example:
        %full = "gpu_tile.barrier_init"() {slots = 3 : i32, count = 1 : i32, options = {}} : () -> !gpu_tile.barrier
    """

    result = Result(BARRIER)
    slots = Attribute(INT)
    count = Attribute(INT)
    options = Attribute(options(offset=INT), default={})
    ALIGNMENT = BARRIER_BYTES

    @classmethod
    def infer_types(cls, *_: Any, **__: Any) -> list[ir.Type]:
        return [barrier_type()]

    @property
    def bytes(self) -> int:
        """The bytes of shared memory that the barriers take."""
        return self.slots * BARRIER_BYTES

    def check(self) -> str | None:
        if self.slots < 1:
            return f"slots must be positive, found {self.slots}"
        if not 1 <= self.count <= MOST_ARRIVALS:
            return f"count must be 1 to {MOST_ARRIVALS}, found {self.count}"
        offset = self.options.get("offset", 0)
        if offset < 0 or offset % BARRIER_BYTES:
            return f"offset {offset} is no multiple of {BARRIER_BYTES}"
        return None


class BarrierExpectOp(Op, name="barrier_expect", one_thread=True, in_cta=True):
    """One thread arrives at `barrier[slot]` and announces `bytes` that copies will bring.

    Example:
        "gpu_tile.barrier_expect"(%full, %slot) {bytes = 32768 : i32} : (!gpu_tile.barrier, i32) -> ()
    """

    barrier = Operand(BARRIER)
    slot = Operand(I32)
    bytes = Attribute(INT)

    def check(self) -> str | None:
        return wrong_bytes(self.bytes)


class BarrierArriveOp(Op, name="barrier_arrive", alone=True):
    """Arrives at `barrier[slot]`: what these threads did before, whoever waits sees.

    One arrival per thread (after plain accesses), per warp, or per warpgroup (right only for what
    the warpgroup's tensor-core instructions read, once they were waited for); or once for a role
    that one thread or one warp runs.

    Example:
        "gpu_tile.barrier_arrive"(%empty, %slot) {per = "warp"} : (!gpu_tile.barrier, i32) -> ()
    """

    barrier = Operand(BARRIER)
    slot = Operand(I32)
    per = Attribute(one_of("thread", "warp", "warpgroup", "once"))

    def by_one_thread(self) -> bool:
        """See `OpTraits`."""
        return self.per == "once"

    def arrives_at(self) -> tuple[Place, str]:
        """See `OpTraits`."""
        return (self.barrier, ""), BY_THREADS


class RemoteArriveOp(Op, name="remote_arrive", needs=Feature.CLUSTERS, alone=True, reaches=True):
    """Arrives at `barrier[slot]` of every CTA of the cluster that `mask` has: bit r for rank r.

    Otherwise as `barrier_arrive`: one arrival per thread, warp, warpgroup or role, and CTA. The CTAs
    must have made their barriers and must not have ended: `cluster_sync`.

    Example:
        "gpu_tile.remote_arrive"(%empty, %slot, %mask) {per = "warpgroup"} : (!gpu_tile.barrier, i32, i32) -> ()
    """

    barrier = Operand(BARRIER)
    slot = Operand(I32)
    mask = Operand(I32)
    per = Attribute(one_of("thread", "warp", "warpgroup", "once"))

    def by_one_thread(self) -> bool:
        """See `OpTraits`."""
        return self.per == "once"

    def arrives_at(self) -> tuple[Place, str]:
        """See `OpTraits`."""
        return (self.barrier, ""), BY_THREADS


class BarrierWaitOp(Op, name="barrier_wait", one_thread=True, in_cta=True):
    """Waits until the phase of `barrier[slot]` with that parity is complete.

    A fresh barrier passes parity 1 (true) at once: whoever fills a ring waits with the inverted
    parity of `ring_position`.

    Example:
        "gpu_tile.barrier_wait"(%full, %slot, %parity) : (!gpu_tile.barrier, i32, i1) -> ()
    """

    barrier = Operand(BARRIER)
    slot = Operand(I32)
    parity = Operand(I1)

    def waits_at(self) -> Place:
        """See `OpTraits`."""
        return self.barrier, ""
