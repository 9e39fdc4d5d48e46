"""What reaches into a CTA's shared memory must find it there: the CTA has begun, and lasts so long.

All CTAs of a cluster have begun behind its first meeting, relaxed or not (CUDA C++ Programming
Guide, Distributed Shared Memory). A CTA ends when its last warp exits, and its shared memory goes
to the next CTA, or to the next launch. By then it must be behind all that reaches into it:

- What threads of other CTAs do (arrivals, loads, stores, atomics): some warp of the CTA is ordered
  behind it, by a barrier.cluster whose arrival releases, say. A .relaxed one orders nothing, nor
  does one that was passed before the access. On an H200 a relaxed arrival at an mbarrier was still
  under way when its CTA had passed a relaxed barrier.cluster and ended, and hit the next launch.
- An arrival: or some warp of the CTA has waited for the phase that it belongs to. Nothing else
  counts for arrivals of tcgen05.commit, and for the bytes that a copy counts at the mbarrier of
  another CTA than it fills: no thread makes them. Commits of one thread arrive in one CTA in their
  order; no document says so.
- A bulk copy: somebody of the CTA that it fills, and of the CTA that it reads, has waited for its
  mbarrier, or met somebody who has.
- Copies of cp.async, and products that read shared memory: some warp knows that they are over.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilec.runtime.emulator.checking.clocks import Clocks
from tilec.runtime.emulator.errors import Finding, Place
from tilec.runtime.emulator.stuck_warps import ranges

_BEGUN = (
    "the CTA whose shared memory this reaches may not have begun",
    "let the cluster meet (barrier.cluster) before the first access",
)
_MEET = "let the cluster meet behind the last {}, by a barrier.cluster.arrive that is not .relaxed"
_WAIT = "let a warp of that CTA wait for the phase that this belongs to before the CTA ends"
_ENDS = {
    "lost arrival": (
        "{} may have ended when this arrives",
        f"{_MEET.format('arrival')}; or {_WAIT}",
    ),
    "lost access": (
        "{}, whose shared memory this reaches, may have ended",
        _MEET.format("access"),
    ),
    "lost signal": ("{} may have ended when this asynchronous arrival comes", _WAIT),
    "unfinished load": (
        "{} may end while the bulk copy still writes its shared memory",
        "wait for the mbarrier that the copy signals before the end",
    ),
    "unfinished send": (
        "{} may end while the bulk copy still reads its shared memory",
        "let the CTA learn from the receiver that the copy is complete, by a barrier.cluster, say",
    ),
    "unfinished copy": (
        "{} may end while cp.async still writes its shared memory",
        "run cp.async.wait_all before the end",
    ),
    "unfinished product": (
        "{} may end while the matrix product still reads its shared memory",
        "wait for the product before the end",
    ),
}
_OBSERVED = ("unfinished load", "unfinished send")
"""Kinds of work that is over once anybody has seen its end: a relaxed meeting says that, too."""


@dataclass
class _Signal:
    """An arrival, or bytes, at an mbarrier: in which of its phases, and where it was issued."""

    phase: int
    place: Place


class Lifetimes:
    """Accesses from afar, and asynchronous work, of one batch: `warps` a CTA, `size` CTAs a
    cluster; CTAs are numbered in the batch, mbarriers by cell."""

    def __init__(self, clocks: Clocks, warps: int, size: int) -> None:
        self.clocks = clocks
        self.warps, self.size = warps, size
        self._last: dict[tuple[str, int, int], tuple[int, Place]] = {}
        """Per kind, CTA and agent: the newest epoch and place."""
        self._arrivals: dict[tuple[int, int, int], tuple[int, _Signal]] = {}
        """Per CTA, cell and agent that arrived there: its newest epoch, and the arrival."""
        self._signals: dict[int, dict[int, dict[int, _Signal]]] = {}
        """Per CTA and issuer, in order of issue: the newest signal at each cell that nobody has
        waited for."""
        self._over: dict[int, int] = {}
        """Per cell: the newest phase that a warp of its CTA has waited for."""

    def _knows(self, cta: int, agent: int, epoch: int, observed: bool) -> bool:
        """Whether some warp of a CTA is behind an epoch of an agent."""
        rank, domain = cta % self.size, cta // self.size
        own = slice(rank * self.warps, (rank + 1) * self.warps)
        if observed:
            return int(self.clocks.happened(own, domain)[:, agent].max()) >= epoch
        return int(self.clocks.known[own, domain, agent].max()) >= epoch

    def reached(self, ctas: np.ndarray, agents: np.ndarray, place: Place) -> list[Finding]:
        """Warps (`agents`) access shared memory of other CTAs. Returns what is wrong already."""
        found = []
        for cta, agent in sorted(set(zip(ctas.tolist(), agents.tolist(), strict=True))):
            domain, rank = cta // self.size, cta % self.size * self.warps
            epoch = int(self.clocks.known[agent, domain, agent])
            self.uses("lost access", cta, agent, epoch, place)
            theirs = slice(rank, rank + self.warps)
            if not self.clocks.happened(agent, domain)[theirs].any():
                found.append(Finding("early access", "shared", None, place, *_BEGUN))
        return found

    def uses(self, kind: str, cta: int, agent: int, epoch: int, place: Place) -> None:
        """Work of an agent (its newest, of this kind) reads or writes shared memory of a CTA."""
        self._last[kind, cta, agent] = epoch, place

    def arrives(self, cta: int, cell: int, phase: int, agent: int, place: Place) -> None:
        """A warp (`agent`) arrives at an mbarrier of another CTA, whose phase is in progress."""
        epoch = int(self.clocks.known[agent, cta // self.size, agent])
        self._arrivals[cta, cell, agent] = epoch, _Signal(phase, place)

    def signals(self, cta: int, cell: int, phase: int, issuer: int, place: Place) -> None:
        """Asynchronous work will arrive, or count bytes, at an mbarrier. Those of one issuer in one
        CTA come in order; -1: one that has no order."""
        pending = self._signals.setdefault(cta, {}).setdefault(issuer, {})
        pending.pop(cell, None)
        pending[cell] = _Signal(phase, place)

    def waited(self, cta: int, cell: int, over: int) -> None:
        """A warp of a CTA has waited for a phase of its mbarrier to be over."""
        self._over[cell] = over
        for issuer, pending in self._signals.get(cta, {}).items():
            if cell not in pending or pending[cell].phase > over:
                continue
            if issuer < 0:
                del pending[cell]
                continue
            while cell in pending:
                del pending[next(iter(pending))]

    def forget(self, cell: int) -> None:
        """The mbarrier is initialised or invalidated: its phases count from zero again."""
        self._over.pop(cell, None)

    def finish(self) -> list[Finding]:
        """The CTAs end."""
        lost: dict[tuple[str, Place], set[int]] = {}
        for (kind, cta, agent), (epoch, place) in self._last.items():
            if not self._knows(cta, agent, epoch, kind in _OBSERVED):
                lost.setdefault((kind, place), set()).add(cta % self.size)
        for (cta, cell, agent), (epoch, arrival) in self._arrivals.items():
            come = self._over.get(cell, -1) >= arrival.phase
            if not come and not self._knows(cta, agent, epoch, False):
                lost.setdefault(("lost arrival", arrival.place), set()).add(cta % self.size)
        for cta, issuers in self._signals.items():
            for pending in issuers.values():
                for signal in pending.values():
                    lost.setdefault(("lost signal", signal.place), set()).add(cta % self.size)
        return [self._finding(kind, place, ranks) for (kind, place), ranks in lost.items()]

    def _finding(self, kind: str, place: Place, ranks: set[int]) -> Finding:
        ended = "the CTA" if self.size == 1 else f"{ranges('CTA', ranks)} of the cluster"
        memory = "mbarrier" if kind in ("lost arrival", "lost signal") else "shared"
        missing, mend = _ENDS[kind]
        return Finding(kind, memory, None, place, missing.format(ended), mend)
