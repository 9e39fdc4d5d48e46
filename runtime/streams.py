"""CUDA streams of the caller: which one is current in a framework, and what counts as a stream."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from tilec.runtime.errors import ArgumentError

DEFAULT_STREAM = 0
"""The legacy default stream to the driver (CUDA driver API, "Stream synchronization behavior")."""


def current_stream(framework: str, device_index: int) -> int:
    """The driver's number of the stream that `framework` works on now, on that device.

    JAX, Numba and bare arrays have no current stream to ask for: the legacy default stream.
    """
    module = sys.modules.get(framework)
    if framework == "torch" and module is not None:
        raw = getattr(module._C, "_cuda_getCurrentRawStream", None)
        if raw is not None:
            return raw(device_index)
        return module.cuda.current_stream(device_index).cuda_stream
    if framework == "cupy" and module is not None:
        with module.cuda.Device(device_index):
            return module.cuda.get_current_stream().ptr
    return DEFAULT_STREAM


def current_stream_in(framework: str) -> Callable[[int], int]:
    """`current_stream(framework, ...)` of a device index, at the least cost of a call."""
    raw = getattr(
        getattr(sys.modules.get(framework), "_C", None), "_cuda_getCurrentRawStream", None
    )
    return functools.partial(current_stream, framework) if raw is None else raw


def current_stream_of(array: Any) -> int | None:
    """The stream the framework of `array` works on now; None for host arrays and bare memory."""
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and isinstance(array, torch.Tensor):
        return current_stream("torch", array.get_device()) if array.is_cuda else None
    if cupy is not None and isinstance(array, cupy.ndarray):
        return current_stream("cupy", int(array.device.id))
    return None


def stream_number(stream: Any) -> int:
    """The driver's number of a stream of torch, CuPy, Numba, cuda-python, or given as an int.

    Anything with the `__cuda_stream__` protocol works too. ArgumentError for anything else.
    """
    if isinstance(stream, int) and not isinstance(stream, bool):
        return int(stream)
    protocol: Any = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return int(protocol()[1])
    for attribute in ("cuda_stream", "ptr"):
        number = getattr(stream, attribute, None)
        if isinstance(number, int):
            return number
    if not isinstance(stream, (str, bytes, bool, float)) and hasattr(stream, "__int__"):
        return int(stream)
    raise ArgumentError(
        f"stream: expected a CUDA stream or its number, found {type(stream).__name__}"
    )
