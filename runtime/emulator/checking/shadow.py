"""What the checker remembers of every cell of shared memory."""

from __future__ import annotations

import mmap

import numpy as np

from tilec.runtime.emulator.numbers.scalar_types import TYPES
from tilec.runtime.emulator.reading.instruction import Instruction

_SUBWORD = {name for name, scalar in TYPES.items() if scalar.bits < 32 and scalar.kind != "x"}


def granule_of(instructions: list[Instruction], space: str = "shared") -> int:
    """Bytes per shadow cell: 4 unless the kernel accesses a space in smaller pieces."""
    smallest = 4
    others = {"shared", "global", "param", "local"} - {space}
    for instruction in instructions:
        if instruction.opcode not in ("ld", "st", "atom", "red"):
            continue
        names = instruction.modifiers
        if not others.isdisjoint(names) or names[-1] not in _SUBWORD:
            continue
        count = 2 if "v2" in names else 4 if "v4" in names else 1
        smallest = min(smallest, max(TYPES[names[-1]].size * count, 1))
    return smallest


class SharedShadow:
    """Last write and last reads of every cell of the batch's shared memory.

    Of the many agents that could read few do: each gets a row of `read_epoch` and `read_site`
    ([row, cell]) when it first does; `readers` says whose the rows are.
    """

    def __init__(self, size: int, granule: int, readers: int) -> None:
        cells = size // granule
        self.granule = granule
        self._shift = granule.bit_length() - 1  # it is a power of two: see granule_of
        self.write_agent = np.zeros(cells, np.int32)
        self.write_epoch = np.zeros(cells, np.int32)
        self.write_site = np.zeros(cells, np.int32)
        self.write_atomic = np.zeros(cells, np.bool_)
        self.initialised = np.zeros(cells, np.bool_)
        self.readers = np.zeros(0, np.int64)
        self.read_epoch = _untouched(readers, cells)
        self.read_site = _untouched(readers, cells)
        self._row = np.full(readers, -1)

    def cells(self, offsets: np.ndarray, size: int) -> np.ndarray:
        """(accesses, cells per access) of accesses of `size` bytes at batch byte offsets."""
        first = offsets.reshape(-1, 1) >> self._shift
        return first + np.arange(max(size // self.granule, 1))

    def note_reads(
        self, cells: np.ndarray, reader: np.ndarray | int, epoch: np.ndarray | int, site: int
    ) -> None:
        """Cells are read at an epoch of the reader, all by one or each by its own."""
        row = self._row[reader]
        if np.count_nonzero(row < 0):
            fresh = np.unique(np.asarray(reader)[row < 0])
            self._row[fresh] = self.readers.size + np.arange(fresh.size)
            self.readers = np.append(self.readers, fresh)
            row = self._row[reader]
        place = row * self.initialised.size + cells  # one index: twice as fast as two
        self.read_epoch.reshape(-1)[place] = epoch
        self.read_site.reshape(-1)[place] = site

    def late_reads(self, cells: np.ndarray, known: np.ndarray, *warps: np.ndarray) -> np.ndarray:
        """[row, position]: reads of cells that come after what is known ([agent] to all of the
        cells, or [*warps, agent], where `warps` says whose each cell is)."""
        limit = known[..., self.readers][warps]
        epochs = self.read_epoch[: self.readers.size].take(cells, 1)
        return epochs > (limit.T if limit.ndim == 2 else limit[:, None])


def _untouched(rows: int, columns: int) -> np.ndarray:
    """int32 zeros of which only what is written takes memory, 4 KiB at a time: `np.zeros` asks the
    system for pages of 2 MiB, and clears memory that it has had before."""
    size = rows * columns
    memory = mmap.mmap(-1, 4 * size + 1, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(memory, np.int32, size).reshape(rows, columns)
