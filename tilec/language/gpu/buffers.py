"""Buffers in shared and tensor memory, and tiles with a layout.

A parameter named as an operand or attribute of the op is passed on to it: see
`tilec.dialects.gpu_tile`.
"""

from __future__ import annotations

from typing import Any

from tilec.language.builtin import builtin

__all__ = [
    "alloc",
    "alloc_tensor_memory",
    "buffer_count",
    "buffer_gather",
    "buffer_load",
    "buffer_store",
    "convert_layout",
    "full",
    "load",
    "slot",
    "transpose_view",
    "view",
    "zeros",
]


@builtin
def alloc(shape: Any, dtype: Any, shared: Any, slots: int | None = None) -> Any:
    """A buffer in shared memory; with `slots` a ring of that many.

    `shape`: constants, the shape of one slot. `shared`: where each element lies, from
    `gpu.shared`, `gpu.swizzled` or `gpu.padded`, for the same shape. Buffers of an explicit kernel
    never share memory. A buffer has `shape`, `dtype`, `slots` and the methods `slot`, `view`,
    `load`, `store`.
    """


@builtin
def alloc_tensor_memory(shape: Any, dtype: Any, memory: Any, slots: int | None = None) -> Any:
    """A buffer in tensor memory; with `slots` a ring of that many.

    `shape`: constants, the shape of one slot. `memory`: in which lane and column each element
    lies, from `gpu.tensor_memory` or `gpu.tensor_layout`, for the same shape. The kernel takes the
    columns of all such buffers at its start and returns them at its end. What a buffer in shared
    memory has, it has, too; threads write and read it in the lanes of their warp only.
    """


@builtin
def slot(src: Any, index: Any) -> Any:
    """One slot of a ring, by an integer scalar (`ring_position`); also `src.slot(index)`."""


@builtin
def view(src: Any, offsets: Any, shape: Any) -> Any:
    """A sub-tile of a buffer; also `src.view(offsets, shape)`.

    `offsets`: one element offset per dimension, constants or scalars. `shape`: constants. The
    layout stays the buffer's, so under a swizzle offsets are multiples of 16 bytes along the
    contiguous dimension.
    """


@builtin
def transpose_view(src: Any, permutation: Any = (1, 0)) -> Any:
    """A buffer with its dimensions permuted, in place; also `src.permute((1, 0))`.

    Dimension i is dimension permutation[i] of `src`.
    """


@builtin
def buffer_load(src: Any, layout: Any) -> Any:
    """Reads a whole buffer (or view) into registers of `layout`; also `src.load(layout)`.

    The two layouts choose between ld.shared and ldmatrix, transposed or not.
    """


@builtin
def buffer_store(dst: Any, value: Any) -> Any:
    """Writes a tile into a buffer (or view) of its shape and dtype; also `dst.store(value)`."""


@builtin
def buffer_gather(src: Any, indices: Any, axis: int) -> Any:
    """Per element of `indices` the buffer's element with that coordinate along `axis`.

    `indices`: an integer tile with a layout, which the result has, too. An index outside gives an
    unspecified element.
    """


@builtin
def buffer_count(values: Any, mask: Any, dst: Any) -> None:
    """Adds 1, atomically, to element j of a row of `dst` for each element of `values` that is j.

    `dst` holds i32 and has a row for each warp, or one for all; `values` (integers) and `mask` (i1)
    have one layout. What is masked off or outside the row is not counted.
    """


@builtin
def convert_layout(src: Any, layout: Any) -> Any:
    """The same tile in another layout, or the layout of a tile that has none yet.

    `tl.zeros`, `tl.full`, `tl.arange` and what is computed from them and from numbers have none and
    take that of what they meet. Between two layouts elements move inside a thread, or by shuffles
    inside a warp; what crosses warps is written out: `store` to a buffer, `sync`, `load`.
    """


@builtin
def load(
    array: Any,
    offsets: Any,
    shape: Any,
    layout: Any,
    dims: Any = None,
    padding: Any = 0,
    cache: Any = None,
) -> Any:
    """`tl.load` into registers of `layout`."""


@builtin
def full(shape: Any, value: Any, dtype: Any, layout: Any) -> Any:
    """`tl.full` in registers of `layout`."""


@builtin
def zeros(shape: Any, dtype: Any, layout: Any) -> Any:
    """`tl.zeros` in registers of `layout`."""
