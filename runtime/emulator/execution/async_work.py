"""Asynchronous work beside the warps: done at once (eager) or as late as possible (late).

Work that an mbarrier announces (TMA loads, tcgen05) is queued in order and done, in late mode, only
when no lane can go on without it. Bulk stores belong to commit groups of the issuing lane and are
done when that lane waits for them, or at the end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Work = Callable[[], None]


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
        self.stores: list[_Store] = []
        self.committed = np.zeros(lanes, np.int64)

    def reset(self) -> None:
        self.queue.clear()
        self.stores.clear()
        self.committed[...] = 0

    def submit(self, work: Work) -> None:
        """Work that signals its end itself."""
        if self.late:
            self.queue.append(work)
        else:
            work()

    def run_one(self) -> bool:
        """Do the oldest pending work; False if there is none."""
        if not self.queue:
            return False
        self.queue.popleft()()
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
