"""What a GPU says of itself: the figures that predictions and measurements need."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from tilec.runtime.cuda.context import context_of
from tilec.runtime.cuda.driver import check


@dataclass(frozen=True)
class DeviceProperties:
    """`name` as the driver gives it ("NVIDIA H200"); clock in MHz, sizes in bytes."""

    name: str
    multiprocessors: int
    clock_mhz: int
    l2_bytes: int


@cache
def device_properties(index: int) -> DeviceProperties:
    """The properties of GPU `index`, asked for once."""
    context = context_of(index)
    driver = context.driver
    device = check(driver.cuDeviceGet(index), f"opening cuda:{index}")

    def attribute(name: str) -> int:
        key = getattr(driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(check(driver.cuDeviceGetAttribute(key, device), f"reading {name}"))

    text = check(driver.cuDeviceGetName(256, device), f"asking cuda:{index} for its name")
    return DeviceProperties(
        text.split(b"\0", 1)[0].decode(errors="replace"),
        attribute("MULTIPROCESSOR_COUNT"),
        attribute("CLOCK_RATE") // 1000,
        attribute("L2_CACHE_SIZE"),
    )
