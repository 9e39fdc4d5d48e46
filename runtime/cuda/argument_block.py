"""Where a kernel's arguments lie in the memory that the driver reads them from.

One block of memory holds, for one thread and one set of shapes:

    pointers, then scalars | sizes and strides | the grid of a persistent kernel
    | workspaces | address of each argument, in the kernel's order | tensor maps

Sizes, strides and addresses are written when the block is made. A launch packs pointers and
scalars, which lie side by side for that, in one call, and passes the address of the addresses.
Tensor maps are written where a pointer has changed (see `tensor_map`).
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tilec.executable.grid import Grid
from tilec.executable.kernel import TENSOR_MAP_BYTES, WORD_BYTES, AbiSlot, CompiledKernel
from tilec.records import dataclass
from tilec.runtime.scalars import ENCODERS, index_argument
from tilec.terms.dtypes import BY_MLIR

_GRID = struct.Struct("3i")
MAP_ALIGNMENT = 64
"""Of an encoded tensor map (CUDA driver API, CUtensorMap)."""


class ArgumentBlock(NamedTuple):
    """The memory, the address of the arguments' addresses in it, and the byte of the first map.

    `memory`: a view of bytes, which `struct` packs into sooner than into an object of ctypes.
    """

    memory: memoryview
    address: int
    maps_start: int


@dataclass(frozen=True)
class ArgumentLayout:
    """The block of one kernel, for any shapes.

    `pack(block, 0, *pointers, *scalars)` writes the arguments that change. `indices` are the slots
    of sizes and strides, written by `pack_indices` at byte `indices_start`; `places` has the byte
    offset of each argument but the tensor maps in the kernel's order, `table_start` that of their
    addresses. `grid_start`: the byte of a persistent kernel's grid, three i32;
    `workspaces_start`: that of the addresses of workspaces. `size`: with `maps` tensor maps.
    """

    pack: Callable[..., None]
    indices: tuple[AbiSlot, ...]
    pack_indices: Callable[..., None]
    indices_start: int
    grid_start: int
    workspaces_start: int
    places: tuple[int, ...]
    pack_table: Callable[..., None]
    table_start: int
    maps: int
    size: int

    def write_grid(self, memory: Any, grid: Grid) -> None:
        """Writes the grid of a persistent kernel into a block."""
        _GRID.pack_into(memory, self.grid_start, *grid)

    def write_workspaces(self, memory: Any, pointers: Sequence[int]) -> None:
        """Writes the addresses of a kernel's workspaces into a block."""
        struct.pack_into(f"{len(pointers)}Q", memory, self.workspaces_start, *pointers)

    def make_block(self, arguments: Sequence[Any]) -> ArgumentBlock:
        """A block for arrays of these shapes; its maps are not written yet.

        `arguments`: an ArrayView or a number a parameter; only shapes and strides are read.
        """
        memory = ctypes.create_string_buffer(self.size)
        block, base = memoryview(memory).cast("B"), ctypes.addressof(memory)
        table_end = base + self.table_start + 8 * (len(self.places) + self.maps)
        maps_start = _round_up(table_end, MAP_ALIGNMENT) - base
        places = [*self.places, *(maps_start + TENSOR_MAP_BYTES * n for n in range(self.maps))]
        self.pack_indices(block, self.indices_start, *(_index(s, arguments) for s in self.indices))
        self.pack_table(block, self.table_start, *(base + place for place in places))
        return ArgumentBlock(block, base + self.table_start if places else 0, maps_start)


def lay_out(kernel: CompiledKernel) -> ArgumentLayout:
    """The layout of a kernel's argument block."""
    maps = len(kernel.tensor_maps)
    slots = kernel.abi()[: len(kernel.abi()) - maps]
    changing, changing_offsets = _changing(kernel)
    indices = tuple(slot for slot in slots if slot.field in ("size", "stride"))
    index_bytes = kernel.index_bits // 8
    indices_start = _round_up(struct.calcsize(changing))
    grid_start = indices_start + index_bytes * len(indices)
    workspaces_start = _round_up(grid_start + (_GRID.size if kernel.persistent else 0))
    index_places = iter(range(indices_start, grid_start, index_bytes))

    def place(slot: AbiSlot) -> int:
        if slot.field == "grid":
            return grid_start + _GRID.size // 3 * slot.axis
        if slot.field == "workspace":
            return workspaces_start + WORD_BYTES * slot.axis
        return next(index_places) if slot in indices else changing_offsets[slot.parameter]

    places = tuple(place(slot) for slot in slots)
    table_start = workspaces_start + WORD_BYTES * len(kernel.workspaces)
    return ArgumentLayout(
        _packer(kernel, changing),
        indices,
        struct.Struct(f"{len(indices)}{'q' if index_bytes == 8 else 'i'}").pack_into,
        indices_start,
        grid_start,
        workspaces_start,
        places,
        struct.Struct(f"{len(slots) + maps}Q").pack_into,
        table_start,
        maps,
        max(table_start + 8 * (len(slots) + maps), 8)
        + (MAP_ALIGNMENT + TENSOR_MAP_BYTES * maps if maps else 0),
    )


def _changing(kernel: CompiledKernel) -> tuple[str, dict[int, int]]:
    """The `struct` format of pointers and scalars, and the byte offset of each parameter in it."""
    text = ""
    offsets: dict[int, int] = {}
    for kind in ("array", "scalar"):
        for number, parameter in enumerate(kernel.parameters):
            if parameter.has_memory == (kind == "array"):
                code = "Q" if kind == "array" else BY_MLIR[parameter.dtype].packed
                text += code
                # Native alignment pads before an item, so it ends where the format so far ends.
                offsets[number] = struct.calcsize(text) - struct.calcsize(code)
    return text, offsets


def _packer(kernel: CompiledKernel, changing: str) -> Callable[..., None]:
    pack_into = struct.Struct(changing).pack_into
    arrays = sum(parameter.has_memory for parameter in kernel.parameters)
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


def _index(slot: AbiSlot, arguments: Sequence[Any]) -> int:
    array = arguments[slot.parameter]
    return index_argument(
        slot.dtype, (array.shape if slot.field == "size" else array.strides)[slot.axis]
    )


def _round_up(size: int, step: int = 8) -> int:
    return -(-size // step) * step
