"""What to compile for where a kernel is called: the target and the PTX version of a device."""

from __future__ import annotations

import os
from typing import Any

from tilec.hardware.ptx_version import NEWEST, release_with, shown
from tilec.hardware.target import TARGETS, Target, find_target, target_for_device, why_no_target
from tilec.runtime.device import device as find_device
from tilec.runtime.errors import DeviceError


def target_of(device: Any) -> Target:
    """The target to compile for: TILEC_TARGET, else the device's; the emulator runs any."""
    named = os.environ.get("TILEC_TARGET")
    if named:
        return find_target(named)
    if device.compute_capability is None:
        return next(iter(TARGETS.values()))
    found = target_for_device(device.compute_capability, device.shared_bytes)
    if found is None:
        shown = "compute capability {}.{}".format(*device.compute_capability)
        why = why_no_target(device.compute_capability)
        raise DeviceError(f"{device.name} has {shown}: {why}")
    return found


def ptx_version_for(device: Any, target: Target) -> int | None:
    """The PTX version to compile for where a device's driver does not take the newest, else None.

    DeviceError where it takes none that the target has.
    """
    newest = device.newest_ptx
    if newest is None or newest >= NEWEST:
        return None
    if newest < target.lowest_ptx:
        raise DeviceError(
            f"the driver of {device.name} takes PTX ISA {shown(newest)}, {target.name} needs "
            f"{shown(target.lowest_ptx)}: update the driver to one of CUDA "
            f"{release_with(target.lowest_ptx)} or later"
        )
    return newest


def given_device(device: Any) -> Any:
    """The device of a name; a device as it is, and None. TypeError for anything else."""
    if device is None or hasattr(device, "launch"):
        return device
    return find_device(device)
