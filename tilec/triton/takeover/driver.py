"""Triton's driver, but where tilec compiles it launches by tilec, on the GPU or the emulator.

Triton asks its active driver for devices, streams and the target, loads binaries by its `utils` and
launches by its `launcher_cls`. Ours hands all of it on to Triton's, except what the wish that holds
(`wish.py`) is about.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from tilec.call.device_target import target_of
from tilec.triton.kernel import TritonKernel
from tilec.triton.takeover.backend import STAGE, TEXT
from tilec.triton.takeover.emulated import (
    HostInterface,
    emulated_properties,
    emulated_target,
    emulator,
    run_once,
)
from tilec.triton.takeover.launcher import Launcher
from tilec.triton.takeover.wish import DeviceNumber, Wish, wish

_MACHINE_CODE = b"\x7fELF"
"""What a cubin begins with (System V ABI, "ELF Header")."""
_MOST_THREADS = 1024
"""Of a CTA on every GPU (CUDA C++ Programming Guide, "Compute Capabilities")."""


class Driver:
    """See the module. `find`: gives Triton's driver, which there is only where there is a GPU."""

    def __init__(self, find: Callable[[], Any]) -> None:
        self._find = find
        self._binaries: Binaries | None = None

    @functools.cached_property
    def _theirs(self) -> Any:
        return self._find()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._theirs, name)

    @property
    def utils(self) -> Binaries:
        """What loads binaries and knows devices."""
        if self._binaries is None:
            self._binaries = Binaries(self)
        return self._binaries

    def launcher_cls(self, src: Any, metadata: Any) -> Any:
        """What launches a compiled kernel."""
        if getattr(metadata, STAGE, False):
            return Launcher(src, metadata, wish() or Wish())
        return self._theirs.launcher_cls(src, metadata)

    def get_current_device(self) -> int:
        """The number of the current device; it says who compiles."""
        now = wish()
        if now is None:
            return self._theirs.get_current_device()
        number = self._theirs.get_current_device() if now.device is None else 0
        return DeviceNumber(number, now)

    def get_current_stream(self, device: int) -> int:
        """The stream that launches go to."""
        return 0 if emulator() else self._theirs.get_current_stream(int(device))

    def get_current_target(self) -> Any:
        """Triton's name of the target: the GPU's, or that which the emulator compiles for."""
        return emulated_target() if emulator() else self._theirs.get_current_target()

    def get_device_capability(self, device: Any = None) -> tuple[int, int]:
        """The compute capability."""
        if emulator() is None:
            return self._theirs.get_device_capability(device)
        return target_of(emulator()).compute_capability

    def get_active_torch_device(self) -> Any:
        """Where torch's tensors have to be."""
        if emulator() is None:
            return self._theirs.get_active_torch_device()
        return importlib.import_module("torch").device("cpu")

    def get_device_interface(self) -> Any:
        """What stands for `torch.cuda`."""
        return self._theirs.get_device_interface() if emulator() is None else HostInterface()

    def get_benchmarker(self) -> Any:
        """What times a kernel for autotuning."""
        return self._theirs.get_benchmarker() if emulator() is None else run_once

    def get_empty_cache_for_benchmark(self) -> Any:
        """What is written between two timings."""
        if emulator() is None:
            return self._theirs.get_empty_cache_for_benchmark()
        return importlib.import_module("torch").empty(0)

    def clear_cache(self, cache: Any) -> None:
        """Writes it."""
        if emulator() is None:
            self._theirs.clear_cache(cache)


def driver_class(theirs: Any) -> Any:
    """The class of our drivers in place of the class `theirs`: some of Triton's users make a driver
    themselves, or look whether the active one is of the class that they know."""

    class TakenDriver(Driver):
        """See the function."""

        is_active = staticmethod(theirs.is_active)

        def __init__(self, find: Callable[[], Any] = theirs) -> None:
            super().__init__(find)

    return TakenDriver


def host_driver_class(taken: Any) -> Any:
    """The same for host memory, which nothing but the emulator uses, and only where asked for."""

    class HostDriver(taken):
        """See the function."""

        @staticmethod
        def is_active() -> bool:
            return False

    return HostDriver


class Binaries:
    """Stands for what the driver has as `utils`."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver._theirs.utils, name)

    def load_binary(self, name: str, binary: Any, shared: int, device: int) -> tuple[Any, ...]:
        """Module, function, registers, spills, and most threads of a CTA. Of what tilec compiles
        at its launches the function is a `TritonKernel`; nobody knows its registers yet."""
        if bytes(binary[:4]) == _MACHINE_CODE:
            theirs = self._driver._theirs.utils
            return theirs.load_binary(name, binary, shared, int(device))
        now = wish() or Wish()
        kernel = TritonKernel(binary.decode(), f"{name}.{TEXT}", name, now.device)
        return kernel, kernel, None, None, _MOST_THREADS

    def unload_module(self, module: Any) -> None:
        """Said by later releases of Triton of kernels that are gone. Ours stay loaded: graphs may
        hold them."""
        if not isinstance(module, TritonKernel):
            self._driver._theirs.utils.unload_module(module)

    def get_device_properties(self, device: int) -> dict[str, int]:
        """What Triton, and host code for it, asks of a device."""
        if emulator() is not None:
            return emulated_properties()
        return self._driver._theirs.utils.get_device_properties(int(device))
