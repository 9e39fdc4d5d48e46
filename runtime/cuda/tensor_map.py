"""Tensor maps for the copy engine: encoded by the driver, cached, kept in the argument block."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from tilec.executable.kernel import TENSOR_MAP_BYTES, CompiledKernel
from tilec.hardware.sizes import VECTOR_BYTES
from tilec.runtime.arrays import ArrayView
from tilec.runtime.cuda.context import CudaContext
from tilec.runtime.cuda.driver import check
from tilec.runtime.tensor_maps import HardwareMap, hardware_map
from tilec.terms.dtypes import BY_MLIR

MAX_MAPS = 4096
"""Encoded maps kept: 128 bytes each, of every array, shape and box seen last."""

_SWIZZLES: Mapping[int, str] = {0: "NONE", 32: "32B", 64: "64B", 128: "128B"}

_pack_map = struct.Struct(f"{TENSOR_MAP_BYTES}s").pack_into


@lru_cache(maxsize=MAX_MAPS)
def encoded(context: CudaContext, made: HardwareMap, pointer: int) -> bytes:
    """The 128 bytes of a map of the array at `pointer`. CudaError if the driver refuses it.

    A size of 0 has no encoding: an empty array is one element of zeros somewhere else.
    """
    driver = context.driver
    rank = len(made.sizes)
    copied_as = BY_MLIR[made.dtype].copied_as
    kind = getattr(driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{copied_as}")
    swizzle = getattr(driver.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{_SWIZZLES[made.swizzle]}")
    promotion = driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B
    wide, narrow = driver.cuuint64_t, driver.cuuint32_t
    with context.entered():
        result = check(
            driver.cuTensorMapEncodeTiled(
                kind,
                rank,
                context.zeros if made.is_empty else pointer,
                [wide(1 if made.is_empty else size) for size in made.sizes],
                [wide(stride) for stride in made.strides or (VECTOR_BYTES,)],
                [narrow(size) for size in made.box],
                [narrow(1)] * rank,
                driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
                swizzle,
                promotion,
                driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
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
            hardware_map(
                recipe, kernel.parameters[recipe.parameter].name, arguments[recipe.parameter]
            ),
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
