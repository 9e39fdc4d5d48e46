"""Register layouts in which warps reach a whole buffer in tensor memory."""

from __future__ import annotations

from functools import lru_cache
from math import prod

from tilec.hardware.layout import Layout, Mode, normalize
from tilec.hardware.tensor_memory import Part, TensorMemoryLayout

_WARPS = (4, 8)
"""One or two warpgroups: more would share 32 lanes by columns, which nothing here asks for."""


@lru_cache(maxsize=256)
def rows_layout(memory: TensorMemoryLayout, warps: int) -> Layout:
    """Each thread has a lane's elements, or, of lanes of which 16 in 32 are used, half of them.

    Threads 32 w to 32 w + 31 are the w-th warp, which reaches lanes 32 (w % 4) on (PTX ISA 9.0,
    "tcgen05.ld"); of 8 warps the second four take the other half of the columns, or of the blocks.
    ValueError where the layout has other lanes, or an odd number of columns.
    """
    if warps not in _WARPS:
        raise ValueError(f"4 or 8 warps reach all of tensor memory, found {warps}")
    lanes, columns = _modes(memory)
    missing = [bit for bit in range(7) if 1 << bit not in lanes]
    if missing not in ([], [4]):
        raise ValueError(f"{memory} does not use all lanes, or 16 of every 32")
    for _ in range(len(missing) + (warps == 8)):
        last = columns[-1]
        if last.size % 2:
            raise ValueError(f"{memory}: {last.size} columns are not shared by two")
        half = Mode(2, last.size // 2 * last.stride, last.dim)
        columns[-1] = Mode(last.size // 2, last.stride, last.dim)
        lanes[16 if 16 not in lanes else 128] = half
    threads = tuple(lanes[bit] for bit in sorted(lanes))
    return normalize(Layout(threads, tuple(columns)))


def _modes(memory: TensorMemoryLayout) -> tuple[dict[int, Mode], list[Mode]]:
    """Per power of two of lanes the mode of the tile that steps so far; the modes along columns."""
    lanes: dict[int, Mode] = {}
    columns: list[tuple[Part, Mode]] = []
    for dim, parts in enumerate(memory.dims):
        for number, part in enumerate(parts):
            stride = prod(p.size for p in parts[:number])
            if not part.lanes:
                columns.append((part, Mode(part.size, stride, dim)))
                continue
            if part.size & (part.size - 1):
                raise ValueError(f"{memory}: {part.size} lanes are not shared by warps")
            for bit in range(part.size.bit_length() - 1):
                lanes[part.lanes << bit] = Mode(2, stride << bit, dim)
    columns.sort(key=lambda each: each[0].bits)
    return lanes, [mode for _, mode in columns]
