"""What the code of a block is bound to: a machine, and the lanes that the block runs for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tilec.runtime.emulator.memories.spaces import CLUSTER_RANK_SHIFT
from tilec.runtime.emulator.numbers.scalar_types import DTYPES

if TYPE_CHECKING:
    from tilec.runtime.emulator.execution.machine import Machine


@dataclass(frozen=True)
class Rectangle:
    """Warps [warp0, warp1) of CTAs [cta0, cta1) of a batch, every lane of them."""

    warp0: int
    warp1: int
    cta0: int
    cta1: int

    @property
    def has_groups(self) -> bool:
        """Whether it is of whole groups of four warps."""
        return self.warp0 % 4 == 0 == self.warp1 % 4

    @property
    def slices(self) -> tuple[slice, slice]:
        return slice(self.warp0, self.warp1), slice(self.cta0, self.cta1)

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.warp1 - self.warp0, self.cta1 - self.cta0, 32


class Binding:
    """What factories see: the machine, and the rectangle of the block (None: the lanes variant)."""

    def __init__(self, machine: Machine, rectangle: Rectangle | None) -> None:
        self.machine = machine
        self.rectangle = rectangle or Rectangle(0, machine.warp_count, 0, machine.cta_count)
        self.names: dict[str, Any] = {"__builtins__": __builtins__}
        """What the code of blocks refers to, by name: made by factories as blocks are bound."""
        self.zeros = np.zeros(self.rectangle.shape, np.uint64)
        self.lane_numbers = self.cut(machine.lane_numbers)

    def named(self, name: str, factory: Callable[[Binding], Any]) -> Any:
        """The value of a name."""
        found = self.names.get(name, self)
        if found is self:
            found = self.names[name] = factory(self)
        return found

    def cut(self, values: np.ndarray) -> np.ndarray:
        """The rectangle's part of an array [warp][CTA][32]."""
        return values[self.rectangle.slices]

    def row(self, bits: int, index: int, code: str) -> np.ndarray:
        return self.cut(self.machine.registers[bits][index].view(DTYPES[code]))

    def block(self, bits: int, first: int, count: int, code: str) -> np.ndarray:
        """Consecutive registers, [register][warp][CTA][32]."""
        rows = self.machine.registers[bits][first : first + count].view(DTYPES[code])
        warps, ctas = self.rectangle.slices
        return rows[:, warps, ctas]

    def flat_row(self, bits: int, index: int, code: str) -> np.ndarray:
        return self.machine.registers[bits][index].view(DTYPES[code]).reshape(-1)

    def symbol(self, name: str, offset: int, dtype: np.dtype) -> np.ndarray | np.generic:
        """The address of a variable; in a cluster, shared ones carry the rank of their CTA."""
        machine = self.machine
        address = dtype.type(machine.address_of(name) + offset)
        if machine.launch.cluster_size == 1 or not machine.launch.is_shared(name):
            return address
        rank = machine.special("%cluster_ctarank", dtype)
        return self.cut((rank << dtype.type(CLUSTER_RANK_SHIFT)) + address)

    def flat_symbol(self, name: str, offset: int, dtype: np.dtype) -> np.ndarray:
        whole = Binding(self.machine, None)
        shape = self.machine.shape
        return np.broadcast_to(whole.symbol(name, offset, dtype), shape).reshape(-1).copy()

    def special(self, name: str, dtype: np.dtype) -> np.ndarray:
        return self.cut(self.machine.special(name, dtype))

    def flat_special(self, name: str, dtype: np.dtype) -> np.ndarray:
        return self.machine.special(name, dtype).reshape(-1)
