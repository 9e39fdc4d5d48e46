"""Bounds-checked access to the shared and the local memory of a batch of CTAs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tilec.runtime.emulator.errors import EmulatorError, Place
from tilec.runtime.emulator.memories.spaces import CLUSTER_RANK_SHIFT

if TYPE_CHECKING:
    from tilec.runtime.emulator.execution.machine import Machine


class SharedSite:
    """One instruction's access to shared memory: `locate` maps addresses to batch byte offsets."""

    def __init__(self, machine: Machine, size: int, place: Place) -> None:
        self.machine = machine
        self.size = size
        self.place = place
        self.limit = machine.launch.shared_size - size
        self.clustered = machine.launch.cluster_size > 1

    def locate(self, address: np.ndarray, base: np.ndarray) -> np.ndarray:
        """Byte offsets in the batch's shared memory; base is each lane's own CTA's start."""
        every = int(np.bitwise_or.reduce(address, axis=None))
        if every & (self.size - 1):
            bad = int(address[(address & (self.size - 1)) != 0].flat[0])
            raise EmulatorError(
                f"misaligned shared memory access: {self.size} bytes at {bad:#x}",
                self.place,
                "misaligned",
            )
        if self.clustered:
            return self._locate_cluster(address, base)
        if every > self.limit:
            if every >> CLUSTER_RANK_SHIFT:
                return self._locate_cluster(address, base)
            self._check(address)
        return address + base

    def _check(self, address: np.ndarray) -> None:
        largest = int(np.maximum.reduce(address, axis=None))
        if largest > self.limit:
            raise EmulatorError(
                f"shared memory access out of bounds: {self.size} bytes at offset {largest} of "
                f"{self.machine.launch.shared_size}",
                self.place,
                "out of bounds",
            )

    def _locate_cluster(self, address: np.ndarray, base: np.ndarray) -> np.ndarray:
        """Addresses in a cluster: the rank field picks a CTA of the same cluster."""
        rank = (address >> np.uint32(CLUSTER_RANK_SHIFT)).astype(np.int64)
        inside = address & np.uint32((1 << CLUSTER_RANK_SHIFT) - 1)
        self._check(inside)
        count = self.machine.launch.cluster_size
        if int(rank.max()) >= count:
            raise EmulatorError("shared memory address outside the cluster", self.place)
        stride = self.machine.shared_stride
        own = base // stride
        cta = own // count * count + rank
        self.machine.require_running(cta, self.place)
        return inside + cta * stride


class LocalSite:
    """One instruction's access to local memory: every lane has its own bytes."""

    def __init__(self, machine: Machine, size: int, place: Place) -> None:
        self.machine = machine
        self.size = size
        self.place = place

    def locate(self, address: np.ndarray, base: np.ndarray) -> np.ndarray:
        largest = int(np.maximum.reduce(address, axis=None))
        if largest + self.size > self.machine.local_stride:
            raise EmulatorError(
                f"local memory access out of bounds: {self.size} bytes at offset {largest} of "
                f"{self.machine.local_stride}",
                self.place,
                "out of bounds",
            )
        if int(np.bitwise_or.reduce(address, axis=None)) & (self.size - 1):
            raise EmulatorError("misaligned local memory access", self.place, "misaligned")
        return address.astype(np.int64) + base


def rows(memory: np.ndarray, dtype: np.dtype, count: int) -> np.ndarray:
    """Bytes as rows of `count` elements (one-dimensional for count 1)."""
    step = dtype.itemsize * count
    whole = memory[: memory.size // step * step].view(dtype)
    return whole if count == 1 else whole.reshape(-1, count)
