"""The `cuda` device: loads kernels into a GPU's primary context and launches them there."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from typing import Any

from tilec.executable.grid import Grid, check_grid
from tilec.executable.kernel import CompiledKernel
from tilec.hardware.ptx_version import newest_of_driver
from tilec.runtime.array_list import ArrayList, describe_list
from tilec.runtime.arrays import ArrayView, describe
from tilec.runtime.cuda.context import context_of
from tilec.runtime.cuda.device_array import DeviceArray, copy_back, copy_in, empty
from tilec.runtime.cuda.driver import check
from tilec.runtime.cuda.list_tables import with_tables
from tilec.runtime.cuda.module import LoadedKernel, load_kernel
from tilec.runtime.cuda.plan import GridOfScalars, Plan, changing_values, make_plan, start_plan
from tilec.runtime.facts import check as check_arrays
from tilec.runtime.scalars import check_scalar
from tilec.runtime.streams import DEFAULT_STREAM, stream_number


class CudaDevice:
    """One GPU; get it from `tilec.device("cuda:N")`. Safe to use from several threads."""

    kind = "cuda"

    def __init__(self, index: int) -> None:
        self.context = context_of(index)
        self.index = index
        self.name = f"cuda:{index}"
        self.compute_capability = self.context.capability
        self.shared_bytes = self.context.shared_bytes
        self.newest_ptx = newest_of_driver(self.context.cuda_version)
        self._loaded: dict[int, LoadedKernel] = {}
        self._loading: dict[int, threading.Lock] = {}

    def load(self, kernel: CompiledKernel) -> LoadedKernel:
        """Assembles and loads `kernel`, once; several kernels at once from several threads.

        CudaError holds the assembler's log.
        """
        loaded = self._loaded.get(id(kernel))
        if loaded is None:
            with self._loading.setdefault(id(kernel), threading.Lock()):
                loaded = self._loaded.get(id(kernel))
                if loaded is None:
                    loaded = self._loaded[id(kernel)] = load_kernel(kernel, self.context)
        return loaded

    def launch(
        self,
        loaded: LoadedKernel,
        arguments: Sequence[Any],
        grid: Any,
        stream: Any = None,
    ) -> None:
        """Checks everything and launches; `arguments`: an array or a number a parameter.

        `stream` defaults to the legacy default stream. Does not wait for the kernel.
        """
        number = DEFAULT_STREAM if stream is None else stream_number(stream)
        parameters = loaded.kernel.parameters
        values = [
            describe_list(value, p.name, number, flat=p.kind == "flat_arrays")
            if p.is_list
            else describe(value, p.name, number)
            if p.has_memory
            else check_scalar(p.name, p.dtype, value)
            for p, value in zip(parameters, arguments, strict=True)
        ]
        check_arrays(loaded.kernel, {p.name: v for p, v in zip(parameters, values, strict=True)})
        sizes = check_grid(grid)
        values = self.with_tables(loaded.kernel, values, number)
        self.start(self.plan(loaded, values, sizes), values, sizes, number)

    def with_tables(
        self, kernel: CompiledKernel, arguments: Sequence[Any], stream: int
    ) -> list[Any]:
        """Checked arguments of a launch on a stream; lists have their tables there."""
        return with_tables(self.context, kernel.parameters, arguments, stream)

    def plan(
        self,
        loaded: LoadedKernel,
        arguments: Sequence[Any],
        grid: Grid,
        grid_of_scalars: GridOfScalars | None = None,
    ) -> Plan:
        """A plan for checked arguments, to be used on this thread alone."""
        return make_plan(loaded, arguments, grid, grid_of_scalars)

    def start(self, plan: Plan, arguments: Sequence[Any], grid: Grid, stream: int) -> None:
        """Packs checked arguments into a plan of theirs and launches it.

        Work queued on a stream that an array names as its producer comes first. JAX's own streams
        cannot be told to wait for ours, so with a JAX array among the arguments this waits.
        """
        arrays = [value for value in arguments if isinstance(value, ArrayView)]
        arrays += [one for array in arrays if isinstance(array, ArrayList) for one in array.members]
        for producer in {array.producer_stream for array in arrays} - {None, stream}:
            self._order(stream, producer)
        pointers, scalars = changing_values(arguments)
        plan.pack(plan.block, 0, *pointers, *scalars)
        start_plan(plan, grid, stream)
        if any(array.framework == "jax" for array in arrays):
            with self.context.entered():
                check(self.context.driver.cuStreamSynchronize(stream), f"waiting for {self.name}")

    def synchronize(self) -> None:
        """Waits for all work of this GPU. CudaError if a kernel failed since the last time."""
        with self.context.entered():
            check(self.context.driver.cuCtxSynchronize(), f"waiting for {self.name}")

    def _order(self, stream: int, producer: int | None) -> None:
        """Lets later work on `stream` wait for what is queued on the stream `producer` now."""
        driver = self.context.driver
        with self.context.entered():
            flags = driver.CUevent_flags.CU_EVENT_DISABLE_TIMING
            event = check(driver.cuEventCreate(flags), "creating an event")
            check(driver.cuEventRecord(event, producer), "recording an event")
            check(driver.cuStreamWaitEvent(stream, event, 0), "waiting for an event")
            check(driver.cuEventDestroy(event), "destroying an event")

    def array(self, host: Any) -> DeviceArray:
        """Copies a host array (NumPy, CPU tensors) to the GPU, strides kept. See `copy_back`."""
        return copy_in(self.context, describe(host, "host"))

    def empty(self, shape: Sequence[int], dtype: str) -> DeviceArray:
        """An uninitialised row-major array on the GPU; `dtype` is MLIR's or NumPy's name."""
        return empty(self.context, tuple(shape), dtype)

    def copy_back(self, array: DeviceArray, host: Any) -> None:
        """Waits for the GPU, then copies `array` into a host array of its shape and dtype."""
        view = describe(host, "host")
        if not view.writable:
            raise ValueError("the host array is read-only")
        copy_back(array, view)


@cache
def cuda_device(index: int) -> CudaDevice:
    """The device of GPU `index`, opened once."""
    return CudaDevice(index)
