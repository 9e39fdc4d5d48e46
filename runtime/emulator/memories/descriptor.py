"""Shared-memory matrix descriptors of wgmma and tcgen05: which bytes hold element (row, k).

Bits: [0,14) start, [16,30) leading byte offset, [32,46) stride byte offset, all in 16 bytes;
[49,52) base offset; mode in [62,64) for wgmma, in [61,64) for tcgen05 (PTX ISA 9.7.15.5.1.2.2 and
9.7.16.4.1). Element (r, k) with r the M or N index, es bytes per element, W the swizzle span:

    K-major, swizzled:   (r%8)*W + (r/8)*SBO + k*es                       then the XOR
    MN-major, swizzled:  (r*es)%W + (r*es/W)*LBO + (k%8)*W + (k/8)*SBO    then the XOR
    K-major, none:       (r%8)*16 + (r/8)*SBO + (k/T)*LBO + (k%T)*es      T = 16/es
    MN-major, none:      (r%T)*es + (r/T)*SBO + (k%8)*16 + (k/8)*LBO
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tilec.runtime.emulator.errors import EmulatorError, Place
from tilec.runtime.emulator.memories.swizzle import WIDE_ATOM, swizzle_chunks

_WGMMA_MODES = {0: 0, 1: 128, 2: 64, 3: 32}
_TCGEN05_MODES = {0: 0, 1: WIDE_ATOM, 2: 128, 4: 64, 6: 32}


@dataclass(frozen=True)
class MatrixDescriptor:
    """Byte values of one descriptor; `span` is the swizzle."""

    start: int
    leading: int
    stride: int
    span: int


def decode(value: int, tcgen05: bool, place: Place) -> MatrixDescriptor:
    """Raises EmulatorError for modes that do not exist and for base offsets of swizzled patterns
    (unsupported; without a swizzle there is no pattern, and Triton leaves bits of the address)."""
    modes = _TCGEN05_MODES if tcgen05 else _WGMMA_MODES
    mode = value >> 61 & 7 if tcgen05 else value >> 62 & 3
    if mode not in modes:
        raise EmulatorError(
            f"matrix descriptor {value:#x}: no swizzle mode {mode}", place, "descriptor"
        )
    if value >> 49 & 7 and modes[mode]:
        raise EmulatorError(
            f"matrix descriptor {value:#x}: a base offset is unsupported", place, "descriptor"
        )
    start, leading, stride = ((value >> low & 0x3FFF) << 4 for low in (0, 16, 32))
    return MatrixDescriptor(start, leading, stride, modes[mode])


@lru_cache(maxsize=512)
def chunk_table(
    leading: int, stride: int, span: int, rows: int, columns: int, size: int, mn_major: bool
) -> np.ndarray:
    """Byte offsets (before the XOR) of 16-byte chunks.

    K-major: (rows, columns*size/16), a chunk runs along k. MN-major: (columns, rows*size/16), a
    chunk runs along r. `columns` counts k.
    """
    per = 16 // size
    width = 128 if span == WIDE_ATOM else span
    if mn_major:
        k, r = np.meshgrid(np.arange(columns), np.arange(0, rows, per), indexing="ij")
        if span:
            along = r * size
            return along % width + along // width * leading + k % 8 * width + k // 8 * stride
        return r // per * stride + k % 8 * 16 + k // 8 * leading
    r, k = np.meshgrid(np.arange(rows), np.arange(0, columns, per), indexing="ij")
    if span:
        return r % 8 * width + r // 8 * stride + k * size
    return r % 8 * 16 + r // 8 * stride + k // per * leading


@lru_cache(maxsize=2048)
def chunk_numbers(
    descriptor: MatrixDescriptor, rows: int, columns: int, size: int, mn_major: bool
) -> np.ndarray:
    """CTA-local numbers of the chunks that hold the matrix, in the table's shape (read only).

    Kernels use the same few descriptors over and over.
    """
    table = chunk_table(
        descriptor.leading, descriptor.stride, descriptor.span, rows, columns, size, mn_major
    )
    return swizzle_chunks((descriptor.start + table) >> 4, descriptor.span)
