"""What is known of arguments: observed once to specialise a kernel, checked before every launch.

A fact is coarse on purpose, so that few specialisations serve many calls: a pointer is a multiple
of 16 bytes or of its element, a stride spans a multiple of 16, 8 or 4 bytes or is anything, and so
does the length of a row; another size, as a number of tokens, which differs from call to call, one
of 16 bytes or anything. A stride of 1 is known as such, and indices fit 32 bits or take 64.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import gcd
from typing import Any

from tilec.executable.grid import compile_sizes
from tilec.executable.held_axes import held_size
from tilec.executable.kernel import INDEX_LIMIT_32, CompiledKernel, Facts, Grid, Parameter
from tilec.hardware.sizes import VECTOR_BYTES, WORD_BYTES
from tilec.runtime.array_list import ArrayList
from tilec.runtime.arrays import ArrayView
from tilec.runtime.errors import ArgumentError
from tilec.runtime.tensor_maps import kernel_map
from tilec.terms.dtypes import ELEMENT_BYTES


def observe_parameter(name: str, array: ArrayView) -> Parameter:
    """The parameter a kernel is specialised to for `array`: sizes at run time, unit strides fixed.

    Equal parameters mean that one specialisation serves both arrays (see also `index_bits`).
    """
    return Parameter(
        name,
        "array",
        array.dtype,
        sizes=(None,) * len(array.shape),
        strides=tuple(
            1 if axis in unit_axes(array.shape, array.strides) else None
            for axis in range(array.ndim)
        ),
        facts=observe(array),
    )


def observe_list(name: str, kind: str, arrays: ArrayList) -> Parameter:
    """The parameter a kernel is specialised to for a list: what `observe_parameter` says of each of
    its arrays, where that is the same."""
    common = arrays.common
    bytes_ = ELEMENT_BYTES[common.dtype]
    facts = Facts(
        align=VECTOR_BYTES if common.align % VECTOR_BYTES == 0 else bytes_,
        sizes=_size_divisors(common.size_divisors, common.strides, bytes_),
        strides=tuple(_divisor(known, bytes_, WORD_BYTES) for known in common.stride_divisors),
    )
    return Parameter(
        name,
        kind,
        common.dtype,
        sizes=(None,) * len(common.sizes),
        strides=tuple(1 if stride == 1 else None for stride in common.strides),
        facts=facts,
    )


def unit_axes(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """The axes whose stride counts as 1: of those that lead anywhere all with that stride, and
    where there is none, one that leads nowhere, so that its stride may be any.

    A row of a column-major matrix, or a column, has stride 1 twice. Both as facts would tell the
    copy engine of rows that begin an element apart.
    """
    used = _used_strides(shape)
    units = tuple(axis for axis, stride in enumerate(strides) if stride == 1)
    leading = tuple(axis for axis in units if used[axis])
    spare = [axis for axis in range(len(shape)) if not used[axis]]
    return leading or units[-1:] or tuple(spare[-1:])


def observe(array: ArrayView) -> Facts:
    """The facts of one array, in buckets: alignment in bytes, divisors in elements.

    Of a negative stride nothing is told, so that what cannot walk backwards is not chosen for it.
    """
    bytes_ = array.element_bytes
    return Facts(
        align=bytes_ if array.pointer % VECTOR_BYTES else VECTOR_BYTES,
        sizes=_size_divisors(array.shape, array.strides, bytes_),
        strides=tuple(
            1 if is_used and stride < 0 else _divisor(is_used * stride, bytes_, WORD_BYTES)
            for stride, is_used in zip(array.strides, _used_strides(array.shape), strict=True)
        ),
    )


def _size_divisors(
    sizes: Sequence[int], strides: Sequence[int | None], element_bytes: int
) -> tuple[int, ...]:
    """What sizes are told to be multiples of; finer of rows, whose end a vector must not cross."""
    return tuple(
        _divisor(size, element_bytes, WORD_BYTES if stride == 1 else VECTOR_BYTES)
        for size, stride in zip(sizes, strides, strict=True)
    )


def _divisor(number: int, element_bytes: int, least_bytes: int) -> int:
    """The elements that a number of them is told to be a multiple of: what divides it and a vector,
    1 where that is less than `least_bytes`."""
    divisor = gcd(number, VECTOR_BYTES // element_bytes)
    return divisor if divisor * element_bytes >= least_bytes else 1


def index_bits(arrays: Iterable[ArrayView]) -> int:
    """32 if all sizes and all offsets in bytes are below `INDEX_LIMIT_32`, else 64."""
    return 32 if all(_fits_32(array) for array in arrays) else 64


def check(kernel: CompiledKernel, arguments: Mapping[str, Any]) -> None:
    """ArgumentError, naming the argument, unless every array fits what `kernel` was compiled for.

    `arguments`: an ArrayView per array parameter, by name; others are not looked at.
    """
    for parameter in kernel.parameters:
        if parameter.has_memory:
            argument = arguments[parameter.name]
            if parameter.is_list:
                check_list(parameter, argument)
            else:
                check_array(parameter, argument, parameter.name in (kernel.writes or ()))
            if kernel.index_bits == 32 and not _fits_32(arguments[parameter.name]):
                array = arguments[parameter.name]
                raise _mismatch(
                    parameter,
                    "less than 2 GiB (32-bit indices)",
                    f"shape {array.shape}, strides {array.strides} of {array.dtype}",
                )
    _check_limits(kernel, arguments)
    for tensor_map in kernel.tensor_maps:
        kernel_map(kernel, tensor_map, [arguments.get(p.name) for p in kernel.parameters])


def check_programs(kernel: CompiledKernel, grid: Grid) -> None:
    """ArgumentError for a grid that a kernel's 32-bit indices do not reach."""
    if kernel.counts(grid) > kernel.most_programs:
        raise ArgumentError(
            f"kernel {kernel.name}: a grid of {kernel.counts(grid)} programs"
            f"{'' if kernel.persistent else ' along x'}; its 32-bit indices reach "
            f"{kernel.most_programs}"
        )


