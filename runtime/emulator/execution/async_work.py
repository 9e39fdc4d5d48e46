"""Asynchronous work beside the warps: done at once (eager) or as late as possible (late).

What an mbarrier announces is done, in late mode, only when no lane can go on without it: copies in
any order, those first whose mbarrier somebody waits for; the work of the tensor cores (tcgen05) in
the order of its issue, ahead of copies that nobody waits for. Bulk stores belong to commit groups
of the issuing lane and are done when that lane waits for them, or at the end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

Work = Callable[[], None]


@dataclass
class _Copy:
    signals: frozenset[int]
    work: Work


@dataclass
class _Store:
    lane: int
    group: int
    work: Work


class AsyncWork:
    """Pending work of one machine."""

    def __init__(self, lanes: int, late: bool) -> None:
        self.late = late
        self.queue: deque[Work] = deque()
        self.copies: list[_Copy] = []
        self.stores: list[_Store] = []
        self.committed = np.zeros(lanes, np.int64)

    def reset(self) -> None:
        self.queue.clear()
        self.copies.clear()
        self.stores.clear()
        self.committed[...] = 0

    def submit(self, work: Work) -> None:
        """Work of the tensor cores, in order."""
        if self.late:
            self.queue.append(work)
        else:
            work()

    def submit_copy(self, work: Work, signals: Sequence[int]) -> None:
        """A copy that signals its end to mbarriers, given by their cells."""
        if self.late:
            self.copies.append(_Copy(frozenset(signals), work))
        else:
            work()

    def run_one(self, awaited: Collection[int] = ()) -> bool:
        """Do one piece of pending work, a copy to one of the mbarriers `awaited` if there is one;
        False if nothing is pending."""
        wanted = (n for n, copy in enumerate(self.copies) if not copy.signals.isdisjoint(awaited))
        number = next(wanted, None)
        if number is not None:
            self.copies.pop(number).work()
        elif self.queue:
            self.queue.popleft()()
        elif self.copies:
            self.copies.pop(0).work()
        else:
            return False
        return True

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
