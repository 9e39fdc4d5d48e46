"""What makes, moves or renames elements without computing on them. Shapes are constants."""

from __future__ import annotations

from typing import Any

from tilec.language.builtin import builtin

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
def full(shape: Any, value: Any, dtype: Any = None) -> Any:
    """A tile of one value; `dtype` defaults to the value's (int: i32, float: f32, bool: i1)."""


@builtin
def zeros(shape: Any, dtype: Any) -> Any:
    """A tile of zeros."""


@builtin
def arange(start: Any, stop: Any = None, dtype: Any = None) -> Any:
    """The integers start, start + 1, ... stop - 1 (`arange(n)`: 0 to n - 1); constants; dtype i32.

    The length need not be a power of two.
    """


@builtin
def broadcast_to(x: Any, shape: Any) -> Any:
    """`x` repeated to `shape` by the NumPy rule: align from the right, size 1 stretches."""


@builtin
def expand_dims(x: Any, axis: Any) -> Any:
    """`x` with a dimension of size 1 inserted at `axis` (one or a tuple, of the result)."""


@builtin
def reshape(x: Any, shape: Any) -> Any:
    """The same elements in row-major order under another shape; one size may be -1."""


@builtin
def permute(x: Any, axes: Any) -> Any:
    """Result dimension i is dimension `axes[i]` of `x`."""


@builtin
def transpose(x: Any, axis1: int = -2, axis2: int = -1) -> Any:
    """Swaps two dimensions; `x.T` of a matrix."""


@builtin
def cat(tiles: Any, axis: int = 0) -> Any:
    """Concatenates a tuple of tiles along an existing dimension."""


@builtin
def join(tiles: Any, axis: int = -1) -> Any:
    """Stacks a tuple of equal-shaped tiles along a new dimension at `axis` of the result."""


@builtin
def split(x: Any, parts: int, axis: int = 0) -> Any:
    """Cuts a tile into a tuple of `parts` equal tiles along `axis`."""


@builtin
def take(x: Any, indices: Any, axis: int) -> Any:
    """Gathers inside a tile: each result element is the one at `indices` along `axis`.

    `indices` has the shape of `x` but for `axis`; an index outside gives an unspecified element.
    """


@builtin
def where(condition: Any, x: Any, y: Any) -> Any:
    """`x` where the condition holds, else `y`; all three broadcast, `x` and `y` promote."""


@builtin
def cast(x: Any, dtype: Any) -> Any:
    """Converts to `dtype`, as `x.to(dtype)`.

    float to int truncates toward zero; int to float and float to float round to nearest even; to
    i1 means `x != 0`; integers wrap.
    """


@builtin
def bitcast(x: Any, dtype: Any) -> Any:
    """The same bits read as another dtype of equal width."""
