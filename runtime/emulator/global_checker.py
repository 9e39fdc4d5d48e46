"""Races on global memory between CTAs: nothing orders them but atomics and strong accesses."""

from __future__ import annotations

import numpy as np

from tilec.runtime.emulator.checker import Reports
from tilec.runtime.emulator.errors import Finding
from tilec.runtime.emulator.instruction import Instruction
from tilec.runtime.emulator.shadow import granule_of

_NOBODY, _SEVERAL = -1, -2


def order_of(instruction: Instruction) -> tuple[bool, bool]:
    """Whether it releases, and whether it acquires; what is relaxed does neither."""
    words = set(instruction.modifiers)
    is_membar = instruction.opcode == "membar"
    both = is_membar or not words.isdisjoint(("acq_rel", "sc"))
    return both or "release" in words, both or "acquire" in words


class GlobalChecker:
    """Last writer and readers (as CTA numbers) of every cell of the arena in one launch.

    Cells are as small as the smallest access: CTAs may own neighbouring bytes of one word.
    """

    def __init__(
        self, size: int, ctas: int, instructions: list[Instruction], reports: Reports
    ) -> None:
        self.granule = granule_of(instructions, "global")
        cells = size // self.granule + 1
        self.instructions = instructions
        self.reports = reports
        self.writer = np.full(cells, _NOBODY, np.int32)
        self.write_time = np.zeros(cells, np.int32)
        self.write_site = np.zeros(cells, np.int32)
        self.reader = np.full(cells, _NOBODY, np.int32)
        self.read_time = np.zeros(cells, np.int32)
        self.read_site = np.zeros(cells, np.int32)
        self.released = np.zeros(ctas, np.int64)
        self.acquired = np.zeros(ctas, np.int64)
        self.time = 1

    def access(
        self, offsets: np.ndarray, size: int, cta: np.ndarray, store: bool, site: int
    ) -> None:
        """A plain access of `size` bytes at arena offsets by CTAs of the grid."""
        self.time += 1
        width = max(size // self.granule, 1)
        cells = (offsets.reshape(-1, 1) // self.granule + np.arange(width)).reshape(-1)
        cta = np.repeat(np.broadcast_to(cta, offsets.shape).reshape(-1), width)
        writer = self.writer[cells]
        bad = (writer != cta) & (writer != _NOBODY)
        bad &= ~self._ordered(np.maximum(writer, 0), self.write_time[cells], cta)
        if bad.any():
            self._report(self.write_site[cells[bad]], site, "write" if store else "read")
        if store:
            self._store(cells, cta, size, site)
        else:
            self._load(cells, cta, site)

    def _load(self, cells: np.ndarray, cta: np.ndarray, site: int) -> None:
        before = self.reader[cells]
        self.reader[cells] = np.where((before == _NOBODY) | (before == cta), cta, _SEVERAL)
        mixed = self.reader[cells] != cta
        self.reader[cells[mixed]] = _SEVERAL
        self.read_site[cells] = site
        self.read_time[cells] = self.time

    def _store(self, cells: np.ndarray, cta: np.ndarray, size: int, site: int) -> None:
        reader = self.reader[cells]
        bad = (reader != cta) & (reader != _NOBODY)
        bad &= ~self._ordered(np.where(reader < 0, cta, reader), self.read_time[cells], cta)
        bad &= (reader != _SEVERAL) | (self.acquired[cta] <= self.read_time[cells])
        if bad.any():
            self._report(self.read_site[cells[bad]], site, "write")
        self.writer[cells] = cta
        if size >= self.granule and (self.writer[cells] != cta).any():
            self._report(np.array([site]), site, "write")
        self.write_site[cells] = site
        self.write_time[cells] = self.time

    def _ordered(self, first: np.ndarray, when: np.ndarray, second: np.ndarray) -> np.ndarray:
        return (self.released[first] > when) & (self.acquired[second] > when)

    def synchronise(self, cta: np.ndarray, order: tuple[bool, bool]) -> None:
        """An atomic, a strong access or a fence. `order`: whether it releases what came before,
        and acquires for what follows."""
        self.time += 1
        numbers = np.unique(cta)
        if order[0]:
            self.released[numbers] = self.time
        if order[1]:
            self.acquired[numbers] = self.time

    def _report(self, sites: np.ndarray, site: int, what: str) -> None:
        second = self.instructions[site].place
        for first in np.unique(sites):
            self.reports.add(
                Finding(
                    "race",
                    "global",
                    self.instructions[int(first)].place,
                    second,
                    f"two CTAs, and nothing orders this {what} against the other's access",
                    "let every CTA own its addresses, or use atomics, or a second launch",
                )
            )
