"""Who waits for whom: CTA and named barriers, mbarriers, proxy fences, roles."""

from __future__ import annotations

from typing import Any

from tilec.language.builtin import builtin

__all__ = [
    "barrier_arrive",
    "barrier_expect",
    "barrier_init",
    "barrier_wait",
    "fence",
    "role",
    "sync",
]


@builtin
def sync(barrier: int = 0, warps: int | None = None, mode: str = "sync") -> Any:
    """Waits for `warps` warps at named barrier 0 to 15, and orders their shared-memory accesses.

    Barrier 0 is the whole CTA's. `warps`: None takes all of the CTA, or of the role around.
    `mode`: "arrive" does not wait.
    """


@builtin
def fence(kind: str) -> Any:
    """Orders this thread's accesses between ordinary instructions and the copy engine.

    "async_shared", "async_global": what it wrote there before, for TMA and the tensor cores after.
    "barrier_init": barriers it made, before anybody uses them. Other threads need a `sync` as well.
    "tcgen05_before": what it did with tensor memory, before the sync or arrival that tells others.
    "tcgen05_after": behind a sync or wait, before what it does with tensor memory now.
    """


@builtin
def barrier_init(count: int, slots: int = 1) -> Any:
    """A ring of `slots` mbarriers; a phase of each ends after `count` arrivals and all bytes.

    Behind it: `fence("barrier_init")` and `sync()`. Has the methods `expect`, `arrive`, `wait`.
    """


@builtin
def barrier_expect(barrier: Any, slot: Any, bytes: int) -> Any:
    """One thread arrives and announces `bytes` that copies bring; also `barrier.expect(...)`."""


@builtin
def barrier_arrive(barrier: Any, slot: Any, per: str = "thread") -> Any:
    """Arrives at `barrier[slot]`; also `barrier.arrive(slot, per)`.

    One arrival per "thread", per "warp", or per "warpgroup" (right only for what the tensor cores
    read, once they were waited for).
    """


@builtin
def barrier_wait(barrier: Any, slot: Any, parity: Any) -> Any:
    """Waits for the end of the phase of `barrier[slot]` with that parity; also `barrier.wait(...)`.

    A fresh barrier passes parity True at once: whoever fills a ring waits with the inverted parity
    of `ring_position`.
    """


@builtin
def role(name: str, first_warp: int, warps: int, registers: int = 0) -> Any:
    """`with gpu.role("load", first_warp=8, warps=4, registers=40):` runs its body on those warps.

    The others pass by; neighbouring roles run side by side. `registers`: what each thread may hold
    from there on, in whole warpgroups and multiples of 8 from 24 to 256; 0 leaves it. Values do not
    leave a role but through memory. Roles stand outside loops and branches.
    """
