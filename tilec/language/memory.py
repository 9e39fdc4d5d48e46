"""What touches arrays in global memory; nothing outside an array is ever accessed."""

# The frontend has the bodies.
# pyright: reportReturnType=false

from __future__ import annotations

from typing import Literal, TypeAlias

from tilec.language.builtin import builtin
from tilec.language.tile import Array, Ends, Offsets, Sizes, Tile
from tilec.terms.numbers import Number

__all__ = [
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_xchg",
    "atomic_xor",
    "fence",
    "gather",
    "load",
    "scatter",
    "store",
    "window",
]

Cache: TypeAlias = Literal["evict_first", "evict_last", "no_allocate", "streaming"]
Order: TypeAlias = Literal["relaxed", "acquire", "release", "acq_rel"]
Scope: TypeAlias = Literal["cta", "cluster", "gpu", "sys"]


@builtin
def load(
    array: Array,
    offsets: Offsets,
    shape: Sizes,
    dims: Sizes | None = None,
    padding: float = 0,
    cache: Cache | None = None,
) -> Tile:
    """A rectangular tile of an array; `padding` where it reaches past the array's edge.

    `offsets`: one element offset per array dimension. `shape`: the tile's sizes, constants; `()`
    loads one element. `dims[i]`: the array dimension that tile dimension i runs along, all others
    have extent 1; without it the tile runs along the last `len(shape)` dimensions. `(2, 1)` loads
    transposed. `padding`: a constant number, converted to the array's dtype. `cache`: None,
    "evict_first", "evict_last", "no_allocate" or "streaming".
    """


@builtin
def store(
    array: Array,
    offsets: Offsets,
    tile: Number,
    dims: Sizes | None = None,
    cache: Cache | None = None,
) -> None:
    """Writes the part of a tile that lies inside the array; `offsets`, `dims`, `cache` as `load`.

    The tile must have the array's dtype (`tile.to(array.dtype)`); a constant or scalar writes one
    element. Where two programs write one element, either value may stay.
    """


@builtin
def window(array: Array, offsets: Offsets, sizes: Ends = None) -> Array:
    """A part of an array, as an array: its element (0, 0) is the array's element `offsets`.

    `sizes`: how many elements it has along each dimension, numbers that may be known when the
    kernel runs alone; None, for one of them or for all: up to the array's end. What lies outside
    the window is outside for all that is done with it, whatever the array has there: a load gives
    `padding`, a store writes nothing. So programs may have a part each, of any length, in one
    array. `window.shape` has its sizes, and windows of windows are windows.
    """


@builtin
def gather(
    array: Array,
    indices: Offsets,
    mask: Number = True,
    other: Number = 0,
    cache: Cache | None = None,
) -> Tile:
    """One array element per index tuple, `other` where `mask` is false or an index is outside.

    `indices`: one integer tile (or scalar) per array dimension; all broadcast to one shape, with
    `mask` and `other`. Rows by number, `(rows[:, None], k + tl.arange(64)[None, :])`, move up to 16
    bytes at once where `k`, the rows' length and what masks columns are multiples of that.
    """


@builtin
def scatter(
    array: Array, indices: Offsets, value: Number, mask: Number = True, cache: Cache | None = None
) -> None:
    """Writes one element per index tuple where `mask` is true and the indices are inside.

    Where two elements have one index, either value may stay. Broadcasting as `gather`.
    """


@builtin
def atomic_add(
    array: Array,
    indices: Offsets,
    value: Number,
    mask: Number = True,
    order: Order = "relaxed",
    scope: Scope = "gpu",
) -> Tile:
    """Atomically `array[indices] += value` per element; gives the values before.

    Elements that are masked off or outside the array give an unspecified value. `order`: "relaxed",
    "acquire", "release", "acq_rel". `scope`: "cta", "cluster", "gpu", "sys". The values must have
    the array's dtype (constants adapt); broadcasting as `gather`.

    An order speaks for the whole program, and to other programs of the launch: arrays that it only
    reads may still be read earlier, those that it only writes written later. "sys" orders all.
    """


@builtin
def atomic_max(
    array: Array,
    indices: Offsets,
    value: Number,
    mask: Number = True,
    order: Order = "relaxed",
    scope: Scope = "gpu",
) -> Tile:
    """Atomically the greater of the two (of integers by their dtype); else as `atomic_add`."""


@builtin
def atomic_min(
    array: Array,
    indices: Offsets,
    value: Number,
    mask: Number = True,
    order: Order = "relaxed",
    scope: Scope = "gpu",
) -> Tile:
    """Atomically the smaller of the two (of integers by their dtype); else as `atomic_add`."""


@builtin
def atomic_and(
    array: Array,
    indices: Offsets,
    value: Number,
    mask: Number = True,
    order: Order = "relaxed",
    scope: Scope = "gpu",
) -> Tile:
    """Atomically the bitwise and of two integers; else as `atomic_add`."""


@builtin
def atomic_or(
    array: Array,
    indices: Offsets,
    value: Number,
    mask: Number = True,
    order: Order = "relaxed",
    scope: Scope = "gpu",
) -> Tile:
    """Atomically the bitwise or of two integers; else as `atomic_add`."""


@builtin
def atomic_xor(
    array: Array,
    indices: Offsets,
    value: Number,
    mask: Number = True,
    order: Order = "relaxed",
    scope: Scope = "gpu",
) -> Tile:
    """Atomically the bitwise exclusive or of two integers; else as `atomic_add`."""


@builtin
def atomic_xchg(
    array: Array,
    indices: Offsets,
    value: Number,
    mask: Number = True,
    order: Order = "relaxed",
    scope: Scope = "gpu",
) -> Tile:
    """Atomically replaces the elements; else as `atomic_add`."""


@builtin
def atomic_cas(
    array: Array,
    indices: Offsets,
    expected: Number,
    value: Number,
    mask: Number = True,
    order: Order = "acq_rel",
    scope: Scope = "gpu",
) -> Tile:
    """Atomically writes `value` where the array holds `expected`; gives the values before."""


@builtin
def fence(order: Literal["acq_rel", "seq_cst"] = "acq_rel", scope: Scope = "gpu") -> None:
    """Orders this program's earlier memory accesses before its later ones, as seen from `scope`.

    To other programs of the launch, or with "sys" to all (see `atomic_add`). `order` is "acq_rel"
    or "seq_cst".
    """
