"""Stands in for `cuda.bindings.driver` without a GPU: records launches, decodes arguments."""

from __future__ import annotations

import ctypes
import itertools
import sys
from collections.abc import Callable, Sequence
from enum import IntEnum
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from tilec.executable.kernel import TENSOR_MAP_BYTES, CompiledKernel
from tilec.runtime import device
from tilec.runtime.cuda import context, driver
from tilec.runtime.cuda import device as cuda_device
from tilec.runtime.cuda.list_tables import tables_of
from tilec.runtime.cuda.properties import device_properties
from tilec.runtime.cuda.tensor_map import encoded
from tilec.terms.dtypes import ELEMENT_BYTES

MULTIPROCESSORS = 4
FIGURES = {
    "MULTIPROCESSOR_COUNT": MULTIPROCESSORS,
    "CLOCK_RATE": 1_755_000,
    "MEMORY_CLOCK_RATE": 2_619_000,
    "GLOBAL_MEMORY_BUS_WIDTH": 5120,
    "L2_CACHE_SIZE": 50 << 20,
}
"""Of every device: clocks in kHz, the bus in bits, the cache in bytes."""


class CUresult(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NO_DEVICE = 100
    CUDA_ERROR_INVALID_CONTEXT = 201
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209
    CUDA_ERROR_INVALID_PTX = 218
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222
    CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906


class Launch:
    """One recorded launch; `arguments`: the bytes the driver would copy, one item a parameter."""

    def __init__(self, name: str, numbers: Sequence[int], stream: int, arguments: list[bytes]):
        self.name = name
        self.grid = tuple(numbers[:3])
        self.block = tuple(numbers[3:6])
        self.shared_bytes = numbers[6]
        self.stream = stream
        self.arguments = arguments
        self.context = 0
        self.is_early = False


class EncodedMap(NamedTuple):
    """The arguments of cuTensorMapEncodeTiled, or of cuTensorMapEncodeIm2col."""

    dtype: str
    rank: int
    address: int
    sizes: list[int]
    strides: list[int]
    box: list[int]
    steps: list[int]
    interleave: str
    swizzle: str
    promotion: str
    fill: str
    lower: Sequence[int] = ()
    upper: Sequence[int] = ()

    @property
    def modes(self) -> list[str]:
        """The enumerators behind the steps."""
        return [self.interleave, self.swizzle, self.promotion, self.fill]


class _Opaque:
    """A CUtensorMap: 128 bytes that hold its number."""

    def __init__(self, number: int) -> None:
        text = b"map " + number.to_bytes(4, "little")
        self.memory = ctypes.create_string_buffer(text, TENSOR_MAP_BYTES)

    def getPtr(self) -> int:
        return ctypes.addressof(self.memory)


_WIDTHS = {"workspace": 8, "pointer": 8, "tensor_map": TENSOR_MAP_BYTES}


class FakeDriver:
    """The functions tilec calls, over host memory. `devices`: compute capabilities, one a GPU."""

    CUresult = CUresult

    def __init__(self, devices: Sequence[tuple[int, int]] = ((9, 0),)) -> None:
        self.devices = list(devices)
        self.launches: list[Launch] = []
        self.calls: list[str] = []
        self.current = 0
        self.stack: list[int] = []
        self.kernels: dict[str, CompiledKernel] = {}
        self.functions: dict[int, tuple[str, int]] = {}
        self.modules: dict[int, tuple[bytes, int]] = {}
        self.attributes: dict[int, int] = {}
        self.owners: dict[int, int] = {}
        self.memory: dict[int, Any] = {}
        self.maps: list[EncodedMap] = []
        self.jit_error = ""
        self.version = 13000
        self.shared_bytes = 227 * 1024
        self.minds_contexts = True
        self.during_launch: Callable[[], None] = lambda: None
        self.fail: dict[str, CUresult] = {}
        self.captured: set[int] = set()
        self.capture = 1
        self.stream_numbers: dict[int, int] = {}
        self._numbers = itertools.count(1000)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("CU"):
            return _Names(name)
        raise AttributeError(name)

    def know(self, kernel: CompiledKernel) -> CompiledKernel:
        """Tells the driver the parameter sizes it would read from the kernel's code."""
        self.kernels[kernel.name] = kernel
        return kernel

    # contexts: number 100 + index

    def cuDriverGetVersion(self) -> Any:
        return CUresult.CUDA_SUCCESS, self.version

    def cuInit(self, flags: int) -> Any:
        return (self.fail.get("cuInit", CUresult.CUDA_SUCCESS),)

    def cuGetErrorName(self, result: CUresult) -> Any:
        return CUresult.CUDA_SUCCESS, CUresult(result).name.encode()

    def cuGetErrorString(self, result: CUresult) -> Any:
        return CUresult.CUDA_SUCCESS, b"text of the driver"

    def cuDeviceGetCount(self) -> Any:
        return CUresult.CUDA_SUCCESS, len(self.devices)

    def cuDeviceGet(self, index: int) -> Any:
        return CUresult.CUDA_SUCCESS, index

    def cuDeviceGetAttribute(self, attribute: str, index: int) -> Any:
        if "COMPUTE_CAPABILITY" in attribute:
            return CUresult.CUDA_SUCCESS, self.devices[index]["MINOR" in attribute]
        if "SHARED_MEMORY" in attribute:
            return CUresult.CUDA_SUCCESS, self.shared_bytes
        return CUresult.CUDA_SUCCESS, FIGURES[attribute.removeprefix("CU_DEVICE_ATTRIBUTE_")]

    def cuDeviceGetName(self, length: int, index: int) -> Any:
        return CUresult.CUDA_SUCCESS, b"Fake GPU\0\0"

    def cuDevicePrimaryCtxRetain(self, index: int) -> Any:
        return self.fail.get("cuDevicePrimaryCtxRetain", CUresult.CUDA_SUCCESS), 100 + index

    def cuCtxGetCurrent(self) -> Any:
        return CUresult.CUDA_SUCCESS, self.current

    def cuCtxSetCurrent(self, number: int) -> Any:
        self.current = number
        return (CUresult.CUDA_SUCCESS,)

    def cuCtxPushCurrent(self, number: int) -> Any:
        self.stack.append(self.current)
        return self.cuCtxSetCurrent(number)

    def cuCtxPopCurrent(self) -> Any:
        self.current = self.stack.pop()
        return CUresult.CUDA_SUCCESS, 0

    def cuCtxSynchronize(self) -> Any:
        self.calls.append(f"synchronize context {self.current}")
        return (self.fail.get("cuCtxSynchronize", CUresult.CUDA_SUCCESS),)

    # modules

    def cuThreadExchangeStreamCaptureMode(self, mode: Any) -> Any:
        self.calls.append(f"capture mode {mode}")
        return CUresult.CUDA_SUCCESS, "CU_STREAM_CAPTURE_MODE_GLOBAL"

    def cuModuleLoadData(self, image: bytes) -> Any:
        if "cuModuleLoadData" in self.fail:
            return self.fail["cuModuleLoadData"], None
        return self._module(image)

    def cuModuleLoadDataEx(self, image: bytes, count: int, keys: Any, values: Any) -> Any:
        assert image.endswith(b"\0")
        assert count == len(keys) == len(values) == 2
        if "cuModuleLoadDataEx" in self.fail:
            return self.fail["cuModuleLoadDataEx"], None
        if self.jit_error:
            values[0][: len(self.jit_error)] = self.jit_error.encode()
            return CUresult.CUDA_ERROR_INVALID_PTX, None
        return self._module(image)

    def _module(self, image: bytes) -> Any:
        number = next(self._numbers)
        self.modules[number] = (image, self.current)
        return CUresult.CUDA_SUCCESS, number

    def cuModuleGetFunction(self, module: int, name: bytes) -> Any:
        number = next(self._numbers)
        self.functions[number] = (name.decode(), self.modules[module][1])
        return CUresult.CUDA_SUCCESS, number

    def cuFuncSetAttribute(self, function: int, attribute: str, value: int) -> Any:
        assert attribute == "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES"
        self.attributes[function] = value
        return (CUresult.CUDA_SUCCESS,)

    def cuOccupancyMaxActiveBlocksPerMultiprocessor(
        self, function: int, threads: int, shared_bytes: int
    ) -> Any:
        return CUresult.CUDA_SUCCESS, 2048 // threads

    def cuOccupancyMaxActiveClusters(self, function: int, config: Any) -> Any:
        """A group of the 4 multiprocessors has 3, the other 1: clusters do not span groups."""
        (attribute,) = config.attrs
        assert attribute.id == "CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION"
        size = attribute.value.clusterDim.x
        assert not config.gridDimX % size
        each = 2048 // config.blockDimX
        return CUresult.CUDA_SUCCESS, 3 * each // size + each // size

    def cuFuncLoad(self, function: int) -> Any:
        self.calls.append("load function")
        return (CUresult.CUDA_SUCCESS,)

    # launches

    def cuLaunchKernel(self, function: int, *numbers: int) -> Any:
        if "cuLaunchKernel" in self.fail:
            return (self.fail["cuLaunchKernel"],)
        self.during_launch()
        name, owner = self.functions[function]
        if owner != self.current and self.minds_contexts:
            return (CUresult.CUDA_ERROR_INVALID_CONTEXT,)
        *sizes, stream, arguments, extra = numbers
        assert extra == 0
        kernel = self.kernels[name]
        slots = kernel.abi()
        addresses = (ctypes.c_uint64 * len(slots)).from_address(arguments) if slots else []
        widths = [_WIDTHS.get(slot.field) or ELEMENT_BYTES[slot.dtype] for slot in slots]
        for address, width in zip(addresses, widths, strict=True):
            assert address % min(width, 64) == 0
        read = [ctypes.string_at(a, width) for a, width in zip(addresses, widths, strict=True)]
        self.launches.append(Launch(name, sizes, stream, read))
        self.launches[-1].context = self.current
        return (CUresult.CUDA_SUCCESS,)

    class CUlaunchConfig(ctypes.Structure):
        """What cuLaunchKernelEx is told beside arguments; `attrs` as cuda-python takes them."""

        _fields_ = (
            *((f"{part}Dim{axis}", ctypes.c_uint) for part in ("grid", "block") for axis in "XYZ"),
            ("sharedMemBytes", ctypes.c_uint),
            ("hStream", ctypes.c_uint64),
            ("hAttrs", ctypes.c_uint64),
            ("numAttrs", ctypes.c_uint),
        )

        def __init__(self) -> None:
            super().__init__()
            self.attrs: Sequence[Any] = ()

        def getPtr(self) -> int:
            return ctypes.addressof(self)

    class CUlaunchAttribute:
        """One attribute of a launch."""

        def __init__(self) -> None:
            self.id = ""
            self.value = SimpleNamespace(
                programmaticStreamSerializationAllowed=0, clusterDim=SimpleNamespace(x=1, y=1, z=1)
            )

    def cuLaunchKernelEx(
        self, config: CUlaunchConfig, function: int, arguments: int, extra: int
    ) -> Any:
        sizes = [
            getattr(config, f"{part}Dim{axis}") for part in ("grid", "block") for axis in "XYZ"
        ]
        returned = self.cuLaunchKernel(
            function, *sizes, config.sharedMemBytes, config.hStream, arguments, extra
        )
        assert config.numAttrs <= len(config.attrs)
        for attribute in config.attrs[: config.numAttrs]:
            assert attribute.id == "CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION"
            if not returned[0]:
                allowed = attribute.value.programmaticStreamSerializationAllowed
                self.launches[-1].is_early = bool(allowed)
        return returned

    # tensor maps

    cuuint64_t = cuuint32_t = int

    def cuTensorMapEncodeTiled(self, *arguments: Any) -> Any:
        """The map is the text of what it was made of, so that a launch shows it."""
        self.calls.append("encode")
        if "cuTensorMapEncodeTiled" in self.fail:
            return self.fail["cuTensorMapEncodeTiled"], None
        self.maps.append(EncodedMap(*arguments))
        return CUresult.CUDA_SUCCESS, _Opaque(len(self.maps) - 1)

    def cuTensorMapEncodeIm2col(self, *arguments: Any) -> Any:
        """The same of an im2col map."""
        *array, lower, upper, channels, positions, steps, interleave, swizzle, promotion, fill = (
            arguments
        )
        modes = (interleave, swizzle, promotion, fill)
        result = self.cuTensorMapEncodeTiled(*array, [channels, positions], steps, *modes)
        if result[1] is not None:
            self.maps[-1] = self.maps[-1]._replace(lower=lower, upper=upper)
        return result

    def map_of(self, raw: bytes) -> EncodedMap:
        """What an encoded map was made of."""
        assert raw[:4] == b"map "
        assert len(raw) == TENSOR_MAP_BYTES
        return self.maps[int.from_bytes(raw[4:8], "little")]

    # memory and streams

    def cuStreamCreate(self, flags: Any) -> Any:
        return CUresult.CUDA_SUCCESS, next(self._numbers)

    def cuStreamDestroy(self, stream: int) -> Any:
        return (CUresult.CUDA_SUCCESS,)

    def cuMemsetD8Async(self, pointer: int, value: int, size: int, stream: int) -> Any:
        ctypes.memset(pointer, value, size)
        return (CUresult.CUDA_SUCCESS,)

    def cuPointerGetAttribute(self, attribute: str, pointer: int) -> Any:
        assert attribute == "CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL"
        return CUresult.CUDA_SUCCESS, self.owners[pointer]

    def cuMemAlloc(self, size: int) -> Any:
        block = ctypes.create_string_buffer(size + 256)
        pointer = -(-ctypes.addressof(block) // 256) * 256
        self.memory[pointer] = block
        self.owners[pointer] = self.current - 100
        return CUresult.CUDA_SUCCESS, pointer

    def cuMemFree(self, pointer: int) -> Any:
        del self.memory[pointer]
        return (CUresult.CUDA_SUCCESS,)

    def cuMemcpyHtoD(self, target: int, source: int, size: int) -> Any:
        ctypes.memmove(target, source, size)
        return (CUresult.CUDA_SUCCESS,)

    def cuMemcpyHtoDAsync(self, target: int, source: int, size: int, stream: int) -> Any:
        self.calls.append(f"copy {size} bytes")
        return self.cuMemcpyHtoD(target, source, size)

    def cuStreamIsCapturing(self, stream: int) -> Any:
        state = "ACTIVE" if stream in self.captured else "NONE"
        return CUresult.CUDA_SUCCESS, f"CU_STREAM_CAPTURE_STATUS_{state}"

    def cuStreamGetCaptureInfo(self, stream: int) -> Any:
        assert stream in self.captured
        return CUresult.CUDA_SUCCESS, "CU_STREAM_CAPTURE_STATUS_ACTIVE", self.capture, 0, [], 0

    def cuStreamGetId(self, stream: int) -> Any:
        return CUresult.CUDA_SUCCESS, self.stream_numbers.get(stream, 1000 + stream)

    def cuMemcpyDtoH(self, target: int, source: int, size: int) -> Any:
        ctypes.memmove(target, source, size)
        return (CUresult.CUDA_SUCCESS,)

    def cuStreamSynchronize(self, stream: int) -> Any:
        self.calls.append(f"synchronize stream {stream}")
        return (CUresult.CUDA_SUCCESS,)

    def cuEventCreate(self, flags: Any) -> Any:
        return CUresult.CUDA_SUCCESS, next(self._numbers)

    def cuEventRecord(self, event: int, stream: int) -> Any:
        self.calls.append(f"record on {stream}")
        return (CUresult.CUDA_SUCCESS,)

    def cuStreamWaitEvent(self, stream: int, event: int, flags: int) -> Any:
        self.calls.append(f"{stream} waits")
        return (CUresult.CUDA_SUCCESS,)

    def cuEventDestroy(self, event: int) -> Any:
        return (CUresult.CUDA_SUCCESS,)


class _Names:
    """An enum of the driver whose members are their own names."""

    def __init__(self, enum: str) -> None:
        self.enum = enum

    def __getattr__(self, name: str) -> str:
        return name


def install(monkeypatch: pytest.MonkeyPatch, fake: FakeDriver) -> FakeDriver:
    """Makes `fake` the driver of this test, with no device opened yet. Undo with `uninstall`."""
    uninstall()
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", fake)  # type: ignore[arg-type]
    return fake


def uninstall() -> None:
    """Forgets the driver and the devices opened."""
    for cached in (
        context.context_of,
        cuda_device.cuda_device,
        device._default_name,
        driver.load_driver,
        encoded,
        device_properties,
        tables_of,
    ):
        cached.cache_clear()
    context._opened.clear()
