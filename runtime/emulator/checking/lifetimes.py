"""What reaches into a CTA's shared memory must find it there: the CTA has begun, and lasts so long.

Another CTA's arrivals, loads, stores and atomics come between two meetings of the cluster: all CTAs
have begun behind the first, and none has ended before the last (CUDA C++ Programming Guide,
Distributed Shared Memory). A bulk copy is over when somebody of the CTA that it fills has waited
for its mbarrier.
"""

from __future__ import annotations

import numpy as np

from tilec.runtime.emulator.checking.clocks import Clocks
from tilec.runtime.emulator.errors import Finding, Place

_BEGUN = (
    "the CTA whose shared memory this reaches may not have begun",
    "let the cluster meet (barrier.cluster) before the first access",
)
_ENDS = {
    "lost arrival": (
        "the CTA that this arrives in may have ended",
        "let the cluster meet (barrier.cluster) behind the last arrival",
    ),
    "lost access": (
        "the CTA whose shared memory this reaches may have ended",
        "let the cluster meet (barrier.cluster) behind the last access",
    ),
    "unfinished load": (
        "the CTA may end while the bulk copy still writes its shared memory",
        "wait for the mbarrier that the copy signals before the end",
    ),
}


class Lifetimes:
    """Accesses from afar, and copies, of one batch: `warps` a CTA, `size` CTAs a cluster."""

    def __init__(self, clocks: Clocks, warps: int, size: int) -> None:
        self.clocks = clocks
        self.warps, self.size = warps, size
        self.met = np.zeros_like(clocks.known)
        """What has happened before the last meeting of the cluster that a warp passed."""
        self._last: dict[tuple[str, int, int], tuple[int, Place]] = {}
        """Per kind, CTA and agent: the newest epoch and place."""

    def _knowledge(self, cta: int, agent: int | np.ndarray) -> int:
        """The newest epoch of an agent that some warp of a CTA is behind."""
        rank, domain = cta % self.size, cta // self.size
        own = slice(rank * self.warps, (rank + 1) * self.warps)
        return max(int(clock[own, domain, agent].max()) for clock in (self.clocks.known, self.met))

    def reached(
        self, kind: str, ctas: np.ndarray, agents: np.ndarray, place: Place
    ) -> list[Finding]:
        """Warps (`agents`) reach into other CTAs: "lost arrival" or "lost access" if too late.
        Returns what is wrong already."""
        found = []
        for cta, agent in sorted(set(zip(ctas.tolist(), agents.tolist(), strict=True))):
            domain = cta // self.size
            epoch = int(self.clocks.known[agent, domain, agent])
            self._last[kind, cta, agent] = epoch, place
            rank = cta % self.size * self.warps
            theirs = slice(rank, rank + self.warps)
            begun = max(c[agent, domain, theirs].max() for c in (self.clocks.known, self.met))
            if kind == "lost access" and not begun:
                found.append(Finding("early access", "shared", None, place, *_BEGUN))
        return found

    def filled(self, cta: int, load: int, epoch: int, place: Place) -> None:
        """A bulk copy (agent and epoch) starts to write shared memory of a CTA."""
        self._last["unfinished load", cta, load] = epoch, place

    def finish(self) -> list[Finding]:
        """The CTAs end."""
        found = []
        for (kind, cta, agent), (epoch, place) in self._last.items():
            if self._knowledge(cta, agent) < epoch:
                memory = "mbarrier" if kind == "lost arrival" else "shared"
                found.append(Finding(kind, memory, None, place, *_ENDS[kind]))
        return found
