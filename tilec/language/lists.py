"""Lists of arrays, `xs: tl.arrays`: how programs share all elements of all arrays."""

# The frontend has the bodies.
# pyright: reportReturnType=false

from __future__ import annotations

from typing import Any

from tilec.language.builtin import builtin
from tilec.language.tile import Tile

__all__ = ["part", "parts"]


@builtin
def part(arrays: Any, elements: int) -> tuple[Tile, Tile]:
    """The position of an array in a list of rows, and the first of the up to `elements` elements
    there that are this program's part. The grid has `tl.parts(arrays, elements)` programs.

    Each array is cut from its beginning, so that a tile of so many elements ends at its array's end
    and begins at a multiple of them, however long other arrays are. A few parts have no elements:
    at most one for each array begins behind its end. `elements`: a constant from 1 to 65536.
    """


@builtin
def parts(arrays: Any, elements: int) -> int:
    """In a grid rule, how many programs `tl.part` of the same constant deals a list out to."""
