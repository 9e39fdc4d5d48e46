"""Makes an array of the framework, and on the device, that an argument belongs to."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tilec.runtime.arrays import HOST, ArrayView
from tilec.runtime.device import device
from tilec.runtime.dlpack import contiguous_strides
from tilec.runtime.errors import ArgumentError
from tilec.runtime.host import numpy_dtype
from tilec.terms.dtypes import DType


def new_array(like: Any, view: ArrayView, shape: Sequence[int], dtype: DType) -> Any:
    """An uninitialised row-major array beside `like`, whose description is `view`.

    ArgumentError for frameworks whose arrays only their owner can make: give `out=` there.
    """
    return array_maker(like, view, shape, dtype)()


def array_maker(
    like: Any, view: ArrayView, shape: Sequence[int], dtype: DType
) -> Callable[[], Any]:
    """Finds what makes such an array at every call.

    It keeps no memory: neither `like` nor an array of its own, which torch, where it records a CUDA
    graph, would find alive in the graph's pool.
    """
    sizes = tuple(shape)
    name = dtype.array
    if view.framework == "torch":
        torch = sys.modules["torch"]
        # 1.8 us on an H200's host; `torch.empty` takes 2.7.
        strides = contiguous_strides(sizes)
        how = {"dtype": getattr(torch, name), "device": like.device}
        return partial(torch.empty_strided, sizes, strides, **how)
    if view.framework == "cupy" and dtype.typestr:
        return partial(_cupy_array, view.device[1], sizes, name)
    if view.framework == "jax":
        empty = partial(sys.modules["jax"].numpy.empty, sizes, dtype=name)
        return partial(_jax_array, empty, next(iter(like.devices())))
    if view.framework == "numpy":
        return partial(sys.modules["numpy"].empty, sizes, numpy_dtype(dtype.mlir))
    if view.framework == "tilec" and view.device[0] != HOST:
        return partial(device(f"cuda:{view.device[1]}").empty, sizes, dtype.mlir)
    raise ArgumentError(
        f"argument 'out': it must be given here: tilec cannot make {dtype} arrays of "
        f"{view.framework or type(like).__name__}"
    )


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an array could not be made, or something else not done, because memory is full.

    NumPy and CuPy say so by a MemoryError, torch by its own error, the driver by a code, JAX by the
    name of XLA's status.
    """
    torch = sys.modules.get("torch")
    return (
        isinstance(error, MemoryError)
        or (torch is not None and isinstance(error, torch.cuda.OutOfMemoryError))
        or getattr(error, "code", None) == "CUDA_ERROR_OUT_OF_MEMORY"
        or "RESOURCE_EXHAUSTED" in str(error)
    )


def _cupy_array(index: int, sizes: tuple[int, ...], name: str) -> Any:
    cupy = sys.modules["cupy"]
    with cupy.cuda.Device(index):
        return cupy.empty(sizes, dtype=name)


def _jax_array(empty: Callable[[], Any], where: Any) -> Any:
    return sys.modules["jax"].device_put(empty(), where)
