"""The rule of mbarriers that a schedule can hide: no phase passes by before anybody looked at it.

"For each phase of the mbarrier object, at least one test_wait or try_wait operation must be
performed which returns True for waitComplete before an arrive-on operation in the subsequent phase"
(PTX ISA, Phase of the mbarrier object). A waiter knows the parity of its phase alone: where two
phases end before it looks, it waits for one that never ends. So an arrival in phase n + 1 must be
ordered behind a successful wait for phase n, not merely come later in the schedule that was run.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tilec.runtime.emulator.errors import Finding, Place


@dataclass
class _Phase:
    """A phase that is over: the warps (agents) that waited for it, each at its first wait's
    epoch."""

    number: int
    waiters: dict[int, int] = field(default_factory=dict)


class PhaseWaits:
    """Who waited for the newest completed phase of each mbarrier (by the number of its cell)."""

    def __init__(self) -> None:
        self._phases: dict[int, _Phase] = {}

    def forget(self, cell: int) -> None:
        """The mbarrier is initialised or invalidated."""
        self._phases.pop(cell, None)

    def waited(self, cell: int, phase: int, agent: int, epoch: int) -> None:
        """A warp's wait has succeeded because `phase` is over (-1: before the first)."""
        found = self._phases.get(cell)
        if found is None or found.number != phase:
            found = self._phases[cell] = _Phase(phase)
        found.waiters.setdefault(agent, epoch)

    def arrived(self, cell: int, phase: int, known: np.ndarray, place: Place) -> Finding | None:
        """An arrival in `phase` by somebody who is ordered behind the epochs `known` of agents."""
        if phase == 0:
            return None
        before = self._phases.get(cell)
        waiters = before.waiters if before is not None and before.number == phase - 1 else {}
        if any(known[agent] >= epoch for agent, epoch in waiters.items()):
            return None
        missing = "no successful wait for the phase before is ordered before this arrival"
        mend = "arrive only behind such a wait: a waiter that misses a phase waits for ever"
        return Finding("unwaited phase", "mbarrier", None, place, missing, mend)
