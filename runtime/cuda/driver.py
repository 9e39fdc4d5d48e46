"""cuda-python's driver API, loaded on first use, and its errors as exceptions.

Every function of `cuda.bindings.driver` returns a tuple: the CUresult, then the results.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from tilec.runtime.errors import DeviceError


class CudaError(DeviceError):
    """A driver call failed. `code` is the driver's name of the error, as "CUDA_ERROR_..."."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


_asked_by: int | None = None
"""The process that first asked the driver: its forks cannot, and some die of it."""


_BINDINGS = "cuda.bindings.driver"
_LIBRARY = "libcuda.so.1"


def _find_library() -> None:
    """DeviceError where there is no driver, in 0.1 ms: the import of its bindings takes 70."""
    if sys.platform != "linux":
        return
    try:
        ctypes.CDLL(_LIBRARY)
    except OSError as error:
        raise DeviceError(f"the NVIDIA driver library does not load ({error})") from error


@lru_cache(maxsize=1)
def load_driver() -> Any:
    """`cuda.bindings.driver`, initialised. DeviceError says why there is none."""
    global _asked_by
    if _asked_by not in (None, os.getpid()):
        raise DeviceError("CUDA does not work in a fork of a process that has used it; spawn it")
    if _BINDINGS not in sys.modules:
        _find_library()
    try:
        driver = importlib.import_module(_BINDINGS)
    except ImportError as error:
        raise DeviceError(f"cuda-python is not installed ({error})") from error
    try:
        (result,) = driver.cuInit(0)
    except (RuntimeError, OSError) as error:
        # cuda-python raises its own error type, a RuntimeError, where libcuda is missing.
        reason = str(error).splitlines()[0]
        raise DeviceError(f"the NVIDIA driver library does not load ({reason})") from error
    _asked_by = os.getpid()
    if result:
        raise DeviceError(f"the NVIDIA driver does not start ({_name(driver, result)})")
    return driver


os.register_at_fork(after_in_child=load_driver.cache_clear)


def check(returned: tuple[Any, ...], doing: str) -> Any:
    """The results of a driver call (one value, a tuple, or None). CudaError if it failed."""
    result, *values = returned
    if result:
        raise cuda_error(result, doing)
    return values[0] if len(values) == 1 else tuple(values) or None


def cuda_error(result: Any, doing: str, details: str = "") -> CudaError:
    """The exception for a failed CUresult; `doing` says at what, as "launching matmul"."""
    driver = load_driver()
    code = _name(driver, result)
    failed, text = driver.cuGetErrorString(result)
    explained = "" if failed or not text else f" ({text.decode()})"
    return CudaError(f"{doing}: {code}{explained}{details}", code)


def device_count() -> int:
    """GPUs the driver sees. DeviceError where there is no driver."""
    return check(load_driver().cuDeviceGetCount(), "counting devices")


def no_device_reason() -> str | None:
    """Why there is no GPU to use; None if there is one."""
    try:
        return None if device_count() else "the driver sees no GPU"
    except DeviceError as error:
        return str(error)


def _name(driver: Any, result: Any) -> str:
    failed, name = driver.cuGetErrorName(result)
    return name.decode() if not failed and name else f"CUresult {int(result)}"


@contextmanager
def relaxed_capture(driver: Any) -> Iterator[None]:
    """Lets this thread load a module, or allocate, while one of its streams is captured."""
    relaxed = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    before = check(driver.cuThreadExchangeStreamCaptureMode(relaxed), "relaxing stream capture")
    try:
        yield
    finally:
        check(driver.cuThreadExchangeStreamCaptureMode(before), "restoring stream capture")
