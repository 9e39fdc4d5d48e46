"""What a layout conversion costs, by shuffles inside warps or through shared memory: who chooses
layouts and who makes the conversions asks here.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

from tilec.hardware.layout import Layout
from tilec.hardware.sizes import VECTOR_BYTES, WARP_SIZE, WORD_BITS
from tilec.passes.layouts.lane_moves import LaneMove, lane_move
from tilec.passes.layouts.op_costs import SHUFFLE_SLOTS, SLOT_BYTES, TAKE_SLOTS

CONVERSION_COST = 1024
"""Bytes of traffic the two barriers of a conversion through shared memory are worth: 64 clocks at
`LINE_COST`. Not timed by itself."""
SHARED_READ_COST = TAKE_SLOTS * SLOT_BYTES
"""Bytes of traffic one warp-wide read of shared memory is worth: a clock."""


def conversion_cost(
    shape: tuple[int, ...], element_bytes: int, source: Layout, result: Layout
) -> int:
    """Bytes of traffic that a conversion between threads is worth, the cheaper way."""
    move = cheap_lane_move(shape, element_bytes, source, result)
    if isinstance(move, LaneMove):
        return _shuffle_slots(move, element_bytes, result) * SLOT_BYTES
    return _shared_cost(shape, element_bytes, result)


@lru_cache(maxsize=4096)
def cheap_lane_move(
    shape: tuple[int, ...], element_bytes: int, source: Layout, result: Layout
) -> LaneMove | str:
    """Says how shuffles convert a tile, or why shared memory does it for less.

    Counted in issue slots of the whole CTA. Through shared memory a warp writes and reads a word a
    clock in each lane, as a shuffle takes one, and the CTA meets twice.
    """
    move = lane_move(source, result, shape)
    if isinstance(move, str):
        return move
    shuffled = _shuffle_slots(move, element_bytes, result)
    words = -(-(source.num_values + result.num_values) * element_bytes * 8 // WORD_BITS)
    shared = CONVERSION_COST // SLOT_BYTES + _warps(result) * words * TAKE_SLOTS
    if shuffled > shared:
        moved, others = move.counts(8 * element_bytes)
        return f"{moved} shuffles and {others} other instructions of each warp cost more"
    return move


def _shuffle_slots(move: LaneMove, element_bytes: int, result: Layout) -> int:
    moved, others = move.counts(8 * element_bytes)
    return _warps(result) * (moved * SHUFFLE_SLOTS + others)


def _shared_cost(shape: tuple[int, ...], element_bytes: int, into: Layout) -> int:
    """Bytes of traffic a conversion through shared memory is worth: written once, read once, and
    again by threads that repeat what others hold, in at least as many instructions as it takes.

    Bytes (and bits, of i1) come as words of four that each thread takes apart.
    """
    first = into.values[0] if into.values else None
    run = first.size & -first.size if first is not None and first.stride == 1 else 1
    run = min(run, VECTOR_BYTES // element_bytes)
    reads = _warps(into) * -(-into.num_values // run) * SHARED_READ_COST
    apart = _warps(into) * into.num_values * SLOT_BYTES if element_bytes == 1 else 0
    return CONVERSION_COST + max(prod(shape) * element_bytes, reads) + apart


def _warps(layout: Layout) -> int:
    return max(1, layout.num_threads // WARP_SIZE)
