"""Arrays as the copy engine sees them: a kernel's tensor-map recipes applied to its arguments.

CUDA driver API, cuTensorMapEncodeTiled: sizes, strides in bytes and box sizes innermost first; the
address and the strides are multiples of 16 bytes. cuTensorMapEncodeIm2col: the same, and where the
bounding box of positions begins and ends along each dimension between channels and images, as far
from the array's first and last elements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tilec.executable.grid import compile_sizes
from tilec.executable.kernel import (
    INDEX_LIMIT_32,
    CompiledKernel,
    Im2col,
    Parameter,
    TensorMap,
)
from tilec.hardware.sizes import (
    IM2COL_CORNERS,
    MOST_BOX,
    MOST_IM2COL_STEP,
    MOST_RANK,
    SWIZZLE_BITS,
    VECTOR_BYTES,
)
from tilec.runtime.arrays import ArrayView
from tilec.runtime.errors import ArgumentError
from tilec.terms.dtypes import BY_MLIR, ELEMENT_BYTES

LARGEST_SIZE = INDEX_LIMIT_32
"""Coordinates are signed 32-bit numbers, and the last box may hang over by 2^16."""
LARGEST_STRIDE = 2**40 - VECTOR_BYTES

_SWIZZLES: Mapping[int, str] = {0: "NONE", 32: "32B", 64: "64B", 128: "128B"}


class HardwareMap(NamedTuple):
    """A recipe applied to one array's shape and strides; the address comes when it is encoded.

    Innermost dimension first: `sizes` (0 for an empty array), `strides` in bytes of all but the
    innermost, `box`. `swizzle` in bytes. Of an im2col map, one number a dimension between channels
    and images: `lower` and `upper`, the corners of the bounding box; `steps` through it.
    """

    dtype: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int
    lower: tuple[int, ...] = ()
    upper: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the array has no element."""
        return 0 in self.sizes


class Encoding(NamedTuple):
    """What cuTensorMapEncodeTiled is told of an array beside its address, in its order; enumerators
    by their names. Of an im2col map `lower` and `upper`, which cuTensorMapEncodeIm2col takes in
    front of the box, are not empty."""

    dtype: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    interleave: str
    swizzle: str
    promotion: str
    fill: str
    lower: tuple[int, ...]
    upper: tuple[int, ...]


def encoding(made: HardwareMap) -> Encoding:
    """How the driver encodes a map. A size of 0 has no encoding: an empty array is one element of
    zeros somewhere else."""
    return Encoding(
        dtype_enumerator(made.dtype),
        tuple(1 if made.is_empty else size for size in made.sizes),
        made.strides or (VECTOR_BYTES,),
        made.box,
        (1, *made.steps, 1) if made.steps else (1,) * len(made.sizes),
        "CU_TENSOR_MAP_INTERLEAVE_NONE",
        swizzle_enumerator(made.swizzle),
        "CU_TENSOR_MAP_L2_PROMOTION_L2_128B",
        "CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE",
        made.lower,
        made.upper,
    )


def dtype_enumerator(dtype: str) -> str:
    """The driver's name of how the copy engine takes elements."""
    return f"CU_TENSOR_MAP_DATA_TYPE_{BY_MLIR[dtype].copied_as}"


def swizzle_enumerator(swizzle: int) -> str:
    """The driver's name of a pattern of so many bytes, 0 for none."""
    return f"CU_TENSOR_MAP_SWIZZLE_{_SWIZZLES[swizzle]}"


def kernel_map(kernel: CompiledKernel, recipe: TensorMap, arguments: Sequence[Any]) -> HardwareMap:
    """The map of one of a kernel's recipes for its arguments, an ArrayView or a number a parameter.
    ArgumentError if the copy engine cannot address the array."""
    name, array = kernel.parameters[recipe.parameter].name, arguments[recipe.parameter]
    made = hardware_map(recipe, name, array)
    if recipe.im2col is None:
        return made
    extents, lower, steps = recipe.im2col.extents, recipe.im2col.lower, recipe.im2col.steps
    if made.is_empty:  # one element of zeros, whatever the positions
        return made._replace(lower=(0,) * len(lower), upper=(0,) * len(lower), steps=steps)
    shapes = [getattr(argument, "shape", None) for argument in arguments]
    try:
        counts = compile_sizes(extents, kernel.parameters)(shapes)
    except ZeroDivisionError:
        raise _unfit(name, "positions that a launch can count", "a division by zero") from None
    upper = tuple(
        (max(count, 1) - 1) * step + first + 1 - size
        for count, step, first, size in zip(counts, steps, lower, made.sizes[1:], strict=False)
    )
    most = IM2COL_CORNERS[len(made.sizes)]
    for axis, corner in zip(recipe.dims[1:], upper, strict=False):
        if abs(corner) > most:
            expected = f"positions that end up to {most} beside its end on axis {axis}"
            raise _unfit(name, expected, str(corner))
    return made._replace(lower=lower, upper=upper, steps=steps)


