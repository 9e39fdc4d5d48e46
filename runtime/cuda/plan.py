"""Launch plans: everything of a launch that stays the same while shapes and strides do.

A plan owns one block of memory that the driver reads its arguments from:

    pointers, then scalars | sizes and strides | address of each argument, in the kernel's order

The second and third part are written when the plan is made. A launch packs the first part, in one
call, and passes the address of the third. A block belongs to one thread, because the driver reads
it while no lock is held.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tilec.kernel import CompiledKernel
from tilec.runtime.arrays import ArrayView
from tilec.runtime.cuda.driver import cuda_error
from tilec.runtime.cuda.module import LoadedKernel
from tilec.runtime.scalars import ENCODERS, FORMATS

GridOfScalars = Callable[[Sequence[Any]], tuple[int, int, int]]


class Plan(NamedTuple):
    """What a launch needs besides pointers and scalars, in the order the fast path unpacks it.

    `pack(block, 0, *pointers, *scalars)` writes the changing arguments; `arguments` is the address
    given to the driver. `grid_of_scalars`: gives the grid where it depends on scalars, else None.
    """

    function: int
    x: int
    y: int
    z: int
    threads: int
    shared_bytes: int
    block: Any
    pack: Callable[..., None]
    arguments: int
    device_index: int
    grid_of_scalars: GridOfScalars | None
    loaded: LoadedKernel


def make_plan(
    loaded: LoadedKernel,
    arguments: Sequence[Any],
    grid: tuple[int, int, int],
    grid_of_scalars: GridOfScalars | None = None,
) -> Plan:
    """A plan for arrays of these shapes. `arguments`: an ArrayView or a number a parameter."""
    kernel = loaded.kernel
    changing, offsets = _changing_format(kernel)
    block, addresses = _fill_block(kernel, arguments, struct.calcsize(changing), offsets)
    return Plan(
        loaded.function,
        *grid,
        kernel.threads,
        kernel.shared_bytes,
        block,
        _packer(kernel, changing),
        addresses,
        loaded.context.index,
        grid_of_scalars,
        loaded,
    )


def changing_values(arguments: Sequence[Any]) -> tuple[list[int], list[Any]]:
    """The pointers and the scalars of `arguments`, in order: what `Plan.pack` takes."""
    pointers = [value.pointer for value in arguments if isinstance(value, ArrayView)]
    scalars = [value for value in arguments if not isinstance(value, ArrayView)]
    return pointers, scalars


def start_plan(plan: Plan, grid: tuple[int, int, int], stream: int) -> None:
    """Launches a packed plan in its own context. CudaError says what and how it was launched."""
    if not all(grid):
        return
    context = plan.loaded.context
    with context.entered():
        (result,) = context.driver.cuLaunchKernel(
            plan.function,
            *grid,
            plan.threads,
            1,
            1,
            plan.shared_bytes,
            stream,
            plan.arguments,
            0,
        )
    if result:
        kernel = plan.loaded.kernel
        raise cuda_error(
            result,
            f"launching {kernel.name} on cuda:{context.index}, grid {grid}, "
            f"{plan.threads} threads, {plan.shared_bytes} bytes of shared memory",
        )


def _changing_format(kernel: CompiledKernel) -> tuple[str, dict[int, int]]:
    """The `struct` format of pointers and scalars, and the byte offset of each parameter in it."""
    text = ""
    offsets: dict[int, int] = {}
    for kind in ("array", "scalar"):
        for number, parameter in enumerate(kernel.parameters):
            if parameter.kind == kind:
                code = "Q" if kind == "array" else FORMATS[parameter.dtype]
                text += code
                # Native alignment pads before an item, so it ends where the format so far ends.
                offsets[number] = struct.calcsize(text) - struct.calcsize(code)
    return text, offsets


def _packer(kernel: CompiledKernel, changing: str) -> Callable[..., None]:
    pack_into = struct.Struct(changing).pack_into
    arrays = sum(parameter.kind == "array" for parameter in kernel.parameters)
    scalars = [p.dtype for p in kernel.parameters if p.kind == "scalar"]
    if not any(dtype in ENCODERS for dtype in scalars):
        return pack_into
    encoders: list[Callable[[Any], Any]] = [_unchanged] * arrays
    encoders += [ENCODERS.get(dtype, _unchanged) for dtype in scalars]

    def pack(block: Any, offset: int, *values: Any) -> None:
        pack_into(block, offset, *(encode(v) for encode, v in zip(encoders, values, strict=True)))

    return pack


def _unchanged(value: Any) -> Any:
    return value


def _fill_block(
    kernel: CompiledKernel, arguments: Sequence[Any], changing_bytes: int, offsets: dict[int, int]
) -> tuple[Any, int]:
    """The block with sizes, strides and addresses written, and the address of the addresses."""
    index_bytes = kernel.index_bits // 8
    index_format = "q" if index_bytes == 8 else "i"
    slots = kernel.abi()
    indices = -(-changing_bytes // 8) * 8
    table = indices + 8 * len(slots)
    block = ctypes.create_string_buffer(max(table + 8 * len(slots), 64))
    base = ctypes.addressof(block)
    for number, slot in enumerate(slots):
        if slot.field in ("pointer", "value"):
            place = offsets[slot.parameter]
        else:
            array = arguments[slot.parameter]
            values = array.shape if slot.field == "size" else array.strides
            place = indices
            indices += index_bytes
            struct.pack_into(index_format, block, place, values[slot.axis])
        struct.pack_into("Q", block, table + 8 * number, base + place)
    return block, base + table if slots else 0
