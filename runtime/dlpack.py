"""Reads DLPack capsules with ctypes: no framework and no array library needed.

Layout of the structures: dlpack.h, versions 0.8 ("dltensor") and 1.x ("dltensor_versioned").
A capsule is only looked at, never consumed: its own destructor frees what it holds, so the caller
keeps the capsule for as long as the memory is in use.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

from tilec.records import dataclass
from tilec.terms.dtypes import DTYPES, DType

CPU = 1
"""Memory of the host (dlpack.h, kDLCPU)."""
CUDA = 2
"""Memory of a GPU (dlpack.h, kDLCUDA)."""
CUDA_HOST = 3
"""Pinned memory of the host (dlpack.h, kDLCUDAHost)."""
CUDA_MANAGED = 13
"""Memory that the driver moves (dlpack.h, kDLCUDAManaged)."""
MAX_VERSION = (1, 1)
"""The newest of DLPack whose structures are known here: later ones with this major number only
add."""

_READ_ONLY = 1
"""A flag of an array (dlpack.h, DLPACK_FLAG_BITMASK_READ_ONLY)."""
_DTYPES: Mapping[tuple[int, int, int], DType] = {
    dtype.dlpack: dtype for dtype in DTYPES if dtype.dlpack is not None
}


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("index", ctypes.c_int32)]


class _DType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("pointer", ctypes.c_void_p),
        ("device", _Device),
        ("rank", ctypes.c_int32),
        ("dtype", _DType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Version(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32)]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("version", _Version),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype = ctypes.c_int
_is_valid.argtypes = [ctypes.py_object, ctypes.c_char_p]


@dataclass(frozen=True)
class DlpackTensor:
    """What a capsule describes: strides in elements, device as (DLPack type, index)."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    device: tuple[int, int]
    read_only: bool


def request_capsule(array: Any, stream: int | None) -> Any:
    """`array.__dlpack__()` in the newest version its producer offers.

    `stream`: the CUDA stream the memory will be used on (DLPack's numbering: 1 is the legacy
    default stream); None for host memory. The producer orders its pending work before that stream's
    later work.
    """
    try:
        return array.__dlpack__(stream=stream, max_version=MAX_VERSION)
    except TypeError:
        return array.__dlpack__(stream=stream)


def read_capsule(capsule: Any) -> DlpackTensor:
    """Decodes a capsule. ValueError on a consumed or foreign one and on a dtype tilec has not."""
    if _is_valid(capsule, b"dltensor_versioned"):
        address = _get_pointer(capsule, b"dltensor_versioned")
        versioned = _Versioned.from_address(address)
        if versioned.version.major != MAX_VERSION[0]:
            raise ValueError(f"DLPack version {versioned.version.major} is not supported")
        return _decode(versioned.tensor, bool(versioned.flags & _READ_ONLY))
    if _is_valid(capsule, b"dltensor"):
        return _decode(_Tensor.from_address(_get_pointer(capsule, b"dltensor")), False)
    raise ValueError("not a DLPack capsule, or one that was already consumed")


def _decode(tensor: _Tensor, read_only: bool) -> DlpackTensor:
    code, bits, lanes = tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes
    dtype = _DTYPES.get((code, bits, lanes))
    if dtype is None:
        raise ValueError(f"DLPack dtype (code {code}, {bits} bits, {lanes} lanes) is not supported")
    shape = tuple(tensor.shape[axis] for axis in range(tensor.rank))
    if tensor.strides:
        strides = tuple(tensor.strides[axis] for axis in range(tensor.rank))
    else:
        strides = contiguous_strides(shape)
    return DlpackTensor(
        (tensor.pointer or 0) + tensor.byte_offset,
        shape,
        strides,
        dtype.mlir,
        (tensor.device.type, tensor.device.index),
        read_only,
    )


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides, in elements, of an array without gaps."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