def reaches(kernel: CompiledKernel, arguments: Mapping[str, Any], grid: Grid | None = None) -> bool:
    """Whether a kernel's indices hold what it computes of the shapes of arguments, and of the ids
    of programs where the grid is known."""
    if grid is not None and kernel.counts(grid) > kernel.most_programs:
        return False
    return _beyond(kernel, arguments) is None


def _check_limits(kernel: CompiledKernel, arguments: Mapping[str, Any]) -> None:
    found = _beyond(kernel, arguments)
    if found is not None:
        text, size, most = found
        held = held_size(text)
        why = f"{text} is {size}; its 32-bit indices reach {most}"
        if held is not None:
            why = f"{held} is beyond the 1 to {most} elements that a tile of it keeps"
        raise ArgumentError(f"kernel {kernel.name}: {why}")


def _beyond(kernel: CompiledKernel, arguments: Mapping[str, Any]) -> tuple[str, int, int] | None:
    """The first limit that arguments break: the expression, its value and what that may be."""
    if not kernel.limits:
        return None
    texts = tuple(text for text, _ in kernel.limits)
    shapes = [getattr(arguments.get(p.name), "shape", None) for p in kernel.parameters]
    try:
        sizes = compile_sizes(texts, kernel.parameters)(shapes)
    except ZeroDivisionError:  # the kernel divides, too, and gets some number
        return None
    for (text, most), size in zip(kernel.limits, sizes, strict=True):
        if abs(size) > most:
            return text, size, most
    return None


