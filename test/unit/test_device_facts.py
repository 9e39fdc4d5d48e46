"""What predictions know of a device: its own figures, or its target's usual device's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import fake_driver
import pytest
from fake_driver import FakeDriver, install, uninstall

import tilec.language as tl
from tilec.costs.machine import FIGURES, Machine, machine_of
from tilec.hardware.target import find_target
from tilec.ops.tile_choice import choose_tiles
from tilec.runtime.cuda.device import cuda_device
from tilec.runtime.device import device

HOPPER = find_target("sm_90a")


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    """One GPU with the memory of an H100."""
    yield install(monkeypatch, FakeDriver([(9, 0)]))
    uninstall()


def test_a_device_says_what_it_has(gpu: FakeDriver) -> None:
    found = machine_of(cuda_device(0), HOPPER)
    assert found == Machine("Fake GPU", HOPPER, 4, 1755, 3352, 50 << 20)
    assert found.figures.endswith("DRAM of 3352 GB/s, 50 MB of L2, as the device says")


def test_what_a_device_does_not_say_is_the_targets(
    gpu: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory that is the CPU's, too, has no clock of its own."""
    monkeypatch.setitem(fake_driver.FIGURES, "MEMORY_CLOCK_RATE", 0)
    found = machine_of(cuda_device(0), HOPPER)
    assert (found.multiprocessors, found.memory_gb_per_s) == (4, HOPPER.speed.memory_gb_per_s)
    assert found.assumed == ("memory_gb_per_s",)
    assert found.figures.endswith("as sm_90a's usual device has (memory_gb_per_s)")


def test_the_emulator_stands_for_the_usual_device() -> None:
    found = machine_of(device("emulator"), HOPPER)
    assert found.assumed == FIGURES
    assert found.memory_gb_per_s == HOPPER.speed.memory_gb_per_s
    assert found.figures.endswith("as sm_90a's usual device has")


def test_the_rate_of_memory_decides_tiles() -> None:
    """Of an H200 and of the PCIe card of an H100."""
    usual = machine_of(device("emulator"), HOPPER)
    slow = replace(usual, memory_gb_per_s=2039)
    usual, slow = (choose_tiles(16, 2048, 8192, 1, tl.bf16, "ieee", m) for m in (usual, slow))
    assert replace(usual, us=0.0) != replace(slow, us=0.0)
