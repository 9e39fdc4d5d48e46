"""Launches that may start before the one in front of them in the stream has ended.

CUDA C++ Programming Guide, "Programmatic Dependent Launch and Synchronization": the kernel itself
waits (PTX `griddepcontrol.wait`), so it may be launched with the attribute that lets it start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilec.runtime.cuda.driver import check
from tilec.runtime.cuda.module import LoadedKernel

FIRST_DRIVER = 12030
"""The first version whose graphs take up such launches (CUDA 12.3 release notes)."""


def launch_of(loaded: LoadedKernel) -> Callable[..., Any]:
    """What launches a kernel, with the arguments of the driver's cuLaunchKernel; for one thread."""
    driver = loaded.context.driver
    if not loaded.kernel.starts_early or not _takes_early_launches(driver):
        return driver.cuLaunchKernel
    attribute = driver.CUlaunchAttribute()
    attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    attribute.value.programmaticStreamSerializationAllowed = 1
    config = driver.CUlaunchConfig()
    config.attrs = [attribute]
    config.numAttrs = 1
    launch_with = driver.cuLaunchKernelEx
    last: tuple[Any, ...] = ()

    def launch(
        function: Any,
        x: int,
        y: int,
        z: int,
        threads: int,
        threads_y: int,
        threads_z: int,
        shared_bytes: int,
        stream: int,
        arguments: int,
        extra: int,
    ) -> Any:
        # Setting a field of the driver's structure costs as much as a launch's other arguments.
        nonlocal last
        wanted = (x, y, z, threads, threads_y, threads_z, shared_bytes, stream)
        if wanted != last:
            config.gridDimX, config.gridDimY, config.gridDimZ = x, y, z
            config.blockDimX, config.blockDimY, config.blockDimZ = threads, threads_y, threads_z
            config.sharedMemBytes = shared_bytes
            config.hStream = stream
            last = wanted
        return launch_with(config, function, arguments, extra)

    return launch


def _takes_early_launches(driver: Any) -> bool:
    return check(driver.cuDriverGetVersion(), "asking for the driver's version") >= FIRST_DRIVER
