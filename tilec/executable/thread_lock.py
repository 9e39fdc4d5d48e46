"""Locks of threads that a forked child finds free."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakSet


class ThreadLock:
    """`with guard.lock:` lets one thread in at a time.

    A fork copies locks as they are, and of the threads the one that forks alone: where another one
    was inside, the child would wait for ever. So a child has new locks. What they guard is whole
    at any time: tables that gain an entry, and calls that run alone. `make`: what makes the lock.
    """

    def __init__(self, make: Callable[[], Any] = threading.Lock) -> None:
        self._make = make
        self.lock = make()
        _all.add(self)

    def renew(self) -> None:
        """Makes the lock anew; who is inside leaves the old one."""
        self.lock = self._make()


_all: WeakSet[ThreadLock] = WeakSet()


def _renew_all() -> None:
    for guard in _all:
        guard.renew()


if hasattr(os, "register_at_fork"):  # where there are forks
    os.register_at_fork(after_in_child=_renew_all)
