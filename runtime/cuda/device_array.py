"""Arrays in GPU memory for programs that have no framework: made, filled and read explicitly.

Copies between host and GPU cost more than most kernels, so no launch ever makes one by itself.
"""

from __future__ import annotations

import ctypes
import weakref
from contextlib import suppress
from typing import Any

from tilec.records import dataclass
from tilec.runtime.arrays import CUDA, HOST, ArrayView
from tilec.runtime.cuda.context import CudaContext
from tilec.runtime.cuda.driver import CudaError, check
from tilec.runtime.dlpack import contiguous_strides
from tilec.runtime.host import host_array
from tilec.terms.dtypes import BY_ARRAY, BY_MLIR, ELEMENT_BYTES


@dataclass(frozen=True, eq=False)
class DeviceArray(ArrayView):
    """An array on a GPU that owns its memory; others take it by `__cuda_array_interface__`.

    Make one with `CudaDevice.array` or `CudaDevice.empty`; kernels take it like any other array.
    """

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3 of the interface, which has no name for bf16 and fp8: AttributeError there."""
        typestr = BY_MLIR[self.dtype].typestr
        if not typestr:
            raise AttributeError(f"__cuda_array_interface__ has no dtype {self.dtype}")
        strides = tuple(stride * self.element_bytes for stride in self.strides)
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": typestr,
            "data": (self.pointer, False),
            "strides": strides,
            "stream": None,
        }

    def numpy(self) -> Any:
        """Waits for the GPU and copies the array into a new NumPy array, row-major."""
        context: CudaContext = self.owner
        low, high = self.extent()
        memory = (ctypes.c_uint8 * (high - low))()
        address = ctypes.addressof(memory)
        with context.entered():
            check(context.driver.cuCtxSynchronize(), f"waiting for cuda:{context.index}")
            if high > low:
                source = self.pointer + low
                copied = context.driver.cuMemcpyDtoH(address, source, high - low)
                check(copied, "copying from the GPU")
        pointer = address - low
        view = ArrayView(pointer, self.shape, self.strides, self.dtype, (HOST, 0), owner=memory)
        return host_array(view).copy()


def empty(context: CudaContext, shape: tuple[int, ...], dtype: str) -> DeviceArray:
    """An uninitialised row-major array of `shape`; `dtype` is MLIR's or NumPy's name."""
    known = BY_ARRAY[dtype].mlir if dtype in BY_ARRAY else dtype
    if known not in ELEMENT_BYTES:
        raise ValueError(f"unknown dtype {dtype!r}; known: {', '.join(ELEMENT_BYTES)}")
    return allocate(context, shape, contiguous_strides(shape), known)


def copy_in(context: CudaContext, host: ArrayView) -> DeviceArray:
    """A copy of a host array on the GPU, of the same shape and strides, gaps between them included.

    ValueError for negative strides.
    """
    low, high = host.extent()
    if low < 0:
        raise ValueError(f"cannot copy an array with negative strides {host.strides} to the GPU")
    array = allocate(context, host.shape, host.strides, host.dtype)
    if high:
        with context.entered():
            driver = context.driver
            check(driver.cuMemcpyHtoD(array.pointer, host.pointer, high), "copying to the GPU")
    return array


def copy_back(array: DeviceArray, host: ArrayView) -> None:
    """Copies the elements of `array`, and nothing between them, into a host array.

    ValueError unless shape and dtype agree.
    """
    if (array.shape, array.dtype) != (host.shape, host.dtype):
        raise ValueError(
            f"expected a host array of shape {array.shape} and dtype {array.dtype}, "
            f"found {host.shape} and {host.dtype}"
        )
    host_array(host)[...] = array.numpy()


def allocate(
    context: CudaContext,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: str,
    shift_bytes: int = 0,
) -> DeviceArray:
    """An uninitialised array of these strides, in elements; negative ones too.

    `shift_bytes`: how far its lowest element lies past the allocation's start, which is aligned.
    """
    device = (CUDA, context.index)
    low, high = ArrayView(0, shape, strides, dtype, device).extent()
    size = max(high - low, 1) + shift_bytes
    with context.entered():
        pointer = int(check(context.driver.cuMemAlloc(size), f"allocating {size} bytes"))
    lowest = pointer + shift_bytes
    array = DeviceArray(lowest - low, shape, strides, dtype, device, "tilec", owner=context)
    weakref.finalize(array, _free, context, pointer)
    return array


def _free(context: CudaContext, pointer: int) -> None:
    # At exit the driver may be gone, and the memory with it.
    with suppress(CudaError), context.entered():
        context.driver.cuMemFree(pointer)