def check_array(parameter: Parameter, array: ArrayView, is_written: bool = False) -> None:
    """Checks dtype, rank, compile-time sizes and strides, and facts of one argument, and that what
    is written has memory for each element, unless its memory is known: then its dimensions are how
    a kernel of pointers walks, and a number that is 0 may be among what it multiplies."""
    is_view = is_written and array.memory is None
    if array.dtype != parameter.dtype:
        raise _mismatch(parameter, f"dtype {parameter.dtype}", array.dtype)
    if len(array.shape) != parameter.rank:
        raise _mismatch(
            parameter, f"{parameter.rank} dimensions", f"{len(array.shape)} (shape {array.shape})"
        )
    facts = parameter.facts
    if array.pointer % facts.align:
        where = f"address {array.pointer:#x}"
        raise _mismatch(parameter, f"a pointer that is a multiple of {facts.align} bytes", where)
    every = (True,) * parameter.rank
    for what, found, fixed, divisors, used in (
        ("size", array.shape, parameter.sizes, facts.sizes, every),
        ("stride", array.strides, parameter.strides, facts.strides, _used_strides(array.shape)),
    ):
        for axis, (value, expected) in enumerate(zip(found, fixed, strict=True)):
            if not used[axis]:
                continue
            if is_view and what == "stride" and value == 0:
                where = f"stride 0 on axis {axis} of size {array.shape[axis]}, a broadcast view"
                raise _mismatch(parameter, "memory for each element that is written", where)
            divisor = divisors[axis] if axis < len(divisors) else 1
            if expected is not None and value != expected:
                raise _mismatch(parameter, f"{what} {expected} on axis {axis}", str(value))
            if value % divisor:
                text = f"a {what} on axis {axis} that is a multiple of {divisor}"
                raise _mismatch(parameter, text, str(value))


def _used_strides(shape: Sequence[int]) -> tuple[bool, ...]:
    """Which strides lead anywhere: not that of an axis of size 1, and none of an empty array.

    NumPy and torch do leave odd values there.
    """
    return tuple(size > 1 and 0 not in shape for size in shape)


def check_list(parameter: Parameter, arrays: ArrayView) -> None:
    """Checks the same of each array of a list."""
    if not isinstance(arrays, ArrayList):
        raise _mismatch(parameter, "a list of arrays", "an array")
    common, facts = arrays.common, parameter.facts
    if common.dtype != parameter.dtype:
        raise _mismatch(parameter, f"arrays of dtype {parameter.dtype}", common.dtype)
    if len(common.sizes) != parameter.rank:
        raise _mismatch(parameter, f"arrays of rank {parameter.rank}", str(len(common.sizes)))
    if common.align % facts.align:
        least = f"pointers that are multiples of {facts.align} bytes"
        raise _mismatch(parameter, least, f"multiples of {common.align}")
    for what, found, fixed, known, divisors in (
        ("size", common.sizes, parameter.sizes, common.size_divisors, facts.sizes),
        ("stride", common.strides, parameter.strides, common.stride_divisors, facts.strides),
    ):
        for axis, expected in enumerate(fixed):
            if known[axis] == 0 and what == "stride":  # none leads anywhere
                continue
            divisor = divisors[axis] if axis < len(divisors) else 1
            if expected is not None and found[axis] != expected:
                other = "others" if found[axis] is None else str(found[axis])
                raise _mismatch(parameter, f"{what} {expected} on axis {axis} of each", other)
            if known[axis] % divisor:
                text = f"{what}s on axis {axis} that are multiples of {divisor}"
                raise _mismatch(parameter, text, f"multiples of {known[axis]}")


def _fits_32(array: ArrayView) -> bool:
    if isinstance(array, ArrayList):
        return array.common.fits_32
    low, high = array.extent()
    return high - low < INDEX_LIMIT_32 and all(size < INDEX_LIMIT_32 for size in array.shape)


def _mismatch(parameter: Parameter, expected: str, found: str) -> ArgumentError:
    return ArgumentError(f"argument {parameter.name!r}: expected {expected}, found {found}")
