"""Calls handlers of XLA's foreign function interface as XLA does; a driver that records.

The structures are those of xla/ffi/api/c_api.h, version 0.3, written down a second time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from tilec.jax.launch_code import DRIVER_FUNCTIONS
from tilec.jax.xla_ffi import Interface

POINTER = ctypes.c_void_p


class Extension(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("type", ctypes.c_int),
        ("next", POINTER),
        ("metadata", POINTER),
    )


class Metadata(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("version_size", ctypes.c_size_t),
        ("version_extension", POINTER),
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
        ("traits", ctypes.c_uint32),
        ("state_type_id", ctypes.c_int64),
    )


class Buffers(ctypes.Structure):
    """XLA_FFI_Args and XLA_FFI_Rets."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", POINTER),
        ("size", ctypes.c_int64),
        ("types", POINTER),
        ("buffers", ctypes.POINTER(POINTER)),
    )


class Buffer(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", POINTER),
        ("dtype", ctypes.c_int),
        ("address", ctypes.c_uint64),
        ("rank", ctypes.c_int64),
        ("dims", POINTER),
    )


class CallFrame(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", POINTER),
        ("api", POINTER),
        ("context", POINTER),
        ("stage", ctypes.c_int),
        ("arguments", Buffers),
        ("results", Buffers),
    )


class Question(ctypes.Structure):
    """XLA_FFI_Stream_Get_Args and XLA_FFI_DeviceOrdinal_Get_Args."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", POINTER),
        ("context", ctypes.c_uint64),
        ("answer", ctypes.c_uint64),
    )


class Complaint(ctypes.Structure):
    """XLA_FFI_Error_Create_Args."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", POINTER),
        ("message", ctypes.c_char_p),
        ("code", ctypes.c_int),
    )


class Config(ctypes.Structure):
    """CUlaunchConfig (cuda.h)."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_uint64),
        ("attributes", POINTER),
        ("attribute_count", ctypes.c_uint),
    )


INTERFACE = Interface(
    7, {"XLA_FFI_Stream_Get": 64, "XLA_FFI_Error_Create": 56, "XLA_FFI_DeviceOrdinal_Get": 48}
)
"""A version that does not exist, with the functions at other places than the real one's."""
CONTEXT, STREAM = 0xC0, 0x57


class Xla:
    """Calls a handler at an address, as XLA does on a stream of the GPU `ordinal`."""

    def __init__(self, address: int, ordinal: int = 0, stream: int = STREAM) -> None:
        self.messages: list[tuple[int, str]] = []
        ask = ctypes.CFUNCTYPE(POINTER, ctypes.POINTER(Question))
        complain = ctypes.CFUNCTYPE(POINTER, ctypes.POINTER(Complaint))
        self._handler = ctypes.CFUNCTYPE(POINTER, ctypes.POINTER(CallFrame))(address)
        self._functions = [
            ask(self._answering(ordinal)),
            complain(self._complain),
            ask(self._answering(stream)),
        ]
        table = [ctypes.cast(f, POINTER).value for f in self._functions]
        self._api = (POINTER * 9)(*[0] * 6, *table)

    def _answering(self, answer: int) -> Any:
        def reply(question: Any) -> int:
            assert question[0].struct_size == ctypes.sizeof(Question)
            assert question[0].context == CONTEXT
            question[0].answer = answer
            return 0

        return reply

    def _complain(self, complaint: Any) -> int:
        found = complaint[0]
        assert found.struct_size == ctypes.sizeof(Complaint)
        self.messages.append((found.code, found.message.decode()))
        return 0xE0

    def metadata(self) -> Metadata:
        """What the handler says that it can do."""
        told = Metadata(ctypes.sizeof(Metadata), 24, None, -1, -1, 0, 0)
        extension = Extension(32, 1, None, ctypes.addressof(told))
        frame = CallFrame(extension_start=ctypes.addressof(extension))
        assert not self._handler(frame)
        return told

    def call(self, given: Sequence[int], made: Sequence[int], stage: int = 3) -> int | None:
        """Runs a stage on operands and results at these addresses; the error, None without."""
        sides = []
        for addresses in (given, made):
            buffers = [Buffer(ctypes.sizeof(Buffer), None, 11, a, 0, None) for a in addresses]
            table = (POINTER * max(1, len(buffers)))(*map(ctypes.addressof, buffers))
            sides.append((Buffers(40, None, len(buffers), None, table), buffers, table))
        api = ctypes.addressof(self._api)
        frame = CallFrame(0, None, api, CONTEXT, stage, sides[0][0], sides[1][0])
        return self._handler(frame)


