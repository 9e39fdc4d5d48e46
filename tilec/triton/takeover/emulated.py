"""The emulator as Triton's users see it: a target, properties of a device, a clock."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from typing import Any

from tilec.call.device_target import target_of
from tilec.runtime.device import device as find_device
from tilec.triton.takeover.wish import wish

EMULATED_MULTIPROCESSORS = 4
"""What host code that launches a program a multiprocessor is told: few, so that small problems
give a program several tiles."""


def emulator() -> Any:
    """The emulator, where the wish that holds names it."""
    now = wish()
    return None if now is None or now.device is None else find_device(now.device)


def emulated_target() -> Any:
    """Triton's name of what the emulator compiles for."""
    target = target_of(emulator())
    major, minor = target.compute_capability
    kind = importlib.import_module("triton.backends.compiler").GPUTarget
    return kind("cuda", 10 * major + minor, target.warp_size)


def emulated_properties() -> dict[str, int]:
    """What Triton, and host code for it, asks of a device."""
    target = target_of(emulator())
    return {
        "max_shared_mem": target.shared_bytes,
        "max_num_regs": target.registers_per_sm,
        "multiprocessor_count": EMULATED_MULTIPROCESSORS,
        "warpSize": target.warp_size,
        "sm_clock_rate": 0,
        "mem_clock_rate": 0,
        "mem_bus_width": 0,
    }


def run_once(call: Callable[[], Any], quantiles: Sequence[float] = (0.5,), **_: Any) -> list[float]:
    """Stands for a benchmark on the emulator: one run of each configuration, which is checked so;
    its time says nothing, and the first of equals is taken."""
    call()
    return [1.0] * len(quantiles)


class HostInterface:
    """The part of `torch.cuda` that timing asks for, on the host's clock."""

    class Event:
        """A point in time."""

        def __init__(self, enable_timing: bool = False) -> None:
            self._at = 0.0

        def record(self) -> None:
            """Now."""
            self._at = time.perf_counter()

        def elapsed_time(self, end: HostInterface.Event) -> float:
            """Milliseconds from here to `end`."""
            return 1e3 * (end._at - self._at)

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def current_device(self) -> int:
        """There is one."""
        return 0
