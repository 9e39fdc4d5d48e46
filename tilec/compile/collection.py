"""Python's search for objects that keep each other, seldom while the compiler works: of what that
makes most stays, and little has to be found."""

from __future__ import annotations

import gc
from contextlib import ContextDecorator

from tilec.executable.thread_lock import ThreadLock

SELDOM = 100_000
"""New objects between two searches. With Python's 700 they take 7 % of a cold `tilec compile`, and
12 to 18 % of the first call of a kernel."""


class Seldom(ContextDecorator):
    """While some thread is inside; what the process had before comes back behind the last."""

    def __init__(self) -> None:
        self._guard = ThreadLock()
        self._inside = 0
        self._before = gc.get_threshold()

    def __enter__(self) -> None:
        with self._guard.lock:
            if not self._inside:
                self._before = gc.get_threshold()
                gc.set_threshold(max(SELDOM, self._before[0]) if self._before[0] else 0)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._guard.lock:
            self._inside -= 1
            if not self._inside:
                gc.set_threshold(*self._before)


collecting_seldom = Seldom()
