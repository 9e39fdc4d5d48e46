"""The device a prediction is for."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

from tilec.costs.rates import Rates, rates_of
from tilec.hardware.target import Target
from tilec.records import dataclass
from tilec.runtime.arrays import CUDA
from tilec.runtime.cuda.properties import device_properties

FIGURES = ("multiprocessors", "clock_mhz", "memory_gb_per_s", "l2_bytes")
"""What a device says of itself."""


@dataclass(frozen=True)
class Machine:
    """A device: its name, its target's limits, and the speeds that predictions use.

    `clock_mhz`: of the multiprocessors. `memory_gb_per_s`: of DRAM. `assumed`: which of these are
    the target's usual device's. `other_rates`: than those of its target.
    """

    name: str
    target: Target
    multiprocessors: int
    clock_mhz: int
    memory_gb_per_s: int
    l2_bytes: int
    assumed: tuple[str, ...] = ()
    other_rates: Rates | None = None

    @cached_property
    def rates(self) -> Rates:
        """The rates of its target: how much of these speeds it reaches, and what else predictions
        count with."""
        return self.other_rates or rates_of(self.target)

    @property
    def figures(self) -> str:
        """Says in words what predictions go by."""
        text = (
            f"{self.multiprocessors} multiprocessors at {self.clock_mhz} MHz, DRAM of "
            f"{self.memory_gb_per_s} GB/s, {self.l2_bytes >> 20} MB of L2"
        )
        if not self.assumed:
            return f"{text}, as the device says"
        what = "" if len(self.assumed) == len(FIGURES) else f" ({', '.join(self.assumed)})"
        return f"{text}, as {self.target.name}'s usual device has{what}"

    def clustered(self, size: int) -> int:
        """The number of CTAs that fill a multiprocessor each and run at once in clusters of `size`:
        those do not span processor groups, whose multiprocessors are an even number."""
        part = self.rates.clustered.get(size, 1.0)
        return int(self.multiprocessors * part) // size * size


def machine_of(device: Any, target: Target) -> Machine:
    """The machine behind a device; what it does not say of itself is as on the target's usual one,
    all of it for the emulator."""
    if device.kind != CUDA:
        return usual_machine(target, device.kind)
    found = device_properties(device.index)
    said = {name: value for name in FIGURES if (value := getattr(found, name))}
    missing = tuple(name for name in FIGURES if name not in said)
    return replace(usual_machine(target, found.name), **said, assumed=missing)


def usual_machine(target: Target, name: str = "") -> Machine:
    """The device that a target's own figures are of."""
    figures = {figure: getattr(target.speed, figure) for figure in FIGURES}
    return Machine(name or target.name, target, **figures, assumed=FIGURES)
