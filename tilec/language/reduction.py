"""Reductions and scans. `axis` counts from 0, negative from the end; None reduces everything."""

# The frontend has the bodies.
# pyright: reportReturnType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

from tilec.language.builtin import builtin
from tilec.language.tile import Tile
from tilec.terms.numbers import Number

__all__ = [
    "all",
    "any",
    "argmax",
    "argmin",
    "associative_scan",
    "cumprod",
    "cumsum",
    "histogram",
    "max",
    "min",
    "prod",
    "reduce",
    "sum",
]


@builtin
def reduce(x: Tile | Sequence[Tile], axis: int | None, combine: Callable[..., Any]) -> Any:
    """Combines all elements along `axis` in any order by an associative function.

    `x` is a tile or a tuple of n tiles of one shape; `combine` takes 2n scalars (the n of the left,
    then the n of the right) and returns n. It is a plain function or a lambda of scalars and
    constants: arithmetic, comparisons, `tl.where`, math; no loops, no memory.
    """


@builtin
def associative_scan(
    x: Tile | Sequence[Tile], axis: int, combine: Callable[..., Any], reverse: bool = False
) -> Any:
    """Inclusive scan along `axis`; `x` and `combine` as `reduce`.

    Element i is `combine(... combine(x[0], x[1]) ..., x[i])`. With `reverse` the scan runs from the
    end, as flip, scan, flip does: `combine(... combine(x[n - 1], x[n - 2]) ..., x[i])`.
    """


@builtin
def sum(x: Tile, axis: int | None = None, keepdims: bool = False) -> Tile:
    """Sum along `axis` in the dtype of `x`; i1, i8 and i16 are summed as i32,
    u8 and u16 as u32.

    Floats are added in an order that the compiler chooses, the same in each run. So are those of
    several iterations where a loop adds up sums, or tiles that are summed behind it: threads may
    add up, and scale, parts of their own.
    """


@builtin
def prod(x: Tile, axis: int | None = None, keepdims: bool = False) -> Tile:
    """Product along `axis`; dtypes as `sum`."""


@overload
def max(x: Tile, axis: int | None = None, keepdims: bool = False) -> Tile: ...
@overload
def max(
    x: Tile, axis: int | None = None, keepdims: bool = False, *, return_indices: Literal[True]
) -> tuple[Tile, Tile]: ...
@builtin
def max(
    x: Tile, axis: int | None = None, keepdims: bool = False, return_indices: bool = False
) -> Any:
    """Greatest element along `axis`; NaN if there is one. With `return_indices` a pair: the
    element and its position, as `argmax`."""


@overload
def min(x: Tile, axis: int | None = None, keepdims: bool = False) -> Tile: ...
@overload
def min(
    x: Tile, axis: int | None = None, keepdims: bool = False, *, return_indices: Literal[True]
) -> tuple[Tile, Tile]: ...
@builtin
def min(
    x: Tile, axis: int | None = None, keepdims: bool = False, return_indices: bool = False
) -> Any:
    """Smallest element along `axis`; NaN if there is one. With `return_indices` a pair: the
    element and its position, as `argmin`."""


@builtin
def any(x: Tile, axis: int | None = None, keepdims: bool = False) -> Tile:
    """Whether any element along `axis` is non-zero (i1)."""


@builtin
def all(x: Tile, axis: int | None = None, keepdims: bool = False) -> Tile:
    """Whether all elements along `axis` are non-zero (i1)."""


@builtin
def argmax(x: Tile, axis: int | None = None, keepdims: bool = False) -> Tile:
    """Position (i32) of the greatest element along `axis`, the first of equals; NaN is greatest.

    A tile of one dimension needs no axis.
    """


@builtin
def argmin(x: Tile, axis: int | None = None, keepdims: bool = False) -> Tile:
    """Position (i32) of the smallest element along `axis`, the first of equals; NaN is smallest.

    A tile of one dimension needs no axis.
    """


@builtin
def cumsum(x: Tile, axis: int = 0, reverse: bool = False) -> Tile:
    """Running sum along `axis`, each element included; dtypes as `sum`."""


@builtin
def cumprod(x: Tile, axis: int = 0, reverse: bool = False) -> Tile:
    """Running product along `axis`, each element included; dtypes as `sum`."""


@builtin
def histogram(values: Tile, bins: int, mask: Number = True) -> Tile:
    """How many elements of a tile of integers are j, for each j in [0, bins): `bins` counts in i32.

    What is negative, not below `bins` or masked off is not counted. `values` has any shape, `mask`
    broadcasts to it; `bins` is a constant.

    The counts are kept in shared memory, 4 bytes a bin. Fast is a program that walks over many
    tiles, adds their counts in registers, and adds the sum to the array once:

        counts = tl.zeros(256, tl.i32)
        for start in tl.range(first, end, 4096):
            counts += tl.histogram(tl.load(x, start, 4096, padding=-1), 256)
        tl.atomic_add(total, tl.arange(256), counts)
    """