class Driver:
    """The driver's functions that handlers call, as C functions that record.

    `launches`: a tuple of grid, stream and arguments each, these as many bytes as `widths` says.
    `maps`: what was encoded: numbers, and lists. `fail`: name of a function -> its result.
    """

    def __init__(self, widths: Sequence[int]) -> None:
        self.widths = widths
        self.launches: list[tuple[Any, ...]] = []
        self.maps: list[tuple[Any, ...]] = []
        self.contexts: list[int] = []
        self.fail: dict[str, int] = {}
        result, number, pointer = ctypes.c_int, ctypes.c_uint64, POINTER
        kinds = {
            "cuCtxPushCurrent_v2": (number,),
            "cuCtxPopCurrent_v2": (ctypes.POINTER(number),),
            "cuLaunchKernelEx": (ctypes.POINTER(Config), number, ctypes.POINTER(number), pointer),
            "cuTensorMapEncodeTiled": (
                *(pointer, ctypes.c_int, ctypes.c_uint, number),
                *(ctypes.POINTER(kind) for kind in (number, number, ctypes.c_uint, ctypes.c_uint)),
                *[ctypes.c_int] * 4,
            ),
            "cuTensorMapEncodeIm2col": (
                *(pointer, ctypes.c_int, ctypes.c_uint, number),
                *(ctypes.POINTER(kind) for kind in (number, number, ctypes.c_int, ctypes.c_int)),
                *(ctypes.c_uint, ctypes.c_uint, ctypes.POINTER(ctypes.c_uint)),
                *[ctypes.c_int] * 4,
            ),
            "cuGetErrorName": (ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)),
        }
        assert set(kinds) == set(DRIVER_FUNCTIONS)
        self._functions = {
            name: ctypes.CFUNCTYPE(result, *arguments)(getattr(self, name))
            for name, arguments in kinds.items()
        }
        self.addresses = {
            name: ctypes.cast(f, POINTER).value or 0 for name, f in self._functions.items()
        }

    def cuCtxPushCurrent_v2(self, context: int) -> int:
        if "cuCtxPushCurrent_v2" in self.fail:
            return self.fail["cuCtxPushCurrent_v2"]
        self.contexts.append(context)
        return 0

    def cuCtxPopCurrent_v2(self, before: Any) -> int:
        before[0] = self.contexts.pop()
        return 0

    def cuLaunchKernelEx(self, config: Any, function: int, table: Any, extra: Any) -> int:
        assert not extra
        read = [ctypes.string_at(table[n], width) for n, width in enumerate(self.widths)]
        place = config[0]
        self.launches.append(
            (self.contexts[-1], function, tuple(place.grid), tuple(place.block), place.stream, read)
        )
        return self.fail.get("cuLaunchKernelEx", 0)

    def cuTensorMapEncodeTiled(self, target: int, dtype: int, rank: int, *more: Any) -> int:
        address, sizes, strides, box, steps, *modes = more
        lists = (sizes[:rank], strides[: max(1, rank - 1)], box[:rank], steps[:rank])
        self.maps.append((dtype, address, *lists, modes, (), ()))
        ctypes.memmove(target, len(self.maps).to_bytes(128, "little"), 128)
        assert target % 64 == 0
        return self.fail.get("cuTensorMapEncodeTiled", 0)

    def cuTensorMapEncodeIm2col(self, target: int, dtype: int, rank: int, *more: Any) -> int:
        address, sizes, strides, lower, upper, channels, positions, steps, *modes = more
        result = self.cuTensorMapEncodeTiled(
            target, dtype, rank, address, sizes, strides, [channels, positions], steps, *modes
        )
        self.maps[-1] = (*self.maps[-1][:-2], lower[: rank - 2], upper[: rank - 2])
        return result

    def cuGetErrorName(self, code: int, name: Any) -> int:
        if code == 999:
            return 1
        name[0] = b"CUDA_ERROR_OF_A_TEST"
        return 0
