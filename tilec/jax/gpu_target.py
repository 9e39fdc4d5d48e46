"""Launches of JAX's GPUs: kernels are compiled and loaded, and XLA is given a handler, by name.

The name has a digest of all that the launch depends on, so that executables which JAX keeps on disk
find the same launch in another process, or none.
"""

# JAX is `Any` where types are checked.
# pyright: basic
# pyright: reportMissingModuleSource=false

from __future__ import annotations

import ctypes
import hashlib
import json
import threading
from functools import cache
from typing import Any

import jax

from tilec.jax.description import Description
from tilec.jax.devices import gpus, place_of
from tilec.jax.gpu_launch import device_launch, plan_of
from tilec.jax.handler import ENTRY, Place, handler_code
from tilec.jax.launch_code import DRIVER_FUNCTIONS
from tilec.jax.machine_code import function_address
from tilec.jax.xla_ffi import interface
from tilec.runtime.cuda.device import CudaDevice
from tilec.runtime.cuda.plan import Plan
from tilec.runtime.launcher import Prepared

PLATFORM = "CUDA"
"""XLA's name of it."""

_lock = threading.Lock()
_registered: dict[str, list[Plan]] = {}
"""Names that XLA knows, and what keeps the memory that their handlers point to: XLA forgets no
handler."""


def gpu_target(described: Description) -> str:
    """The name under which XLA launches what is described; compiles, loads and registers it.

    ArgumentError and CompileError as at a call, DeviceError where the driver refuses the kernel.
    """
    devices = gpus(described.launcher)
    launches = [(device, _prepared(described, device)) for device in devices]
    name = f"tilec.{described.launcher.name}.{_digest(described, launches)}"
    with _lock:
        if name not in _registered:
            plans = [plan_of(device, prepared) for device, prepared in launches]
            text = _handler(described, launches, plans)
            capsule = jax.ffi.pycapsule(function_address(text, ENTRY))
            jax.ffi.register_ffi_target(name, capsule, platform=PLATFORM)
            _registered[name] = plans
    return name


def _prepared(described: Description, device: CudaDevice) -> Prepared:
    return described.launcher.prepared(device, described.bound(place_of(device)), described.grid)


def _digest(described: Description, launches: list[tuple[CudaDevice, Prepared]]) -> str:
    """A digest of the code and of all that it is launched with."""
    arrays = [repr(array) for array in described.arrays]
    parts: list[Any] = [arrays, [s.text for s in described.statics], described.batch]
    for device, (kernel, _, grid) in launches:
        parts.append([device.index, kernel.to_json() | {"report": None}, kernel.ptx, grid])
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:16]


def _handler(
    described: Description, launches: list[tuple[CudaDevice, Prepared]], plans: list[Plan]
) -> str:
    """The LLVM IR of the handler of a launch."""
    operands = {array.name: n for n, array in enumerate(described.operands)}
    outputs = {array.name: n for n, array in enumerate(described.outputs)}
    places = [
        Place(False, outputs[array.name])
        if array.name in outputs
        else Place(True, operands[array.name])
        for array in described.arrays
    ]
    return handler_code(
        described.launcher.name,
        places,
        [described.offsets(array) for array in described.arrays],
        [
            device_launch(prepared, plan)
            for (_, prepared), plan in zip(launches, plans, strict=True)
        ],
        driver_functions(),
        interface(),
    )


@cache
def driver_functions() -> dict[str, int]:
    """The addresses of the driver's functions that handlers call."""
    library = ctypes.CDLL("libcuda.so.1")
    functions = {name: getattr(library, name) for name in DRIVER_FUNCTIONS}
    return {name: ctypes.cast(f, ctypes.c_void_p).value or 0 for name, f in functions.items()}
