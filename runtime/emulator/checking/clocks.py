"""Vector clocks of the agents of a cluster: warps, and the asynchronous engines they start.

The domain of a clock is a cluster (a CTA, where there are none). Its agents, by index:
warps; one stream of matrix-product reads per warp (for wgmma the warpgroup's first); one stream of
bulk-store reads per warp; where there is tensor memory, one stream of tcgen05.ld reads per warp;
one stream of cp.async writes and one of tcgen05.st writes per warp; slots for bulk loads, in turn;
the launches before this one, whose epoch is 1.
`known[warp, domain, agent]` is the newest epoch of the agent that the warp is ordered after;
`fenced` the same for what the async proxy may rely on (after fence.proxy.async), `released` for
what a relaxed arrival at the cluster's barrier publishes. Accesses of tensor memory have two more:
`thread_order` is what is ordered before the warp's next synchronisation with others
(tcgen05.fence::before_thread_sync), `tensor_order` what is ordered before its next access
(tcgen05.fence::after_thread_sync). `performed` is `fenced` for reads alone: a read whose value was
used has happened, whatever the async proxy does then.

What is .relaxed orders nothing, but tells what is over: reads of engines, and writes of bulk
copies, that the warp has waited for; reads that are `performed`; and what a fence of cluster scope
releases in front of a relaxed arrival, or acquires behind a relaxed wait. `happened` knows what
came earlier in time by whatever way, `known` what is ordered.
"""

from __future__ import annotations

import numpy as np

LOAD_SLOTS = 64


