"""Asynchronous work beside the warps: done at once (eager) or as late as possible (late).

What an mbarrier announces is done, in late mode, only when no lane can go on without it: copies in
any order, those first whose mbarrier somebody waits for; the work of the tensor cores (tcgen05) in
the order of its issue, ahead of copies that nobody waits for. Arrivals at mbarriers of other CTAs
come behind all that, or when their CTA releases what it did to the cluster. With a seed all of it
is done at any time that is allowed. Bulk stores belong to commit groups of the issuing lane and are
done when that lane waits for them, or at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

Work = Callable[[], None]
_OFTEN = 0.5
"""How likely a piece of work comes by itself before another block runs, where there is a seed."""


@dataclass
class _Copy:
    signals: frozenset[int]
    work: Work


@dataclass
class _Step:
    """Work of the tensor cores: of one lane in order."""

    lane: int
    work: Work


@dataclass
class _Arrival:
    cta: int
    work: Work


@dataclass
class _Store:
    lane: int
    group: int
    work: Work


class AsyncWork:
    """Pending work of one machine; `seed`: of when it is done, None: as late as possible."""

    def __init__(self, lanes: int, ctas: int, late: bool, seed: int | None = None) -> None:
        self.late = late
        self.random = None if seed is None or not late else np.random.default_rng(seed)
        self.queue: list[_Step] = []
        self.copies: list[_Copy] = []
        self.arrivals: list[_Arrival] = []
        self.stores: list[_Store] = []
        self.committed = np.zeros(lanes, np.int64)
        self._ctas = ctas

    def reset(self) -> None:
        for pending in (self.queue, self.copies, self.arrivals, self.stores):
            pending.clear()
        self.committed[...] = 0

    def submit(self, work: Work, lane: int) -> None:
        """Work of the tensor cores that a lane issues, in order."""
        if self.late:
            self.queue.append(_Step(lane, work))
        else:
            work()

    def submit_copy(self, work: Work, signals: Sequence[int]) -> None:
        """A copy that signals its end to mbarriers, given by their cells."""
        if self.late:
            self.copies.append(_Copy(frozenset(signals), work))
        else:
            work()

    def arrive(self, lane: int, work: Work) -> None:
        """An arrival of a lane at an mbarrier of another CTA."""
        if self.late:
            self.arrivals.append(_Arrival((lane >> 5) % self._ctas, work))
        else:
            work()

    def released(self, lanes: np.ndarray) -> None:
        """Lanes release what their CTAs did to the cluster: arrivals are not behind that."""
        if not self.arrivals:
            return
        ctas = set(((np.asarray(lanes).reshape(-1) >> 5) % self._ctas).tolist())
        done = [arrival for arrival in self.arrivals if arrival.cta in ctas]
        self.arrivals = [arrival for arrival in self.arrivals if arrival.cta not in ctas]
        for arrival in done:
            arrival.work()

    def run_one(self, awaited: Collection[int] = ()) -> bool:
        """Do one piece of pending work, a copy to one of the mbarriers `awaited` if there is one;
        False if nothing is pending."""
        if self.random is not None:
            return self._run_any(self.random)
        wanted = (n for n, copy in enumerate(self.copies) if not copy.signals.isdisjoint(awaited))
        number = next(wanted, None)
        if number is not None:
            self.copies.pop(number).work()
            return True
        for pending in (self.queue, self.copies, self.arrivals):
            if pending:
                pending.pop(0).work()
                return True
        return False

    def _run_any(self, random: np.random.Generator) -> bool:
        counts = [len(pending) for pending in (self.queue, self.copies, self.arrivals)]
        if not any(counts):
            return False
        number = int(random.integers(sum(counts)))
        for pending in (self.queue, self.copies, self.arrivals):
            if number < len(pending):
                break
            number -= len(pending)
        if pending is self.queue:
            lane = self.queue[number].lane
            number = next(n for n, step in enumerate(self.queue) if step.lane == lane)
        pending.pop(number).work()
        return True

    def tick(self) -> None:
        """Time passes: with a seed, work may come by itself."""
        random = self.random
        while random is not None and random.random() < _OFTEN and self._run_any(random):
            pass

    def submit_store(self, lane: int, work: Work) -> None:
        """Work that belongs to the lane's current bulk group."""
        if self.late:
            self.stores.append(_Store(lane, int(self.committed[lane]) + 1, work))
        else:
            work()

    def commit(self, lanes: np.ndarray) -> None:
        self.committed[np.asarray(lanes).reshape(-1)] += 1

    def wait(self, lanes: np.ndarray, pending: int) -> None:
        """Let at most `pending` of the newest groups of each lane be unfinished."""
        if not self.stores:
            return
        waiting = set(np.asarray(lanes).reshape(-1).tolist())
        left = []
        for store in self.stores:
            if store.lane in waiting and store.group <= self.committed[store.lane] - pending:
                store.work()
            else:
                left.append(store)
        self.stores = left

    def finish(self) -> None:
        """The kernel has ended: everything left happens now."""
        while self.run_one():
            pass
        for store in self.stores:
            store.work()
        self.stores.clear()
