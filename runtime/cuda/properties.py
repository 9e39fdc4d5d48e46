"""What a GPU says of itself: the figures that predictions and measurements need."""

from __future__ import annotations

from functools import cache

from tilec.records import dataclass
from tilec.runtime.cuda.context import context_of
from tilec.runtime.cuda.driver import check


@dataclass(frozen=True)
class DeviceProperties:
    """`name` as the driver gives it ("NVIDIA H200"); clock in MHz, sizes in bytes.

    `memory_gb_per_s`: of DRAM, two words of its bus a clock; 0 where the driver does not know them.
    """

    name: str
    multiprocessors: int
    clock_mhz: int
    memory_gb_per_s: int
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
        _memory_gb_per_s(attribute("MEMORY_CLOCK_RATE"), attribute("GLOBAL_MEMORY_BUS_WIDTH")),
        attribute("L2_CACHE_SIZE"),
    )


def _memory_gb_per_s(clock_khz: int, bus_bits: int) -> int:
    """DRAM of GPUs sends at both edges of its clock (CUDA C++ Best Practices Guide, "Theoretical
    Bandwidth Calculation")."""
    return round(2 * clock_khz * 1e3 * bus_bits / 8 / 1e9)
