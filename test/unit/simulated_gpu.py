"""A GPU made of the fake driver and the emulator: launches compute, and take the time a test says.

Device memory is host memory, so arrays come from `tilec.device("cuda:0").array(...)`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from fake_driver import CUresult, FakeDriver, install

from tilec.executable.kernel import CompiledKernel
from tilec.runtime import emulator
from tilec.runtime.cuda import device as cuda_device
from tilec.runtime.cuda import properties
from tilec.runtime.cuda.module import load_kernel

MULTIPROCESSORS = 108
L2_BYTES = 1 << 20


class SimulatedGpu(FakeDriver):
    """`cost(kernel)`: microseconds a launch takes. `ran`: constants of each launch, in order."""

    def __init__(self, cost: Callable[[CompiledKernel], float]) -> None:
        super().__init__([(8, 0)])
        self.cost = cost
        self.clock = 0.0
        self.events: dict[int, float] = {}
        self.ran: list[dict[str, Any]] = []
        self.flushed = 0
        self.capturing = 0
        self.recorded: list[Callable[[], None]] | None = None
        self.graphs: dict[int, list[Callable[[], None]]] = {}
        self.memory_khz = 1_593_000
        self.by_image: dict[bytes, CompiledKernel] = {}
        self.by_function: dict[int, CompiledKernel] = {}
        self._programs: dict[str, emulator.Program] = {}

    def cuDeviceGetName(self, length: int, device: int) -> Any:
        return CUresult.CUDA_SUCCESS, b"Simulated GPU\0\0"

    def cuDeviceGetAttribute(self, attribute: str, index: int) -> Any:
        known = {
            "CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT": MULTIPROCESSORS,
            "CU_DEVICE_ATTRIBUTE_CLOCK_RATE": 1_410_000,
            "CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE": L2_BYTES,
            "CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE": self.memory_khz,
            "CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH": 5120,
        }
        if attribute in known:
            return CUresult.CUDA_SUCCESS, known[attribute]
        return super().cuDeviceGetAttribute(attribute, index)

    def cuModuleGetFunction(self, module: int, name: bytes) -> Any:
        result, number = super().cuModuleGetFunction(module, name)
        self.by_function[number] = self.by_image[self.modules[module][0]]
        return result, number

    def cuLaunchKernel(self, function: int, *numbers: int) -> Any:
        if "cuLaunchKernel" in self.fail:
            return (self.fail["cuLaunchKernel"],)
        kernel = self.by_function[function]
        *sizes, threads, _, _, shared_bytes, _, arguments, _ = numbers
        slots = kernel.abi()
        addresses = (ctypes.c_uint64 * len(slots)).from_address(arguments)
        given = [self._given(slot, address) for slot, address in zip(slots, addresses, strict=True)]
        program = self._programs.setdefault(kernel.ptx, emulator.load(kernel.ptx))

        def compute() -> None:
            values = [self._memory_at(x) if isinstance(x, int) else x for x in given]
            program.run(kernel.name, tuple(sizes), threads, values, shared_bytes)
            self.ran.append(dict(kernel.constants))
            self.clock += self.cost(kernel)

        if self.recorded is not None:
            self.recorded.append(compute)
        else:
            compute()
        return (CUresult.CUDA_SUCCESS,)

    def _given(self, slot: Any, address: int) -> int | bytes:
        """An argument: a pointer, or a number as bytes."""
        if slot.field != "pointer":
            width = {"i32": 4, "i64": 8, "f32": 4, "f64": 8}[slot.dtype]
            return ctypes.string_at(address, width)
        return ctypes.c_uint64.from_address(address).value

    def _memory_at(self, pointer: int) -> np.ndarray:
        """What is allocated from a pointer on; it must not have been freed since the launch was
        recorded."""
        found = [
            (start, block)
            for start, block in self.memory.items()
            if start <= pointer < start + len(block) - 256
        ]
        assert found, f"a launch on memory that is not allocated: {pointer:#x}"
        start, block = found[0]
        left = len(block) - 256 - (pointer - start)
        return np.ndarray((left,), np.uint8, (ctypes.c_uint8 * left).from_address(pointer))

    def cuEventRecord(self, event: int, stream: int) -> Any:
        self.events[event] = self.clock
        return super().cuEventRecord(event, stream)

    def cuEventSynchronize(self, event: int) -> Any:
        return (CUresult.CUDA_SUCCESS,)

    def cuEventElapsedTime(self, start: int, end: int) -> Any:
        return CUresult.CUDA_SUCCESS, (self.events[end] - self.events[start]) / 1000

    def cuMemsetD32Async(self, pointer: int, value: int, words: int, stream: int) -> Any:
        assert len(self.memory[pointer]) - 256 >= 4 * words
        self.flushed += 1
        self.clock += 50.0
        return (CUresult.CUDA_SUCCESS,)

    def cuMemcpyDtoDAsync(self, target: int, source: int, size: int, stream: int) -> Any:
        ctypes.memmove(target, source, size)
        return (CUresult.CUDA_SUCCESS,)

    def cuMemsetD8(self, pointer: int, value: int, size: int) -> Any:
        ctypes.memset(pointer, value, size)
        return (CUresult.CUDA_SUCCESS,)

    def cuStreamBeginCapture(self, stream: int, mode: str) -> Any:
        assert stream
        assert self.recorded is None
        self.capturing, self.recorded = 1, []
        return (CUresult.CUDA_SUCCESS,)

    def cuStreamEndCapture(self, stream: int) -> Any:
        graph, self.capturing, self.recorded = self.recorded, 0, None
        return CUresult.CUDA_SUCCESS, graph

    def cuGraphInstantiate(self, graph: list[Callable[[], None]], flags: int) -> Any:
        number = next(self._numbers)
        self.graphs[number] = graph
        return CUresult.CUDA_SUCCESS, number

    def cuGraphDestroy(self, graph: list[Callable[[], None]]) -> Any:
        return (CUresult.CUDA_SUCCESS,)

    def cuGraphLaunch(self, number: int, stream: int) -> Any:
        for compute in self.graphs[number]:
            compute()
        return (CUresult.CUDA_SUCCESS,)

    def cuGraphExecDestroy(self, number: int) -> Any:
        del self.graphs[number]
        return (CUresult.CUDA_SUCCESS,)

    def cuStreamIsCapturing(self, stream: int) -> Any:
        return self.fail.get("cuStreamIsCapturing", CUresult.CUDA_SUCCESS), self.capturing


def install_gpu(
    monkeypatch: pytest.MonkeyPatch, cost: Callable[[CompiledKernel], float]
) -> SimulatedGpu:
    """Makes a simulated GPU the only device of this test. Undo with `fake_driver.uninstall`."""
    gpu = SimulatedGpu(cost)
    install(monkeypatch, gpu)
    properties.device_properties.cache_clear()

    def load(kernel: CompiledKernel, context: Any) -> Any:
        gpu.by_image[kernel.ptx.encode() + b"\0"] = kernel
        return load_kernel(kernel, context)

    monkeypatch.setattr(cuda_device, "load_kernel", load)
    return gpu


def constants_of(launches: Sequence[dict[str, Any]], name: str) -> set[Any]:
    """The values a constant had in some launches."""
    return {launch[name] for launch in launches}
