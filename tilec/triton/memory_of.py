"""The memory behind an argument: what a pointer into it may reach."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tilec.runtime.arrays import CUDA, HOST, ArrayView, describe
from tilec.runtime.cuda.context import device_of_pointer, memory_of_pointer
from tilec.terms.dtypes import BY_ARRAY


def pointed_at(value: Any, name: str) -> ArrayView:
    """What the argument `name` points at: an array, or, as in Triton, whatever has an address
    (`data_ptr()`) and a dtype of torch's. The memory of such a pointer is that of its
    `untyped_storage()`, if it says one with a size; else the driver knows it."""
    if hasattr(value, "__dlpack__") or not hasattr(value, "data_ptr"):
        return with_memory(value, describe(value, name))
    dtype = BY_ARRAY.get(str(getattr(value, "dtype", "")).removeprefix("torch."))
    if dtype is None:
        return describe(value, name)
    pointer = value.data_ptr()
    storage: Any = value.untyped_storage() if hasattr(value, "untyped_storage") else None
    if not hasattr(storage, "nbytes"):
        memory, device = memory_of_pointer(pointer), (CUDA, device_of_pointer(pointer))
    else:
        memory = storage.data_ptr(), storage.data_ptr() + storage.nbytes()
        is_host = storage.device.type == "cpu"
        device = (HOST, 0) if is_host else (CUDA, storage.device.index)
    count = max(memory[1] - pointer, 0) // dtype.bytes
    return ArrayView(
        pointer, (count,), (1,), dtype.mlir, device, "torch", owner=value, memory=memory
    )


def with_one_device(views: Mapping[str, ArrayView]) -> dict[str, ArrayView]:
    """Arrays without memory, null pointers, lie where the others do: Triton takes such from any
    device, as what a library gives for a result that nobody asked for."""
    held = next((view.device for view in views.values() if view.pointer), None)
    return {
        name: view if view.pointer or held is None else replace(view, device=held)
        for name, view in views.items()
    }


def with_memory(value: Any, view: ArrayView) -> ArrayView:
    """`view`, which describes the argument `value`, with the memory that `value` is a part of.

    Of a torch tensor it is its storage, of a NumPy array the array that it is a view of, of others
    what their elements span.
    """
    return replace(view, memory=_storage(value) or _base(value) or span_of(view))


def memory_behind(view: ArrayView) -> tuple[int, int]:
    """The memory that a view is a part of, as far as it says: else what its elements span."""
    return view.memory or span_of(view)


def span_of(view: ArrayView) -> tuple[int, int]:
    """The first byte of an array's own elements and the one past their last."""
    low, high = replace(view, memory=None).extent()
    return view.pointer + low, view.pointer + high


def _storage(value: Any) -> tuple[int, int] | None:
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return None
    storage = value.untyped_storage()
    return storage.data_ptr(), storage.data_ptr() + storage.nbytes()


def _base(value: Any) -> tuple[int, int] | None:
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.ndarray):
        return None
    whole = value
    while isinstance(whole.base, numpy.ndarray):
        whole = whole.base
    bounds = numpy.lib.array_utils.byte_bounds(whole)
    return int(bounds[0]), int(bounds[1])
