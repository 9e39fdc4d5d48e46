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
from tilec.frontend.tl_shape import reshape
from tilec.frontend.values import Mistake, Tile, check_axis, describe

HELD = 32
"""Elements that a thread has of a long row (`MET_PER_WARP` in `tilec/compile/program_size.py`): of
runs, those in different registers are merged first, half with half."""


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
    run = _power_above(k)
    network = Network(frame, along)
    keys = order.packed(frame, order.keys(frame, x, order.size))
    columns = order.size // run
    # Neighbours in memory are neighbouring lanes: runs go across, along registers where they fit.
    shape = (*x.shape[:along], run, columns, *x.shape[along + 1 :])
    keys = network.sorted(tuple(reshape(frame, key, shape) for key in keys), run)
    while columns > max(LANES, order.size // HELD):
        keys = network.best_of_halves(keys, run)
        columns //= 2
    keys = network.best_of_all(keys, run, columns)
    keys = tuple(_first(frame, key, along, k) for key in keys)
    return order.unpacked(frame, keys)


def _power_above(size: int) -> int:
    return 1 << (size - 1).bit_length()


def _order(x: Any, axis: Any, way: str, downward: Any, return_indices: Any, name: str) -> Order:
    if not isinstance(x, Tile):
        raise Mistake(f"{name} expects a tile, found {describe(x)}", argument="x")
    refuse_fp8(x.dtype, name)
    for argument, value in ((way, downward), ("return_indices", return_indices)):
        if not isinstance(value, bool):
            raise Mistake(f"{argument} must be True or False", argument=argument)
    along = check_axis(axis, len(x.shape))
    return Order(x.dtype, along, _power_above(x.shape[along]), downward, return_indices)


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
