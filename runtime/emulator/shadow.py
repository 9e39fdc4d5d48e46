"""What the checker remembers of every cell of shared memory."""

from __future__ import annotations

import numpy as np

from tilec.runtime.emulator.instruction import Instruction
from tilec.runtime.emulator.scalar_types import TYPES

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
    """Last write and last reads of every cell of the batch's shared memory."""

    def __init__(self, size: int, granule: int, readers: int) -> None:
        cells = size // granule
        self.granule = granule
        self.write_agent = np.zeros(cells, np.int32)
        self.write_epoch = np.zeros(cells, np.int32)
        self.write_site = np.zeros(cells, np.int32)
        self.write_atomic = np.zeros(cells, np.bool_)
        self.read_epoch = np.zeros((readers, cells), np.int32)
        self.read_site = np.zeros((readers, cells), np.int32)
        self.initialised = np.zeros(cells, np.bool_)

    def cells(self, offsets: np.ndarray, size: int) -> np.ndarray:
        """(accesses, cells per access) of accesses of `size` bytes at batch byte offsets."""
        first = offsets.reshape(-1, 1) // self.granule
        return first + np.arange(max(size // self.granule, 1))
