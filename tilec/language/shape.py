"""What makes, moves or renames elements without computing on them. Shapes are constants."""

# The frontend has the bodies.
# pyright: reportReturnType=false

from __future__ import annotations

from collections.abc import Sequence

from tilec.language.builtin import builtin
from tilec.language.tile import Sizes, Tile
from tilec.terms.dtypes import DType
from tilec.terms.numbers import Number

__all__ = [
    "arange",
    "bitcast",
    "broadcast_to",
    "cast",
    "cat",
    "expand_dims",
    "full",
    "join",
    "permute",
    "reshape",
    "split",
    "take",
    "transpose",
    "where",
    "zeros",
]


@builtin
def full(shape: Sizes, value: Number, dtype: DType | None = None) -> Tile:
    """A tile of one value; `dtype` defaults to the value's (int: i32, float: f32, bool: i1)."""


@builtin
def zeros(shape: Sizes, dtype: DType) -> Tile:
    """A tile of zeros."""


@builtin
def arange(start: int, stop: int | None = None, dtype: DType | None = None) -> Tile:
    """The integers start, start + 1, ... stop - 1 (`arange(n)`: 0 to n - 1); constants; dtype i32.

    The length need not be a power of two.
    """


@builtin
def broadcast_to(x: Number, shape: Sizes) -> Tile:
    """`x` repeated to `shape` by the NumPy rule: align from the right, size 1 stretches."""


@builtin
def expand_dims(x: Number, axis: Sizes) -> Tile:
    """`x` with a dimension of size 1 inserted at `axis` (one or a tuple, of the result)."""


@builtin
def reshape(x: Number, shape: Sizes) -> Tile:
    """The same elements in row-major order under another shape; one size may be -1."""


@builtin
def permute(x: Number, axes: Sizes) -> Tile:
    """Result dimension i is dimension `axes[i]` of `x`."""


@builtin
def transpose(x: Number, axis1: int = -2, axis2: int = -1) -> Tile:
    """Swaps two dimensions; `x.T` of a matrix."""


@builtin
def cat(tiles: Sequence[Tile], axis: int = 0) -> Tile:
    """Concatenates a tuple of tiles along an existing dimension."""


@builtin
def join(tiles: Sequence[Tile], axis: int = -1) -> Tile:
    """Stacks a tuple of equal-shaped tiles along a new dimension at `axis` of the result."""


@builtin
def split(x: Number, parts: int, axis: int = 0) -> tuple[Tile, ...]:
    """Cuts a tile into a tuple of `parts` equal tiles along `axis`."""


@builtin
def take(x: Number, indices: Number, axis: int) -> Tile:
    """Gathers inside a tile: each result element is the one at `indices` along `axis`.

    `indices` has the shape of `x` but for `axis`; an index outside gives an unspecified element.
    """


@builtin
def where(condition: Number, x: Number, y: Number) -> Tile:
    """`x` where the condition holds, else `y`; all three broadcast, `x` and `y` promote."""


@builtin
def cast(x: Number, dtype: DType) -> Tile:
    """Converts to `dtype`, as `x.to(dtype)`.

    float to int truncates toward zero; int to float and float to float round to nearest even; to
    i1 means `x != 0`; integers wrap.
    """


@builtin
def bitcast(x: Number, dtype: DType) -> Tile:
    """The same bits read as another dtype of equal width."""
