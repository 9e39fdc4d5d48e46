"""Where JAX runs, as tilec's devices."""

# JAX is `Any` where types are checked.
# pyright: basic
# pyright: reportMissingModuleSource=false

from __future__ import annotations

from typing import Any

import jax

from tilec.runtime.arrays import CUDA, HOST
from tilec.runtime.cuda.device import CudaDevice, cuda_device
from tilec.runtime.device import EMULATOR
from tilec.runtime.device import device as find_device
from tilec.runtime.errors import ArgumentError
from tilec.runtime.launcher import Launcher


def gpus(launcher: Launcher) -> list[CudaDevice]:
    """The GPUs of this process that JAX uses. ArgumentError for a kernel bound to another device.

    The driver and JAX count GPUs alike.
    """
    wanted = launcher.device
    found = [cuda_device(gpu.local_hardware_id) for gpu in jax.local_devices(backend="cuda")]
    if wanted is not None and wanted not in found:
        raise ArgumentError(f"{launcher.name} is to run on {wanted.name}, the arrays lie on a GPU")
    return found if wanted is None else [wanted]


def default_device(launcher: Launcher) -> Any:
    """The device that a launch is checked for while JAX traces: the kernel's own, else that of the
    platform which JAX prefers."""
    if launcher.device is not None:
        return launcher.device
    return gpus(launcher)[0] if jax.default_backend() in ("gpu", "cuda") else find_device(EMULATOR)


def place_of(device: Any) -> tuple[str, int]:
    """Where arrays for a device lie, as `ArrayView` says it."""
    return (CUDA, device.index) if device.kind == CUDA else (HOST, 0)
