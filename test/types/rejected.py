"""Mistakes of a user's that type checkers must find, each said in the line it is in."""

from __future__ import annotations

import numpy as np

import tilec
import tilec.language as tl


@tilec.kernel(grid=(1,), gird=(1,))  # error: No overloads for "kernel"
def misspelt(x: tl.array):
    """A demand that does not exist."""
    tl.store(x, 0, 0)


@tilec.kernel
def wrong(x: tl.array, n: tl.i32, B: tl.const = 64):
    """Arrays are no tiles, dtypes no texts."""
    tile = tl.load(x, 0, B)
    tl.store(x, 0, x)  # error: "Array" is incompatible with protocol "Number"
    tl.store(x, 0, tile + x)  # error: Operator "+" not supported for types "Tile" and "array"
    tl.load(tile + 1, 0, "B")  # error: Argument of type "Literal['B']"
    tl.load(x, 0)  # error: Argument missing for parameter "shape"
    tl.load(x, 0, B, mask=n < 3)  # error: No parameter named "mask"
    tl.load(x, 0, B, cache="evict_last_but_one")  # error: is not assignable to type
    tl.zeros((B,), "f32")  # error: "Literal['f32']" is not assignable to "DType"
    tile.to(float)  # error: Type "type[float]" is not assignable to type "DType"
    tile.astype(tl.f16)  # error: Cannot access attribute "astype"
    tl.softmx(tile)  # error: "softmx" is not a known attribute
    return tile[0]  # error: "Literal[0]" is not assignable to "EllipsisType"


x = np.zeros(64, np.float32)
wrong(x)  # error: No overloads for "__call__"
wrong(x, 3, 64, 5)  # error: No overloads for "__call__"
wrong(x, 1.5)  # error: Argument of type "float"
wrong([1, 2], 3)  # error: Argument of type "list[int]"
wrong[1](x, m=3)  # error: No overloads for "__call__"
tilec.kernle(x)  # error: "kernle" is not a known attribute
wrong.demanding(warps=8)  # error: No parameter named "warps"
wrong.demanding(order="columns")  # error: "Literal['columns']" is not assignable to
