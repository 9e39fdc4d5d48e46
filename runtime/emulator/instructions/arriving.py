"""What asynchronous copies still write in shared memory, for late mode.

What reads asynchronously (matrix products, tcgen05.cp, bulk stores) may read at any time from its
issue on. Late mode does such work last, behind copies issued before it, and would show the right
bytes to a reader that did not wait for them. So a reader of what is on its way takes its operands
when it is issued: the poison there.
"""

from __future__ import annotations

import numpy as np

from tilec.runtime.emulator.instructions.late_copies import LateCopies

CHUNK = 16
"""Bytes; the unit of what readers read, and of bulk copies."""


class Arriving:
    """What is on its way to `shared`, the shared memory of a machine: by bulk copies, and by the
    copies of threads (`copies`). Nothing but in late mode."""

    def __init__(self, shared: np.ndarray, copies: object) -> None:
        self._copies = copies if isinstance(copies, LateCopies) else None
        self._rows = shared[: shared.size // CHUNK * CHUNK].reshape(-1, CHUNK)
        self._bulk = np.zeros(len(self._rows), np.int32)

    def reset(self) -> None:
        self._bulk[...] = 0

    def begin(self, chunks: np.ndarray) -> None:
        """A bulk copy to these chunks, each named once, was issued: they hold poison."""
        if self._copies is not None:
            self._rows[chunks] = 0xFF
            self._bulk[chunks] += 1

    def end(self, chunks: np.ndarray) -> None:
        """It is done."""
        if self._copies is not None:
            self._bulk[chunks] -= 1

    def touches(self, *parts: np.ndarray) -> bool:
        """Whether one of these chunks is still to come."""
        if self._copies is None:
            return False
        if any(self._bulk.take(chunks).any() for chunks in parts):
            return True
        pending = self._copies.chunks(CHUNK)
        return bool(pending.size) and any(np.isin(chunks, pending).any() for chunks in parts)
