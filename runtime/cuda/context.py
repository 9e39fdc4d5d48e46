"""Primary contexts, one a GPU: the ones torch, CuPy and JAX work in too, so pointers are shared."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, cached_property

from tilec.runtime.cuda.driver import check, device_count, load_driver
from tilec.runtime.errors import DeviceError

_ZERO_BYTES = 256
"""As much as an allocation takes anyhow; the largest element has 8."""


class CudaContext:
    """The retained primary context of GPU `index`; lives as long as the interpreter.

    `has_others`: whether the driver sees other GPUs, in whose contexts threads may be.
    `cuda_version`: the driver's, as 12040.
    """

    def __init__(self, index: int) -> None:
        self.driver = load_driver()
        count = device_count()
        if not 0 <= index < count:
            raise DeviceError(f"there is no cuda:{index}; the driver sees {count} GPUs")
        self.index = index
        self.has_others = count > 1
        device = check(self.driver.cuDeviceGet(index), f"opening cuda:{index}")
        self.primary = check(
            self.driver.cuDevicePrimaryCtxRetain(device), f"opening the context of cuda:{index}"
        )
        self.number = int(self.primary)
        _opened.append(self)
        self.capability = (
            self._attribute(device, "COMPUTE_CAPABILITY_MAJOR"),
            self._attribute(device, "COMPUTE_CAPABILITY_MINOR"),
        )
        self.shared_bytes = int(self._attribute(device, "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"))
        self.multiprocessors = int(self._attribute(device, "MULTIPROCESSOR_COUNT"))
        self.cuda_version = check(
            self.driver.cuDriverGetVersion(), "asking the driver for its version"
        )

    def _attribute(self, device: object, name: str) -> int:
        attributes = self.driver.CUdevice_attribute
        attribute = getattr(attributes, f"CU_DEVICE_ATTRIBUTE_{name}")
        return check(self.driver.cuDeviceGetAttribute(attribute, device), f"reading {name}")

    @cached_property
    def zeros(self) -> int:
        """Address of a few zeros on this GPU: what stands for the elements of an empty array.

        Made on a stream of its own, so that it may be made while another is being captured.
        """
        driver = self.driver
        with self.entered():
            pointer = check(driver.cuMemAlloc(_ZERO_BYTES), "allocating")
            flags = driver.CUstream_flags.CU_STREAM_NON_BLOCKING
            stream = check(driver.cuStreamCreate(flags), "creating a stream")
            check(driver.cuMemsetD8Async(pointer, 0, _ZERO_BYTES, stream), "clearing memory")
            check(driver.cuStreamSynchronize(stream), "clearing memory")
            check(driver.cuStreamDestroy(stream), "destroying a stream")
        return int(pointer)

    def is_current(self) -> bool:
        """Whether driver calls of this thread go to this context."""
        return int(check(self.driver.cuCtxGetCurrent(), "asking for the context")) == self.number

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Makes this context current; the caller's is back afterwards.

        A thread that has none keeps this one, as it would with the runtime API.
        """
        before = int(check(self.driver.cuCtxGetCurrent(), "asking for the context"))
        if before == self.number:
            yield
        elif before == 0:
            check(self.driver.cuCtxSetCurrent(self.primary), "entering the context")
            yield
        else:
            check(self.driver.cuCtxPushCurrent(self.primary), "entering the context")
            try:
                yield
            finally:
                check(self.driver.cuCtxPopCurrent(), "leaving the context")


_opened: list[CudaContext] = []


@cache
def context_of(index: int) -> CudaContext:
    """The context of GPU `index`, opened once."""
    return CudaContext(index)


def current_device() -> int:
    """Index of the GPU this thread is in, of those opened; -1 if it is in none of them."""
    number = int(check(load_driver().cuCtxGetCurrent(), "asking for the context"))
    return next((context.index for context in _opened if context.number == number), -1)


def device_of_pointer(pointer: int) -> int:
    """Index of the GPU that owns `pointer`; 0 for the null pointer of an empty array."""
    if pointer == 0:
        return 0
    driver = load_driver()
    attribute = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    return int(check(driver.cuPointerGetAttribute(attribute, pointer), "looking a pointer up"))


def memory_of_pointer(pointer: int) -> tuple[int, int]:
    """The first byte, and the one past the last, of the allocation that `pointer` points into."""
    found = load_driver().cuMemGetAddressRange(pointer)
    start, size = check(found, "asking what memory a pointer is of")
    return int(start), int(start) + int(size)
