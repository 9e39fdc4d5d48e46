"""Asynchronous copies between arrays and shared memory: cp.async, and the tensor memory
accelerator."""

from __future__ import annotations

from typing import Any

from tilec.language.builtin import builtin

__all__ = [
    "cp_async",
    "cp_async_arrive",
    "cp_async_commit",
    "cp_async_wait",
    "make_tensor_map",
    "tma_commit",
    "tma_load",
    "tma_store",
    "tma_wait",
    "warp_tma_store",
]


@builtin
def cp_async(
    src: Any,
    dst: Any,
    offsets: Any,
    mask: Any = True,
    dims: Any = None,
    bytes: int = 16,
    cache: str | None = None,
) -> Any:
    """All threads start to copy the tile of the array `src` at `offsets` into the buffer `dst`.

    Zeros where the tile lies outside the array; nothing but zeros where `mask`, a scalar condition,
    is false. `offsets`, `dims` as `tl.load`. `bytes`: of one copy, 4, 8 or 16, to which source and
    buffer must be aligned. `cache`: "cg" bypasses L1 and needs 16 bytes, "ca" does not; None takes
    "cg" where it can.
    """


@builtin
def cp_async_commit() -> Any:
    """Closes this thread's group of copies; an empty group counts, too."""


@builtin
def cp_async_wait(pending: int = 0) -> Any:
    """Waits until at most `pending` of this thread's groups are unfinished.

    Other threads' copies are there after a `sync` behind it.
    """


@builtin
def cp_async_arrive(barrier: Any, slot: Any) -> Any:
    """Each thread arrives at `barrier[slot]` once its copies so far are done."""


@builtin
def make_tensor_map(array: Any, box: Any, dims: Any = None, swizzle: str = "128B") -> Any:
    """Describes an array to the copy engine; the launcher encodes it.

    `box`: elements per tile dimension that one copy moves, at most 256 each. `dims`: the array
    dimension each runs along, the last ones if None. `swizzle`: "none", "32B", "64B" or "128B", as
    the buffer's layout; the contiguous box dimension must not exceed it. A buffer may be several
    boxes: its panels.
    """


@builtin
def tma_load(
    map: Any, dst: Any, barrier: Any, slot: Any, coordinates: Any, cache: str = "normal"
) -> Any:
    """Starts to fill the buffer `dst` from the array at `coordinates`, zeros outside it.

    One element coordinate per array dimension. The bytes of the whole buffer arrive at
    `barrier[slot]`: announce them with `barrier_expect`. One thread of the role issues it. `cache`:
    "normal", "evict_first" or "evict_last".
    """


@builtin
def tma_store(src: Any, map: Any, coordinates: Any, combine: str = "none") -> Any:
    """Starts to write the buffer `src` to the array at `coordinates`.

    What lies outside is left out. Before it: `fence("async_shared")` by the threads that wrote the
    buffer, then a `sync`. One thread issues it; it belongs to that thread's next `tma_commit`.
    `combine`: "none" overwrites; "add", "min", "max" combine with what is there.
    """


@builtin
def tma_commit() -> Any:
    """Closes the issuing thread's group of stores."""


@builtin
def tma_wait(pending: int = 0, read: bool = True) -> Any:
    """The issuing thread waits until at most `pending` of its groups of stores are unfinished.

    `read`: until their buffers were read and may be reused; else until the array has the data.
    """


@builtin
def warp_tma_store(tile: Any, buffer: Any, map: Any, coordinates: Any, pending: int = 0) -> Any:
    """Each warp writes what it holds of a tile to the array at `coordinates`, by its own stores.

    A warp waits until at most `pending` of its groups of stores still read their buffers, fills its
    part of `buffer`, and its first lane starts the copies as one group: no other warp is waited
    for. A warp holds whole boxes of the map. `tma_wait` stands before the kernel's end.
    """
