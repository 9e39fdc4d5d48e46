"""TMA tensor maps: what cuTensorMapEncodeTiled describes, as an object (PTX ISA 5.5)."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

import numpy as np

from tilec.runtime.emulator.errors import EmulatorError, Place
from tilec.runtime.emulator.memories.global_memory import Pointer

_MAGIC = b"emulator tensor map"
_SWIZZLES = (0, 32, 64, 128)


@dataclass(frozen=True)
class Im2col:
    """What cuTensorMapEncodeIm2col says of positions (PTX ISA 5.5.5), each tuple one number a
    dimension between channels and images, innermost first.

    lower, upper: the corners of the bounding box, from the tensor's first element and from its
    last; steps: elements from one position to the next.
    """

    lower: tuple[int, ...]
    upper: tuple[int, ...]
    steps: tuple[int, ...]


_CORNER_BITS = {3: 16, 4: 8, 5: 5}


@dataclass(frozen=True)
class TensorMap:
    """A tensor in global memory and the box that one copy moves.

    tensor: the array (or Pointer) at whose first byte the tensor starts; dims: elements per
    dimension, innermost first; strides: bytes between elements of dimension 1, 2, ... (one fewer
    than dims); box: elements per dimension of a copy; swizzle: 0, 32, 64 or 128 bytes;
    element_bytes: 1, 2, 4 or 8 (default: of the array's dtype); nan_fill: elements out of bounds
    are NaN instead of 0; im2col: of such a map, whose box is channels and positions. Raises
    ValueError for what the hardware refuses.
    """

    tensor: np.ndarray | Pointer
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int = 0
    element_bytes: int = 0
    nan_fill: bool = False
    dtype: np.dtype | None = field(default=None)
    im2col: Im2col | None = None

    def __post_init__(self) -> None:
        rank = len(self.dims)
        boxed = rank if self.im2col is None else 2
        if self.im2col is not None:
            self._check_im2col(self.im2col)
        if not 1 <= rank <= 5 or len(self.box) != boxed or len(self.strides) != rank - 1:
            raise ValueError(
                f"tensor map: {rank} dims need {boxed} box sizes and one stride fewer, got "
                f"{len(self.box)} and {len(self.strides)}"
            )
        if self.swizzle not in _SWIZZLES:
            raise ValueError(f"tensor map: swizzle {self.swizzle} is not one of {_SWIZZLES}")
        if any(not 1 <= size <= 256 for size in self.box):
            raise ValueError(f"tensor map: box {self.box} must be 1..256 in every dimension")
        if any(stride % 16 or not 0 <= stride < 1 << 40 for stride in self.strides):
            raise ValueError(f"tensor map: strides {self.strides} must be multiples of 16 bytes")
        inner = self.box[0] * self.itemsize
        if inner % 16:
            raise ValueError(f"tensor map: inner box of {inner} bytes is no multiple of 16")
        if self.swizzle and inner > self.swizzle:
            raise ValueError(
                f"tensor map: inner box of {inner} bytes exceeds the swizzle of {self.swizzle}"
            )

    def _check_im2col(self, im2col: Im2col) -> None:
        rank, corners = len(self.dims), (im2col.lower, im2col.upper)
        if rank not in _CORNER_BITS or any(len(c) != rank - 2 for c in (*corners, im2col.steps)):
            raise ValueError(f"im2col map: {rank} dims need {rank - 2} corners and steps each")
        half = 1 << _CORNER_BITS[rank] - 1
        if any(not -half <= at < half for corner in corners for at in corner):
            raise ValueError(f"im2col map: corners {corners} are beyond {-half}..{half - 1}")
        if any(not 1 <= step <= 8 for step in im2col.steps):
            raise ValueError(f"im2col map: steps {im2col.steps} must be 1..8")
        for size, low, high in zip(self.dims[1:], *corners, strict=False):
            if size - 1 + high < low:
                raise ValueError(f"im2col map: the bounding box from {low} to {high} is empty")

    @property
    def array(self) -> np.ndarray:
        return self.tensor.array if isinstance(self.tensor, Pointer) else self.tensor

    @property
    def itemsize(self) -> int:
        return self.element_bytes or self.array.dtype.itemsize

    @property
    def box_bytes(self) -> int:
        return prod(self.box) * self.itemsize

    @property
    def pitch(self) -> int:
        """Bytes from one row of the box to the next in shared memory: as on an H200, rows narrower
        than the swizzle lie as far apart as it is wide."""
        return self.swizzle or self.box[0] * self.itemsize

    @property
    def span(self) -> int:
        """Bytes of shared memory that a box reaches over."""
        rows = prod(self.box[1:])
        return (rows - 1) * self.pitch + self.box[0] * self.itemsize

    def element_type(self) -> np.dtype:
        """The dtype that reductions compute in."""
        return self.dtype or self.array.dtype


class TensorMaps:
    """The maps of a launch. In memory a map is 128 bytes that hold its number."""

    def __init__(self) -> None:
        self.maps: list[TensorMap] = []

    def encode(self, tensor_map: TensorMap) -> bytes:
        self.maps.append(tensor_map)
        number = len(self.maps) - 1
        return (_MAGIC + bytes([0, number & 255, number >> 8])).ljust(128, b"\xa5")

    def decode(self, raw: bytes, place: Place) -> TensorMap:
        if not raw.startswith(_MAGIC) or len(raw) < 128:
            raise EmulatorError("the address is not that of a tensor map", place, "tensor map")
        start = len(_MAGIC) + 1
        return self.maps[raw[start] | raw[start + 1] << 8]
