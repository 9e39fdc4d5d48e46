"""Copies of one tile by the copy engine and what they mean; NumPy alone, to run beside a GPU."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from tilec.hardware.shared_layout import SharedLayout

DTYPES = {
    "f64": np.dtype(np.float64),
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
}
SWIZZLES = {0: None, 32: (1, 4, 3), 64: (2, 4, 3), 128: (3, 4, 3)}
REDUCTIONS = {
    "add": ("i32", "f32", "f16", "bf16"),
    "min": ("i32", "i64", "f16", "bf16"),
    "max": ("i32", "i64", "f16", "bf16"),
}
MOST_TILE_BYTES = 32 * 1024


@dataclass(frozen=True)
class TileCopy:
    """One tile between an array and shared memory.

    `rank`: of the array; `row`: its dimension of stride 1; `dims`: the array dimension each tile
    dimension runs along; `box`, `panels`: per tile dimension, a tile is `box * panels`; `swizzle`:
    bytes; `combine`: None to load, else how the store combines.
    """

    dtype: str
    rank: int
    row: int
    dims: tuple[int, ...]
    box: tuple[int, ...]
    panels: tuple[int, ...]
    swizzle: int = 0
    combine: str | None = None
    cache: str = "normal"

    @property
    def item(self) -> int:
        """Bytes of an element."""
        return DTYPES[self.dtype].itemsize

    @property
    def unit(self) -> int:
        """Elements of 16 bytes."""
        return 16 // self.item

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the tile."""
        return tuple(b * n for b, n in zip(self.box, self.panels, strict=True))

    def shared_layout(self) -> SharedLayout:
        """Boxes one after another, in each the array's row fastest and as wide as the swizzle."""
        row = self.dims.index(self.row)
        order = [row, *(d for d in reversed(range(len(self.box))) if d != row)]
        parts: dict[int, list[tuple[int, int]]] = {d: [] for d in order}
        stride = 1
        for d in order:
            parts[d].append((self.box[d], stride))
            stride *= self.swizzle // self.item if d == row and self.swizzle else self.box[d]
        stride = -(-stride * self.item // 128) * 128 // self.item
        for d in order:
            if self.panels[d] > 1:
                parts[d].append((self.panels[d], stride))
            stride *= self.panels[d]
        dims = tuple(tuple(parts[d]) for d in range(len(self.box)))
        return SharedLayout(dims, SWIZZLES[self.swizzle])

    def array(self, sizes: Sequence[int], rng: np.random.Generator) -> np.ndarray:
        """A random array whose rows lie apart by multiples of 16 bytes, a view of a larger one; its
        other dimensions lie in any order."""
        order = [int(d) for d in rng.permutation(self.rank) if d != self.row] + [self.row]
        whole = [sizes[d] + int(rng.integers(0, 2)) for d in order]
        whole[-1] = (-(-sizes[self.row] // self.unit) + int(rng.integers(0, 3))) * self.unit
        memory = aligned(draw(self.dtype, whole, rng))
        view = memory.transpose([order.index(d) for d in range(self.rank)])
        return view[tuple(slice(0, size) for size in sizes)]

    def draw_place(self, rng: np.random.Generator) -> tuple[list[int], list[int]]:
        """Sizes of an array and a corner, often over an edge, where the hardware takes it."""
        stores = self.combine is not None
        sizes, corner = [], []
        for d in range(self.rank):
            size = int(rng.integers(1, 70 if d == self.row else 20))
            at = int(rng.integers(0 if stores else -5, size + 2))
            if d == self.row:
                at = at // self.unit * self.unit
                size = -(-size // self.unit) * self.unit if stores else size
            sizes.append(size)
            corner.append(at)
        return sizes, corner

    def loaded(self, array: np.ndarray, corner: Sequence[int]) -> np.ndarray:
        """The tile at `corner`, zeros outside the array."""
        tile = np.zeros(self.shape, array.dtype)
        inside, part = self._overlap(array.shape, corner)
        if part:
            tile[part] = self._part(array, inside)
        return tile

    def stored(self, array: np.ndarray, tile: np.ndarray, corner: Sequence[int]) -> np.ndarray:
        """The array after the tile was combined with it."""
        result = array.copy()
        inside, part = self._overlap(array.shape, corner)
        if part:
            target = self._part(result, inside)
            ufunc = {"add": np.add, "min": np.minimum, "max": np.maximum}.get(self.combine or "")
            target[...] = tile[part] if ufunc is None else ufunc(target, tile[part])
        return result

    def _overlap(
        self, sizes: Sequence[int], corner: Sequence[int]
    ) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """Slices of the array and of the tile; none of the tile where it lies outside."""
        inside = []
        part = [slice(0)] * len(self.dims)
        for d, (size, at) in enumerate(zip(sizes, corner, strict=True)):
            extent = self.shape[self.dims.index(d)] if d in self.dims else 1
            low, high = max(at, 0), min(at + extent, size)
            if low >= high:
                return (), ()
            inside.append(slice(low, high))
            if d in self.dims:
                part[self.dims.index(d)] = slice(low - at, high - at)
        return tuple(inside), tuple(part)

    def _part(self, array: np.ndarray, inside: tuple[slice, ...]) -> np.ndarray:
        """A view of the array's part with the tile's dimensions."""
        others = [d for d in range(self.rank) if d not in self.dims]
        return array[inside].transpose([*others, *self.dims])[(0,) * len(others)]


def draw(dtype: str, shape: Sequence[int], rng: np.random.Generator) -> np.ndarray:
    """Random elements; integers over their whole range."""
    kind = DTYPES[dtype]
    if dtype[0] == "i":
        limits = np.iinfo(kind)
        return rng.integers(limits.min, limits.max, tuple(shape), kind, endpoint=True)
    return rng.normal(size=tuple(shape)).astype(kind)


def aligned(array: np.ndarray) -> np.ndarray:
    """A copy that starts at a multiple of 128 bytes."""
    memory = np.empty(array.nbytes + 128, np.uint8)
    start = -memory.ctypes.data % 128
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def same(got: np.ndarray, want: np.ndarray) -> bool:
    """Whether two arrays hold the same bits."""
    a, b = (np.ascontiguousarray(x) for x in (got, want))
    return a.shape == b.shape and a.tobytes() == b.tobytes()


def random_copy(rng: random.Random) -> TileCopy:
    """Any rank, dimensions in any order or left out, any swizzle, panels along any dimension."""
    combine = rng.choice([None, None, "none", rng.choice(list(REDUCTIONS))])
    dtype = rng.choice(REDUCTIONS.get(combine or "", tuple(DTYPES)))
    item = DTYPES[dtype].itemsize
    rank = rng.randint(1, 5)
    row = rng.randrange(rank)
    dims = [d for d in range(rank) if d == row or rng.random() < 0.7]
    rng.shuffle(dims)
    swizzle = rng.choice([0, 32, 64, 128])
    widest = swizzle or rng.choice([16, 48, 96, 256])
    box = [
        rng.randrange(16, widest + 1, 16) // item if d == row else rng.choice([1, 2, 3, 4, 8])
        for d in dims
    ]
    panels = [rng.choice([1, 1, 2, 3]) for _ in dims]
    cache = rng.choice(["normal", "evict_first", "evict_last"])
    while True:
        made = TileCopy(
            dtype, rank, row, tuple(dims), tuple(box), tuple(panels), swizzle, combine, cache
        )
        if made.shared_layout().span * item <= MOST_TILE_BYTES:
            return made
        if max(panels) > 1:
            panels[panels.index(max(panels))] -= 1
        else:
            largest = max((n for n, d in enumerate(dims) if d != row), key=lambda n: box[n])
            box[largest] = -(-box[largest] // 2)


def memory_with(array: np.ndarray, content: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The bytes `array` is a view of, and the same with `content` in the array's place."""
    memory: np.ndarray = array
    while memory.base is not None:
        memory = memory.base
    expected = memory.copy()
    start = array.ctypes.data - memory.ctypes.data
    np.ndarray(array.shape, array.dtype, expected.data, start, array.strides)[...] = content
    return memory, expected