def hardware_map(recipe: TensorMap, name: str, array: ArrayView) -> HardwareMap:
    """The map of the argument `name`, but for the corners of an im2col map. ArgumentError if the
    copy engine cannot address the array."""
    sizes = tuple(array.shape[axis] for axis in recipe.dims)
    empty = 0 in sizes
    if array.pointer % VECTOR_BYTES and not empty:
        where = f"address {array.pointer:#x}"
        raise _unfit(name, f"a pointer that is a multiple of {VECTOR_BYTES} bytes", where)
    for axis, size in zip(recipe.dims, sizes, strict=True):
        if size > LARGEST_SIZE:
            raise _unfit(name, f"at most {LARGEST_SIZE} elements on axis {axis}", str(size))
    inner, *outer = recipe.dims
    if recipe.stores and array.shape[inner] * array.element_bytes % VECTOR_BYTES:
        # As measured on an H200: where a row ends inside 16 bytes, a store writes all of them.
        expected = f"a size on axis {inner} that is a multiple of {VECTOR_BYTES} bytes, for stores"
        raise _unfit(name, expected, f"{array.shape[inner]} elements of {array.dtype}")
    if array.strides[inner] != 1 and array.shape[inner] > 1 and not empty:
        raise _unfit(name, f"stride 1 on axis {inner}", str(array.strides[inner]))
    strides = []
    for axis in outer:
        stride = array.strides[axis] * array.element_bytes
        if empty or array.shape[axis] <= 1:
            stride = VECTOR_BYTES  # leads nowhere, and may be odd
        if stride % VECTOR_BYTES or not 0 <= stride <= LARGEST_STRIDE:
            expected = f"a stride on axis {axis} of 0 or more times {VECTOR_BYTES} bytes"
            raise _unfit(name, expected, f"{array.strides[axis]} elements of {array.dtype}")
        strides.append(stride)
    return HardwareMap(recipe.dtype, sizes, tuple(strides), recipe.box, recipe.swizzle)


def wrong_recipe(recipe: TensorMap, parameters: Sequence[Parameter]) -> str | None:
    """What is wrong with a recipe that came from a file, or None."""
    if not 0 <= recipe.parameter < len(parameters):
        return f"there is no parameter {recipe.parameter}"
    parameter = parameters[recipe.parameter]
    if parameter.kind != "array" or parameter.dtype != recipe.dtype:
        return f"parameter {recipe.parameter} is no array of {recipe.dtype}"
    if not 1 <= parameter.rank <= MOST_RANK:
        return f"an array of {parameter.rank} dimensions has no tensor map"
    if sorted(recipe.dims) != list(range(parameter.rank)):
        return f"expected each of {parameter.rank} dimensions once, found {recipe.dims}"
    if parameter.strides[recipe.dims[0]] != 1:
        return f"dimension {recipe.dims[0]} does not have stride 1"
    boxed = parameter.rank if recipe.im2col is None else 2
    if len(recipe.box) != boxed or not all(1 <= b <= MOST_BOX for b in recipe.box):
        return f"expected {boxed} box sizes of 1 to {MOST_BOX}, found {recipe.box}"
    if recipe.im2col is not None and (wrong := _wrong_im2col(recipe.im2col, parameters, parameter)):
        return wrong
    inner = recipe.box[0] * ELEMENT_BYTES[recipe.dtype]
    if recipe.swizzle not in (0, *SWIZZLE_BITS):
        return f"expected a swizzle of {(0, *SWIZZLE_BITS)}, found {recipe.swizzle}"
    if inner % VECTOR_BYTES or (recipe.swizzle and inner > recipe.swizzle):
        return f"a box of {inner} bytes along the row under a swizzle of {recipe.swizzle}"
    return None


def _wrong_im2col(
    made: Im2col, parameters: Sequence[Parameter], parameter: Parameter
) -> str | None:
    rank = parameter.rank
    if rank not in IM2COL_CORNERS:
        return f"an array of {rank} dimensions has no im2col map"
    for name, values in (("extents", made.extents), ("corners", made.lower), ("steps", made.steps)):
        if len(values) != rank - 2:
            return f"expected {rank - 2} {name}, found {values}"
    most = IM2COL_CORNERS[rank]
    if any(abs(corner) > most for corner in made.lower):
        return f"expected corners of -{most} to {most}, found {made.lower}"
    if not all(1 <= step <= MOST_IM2COL_STEP for step in made.steps):
        return f"expected steps of 1 to {MOST_IM2COL_STEP}, found {made.steps}"
    compile_sizes(made.extents, tuple(parameters))
    return None


def _unfit(name: str, expected: str, found: str) -> ArgumentError:
    return ArgumentError(f"argument {name!r}: expected {expected} (tensor map), found {found}")
