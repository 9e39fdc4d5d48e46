"""Tensor maps for the copy engine: encoded by the driver, cached, kept in the argument block."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from tilec.executable.kernel import TENSOR_MAP_BYTES, CompiledKernel
from tilec.runtime.arrays import ArrayView
from tilec.runtime.cuda.context import CudaContext
from tilec.runtime.cuda.driver import check
from tilec.runtime.tensor_maps import HardwareMap, encoding, kernel_map

MAX_MAPS = 4096
"""Encoded maps kept: 128 bytes each, of every array, shape and box seen last."""

_pack_map = struct.Struct(f"{TENSOR_MAP_BYTES}s").pack_into


@lru_cache(maxsize=MAX_MAPS)
def encoded(context: CudaContext, made: HardwareMap, pointer: int) -> bytes:
    """The 128 bytes of a map of the array at `pointer`. CudaError if the driver refuses it."""
    driver, found = context.driver, encoding(made)
    wide, narrow = driver.cuuint64_t, driver.cuuint32_t
    encode, box = driver.cuTensorMapEncodeTiled, [[narrow(size) for size in found.box]]
    if found.lower:
        encode = driver.cuTensorMapEncodeIm2col
        box = [list(found.lower), list(found.upper), *map(narrow, found.box)]
    with context.entered():
        result = check(
            encode(
                getattr(driver.CUtensorMapDataType, found.dtype),
                len(found.sizes),
                context.zeros if made.is_empty else pointer,
                [wide(size) for size in found.sizes],
                [wide(stride) for stride in found.strides],
                *box,
                [narrow(step) for step in found.steps],
                getattr(driver.CUtensorMapInterleave, found.interleave),
                getattr(driver.CUtensorMapSwizzle, found.swizzle),
                getattr(driver.CUtensorMapL2promotion, found.promotion),
                getattr(driver.CUtensorMapFloatOOBfill, found.fill),
            ),
            f"encoding a tensor map of the array at {pointer:#x}, {made}",
        )
    return ctypes.string_at(int(result.getPtr()), TENSOR_MAP_BYTES)


def packing_maps(
    pack: Callable[..., None],
    context: CudaContext,
    kernel: CompiledKernel,
    arguments: Sequence[Any],
    maps_start: int,
) -> Callable[..., None]:
    """`pack` for one plan, which also writes the maps where a pointer is not the last call's.

    `arguments`: an ArrayView or a number a parameter; the maps are of their shapes and strides.
    """
    numbers = [n for n, value in enumerate(arguments) if isinstance(value, ArrayView)]
    count = len(numbers)
    maps = [
        (
            maps_start + TENSOR_MAP_BYTES * place,
            numbers.index(recipe.parameter),
            kernel_map(kernel, recipe, arguments),
        )
        for place, recipe in enumerate(kernel.tensor_maps)
    ]
    written: tuple[int, ...] = ()

    def pack_all(block: Any, offset: int, *values: Any) -> None:
        nonlocal written
        pack(block, offset, *values)
        pointers = values[:count]
        if pointers != written:
            written = ()
            for start, position, made in maps:
                _pack_map(block, start, encoded(context, made, pointers[position]))
            written = pointers

    return pack_all
