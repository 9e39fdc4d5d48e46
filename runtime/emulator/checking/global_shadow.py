"""What the checker remembers of every cell of global memory: who wrote it last, who read it.

An access is one number, a mark: [warp of the grid + 1, ATOMIC, ASYNC, epoch of the warp, number of
the instruction]. Of all readers the last is kept and the last of another warp, as ThreadSanitizer
keeps few accesses a cell: enough for one of them to be unordered where a barrier is missing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilec.runtime.emulator.reading.instruction import Instruction

_SITE_BITS, _EPOCH_BITS = 17, 18
WARP_SHIFT = _SITE_BITS + _EPOCH_BITS + 2
ATOMIC = 1 << WARP_SHIFT - 1
ASYNC = 1 << WARP_SHIFT - 2
"""A bulk store: written by the async proxy."""
IN_FLIGHT = (1 << _EPOCH_BITS) - 1
"""The epoch of a bulk store that nobody has waited for."""


def mark(warp: np.ndarray, epoch: np.ndarray, site: int, flags: int = 0) -> np.ndarray:
    """Marks of accesses by warps of the grid at epochs of theirs."""
    epochs = np.minimum(epoch, IN_FLIGHT - 1).astype(np.int64)
    return (warp + 1 << WARP_SHIFT) + (epochs << _SITE_BITS) + (site | flags)


def in_flight(warp: int, site: int, flags: int = 0) -> int:
    """The mark of a bulk store under way."""
    return (warp + 1 << WARP_SHIFT) + (IN_FLIGHT << _SITE_BITS) + (site | flags | ASYNC)


def warp_of(marks: np.ndarray) -> np.ndarray:
    return (marks >> WARP_SHIFT) - 1


def epoch_of(marks: np.ndarray) -> np.ndarray:
    return marks >> _SITE_BITS & IN_FLIGHT


def site_of(marks: np.ndarray) -> np.ndarray:
    return marks & (1 << _SITE_BITS) - 1


def of_others(before: np.ndarray, marks: np.ndarray) -> np.ndarray:
    """Which cells' marks are of other warps than these."""
    return ((before ^ marks) >> WARP_SHIFT != 0) & (before != 0)


def strange(first: np.ndarray, second: np.ndarray, team: int) -> np.ndarray:
    """Where the warps of two marks belong to different CTAs or clusters, of `team` warps each."""
    return warp_of(first) // team != warp_of(second) // team


class GlobalShadow:
    """Marks and times of the cells of the arena; 0 where nobody came yet."""

    def __init__(self, size: int, granule: int) -> None:
        cells = size // granule + 1
        self.granule = granule
        self.write = np.zeros(cells, np.int64)
        self.write_time = np.zeros(cells, np.int32)
        self.read = np.zeros(cells, np.int64)
        self.other_read = np.zeros(cells, np.int64)
        self.read_time = np.zeros(cells, np.int32)
        self.foreign_time = np.zeros(cells, np.int32)
        """Of the last read by another cluster than that of `read`."""
        self.shared = np.zeros(cells, np.bool_)  # read by several clusters

    def width(self, size: int) -> int:
        """Cells of an access of `size` bytes."""
        return max(size // self.granule, 1)

    def cells(self, offsets: np.ndarray, size: int) -> np.ndarray:
        """The cells of accesses of `size` bytes at offsets of the arena, one access after the
        other."""
        first = offsets.reshape(-1, 1) // self.granule
        return (first + np.arange(self.width(size))).reshape(-1)

    def note_reads(self, cells: np.ndarray, marks: np.ndarray, time: int, team: int) -> None:
        """Cells are read; a cluster has `team` warps."""
        before, when = self.read[cells], self.read_time[cells]
        self.read[cells] = marks
        self.read_time[cells] = time
        if before.any():
            others = of_others(before, marks)
            self._note_others(cells[others], before[others], marks[others], when[others], team)
        lost = of_others(self.read[cells], marks)
        if lost.any():  # several warps read a cell in one instruction
            where = cells[lost]
            self._note_others(where, marks[lost], self.read[where], time, team)

    def _note_others(
        self, cells: np.ndarray, others: np.ndarray, last: np.ndarray, when: np.ndarray | int,
        team: int,
    ) -> None:  # fmt: skip
        """Cells were read by other warps than those that read them last, at these times."""
        self.other_read[cells] = others
        foreign = strange(others, last, team)
        self.shared[cells] |= foreign
        self.foreign_time[cells[foreign]] = when if isinstance(when, int) else when[foreign]

    def readers(self, cells: np.ndarray, team: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """The marks of `read`, and of `other_read`, with their times: where both are of a cluster,
        its last."""
        last, other, when = self.read[cells], self.other_read[cells], self.read_time[cells]
        before = np.where(strange(last, other, team), self.foreign_time[cells], when)
        return [(last, when), (other, before)]

    def read_time_beside(self, cells: np.ndarray, marks: np.ndarray, team: int) -> np.ndarray:
        """Times of the last reads by other clusters than those of marks."""
        foreign = strange(self.read[cells], marks, team)
        return np.where(foreign, self.read_time[cells], self.foreign_time[cells])


@dataclass(frozen=True)
class OverLaunch:
    """A launch of a stream that is over: its number, and the marks it has left."""

    number: int
    writes: np.ndarray
    reads: np.ndarray


class GlobalHistory:
    """What the launches of a stream do to global memory. Warps and instructions are numbered on
    from launch to launch."""

    def __init__(self, size: int, granule: int) -> None:
        self.shadow = GlobalShadow(size, granule)
        self.instructions: list[Instruction] = []
        self.warps = 0
        self.launches = 0
        self.over: list[OverLaunch] = []
        self.written = False

    def begin(self, instructions: list[Instruction], warps: int, team: int) -> tuple[int, int, int]:
        """The launch's number, and those of its first warp and instruction; `team` of a cluster."""
        first, site = -(-self.warps // team) * team, len(self.instructions)
        self.instructions += instructions
        self.warps = first + warps
        self.launches += 1
        return self.launches - 1, first, site

    def end(self, number: int, first_warp: int, end_warp: int) -> None:
        """A launch is over: its marks are kept apart from those of what runs."""
        if self.launches == 1:  # all have begun by now: it was alone
            return
        shadow = self.shadow
        kept = []
        for marks in (shadow.write, shadow.read, shadow.other_read):
            warps = warp_of(marks)
            mine = (marks != 0) & (first_warp <= warps) & (warps < end_warp)
            kept.append(np.where(mine, marks, 0))
            marks[mine] = 0
        writes, last, other = kept
        shadow.shared[(shadow.read == 0) & (shadow.other_read == 0)] = False
        self.over.append(OverLaunch(number, writes, np.where(last != 0, last, other)))
