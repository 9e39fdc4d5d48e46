"""What a schedule hides: mbarrier waits that return false because their time limit is over.

try_wait suspends a thread until the phase is complete or a time limit of the system has passed, and
returns false then (PTX ISA, mbarrier.test_wait / mbarrier.try_wait); test_wait does not suspend it
at all. Where asynchronous work is done when it is issued, neither would ever return false, and a
loop around them that is missing would not be missed. So each wait returns false when a warp comes
to it first, and now and then afterwards: unless everything that completes the phase is ordered
before the warp anyhow, since a phase that is certainly complete is what both must report.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

import numpy as np

from tilec.runtime.emulator.errors import Place

_SEED = 14
_AGAIN = 8
"""One in so many later waits returns false."""


class TimeLimits:
    """Which waits of a batch of CTAs return false; warps are lane numbers / 32."""

    def __init__(self) -> None:
        self._failed: set[tuple[int, int]] = set()
        self._random = random.Random(_SEED)
        self._unheard: dict[tuple[int, int], Place] = {}

    def due(self, warps: np.ndarray, site: int) -> np.ndarray:
        """Which of the warps that run the wait at instruction `site` together are to hear false."""
        if self._random.randrange(_AGAIN) == 0:
            return np.ones(warps.shape, np.bool_)
        numbers = warps.tolist()
        fresh = {warp: (site, warp) not in self._failed for warp in set(numbers)}
        return np.array([fresh[warp] for warp in numbers], np.bool_)

    def returned_false(self, warp: int, site: int, agent: int, cell: int, place: Place) -> None:
        """A warp, `agent` of its cluster, heard false of the mbarrier in `cell`."""
        self._failed.add((site, warp))
        self._unheard[agent, cell] = place

    def returned_true(self, agent: int, cell: int) -> None:
        self._unheard.pop((agent, cell), None)

    def advice(self, agents: Iterable[int]) -> str:
        """A clause about a wait that returned false to one of the agents, which did not ask again;
        nothing where there is none."""
        wanted = set(agents)
        for (agent, _), place in self._unheard.items():
            if agent in wanted:
                return (
                    f"; the wait at {place} returned false, as it may: ask again until it is true"
                )
        return ""
