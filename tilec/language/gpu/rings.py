"""Rings: slots that some warps fill in turn and others empty behind them."""

from __future__ import annotations

from typing import Any

from tilec.language.builtin import builtin

__all__ = [
    "make_ring",
    "ring_acquire",
    "ring_announce",
    "ring_publish",
    "ring_release",
    "ring_slot",
    "ring_wait",
]


@builtin
def make_ring(slots: int, fills: int, releases: int) -> Any:
    """A ring of `slots` slots, each free at first; made in the kernel's own body.

    A slot is full when it was published `fills` times and all announced bytes are there, and free
    again when it was released `releases` times; 0 where nobody does. Turns are counted by whoever
    fills and whoever reads, from 0. Methods: `acquire`, `announce`, `publish`, `wait`, `release`,
    `slot`. Where a copy wants a barrier, a ring will do: `tma_load(map, buffer, ring, slot, ...)`.
    """


@builtin
def ring_acquire(ring: Any, count: Any) -> Any:
    """Waits until the slot of turn `count` may be filled; gives it. Also `ring.acquire(count)`."""


@builtin
def ring_wait(ring: Any, count: Any, previous: bool = False) -> Any:
    """Waits until the slot of turn `count` is full, and gives it; also `ring.wait(count)`.

    `previous`: until it was full the turn before; where there was none, that is at once.
    """


@builtin
def ring_slot(ring: Any, count: Any) -> Any:
    """The slot of turn `count`, without a wait; also `ring.slot(count)`."""


@builtin
def ring_announce(ring: Any, slot: Any, bytes: int) -> Any:
    """One thread publishes the slot and announces `bytes` that copies will bring; also
    `ring.announce(...)`."""


@builtin
def ring_publish(ring: Any, slot: Any, by: str = "thread", mask: Any = None) -> Any:
    """What these threads wrote, whoever waits for the slot sees; also `ring.publish(...)`.

    `by`: once a "thread", "warp", "warpgroup", or "once" for a role of one thread or warp;
    "copies": when each thread's cp.async so far are done; "products": when this thread's tcgen05
    products so far are. `mask`: the CTAs of the cluster in which it is published, bit r for rank r.
    """


@builtin
def ring_release(ring: Any, slot: Any, by: str = "thread", mask: Any = None) -> Any:
    """These threads have read the slot: it may be filled again; also `ring.release(...)`.

    `by`: "thread", "warp", "once"; "warpgroup", right only for what its tensor-core instructions
    read, once they were waited for; "products", when this thread's tcgen05 ones so far are done.
    `mask`: the CTAs of the cluster in which it is released.
    """
