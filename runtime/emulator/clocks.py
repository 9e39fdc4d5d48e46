"""Vector clocks of the agents of a cluster: warps, and the asynchronous engines they start.

The domain of a clock is a cluster (a CTA, where there are none). Its agents, by index:
warps; one stream of matrix-product reads per warp (for wgmma the warpgroup's first); one stream of
bulk-store reads per warp; where there is tensor memory, one stream of tcgen05.ld reads per warp;
one stream of cp.async writes and one of tcgen05.st writes per warp; slots for bulk loads, in turn.
`known[warp, domain, agent]` is the newest epoch of the agent that the warp is ordered after;
`fenced` the same for what the async proxy may rely on (after fence.proxy.async), `released` for
what a relaxed arrival at the cluster's barrier publishes.
"""

from __future__ import annotations

import numpy as np

LOAD_SLOTS = 64


class Clocks:
    """Clocks of one batch: `warps` per domain, `domains` domains; `tensor`: with tensor memory."""

    def __init__(self, warps: int, domains: int, tensor: bool) -> None:
        self.warps = warps
        self.products = warps
        self.stores = 2 * warps
        self.tensor_loads = 3 * warps
        self.readers = (4 if tensor else 3) * warps
        self.copies = self.readers
        self.tensor_stores = self.copies + warps
        self.loads = self.tensor_stores + (warps if tensor else 0)
        self.agents = self.loads + LOAD_SLOTS
        self.known = np.zeros((warps, domains, self.agents), np.int32)
        own = np.arange(warps)
        self.known[own, :, own] = 1
        self.fenced = np.zeros_like(self.known)
        self.released = np.zeros_like(self.known)
        self.committed_copies = np.zeros((warps, domains), np.int32)
        self.committed_stores = np.zeros((warps, domains), np.int32)
        self.committed_products = np.zeros((warps, domains), np.int32)
        self.awaited_loads = np.zeros((warps, domains), np.int32)
        self.awaited_stores = np.zeros((warps, domains), np.int32)
        self.load_count = np.zeros(domains, np.int64)

    def empty(self, count: int) -> np.ndarray:
        """Accumulators of `count` synchronisation objects: [known or fenced, object, agent]."""
        return np.zeros((2, count, self.agents), np.int32)

    def release(
        self, warp: np.ndarray, domain: np.ndarray, accumulator: np.ndarray, target: np.ndarray
    ) -> None:
        """Warps publish what they know to `target` objects of an accumulator, then tick."""
        np.maximum.at(accumulator[0], target, self.known[warp, domain])
        np.maximum.at(accumulator[1], target, self.fenced[warp, domain])
        self.known[warp, domain, warp] += 1

    def acquire(
        self, warp: np.ndarray, domain: np.ndarray, accumulator: np.ndarray, source: np.ndarray
    ) -> None:
        known, fenced = self.known[warp, domain], self.fenced[warp, domain]
        self.known[warp, domain] = np.maximum(known, accumulator[0][source])
        self.fenced[warp, domain] = np.maximum(fenced, accumulator[1][source])

    def fence(self, warp: np.ndarray, domain: np.ndarray) -> None:
        """fence.proxy.async: all the warp knows of is now ordered for the async proxy too."""
        self.fenced[warp, domain] = np.maximum(self.fenced[warp, domain], self.known[warp, domain])
        self.known[warp, domain, warp] += 1

    def release_fence(self, warp: np.ndarray, domain: np.ndarray) -> None:
        """fence of cluster scope: a relaxed arrival may publish what the warp knows of now."""
        self.released[warp, domain] = self.known[warp, domain]
        self.known[warp, domain, warp] += 1

    def fork(self, warp: int, domain: int) -> np.ndarray:
        """The clock of work that a warp starts now: [known or fenced, agent]; the warp ticks."""
        clock = np.stack([self.known[warp, domain], self.fenced[warp, domain]])
        self.known[warp, domain, warp] += 1
        return clock

    def new_load(self, domain: int) -> tuple[int, int]:
        """Agent and epoch of one more bulk load."""
        number = int(self.load_count[domain])
        self.load_count[domain] += 1
        return self.loads + number % LOAD_SLOTS, number // LOAD_SLOTS + 1