class Clocks:
    """Clocks of one batch: `warps` per domain, `domains` domains; `tensor`: with tensor memory;
    `fragments`: products take what threads have read from registers; `relaxed`: something is."""

    def __init__(
        self, warps: int, domains: int, tensor: bool, fragments: bool, relaxed: bool
    ) -> None:
        self.warps = warps
        self.products = warps
        self.stores = 2 * warps
        self.tensor_loads = 3 * warps
        self.readers = (4 if tensor else 3) * warps
        self.copies = self.readers
        self.tensor_stores = self.copies + warps
        self.loads = self.tensor_stores + (warps if tensor else 0)
        self.launches = self.loads + LOAD_SLOTS
        self.agents = self.launches + 1
        number = np.arange(self.agents)
        self.generic = (number < warps) | (
            (number >= self.copies) & (number < self.tensor_stores)
        )  # those that write through the generic proxy
        self.known = np.zeros((warps, domains, self.agents), np.int32)
        own = np.arange(warps)
        self.known[own, :, own] = 1
        self.fenced = np.zeros_like(self.known)
        self.published = [self.known, self.fenced]
        if tensor:
            self.thread_order, self.tensor_order = (np.zeros_like(self.known) for _ in range(2))
            self.published.append(self.thread_order)
        self.performed = np.zeros_like(self.known) if fragments else self.fenced
        if fragments:
            self.published.append(self.performed)
        self._happened = np.zeros_like(self.known) if relaxed else self.known
        if relaxed:
            self.published.append(self._happened)
        self._unacquired: dict[tuple[int, int], np.ndarray] = {}
        """Per warp: what relaxed waits have told it, and a fence would make it acquire."""
        self._tensor_streams = self.products, self.tensor_loads, self.tensor_stores
        self.released = np.zeros_like(self.known)
        self.committed_copies = np.zeros((warps, domains), np.int32)
        self.committed_stores = np.zeros((warps, domains), np.int32)
        self.committed_products = np.zeros((warps, domains), np.int32)
        self.awaited_loads = np.zeros((warps, domains), np.int32)
        self.awaited_stores = np.zeros((warps, domains), np.int32)
        self.load_count = np.zeros(domains, np.int64)

    def empty(self, count: int) -> np.ndarray:
        """Accumulators of `count` synchronisation objects: [published clock, object, agent]."""
        return np.zeros((len(self.published), count, self.agents), np.int32)

    def release(
        self, warp: np.ndarray, domain: np.ndarray, accumulator: np.ndarray, target: np.ndarray
    ) -> None:
        """Warps publish what they know to `target` objects of an accumulator, then tick."""
        self._note_time(warp, domain)
        for kept, clock in zip(accumulator, self.published, strict=True):
            np.maximum.at(kept, target, clock[warp, domain])
        self.known[warp, domain, warp] += 1

    def acquire(
        self, warp: np.ndarray, domain: np.ndarray, accumulator: np.ndarray, source: np.ndarray
    ) -> None:
        for kept, clock in zip(accumulator, self.published, strict=True):
            clock[warp, domain] = np.maximum(clock[warp, domain], kept[source])

    def _note_time(self, warp: np.ndarray | int, domain: np.ndarray | int) -> None:
        now = warp, domain
        if self._happened is not self.known:
            self._happened[now] = np.maximum(self._happened[now], self.known[now])

    def happened(self, warp: np.ndarray | int | slice, domain: np.ndarray | int) -> np.ndarray:
        """The newest epochs that came earlier in time than a warp's next instruction."""
        return np.maximum(self._happened[warp, domain], self.known[warp, domain])

    def release_relaxed(
        self, warp: np.ndarray, domain: np.ndarray, accumulator: np.ndarray, target: np.ndarray
    ) -> None:
        """Warps publish what is over, and what fences have released, then tick."""
        self._note_time(warp, domain)
        for kept, clock in zip(accumulator, self.published, strict=True):
            values = clock[warp, domain]
            if clock is self.known or clock is self.fenced:
                fenced = np.minimum(values, self.released[warp, domain])
                values = np.where(self.generic, fenced, values)
            np.maximum.at(kept, target, values)
        self.known[warp, domain, warp] += 1

    def acquire_relaxed(
        self, warp: int, domain: int, heard: np.ndarray, loads: dict[int, int]
    ) -> None:
        """A warp learns of an accumulator's [published clock, agent] what is over, but not of the
        data of bulk loads (agents and epochs) that the mbarrier itself counted."""
        before = self.known[warp, domain].copy()
        for kept, clock in zip(heard, self.published, strict=True):
            now = clock[warp, domain]
            ordered = clock is self.known or clock is self.fenced
            chosen = ~self.generic if ordered else np.ones_like(self.generic)
            clock[warp, domain] = np.where(chosen, np.maximum(now, kept), now)
        for agent, epoch in loads.items():
            if self.known[warp, domain, agent] == epoch:
                self.known[warp, domain, agent] = before[agent]
        earlier = self._unacquired.get((warp, domain))
        self._unacquired[warp, domain] = heard if earlier is None else np.maximum(earlier, heard)

    def acquire_fence(self, warp: np.ndarray, domain: np.ndarray) -> None:
        """fence of cluster scope: what relaxed waits have told the warps is ordered before what
        follows."""
        for now in zip(warp.tolist(), domain.tolist(), strict=True) if self._unacquired else ():
            heard = self._unacquired.pop(now, None)
            for kept, clock in zip(() if heard is None else heard, self.published, strict=False):
                clock[now] = np.maximum(clock[now], kept)

    def fence(self, warp: np.ndarray, domain: np.ndarray) -> None:
        """fence.proxy.async: all the warp knows of is now ordered for the async proxy too."""
        self.fenced[warp, domain] = np.maximum(self.fenced[warp, domain], self.known[warp, domain])
        self.known[warp, domain, warp] += 1

    def perform_reads(self, warp: np.ndarray, domain: np.ndarray) -> None:
        """The warps run an instruction that needs what they have read: those reads are over."""
        self.performed[warp, domain, warp] = self.known[warp, domain, warp]
        self.known[warp, domain, warp] += 1

    def overwritable(self, warp: int, domain: int) -> np.ndarray:
        """[agent]: the newest epoch whose reads come before work of the async proxy that the warp
        starts now. Those of the generic proxy take a fence for that, or must be over."""
        now = warp, domain
        known = self.known[now]
        done = np.minimum(known, self.fenced[now])
        if self.performed is not self.fenced:
            done = np.maximum(done, self.performed[now])
        return np.where(self.generic, done, known)

    def release_fence(self, warp: np.ndarray, domain: np.ndarray) -> None:
        """fence of cluster scope: a relaxed arrival may publish what the warp knows of now."""
        self.released[warp, domain] = self.known[warp, domain]
        self.known[warp, domain, warp] += 1

    def fence_before(self, warp: np.ndarray, domain: np.ndarray) -> None:
        """tcgen05.fence::before_thread_sync: the warp's own tensor memory accesses come before the
        synchronisation that follows."""
        for first in self._tensor_streams:
            own = warp, domain, first + warp
            self.thread_order[own] = self.known[own]

    def commit_products(self, clock: np.ndarray, warp: int, group: int) -> None:
        """tcgen05.commit: a group of products is complete in a clock, and what the warp itself
        did is fenced as by tcgen05.fence::before_thread_sync."""
        clock[0, self.products + warp] = group
        if self._happened is not self.known:
            clock[-1, self.products + warp] = group
        for first in self._tensor_streams:
            clock[2, first + warp] = clock[0, first + warp]

    def fence_after(self, warp: np.ndarray, domain: np.ndarray) -> None:
        """tcgen05.fence::after_thread_sync: accesses that follow come after what was learned."""
        now = warp, domain
        self.tensor_order[now] = np.maximum(self.tensor_order[now], self.thread_order[now])

    def fork(self, warp: int, domain: int) -> np.ndarray:
        """The clock of work that a warp starts now: [published clock, agent]; the warp ticks."""
        self._note_time(warp, domain)
        clock = np.stack([published[warp, domain] for published in self.published])
        self.known[warp, domain, warp] += 1
        return clock

    def new_load(self, domain: int) -> tuple[int, int]:
        """Agent and epoch of one more bulk load."""
        number = int(self.load_count[domain])
        self.load_count[domain] += 1
        return self.loads + number % LOAD_SLOTS, number // LOAD_SLOTS + 1
