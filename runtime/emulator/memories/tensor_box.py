"""Boxes of tensors in global memory: what a tensor copy reads, stores or reduces into."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tilec.runtime.emulator.errors import EmulatorError
from tilec.runtime.emulator.memories.swizzle import swizzle_chunks
from tilec.runtime.emulator.memories.tensor_map import TensorMap


@lru_cache(maxsize=512)
def box_chunks(start: int, count: int, width: int, pitch: int, swizzle: int) -> np.ndarray:
    """Chunk numbers of a box of `count` chunks in rows of `width`, which lie `pitch` apart."""
    rows, columns = np.divmod(np.arange(count), width)
    return swizzle_chunks(start + rows * pitch + columns, swizzle)


def _stored_dims(tensor_map: TensorMap) -> tuple[int, ...]:
    """What a store takes for inside: an H200 writes the whole 16 bytes where a row ends."""
    inner, *outer = tensor_map.dims
    granule = 16 // tensor_map.itemsize
    return (-(-inner // granule) * granule, *outer)


def _overlap(
    tensor_map: TensorMap, dims: tuple[int, ...], corner: tuple[int, ...]
) -> tuple[tuple[slice, ...], tuple[slice, ...], bool]:
    """Slices (outermost dimension first) of the tensor and of the box, and whether any is empty."""
    outer, inner = [], []
    empty = False
    for size, box, first in zip(dims, tensor_map.box, corner, strict=True):
        low, high = max(first, 0), min(first + box, size)
        empty |= low >= high
        outer.append(slice(low, high))
        inner.append(slice(low - first, high - first))
    return tuple(outer[::-1]), tuple(inner[::-1]), empty


def _tensor_view(
    tensor_map: TensorMap, dims: tuple[int, ...], memory: np.ndarray, start: int
) -> np.ndarray:
    """The tensor as an array, outermost dimension first, of unsigned elements."""
    size = tensor_map.itemsize
    dtype = np.dtype(f"u{size}")
    strides = (*tensor_map.strides[::-1], size)
    reach = sum((d - 1) * s for d, s in zip(dims[::-1], strides, strict=True)) + size
    flat = memory[start : start + reach]
    if flat.size < reach:
        raise EmulatorError("the tensor map reaches beyond memory", None, "out of bounds")
    return np.lib.stride_tricks.as_strided(
        memory[start:].view(np.uint8)[: reach // size * size].view(dtype)
        if start % size == 0
        else np.frombuffer(memory.data, dtype, offset=start),
        dims[::-1],
        strides,
    )


def box_offsets(
    tensor_map: TensorMap, start: int, corner: tuple[int, ...], stored: bool, piece: int
) -> np.ndarray:
    """Arena offsets of the pieces of `piece` bytes that a load, or a store, touches of a box."""
    if tensor_map.im2col is not None:
        return _im2col_pieces(tensor_map, start, corner, piece)
    dims = _stored_dims(tensor_map) if stored else tensor_map.dims
    outer, _, empty = _overlap(tensor_map, dims, corner)
    if empty:
        return np.zeros(0, np.int64)
    *rows, inner = outer
    size = tensor_map.itemsize
    offsets = start + np.arange(inner.start * size, inner.stop * size, min(piece, size))
    offsets = offsets[:: max(piece // size, 1)]
    for dim, stride in zip(rows[::-1], tensor_map.strides, strict=True):
        offsets = (np.arange(dim.start, dim.stop) * stride)[:, None] + offsets.reshape(1, -1)
    return offsets.reshape(-1)


def read_box(
    tensor_map: TensorMap, memory: np.ndarray, start: int, corner: tuple[int, ...]
) -> np.ndarray:
    """The box as 16-byte rows; elements out of bounds are 0 or NaN.

    memory: up to the end of the tensor's allocation; EmulatorError if what is read of the tensor
    reaches beyond. The tensor itself may: of a dimension without bounds nobody knows how much is
    there.
    """
    if tensor_map.im2col is not None:
        return _read_im2col(tensor_map, memory, start, corner)
    box = np.zeros(tensor_map.box[::-1], f"u{tensor_map.itemsize}")
    if tensor_map.nan_fill:
        box[...] = np.iinfo(box.dtype).max
    outer, inner, empty = _overlap(tensor_map, tensor_map.dims, corner)
    if not empty:
        dims = tuple(min(a, s.stop) for a, s in zip(tensor_map.dims, outer[::-1], strict=True))
        box[inner] = _tensor_view(tensor_map, dims, memory, start)[outer]
    return box.reshape(-1).view(np.complex128)


def _im2col_offsets(
    tensor_map: TensorMap, start: int, corner: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Byte offsets of a copy's elements, a row a position, and which lie inside the tensor.

    corner: coordinates and then the offsets of the copy. From its coordinates the copy walks
    through the bounding box, along W, then H, then D, then to the next image; offsets are added
    behind that (PTX ISA 5.5.5, "im2col mode").
    """
    im2col = tensor_map.im2col
    assert im2col is not None
    channels, positions = tensor_map.box
    rank = len(tensor_map.dims)
    channel, *at = corner[:rank]
    moved, found = corner[rank:], np.zeros((positions, rank - 1), np.int64)
    for position in range(positions):
        found[position] = [*(a + m for a, m in zip(at, moved, strict=False)), at[-1]]
        for d, (low, step) in enumerate(zip(im2col.lower, im2col.steps, strict=True)):
            at[d] += step
            if at[d] <= tensor_map.dims[1 + d] - 1 + im2col.upper[d]:
                break
            at[d] = low
        else:
            at[-1] += 1
    along = channel + np.arange(channels)
    inside = (along >= 0) & (along < tensor_map.dims[0])
    rows = np.all((found >= 0) & (found < tensor_map.dims[1:]), axis=1)
    offsets = (
        start + (found * tensor_map.strides).sum(axis=1)[:, None] + along * tensor_map.itemsize
    )
    return offsets, rows[:, None] & inside


