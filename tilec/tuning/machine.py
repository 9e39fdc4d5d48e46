"""The device a prediction is for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilec.runtime.arrays import CUDA
from tilec.runtime.cuda.properties import device_properties
from tilec.target import Target

CLUSTERED = 0.91
"""The part of multiprocessors that clusters of 4 can be on: 30 of them on an H200's 132."""


@dataclass(frozen=True)
class Machine:
    """A device: its name, its target's limits, and the speeds that predictions use.

    `clock_mhz`: of the multiprocessors. `memory_gb_per_s`: of DRAM, the target's usual device's.
    """

    name: str
    target: Target
    multiprocessors: int
    clock_mhz: int
    memory_gb_per_s: int
    l2_bytes: int

    def clustered(self, size: int) -> int:
        """CTAs that fill a multiprocessor each and run at once in clusters of `size`: those do not
        span processor groups, whose multiprocessors are an even number."""
        return (
            self.multiprocessors // size * size
            if size <= 2
            else (int(self.multiprocessors * CLUSTERED) // size * size)
        )


def machine_of(device: Any, target: Target) -> Machine:
    """The machine behind a device; for the emulator the target's usual one, named "emulator"."""
    speed = target.speed
    if device.kind != CUDA:
        return Machine(
            device.kind,
            target,
            speed.multiprocessors,
            speed.clock_mhz,
            speed.memory_gb_per_s,
            speed.l2_bytes,
        )
    found = device_properties(device.index)
    return Machine(
        found.name,
        target,
        found.multiprocessors,
        found.clock_mhz,
        speed.memory_gb_per_s,
        found.l2_bytes,
    )
