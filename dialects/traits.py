"""What the class of an op says of it beside its fields: traits by name, and methods for what depends
on attributes or operands. What it reads and writes its operands say (`op.py`, `effects.py`)."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any, ClassVar

from mlir import ir

from tilec.hardware.target import Feature

Place = tuple[ir.Value, str]
"""Where who waits is told: a ring and its side, "full" or "free"; mbarriers, and ""."""


Groups = list[list[ir.Value]]
"""Of an op's operands and results."""

Sources = list[tuple[ir.Value, int]]
"""Operands that are needed in stripes, each with the axis of it that these lie along."""


class Until(Enum):
    """The event that ends what an op does to memory after it was issued."""

    COPIES_WAITED = auto()
    """A `cp_async_wait`."""
    PRODUCTS_WAITED = auto()
    """A `wgmma_wait`."""
    STORES_WAITED = auto()
    """A `tma_wait`."""
    PRODUCTS_TOLD = auto()
    """A wait where the end of this thread's products arrives, which keep their order."""
    BYTES_COUNTED = auto()
    """A wait where its bytes are counted."""


class OpTraits(ir.OpView):
    """Traits and their values where a class says nothing: `class LoadOp(Op, in_thread=True)` has
    `IN_THREAD`, and so have its subclasses."""

    PURE: ClassVar[bool] = False
    """Whether equal instances may be merged, moved, and dropped when unused (`passes.simplify`)."""
    ONE_LAYOUT: ClassVar[bool] = False
    """Whether all its tiles share one layout, as an elementwise op's (`passes.infer_layouts`)."""
    NEEDS: ClassVar[Feature | None] = None
    """What not every target has, whatever the op's attributes (`feature`)."""
    ONE_THREAD: ClassVar[bool] = False
    """Whether one thread may run the op for all of its role (`by_one_thread`)."""
    ALONE: ClassVar[bool] = False
    """Whether one thread has to, in a role that one thread could run (`passes.analysis.role_threads`)."""
    IN_CTA: ClassVar[bool] = False
    """Whether the op leaves global memory alone, so that it may run before earlier launches are
    over (`passes.overlap_launches`). A tensor map is a parameter of the kernel."""
    LEAST: ClassVar[int | None] = None
    """What each of its results is or exceeds, as numbers of programs and slots do 0; None where
    they may be anything."""
    COMMON: ClassVar[bool] = False
    """Whether it makes what all threads have in common: memory, a ring, a tensor map."""
    IN_THREAD: ClassVar[bool] = False
    """Whether a thread computes or loads its elements of the result without those of others."""
    OWN_BUFFERS: ClassVar[bool] = False
    """Whether its buffers are for such ops, and those that read them, alone, as long as the kernel
    runs: they, a ring, or the barrier of a cluster orders what they do there."""
    REACHES: ClassVar[bool] = False
    """Whether it does something to other CTAs of its cluster (`reaches_others`)."""
    FILLS: ClassVar[str] = ""
    """Of what brings loaded tiles into buffers, what reports call it."""
    MOVES: ClassVar[bool] = False
    """Whether each element of its results is one of its operands'."""
    UNTIL: ClassVar[Until | None] = None
    """Of an asynchronous op, until when it reads and writes memory."""
    ENDS: ClassVar[Until | None] = None
    """What an op waits for the end of: `pending` groups of it may go on."""
    PRODUCT: ClassVar[bool] = False
    """Whether it is a matrix instruction."""
    PLACED: ClassVar[str] = ""
    """What of it gets an `options.offset`, as messages call it. But for an alloc, whose type says so,
    `bytes` is how much it takes, `ALIGNMENT` what the offset is a multiple of."""
    LOWERED: ClassVar[bool] = True
    """Whether lower-to-nvvm has a rule for the op; else passes put others in its place: those of
    `tile` through buffers, rings last of all (expand-rings)."""

    def __init_subclass__(cls, **traits: Any) -> None:
        super().__init_subclass__()
        for trait, said in traits.items():
            if trait.upper() not in OpTraits.__annotations__:
                raise TypeError(f"{cls.__name__}: ops have no trait '{trait}'")
            setattr(cls, trait.upper(), said)

    def feature(self) -> Feature | None:
        """The feature that the op needs of the hardware: its class's `needs`, where no attribute
        decides."""
        return self.NEEDS

    def alike(self) -> Groups:
        """The groups of its tiles that want one layout each, the first's of the group."""
        op = self.operation
        return [[*op.results, *op.operands]] if self.ONE_LAYOUT else []

    def stripes(self, axis: int) -> Sources | None:
        """What of its operands a stripe of its results along an axis is made of; None where stripes
        do not suffice."""
        return None

    def by_one_thread(self) -> bool:
        """Whether one thread may run the op for all of its role."""
        return self.ONE_THREAD

    def reaches_others(self) -> bool:
        """Whether the op touches other CTAs of its cluster: their memory, or their barriers."""
        return self.REACHES

    def waits_at(self) -> Place | None:
        """The place at which the op waits for others, None if it does not."""
        return None

    def arrives_at(self) -> tuple[Place, str] | None:
        """The place at which the op makes something arrive, and what (`gpu_tile/mbarrier.py`); None
        if nothing."""
        return None
