"""Order: sorted tiles, the largest of them, and what sorting networks are made of."""

# The frontend has the bodies.
# pyright: reportReturnType=false

from __future__ import annotations

from typing import Any, Literal, overload

from tilec.language.builtin import builtin
from tilec.language.tile import Tile
from tilec.terms.numbers import Number

__all__ = ["exchange", "sort", "topk"]


@builtin
def exchange(x: Number, mask: int, axis: int = -1) -> Tile:
    """Element i along `axis` of the result is element `i ^ mask` of `x`.

    `mask` is a constant; the size along `axis` is a multiple of twice its highest bit. Inside a
    warp it is a shuffle, inside a thread nothing. Of a step of a sorting network:

        y = tl.exchange(x, 4)
        x = tl.where(tl.arange(x.shape[0]) & 4 == 0, tl.minimum(x, y), tl.maximum(x, y))
    """


@overload
def sort(x: Tile, axis: int = -1, descending: bool = False) -> Tile: ...
@overload
def sort(
    x: Tile, axis: int = -1, descending: bool = False, *, return_indices: Literal[True]
) -> tuple[Tile, Tile]: ...
@builtin
def sort(x: Tile, axis: int = -1, descending: bool = False, return_indices: bool = False) -> Any:
    """The elements along `axis` in ascending order, or descending; any size, integers and floats.

    NaN is greatest, -0.0 stands in front of 0.0 in ascending order. With `return_indices` a pair:
    the elements, and where they were (i32); of equals the first comes first, either way round. A
    NaN loses its payload. Sizes that are powers of two are fastest: others are padded to one. Up to
    512 elements stay in a warp, which exchanges them by shuffles: give a program several rows that
    are shorter than 128.
    """


@overload
def topk(x: Tile, k: int, axis: int = -1, largest: bool = True) -> Tile: ...
@overload
def topk(
    x: Tile, k: int, axis: int = -1, largest: bool = True, *, return_indices: Literal[True]
) -> tuple[Tile, Tile]: ...
@builtin
def topk(
    x: Tile, k: int, axis: int = -1, largest: bool = True, return_indices: bool = False
) -> Any:
    """The `k` largest elements along `axis`, the largest first; or the smallest, the smallest
    first.

    As the first `k` of `sort`, whose order it has, but only what may be among them is sorted:
    fast where `k` is far below the size. `k` is a constant; a power of two is fastest.
    """