def _im2col_pieces(
    tensor_map: TensorMap, start: int, corner: tuple[int, ...], piece: int
) -> np.ndarray:
    """As `box_offsets`."""
    offsets, inside = _im2col_offsets(tensor_map, start, corner)
    size = tensor_map.itemsize
    chosen = offsets[inside]
    if piece < size:
        return (chosen[:, None] + np.arange(0, size, piece)).reshape(-1)
    return np.unique(chosen // piece * piece)


def _read_im2col(
    tensor_map: TensorMap, memory: np.ndarray, start: int, corner: tuple[int, ...]
) -> np.ndarray:
    """As `read_box`."""
    offsets, inside = _im2col_offsets(tensor_map, start, corner)
    size = tensor_map.itemsize
    box = np.zeros(offsets.shape, f"u{size}")
    if tensor_map.nan_fill:
        box[...] = np.iinfo(box.dtype).max
    chosen = offsets[inside]
    if chosen.size and chosen.max() + size > memory.size:
        raise EmulatorError("the tensor map reaches beyond memory", None, "out of bounds")
    pieces = memory.view(np.uint8)[chosen[:, None] + np.arange(size)]
    box[inside] = np.ascontiguousarray(pieces).view(box.dtype)[:, 0]
    return box.reshape(-1).view(np.complex128)


def write_box(
    tensor_map: TensorMap, memory: np.ndarray, start: int, corner: tuple[int, ...],
    rows: np.ndarray, operation: str,
) -> None:  # fmt: skip
    """Store or reduce the box into the tensor; elements out of bounds are skipped.

    memory: up to the end of the tensor's allocation; EmulatorError if a store reaches beyond.
    """
    dims = tensor_map.dims if operation else _stored_dims(tensor_map)
    outer, inner, empty = _overlap(tensor_map, dims, corner)
    if empty:
        return
    box = rows.view(f"u{tensor_map.itemsize}").reshape(tensor_map.box[::-1])[inner]
    dims = tuple(min(a, s.stop) for a, s in zip(dims, outer[::-1], strict=True))
    view = _tensor_view(tensor_map, dims, memory, start)[outer]
    if not operation:
        view[...] = box
        return
    dtype = tensor_map.element_type()
    view[...] = combine(operation, view.view(dtype), np.ascontiguousarray(box).view(dtype)).view(
        view.dtype
    )


def combine(operation: str, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """old <operation> new in the elements' own type."""
    if operation == "inc":
        return np.where(old >= new, old.dtype.type(0), old + old.dtype.type(1))
    if operation == "dec":
        return np.where((old == 0) | (old > new), new, old - old.dtype.type(1))
    ufunc = {
        "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
        "or": np.bitwise_or, "xor": np.bitwise_xor,
    }[operation]  # fmt: skip
    return np.ascontiguousarray(ufunc(old, new).astype(old.dtype))
