"""Makes an array of the framework, and on the device, that an argument belongs to."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from tilec.language.dtypes import DType
from tilec.runtime.arrays import DTYPES, HOST, ArrayView
from tilec.runtime.device import device
from tilec.runtime.errors import ArgumentError
from tilec.runtime.host import numpy_dtype

_NAMES = {mlir: name for name, mlir in DTYPES.items()}


def new_array(like: Any, view: ArrayView, shape: Sequence[int], dtype: DType) -> Any:
    """An uninitialised row-major array beside `like`, whose description is `view`.

    ArgumentError for frameworks whose arrays only their owner can make: give `out=` there.
    """
    sizes = tuple(shape)
    name = _NAMES[dtype.mlir]
    if view.framework == "torch":
        torch = sys.modules["torch"]
        return torch.empty(sizes, dtype=getattr(torch, name), device=like.device)
    if view.framework == "cupy" and dtype.mlir not in ("bf16", "f8E4M3FN", "f8E5M2"):
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(view.device[1]):
            return cupy.empty(sizes, dtype=name)
    if view.framework == "jax":
        jax = sys.modules["jax"]
        return jax.device_put(jax.numpy.empty(sizes, dtype=name), next(iter(like.devices())))
    if view.framework == "numpy":
        return sys.modules["numpy"].empty(sizes, numpy_dtype(dtype.mlir))
    if view.framework == "tilec" and view.device[0] != HOST:
        return device(f"cuda:{view.device[1]}").empty(sizes, dtype.mlir)
    raise ArgumentError(
        f"argument 'out': it must be given here: tilec cannot make {dtype} arrays of "
        f"{view.framework or type(like).__name__}"
    )
