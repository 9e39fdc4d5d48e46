"""cp.async executed as late as the ISA allows; until then the destination is poisoned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilec.runtime.emulator.instructions.cp_async import Copy


@dataclass
class _Pending:
    """Copies of one instruction; `group` is the commit group of each lane's copy."""

    copy: Copy
    operands: list[np.ndarray | None]
    lanes: np.ndarray
    group: np.ndarray


class LateCopies:
    """Copies wait in a queue; wait_group completes the groups of the waiting lanes in order."""

    def __init__(self, lanes: int) -> None:
        self.committed = np.zeros(lanes, np.int64)
        self.done = np.zeros(lanes, np.int64)
        self.queue: list[_Pending] = []

    def reset(self) -> None:
        self.committed[...] = 0
        self.done[...] = 0
        self.queue.clear()

    def issue(
        self,
        copy: Copy,
        where: np.ndarray,
        index: np.ndarray,
        full: np.ndarray | None,
        limit: np.ndarray | None,
        source: np.ndarray,
        lanes: np.ndarray,
    ) -> None:
        """Note the copy (operands copied, for registers change) and poison its destination."""
        raw = copy.shared_rows.view(np.uint8).reshape(copy.shared_rows.size, -1)
        raw[where] = 0xFF
        flat = np.broadcast_to(lanes, where.shape).reshape(-1).copy()
        operands = [
            None if value is None else np.broadcast_to(value, where.shape).reshape(-1).copy()
            for value in (where, index, full, limit, source)
        ]
        self.queue.append(_Pending(copy, operands, flat, self.committed[flat] + 1))

    def commit(self, lanes: np.ndarray) -> None:
        self.committed[lanes.reshape(-1)] += 1

    def wait(self, lanes: np.ndarray, pending: int) -> None:
        flat = lanes.reshape(-1)
        self.done[flat] = np.maximum(self.done[flat], self.committed[flat] - pending)
        self._complete()

    def finish(self, lanes: np.ndarray) -> None:
        """Every copy that the lanes have issued completes, committed or not."""
        before = self.done[lanes].copy()
        self.done[lanes] = self.committed[lanes] + 1
        self._complete()
        self.done[lanes] = np.maximum(before, self.committed[lanes])

    def chunks(self, size: int) -> np.ndarray:
        """The chunks of `size` bytes that pending copies write."""
        written = ((entry.operands[0], entry.copy.shift) for entry in self.queue)
        parts = [(to << shift) // size for to, shift in written if to is not None]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def _complete(self) -> None:
        left: list[_Pending] = []
        for entry in self.queue:
            ready = entry.group <= self.done[entry.lanes]
            if ready.all():
                entry.copy.transfer(*entry.operands)  # type: ignore[arg-type]
            elif ready.any():
                entry.copy.transfer(*_select(entry.operands, ready))  # type: ignore[arg-type]
                rest = ~ready
                left.append(
                    _Pending(
                        entry.copy,
                        _select(entry.operands, rest),
                        entry.lanes[rest],
                        entry.group[rest],
                    )
                )
            else:
                left.append(entry)
        self.queue = left


def _select(operands: list[np.ndarray | None], chosen: np.ndarray) -> list[np.ndarray | None]:
    return [None if value is None else value[chosen] for value in operands]
