"""What touches arrays in global memory; nothing outside an array is ever accessed."""

from __future__ import annotations

from typing import Any

from tilec.language.builtin import builtin

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
]


@builtin
def load(
    array: Any, offsets: Any, shape: Any, dims: Any = None, padding: Any = 0, cache: Any = None
) -> Any:
    """A rectangular tile of an array; `padding` where it reaches past the array's edge.

    `offsets`: one element offset per array dimension. `shape`: the tile's sizes, constants; `()`
    loads one element. `dims[i]`: the array dimension that tile dimension i runs along, all others
    have extent 1; without it the tile runs along the last `len(shape)` dimensions. `(2, 1)` loads
    transposed. `padding`: a constant number, converted to the array's dtype. `cache`: None,
    "evict_first", "evict_last", "no_allocate" or "streaming".
    """


@builtin
def store(array: Any, offsets: Any, tile: Any, dims: Any = None, cache: Any = None) -> Any:
    """Writes the part of a tile that lies inside the array; `offsets`, `dims`, `cache` as `load`.

    The tile must have the array's dtype (`tile.to(array.dtype)`); a constant or scalar writes one
    element. Where two programs write one element, either value may stay.
    """


@builtin
def gather(array: Any, indices: Any, mask: Any = True, other: Any = 0, cache: Any = None) -> Any:
    """One array element per index tuple, `other` where `mask` is false or an index is outside.

    `indices`: one integer tile (or scalar) per array dimension; all broadcast to one shape, with
    `mask` and `other`. Rows by number, `(rows[:, None], k + tl.arange(64)[None, :])`, move up to 16
    bytes at once where `k`, the rows' length and what masks columns are multiples of that.
    """


@builtin
def scatter(array: Any, indices: Any, value: Any, mask: Any = True, cache: Any = None) -> Any:
    """Writes one element per index tuple where `mask` is true and the indices are inside.

    Where two elements have one index, either value may stay. Broadcasting as `gather`.
    """


@builtin
def atomic_add(
    array: Any,
    indices: Any,
    value: Any,
    mask: Any = True,
    order: str = "relaxed",
    scope: str = "gpu",
) -> Any:
    """Atomically `array[indices] += value` per element; gives the values before.

    Elements that are masked off or outside the array give an unspecified value. `order`: "relaxed",
    "acquire", "release", "acq_rel". `scope`: "cta", "cluster", "gpu", "sys". The values must have
    the array's dtype (constants adapt); broadcasting as `gather`.

    An order speaks for the whole program, and to other programs of the launch: arrays that it only
    reads may still be read earlier, those that it only writes written later. "sys" orders all.
    """


@builtin
def atomic_max(
    array: Any,
    indices: Any,
    value: Any,
    mask: Any = True,
    order: str = "relaxed",
    scope: str = "gpu",
) -> Any:
    """Atomically the greater of the two (integers signed); else as `atomic_add`."""


@builtin
def atomic_min(
    array: Any,
    indices: Any,
    value: Any,
    mask: Any = True,
    order: str = "relaxed",
    scope: str = "gpu",
) -> Any:
    """Atomically the smaller of the two (integers signed); else as `atomic_add`."""


@builtin
def atomic_and(
    array: Any,
    indices: Any,
    value: Any,
    mask: Any = True,
    order: str = "relaxed",
    scope: str = "gpu",
) -> Any:
    """Atomically the bitwise and of two integers; else as `atomic_add`."""


@builtin
def atomic_or(
    array: Any,
    indices: Any,
    value: Any,
    mask: Any = True,
    order: str = "relaxed",
    scope: str = "gpu",
) -> Any:
    """Atomically the bitwise or of two integers; else as `atomic_add`."""


@builtin
def atomic_xor(
    array: Any,
    indices: Any,
    value: Any,
    mask: Any = True,
    order: str = "relaxed",
    scope: str = "gpu",
) -> Any:
    """Atomically the bitwise exclusive or of two integers; else as `atomic_add`."""


@builtin
def atomic_xchg(
    array: Any,
    indices: Any,
    value: Any,
    mask: Any = True,
    order: str = "relaxed",
    scope: str = "gpu",
) -> Any:
    """Atomically replaces the elements; else as `atomic_add`."""


@builtin
def atomic_cas(
    array: Any,
    indices: Any,
    expected: Any,
    value: Any,
    mask: Any = True,
    order: str = "acq_rel",
    scope: str = "gpu",
) -> Any:
    """Atomically writes `value` where the array holds `expected`; gives the values before."""


@builtin
def fence(order: str = "acq_rel", scope: str = "gpu") -> Any:
    """Orders this program's earlier memory accesses before its later ones, as seen from `scope`.

    To other programs of the launch, or with "sys" to all (see `atomic_add`). `order` is "acq_rel"
    or "seq_cst".
    """
