"""Arrays described before they exist: what a case is built for here and allocated as on the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilec.runtime.arrays import CUDA, ArrayView
from tilec.terms.dtypes import ELEMENT_BYTES


@dataclass(frozen=True)
class ArraySpec:
    """An array argument: its `name` in the kernel, dtype (MLIR's name), shape, strides in elements.

    `offset`: elements between an address that is a multiple of 256 bytes and the array's first one.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def span(self) -> int:
        """Elements from the aligned address to the end of the array."""
        if 0 in self.shape:
            return self.offset
        reach = sum((size - 1) * s for size, s in zip(self.shape, self.strides, strict=True))
        return self.offset + reach + 1

    @property
    def nbytes(self) -> int:
        """Bytes of the elements, each counted once."""
        count = ELEMENT_BYTES[self.dtype]
        for size in self.shape:
            count *= size
        return count

    def view(self) -> ArrayView:
        """The array as the compiler is shown it: no memory behind, the address modulo 256 right."""
        pointer = self.offset * ELEMENT_BYTES[self.dtype]
        return ArrayView(pointer, self.shape, self.strides, self.dtype, (CUDA, 0))


def row_major(name: str, dtype: str, shape: Sequence[int]) -> ArraySpec:
    """A contiguous array."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return ArraySpec(name, dtype, tuple(shape), tuple(strides))


def transposed(spec: ArraySpec) -> ArraySpec:
    """The same shape laid out column-major: the view that `.T` gives of a contiguous array."""
    rows, columns = spec.shape
    return replace(spec, strides=(1, rows)) if columns else spec


def padded(spec: ArraySpec, extra: int) -> ArraySpec:
    """`extra` unused elements after every row: a slice of a wider array."""
    strides = [1] * len(spec.shape)
    for axis in range(len(spec.shape) - 2, -1, -1):
        width = spec.shape[axis + 1] + (extra if axis == len(spec.shape) - 2 else 0)
        strides[axis] = strides[axis + 1] * width
    return replace(spec, strides=tuple(strides))


def every_second(spec: ArraySpec) -> ArraySpec:
    """Every second element of a contiguous array twice as wide: no unit stride."""
    return replace(spec, strides=tuple(2 * stride for stride in spec.strides))


def shifted(spec: ArraySpec, elements: int) -> ArraySpec:
    """Begins `elements` after an aligned address."""
    return replace(spec, offset=spec.offset + elements)
