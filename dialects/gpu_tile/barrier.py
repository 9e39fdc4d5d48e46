"""Barriers among the threads of a CTA."""

from __future__ import annotations

from tilec.dialects.attributes import INT, one_of
from tilec.dialects.gpu_tile.dialect import Op
from tilec.dialects.op import Attribute
from tilec.hardware.target import Feature

TENSOR_FENCES = ("tcgen05_before", "tcgen05_after")


class SyncOp(Op, name="sync", in_cta=True):
    """Named barrier of `warps` warps (PTX `barrier.sync`/`arrive`); barrier 0 is the whole CTA's.

    Orders the shared-memory accesses of the threads that take part.

    Example:
        "gpu_tile.sync"() {barrier = 0 : i32, warps = 4 : i32, mode = "sync"} : () -> ()
    """

    barrier = Attribute(INT, default=0)
    warps = Attribute(INT)
    mode = Attribute(one_of("sync", "arrive"), default="sync")

    def check(self) -> str | None:
        if not 0 <= self.barrier < 16:
            return f"barrier must be 0 to 15, found {self.barrier}"
        if not 1 <= self.warps <= 32:
            return f"warps must be 1 to 32, found {self.warps}"
        return None


class FenceOp(Op, name="fence", in_cta=True):
    """Orders this thread's accesses between proxies (PTX ISA 9.0, "membar/fence").

    "async_shared", "async_global": its accesses to that memory by ordinary instructions, before
    those of the copy engine and the tensor cores. "barrier_init": barriers it made, before anyone
    uses them. Other threads need a sync as well. "tcgen05_before": what it did with tensor memory,
    before the sync or arrival that tells others; "tcgen05_after": behind a sync or wait, before
    what it does with tensor memory now.

    Example:
        "gpu_tile.fence"() {kind = "async_shared"} : () -> ()
    """

    kind = Attribute(one_of("async_shared", "async_global", "barrier_init", *TENSOR_FENCES))

    def feature(self) -> Feature | None:
        """See `OpTraits`."""
        return Feature.TCGEN05 if self.kind in TENSOR_FENCES else Feature.TMA
