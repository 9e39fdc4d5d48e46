"""NumPy arrays over host memory that somebody else described, whatever framework it is of.

NumPy is imported when an array is asked for: launching on a GPU does not need it.
"""

from __future__ import annotations

import ctypes
import importlib
from dataclasses import replace
from typing import Any

from tilec.runtime.arrays import HOST, ArrayView
from tilec.terms.dtypes import BY_MLIR


def numpy_dtype(dtype: str) -> Any:
    """NumPy's dtype of MLIR's name; bf16 and narrower floats are those of ml_dtypes, pairs of 4
    bits a byte whose only field has torch's name for it."""
    known, numpy = BY_MLIR[dtype], importlib.import_module("numpy")
    if known.is_pair:
        return numpy.dtype([(known.array, "u1")])
    kind = known.typestr or getattr(importlib.import_module("ml_dtypes"), known.array)
    return numpy.dtype(kind)


def host_memory(view: ArrayView) -> Any:
    """All of the memory that `view` lies in, as bytes; see `host_array`."""
    assert view.memory is not None
    start, end = view.memory
    whole = replace(
        view,
        pointer=start,
        shape=(end - start,),
        strides=(1,),
        dtype="i8",
        framework="",
        memory=None,
    )
    return host_array(whole)


def host_array(view: ArrayView) -> Any:
    """The memory of `view` as a NumPy array of its shape and strides; read-only where it is.

    The array keeps the owner of the memory alive. ValueError unless it is host memory.
    """
    if view.device[0] != HOST:
        raise ValueError(f"expected host memory, found {view.device[0]}:{view.device[1]}")
    if view.framework == "numpy":
        return view.owner
    low, high = view.extent()
    block = ctypes.c_uint8 * (high - low)
    # An empty array may have the null pointer, which NumPy does not take.
    memory = block.from_address(view.pointer + low) if high > low else (ctypes.c_uint8 * 1)()
    setattr(memory, "owner", view.owner)  # noqa: B010 - ctypes arrays take attributes unannounced
    array = importlib.import_module("numpy").ndarray(
        view.shape,
        numpy_dtype(view.dtype),
        memory,
        -low,
        tuple(stride * view.element_bytes for stride in view.strides),
    )
    array.flags.writeable = view.writable
    return array
