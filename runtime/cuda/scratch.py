"""Copies of arrays on the same GPU, to run a kernel on without touching the caller's."""

from __future__ import annotations

from tilec.hardware.sizes import ALLOCATION_BYTES
from tilec.runtime.arrays import ArrayView
from tilec.runtime.cuda.context import CudaContext
from tilec.runtime.cuda.device_array import DeviceArray, allocate
from tilec.runtime.cuda.driver import check


class ScratchArray:
    """`array`: of the shape, strides and alignment of `original`; a copy of it after `restore`."""

    def __init__(self, context: CudaContext, original: ArrayView, stream: int) -> None:
        self._context = context
        self._original = original
        self._stream = stream
        lowest = original.pointer + original.extent()[0]
        self.array: DeviceArray = allocate(
            context, original.shape, original.strides, original.dtype, lowest % ALLOCATION_BYTES
        )

    def restore(self) -> None:
        """Copies the original again, behind earlier work on the stream."""
        low, high = self._original.extent()
        if high > low:
            driver = self._context.driver
            with self._context.entered():
                copied = driver.cuMemcpyDtoDAsync(
                    self.array.pointer + low, self._original.pointer + low, high - low, self._stream
                )
                check(copied, "copying an array that tuning must not change")
