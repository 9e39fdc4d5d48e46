"""Chooses how a tile lies in shared memory so that the accesses on both sides have no bank
conflicts.

Shared memory has 32 banks of 4 bytes; a warp's access runs in as many passes as its busiest bank
has distinct words, taken over the whole warp for accesses of up to 4 bytes, over half warps for 8
and over quarter warps for 16 (CUDA C++ Programming Guide, "Shared Memory").
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, permutations
from math import prod

from tilec.layout import Layout
from tilec.passes.matrix_load import plan_matrix_load
from tilec.passes.vector_width import shared_width
from tilec.shared_layout import SharedLayout, strided

BANKS, BANK_BYTES = 32, 4
UNIT_BYTES = 16
"""What a swizzle moves as a whole: an ldmatrix row, the widest access."""


@lru_cache(maxsize=1024)
def choose_shared_layout(
    shape: tuple[int, ...],
    element_bytes: int,
    accesses: tuple[Layout, ...],
    fragments: tuple[tuple[Layout, tuple[int, ...]], ...] = (),
) -> SharedLayout:
    """The padded row-major order (of any dimension order) with the cheapest accesses, then least
    memory.

    `fragments`: layouts of sub-tiles (with their shape) that are read by ldmatrix where that fits.
    """
    best: tuple[tuple[int, int], SharedLayout] | None = None
    candidates = _candidates(shape, element_bytes)
    if fragments:
        # Asynchronous copies write whole 128-byte lines only where rows keep their alignment, which
        # padding destroys: measured 2.3 instead of 4 sectors a request on an H200.
        candidates = _swizzled(shape, element_bytes) + candidates
    for candidate in candidates:
        costs = chain(
            (access_passes(candidate, layout, element_bytes) for layout in accesses),
            (fragment_passes(candidate, layout, part, element_bytes) for layout, part in fragments),
        )
        passes = 0
        for cost in costs:
            passes += cost
            if best is not None and passes > best[0][0]:
                break
        key = (passes, candidate.span)
        if best is None or key < best[0]:
            best = (key, candidate)
    assert best is not None
    return best[1]


def _candidates(shape: tuple[int, ...], element_bytes: int) -> list[SharedLayout]:
    rank = len(shape)
    if rank <= 1:
        return [strided(shape, [1] * rank)]
    found = []
    orders = list(permutations(range(rank))) if rank <= 3 else [tuple(reversed(range(rank)))]
    for order in orders:
        for pad_bytes in (0, 4, 8, 16, 32):
            pad = pad_bytes // element_bytes
            if pad_bytes and not pad:
                continue
            strides, step = [0] * rank, 1
            for position, dim in enumerate(order):
                strides[dim] = step
                step *= shape[dim]
                if position == 0:
                    step += pad
            found.append(strided(shape, strides))
    return found


def _swizzled(shape: tuple[int, ...], element_bytes: int) -> list[SharedLayout]:
    """Dense orders whose rows are a power of two of bytes, 16-byte units XORed by the row number.

    Eight rows at one column then fall into eight different bank groups: the source bits are those
    of the row number, from bit 7 (128 bytes hold all banks once) or the pitch, whichever is higher.
    """
    found = []
    for order in permutations(range(len(shape))) if 2 <= len(shape) <= 3 else ():
        pitch = shape[order[0]] * element_bytes
        if pitch & (pitch - 1) or pitch < 2 * UNIT_BYTES:
            continue
        strides, step = [0] * len(shape), 1
        for dim in order:
            strides[dim] = step
            step *= shape[dim]
        power = pitch.bit_length() - 1
        bits = min(3, power - 4)
        found.append(SharedLayout(strided(shape, strides).dims, (bits, 4, max(7, power) - 4)))
    return found


def access_passes(shared: SharedLayout, layout: Layout, element_bytes: int) -> int:
    """Passes through shared memory that one warp needs to move the whole tile."""
    shape = shared.shape
    rank = len(shape)
    width = shared_width(shared, layout, rank, element_bytes)
    lanes = max(1, min(32, 128 // (width * element_bytes)))
    passes = 0
    for first in range(0, 32, lanes):
        banks: dict[int, set[int]] = {}
        for lane in range(first, min(32, first + lanes)):
            at = layout.thread_coordinates(lane % layout.num_threads, rank)
            start = shared.address(_inside(at, shape), element_bytes)
            for byte in range(start, start + width * element_bytes, BANK_BYTES):
                word = byte // BANK_BYTES
                banks.setdefault(word % BANKS, set()).add(word)
        passes += max(len(words) for words in banks.values())
    return passes * -(-layout.num_values // width)


def fragment_passes(
    shared: SharedLayout, layout: Layout, part: tuple[int, ...], element_bytes: int
) -> int:
    """Passes one warp needs to read all fragments of the buffer, `part` (a k-step) at a time."""
    shape = shared.shape
    steps = prod(shape) // prod(part)
    plan = plan_matrix_load(layout, part, shared, element_bytes)
    if plan is None:
        return max(1, steps) * access_passes(shared, layout, element_bytes)
    passes = 0
    for matrix in range(plan.matrices):
        banks: dict[int, int] = {}
        for lane in range(8 * matrix, 8 * matrix + 8):
            at = plan.rows.thread_coordinates(lane, len(part))
            first = shared.address(_inside(at, shape), element_bytes) // BANK_BYTES
            for word in range(first, first + 4):
                banks[word % BANKS] = banks.get(word % BANKS, 0) + 1
        passes += max(banks.values())
    return max(1, steps) * passes * plan.rows.num_values


def _inside(at: Sequence[int], shape: Sequence[int]) -> tuple[int, ...]:
    """Phantoms do not access memory; counting them at the edge is close enough."""
    return tuple(min(a, s - 1) for a, s in zip(at, shape, strict=True))
