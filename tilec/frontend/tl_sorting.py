"""`tl.exchange`, `tl.sort` and `tl.topk`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tilec.language as tl
from tilec.dialects.tile import TakeOp
from tilec.frontend.frame import Frame
from tilec.frontend.promotion import refuse_fp8
from tilec.frontend.sort_keys import Order, places
from tilec.frontend.sort_network import LANES, Network, exchanged
from tilec.frontend.tl_shape import permute, reshape, transpose
from tilec.frontend.values import Mistake, Tile, check_axis, describe
from tilec.hardware.powers import power_above
from tilec.hardware.sizes import VECTOR_BYTES
from tilec.terms.dtypes import DType

HELD = 32
"""Elements that a thread has of a long row, half as many where they have more than two words
(`MET_PER_WARP`, `MET_WORDS` in `tilec/compile/tile_warps.py`): of runs, those in different
registers are merged first, half with half."""


def exchange(frame: Frame, x: Any, mask: Any, axis: Any) -> Tile:
    """`tl.exchange`."""
    if not isinstance(x, Tile):
        raise Mistake(f"expected a tile, found {describe(x)}", argument="x")
    along = check_axis(axis, len(x.shape))
    if isinstance(mask, bool) or not isinstance(mask, int) or mask < 1:
        raise Mistake(f"mask must be a positive constant, found {describe(mask)}", argument="mask")
    whole = 1 << mask.bit_length()
    if x.shape[along] % whole:
        raise Mistake(
            f"mask {mask} exchanges among {whole} elements, of which {x.shape[along]} along axis "
            f"{along} is no multiple",
            argument="mask",
        )
    return exchanged(x, along, mask)


def sort(frame: Frame, x: Any, axis: Any, descending: Any, return_indices: Any) -> Any:
    """`tl.sort`."""
    order = _order(x, axis, "descending", descending, return_indices, "sort")
    network = Network(frame, order.axis)
    keys = order.packed(frame, order.keys(frame, x, order.size))
    keys = network.sorted(keys, order.size)
    keys = tuple(_first(frame, key, order.axis, x.shape[order.axis]) for key in keys)
    return order.unpacked(frame, keys)


def topk(frame: Frame, x: Any, k: Any, axis: Any, largest: Any, return_indices: Any) -> Any:
    """`tl.topk`."""
    order = _order(x, axis, "largest", largest, return_indices, "topk")
    along, size = order.axis, x.shape[order.axis]
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= size:
        raise Mistake(f"k must be a constant from 1 to {size}, found {describe(k)}", argument="k")
    run = power_above(k)
    keys = order.packed(frame, order.keys(frame, x, order.size))
    columns, held = order.size // run, HELD // (2 if order.words > 2 else 1)
    warps = columns // min(columns, max(2, held * LANES // run))
    columns //= warps
    lanes = min(columns, max(2, LANES // max(1, run // held)))
    keys = tuple(_dealt(frame, key, along, (warps, run, columns, lanes), x.dtype) for key in keys)
    # Runs of a thread are merged first, then those of a warp's lanes, then those of warps.
    network = Network(frame, along + 1)
    keys = network.sorted(keys, run)
    while keys[0].shape[along + 2] > lanes:
        keys = network.best_of_halves(keys, run)
    keys = network.best_of_columns(keys, run)
    while warps > 1:
        lanes = min(warps, max(2, held * LANES // run))
        warps //= lanes
        keys = tuple(_columns_last(frame, key, along, (warps, lanes, run)) for key in keys)
        keys = network.best_of_columns(keys, run)
    keys = tuple(
        reshape(frame, key, (*x.shape[:along], run, *x.shape[along + 1 :])) for key in keys
    )
    keys = tuple(_first(frame, key, along, k) for key in keys)
    return order.unpacked(frame, keys)


def _dealt(
    frame: Frame, x: Tile, axis: int, sizes: tuple[int, int, int, int], dtype: DType
) -> Tile:
    """Elements along `axis` as (warps, run, columns), `sizes` with the lanes that columns are
    spread over: in any order, so in that in which threads load whole vectors of `dtype`."""
    warps, run, columns, lanes = sizes
    vector = min(run * columns // lanes, VECTOR_BYTES * 8 // dtype.bits)
    near = min(run, vector)  # elements of a run in a vector, of which it has `beside`
    beside = vector // near
    before, behind = x.shape[:axis], x.shape[axis + 1 :]
    apart = (warps, columns // lanes // beside, run // near, lanes, beside, near)
    x = reshape(frame, x, (*before, *apart, *behind))
    order = [*range(len(x.shape))]
    order[axis : axis + 6] = (axis + n for n in (0, 2, 5, 1, 4, 3))
    return reshape(frame, permute(frame, x, tuple(order)), (*before, warps, run, columns, *behind))


def _columns_last(frame: Frame, x: Tile, axis: int, sizes: tuple[int, int, int]) -> Tile:
    """Runs along `axis + 1`, numbered by `axis`, as (warps, run, lanes) of `sizes` (warps, lanes,
    run)."""
    apart = reshape(frame, x, (*x.shape[:axis], *sizes, *x.shape[axis + 2 :]))
    return transpose(frame, apart, axis + 1, axis + 2)


def _order(x: Any, axis: Any, way: str, downward: Any, return_indices: Any, name: str) -> Order:
    if not isinstance(x, Tile):
        raise Mistake(f"{name} expects a tile, found {describe(x)}", argument="x")
    refuse_fp8(x.dtype, name)
    for argument, value in ((way, downward), ("return_indices", return_indices)):
        if not isinstance(value, bool):
            raise Mistake(f"{argument} must be True or False", argument=argument)
    along = check_axis(axis, len(x.shape))
    return Order(x.dtype, along, power_above(x.shape[along]), downward, return_indices)


def _first(frame: Frame, x: Tile, axis: int, count: int) -> Tile:
    """The first `count` elements along `axis`."""
    if count == x.shape[axis]:
        return x
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    numbers = places(frame, shape, axis)
    return Tile(TakeOp.build(x.value, numbers.value, axis=axis), x.dtype, shape)


BUILTINS: Mapping[Any, Callable[..., Any]] = {
    tl.exchange: exchange,
    tl.sort: sort,
    tl.topk: topk,
}
