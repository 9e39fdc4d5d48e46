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

from mlir import ir

from tilec.dialects.gpu_tile.types import BufferType, layout_of
from tilec.dialects.types import byte_width, element, shape
from tilec.hardware.layout import Layout
from tilec.hardware.shared_layout import SharedLayout, strided
from tilec.hardware.sizes import BANK_BYTES, BANKS, VECTOR_BYTES
from tilec.passes.layouts.matrix_load import plan_matrix_load
from tilec.passes.layouts.runs import shared_width


def buffer_for(
    tile: ir.Value,
    *accesses: Layout,
    fragments: tuple[tuple[Layout, tuple[int, ...]], ...] = (),
    per_instruction: int = 0,
) -> BufferType:
    """The buffer of a tile, as it lies best for accesses in these layouts, the tile's own without;
    the rest: see `choose_shared_layout`."""
    layouts, bytes_ = accesses or (layout_of(tile),), byte_width(element(tile))
    shared = choose_shared_layout(shape(tile), bytes_, layouts, fragments, per_instruction)
    return BufferType.of(tile, shared)


def cheapest_buffer(
    tile: ir.Value, written: Layout, read: Sequence[Layout]
) -> tuple[BufferType, Layout]:
    """The buffer that a tile is written to, and in which of the layouts `read` it is read with the
    fewest passes and instructions."""
    bytes_ = byte_width(element(tile))
    found = {
        one: choose_shared_layout(shape(tile), bytes_, (written, one), per_instruction=1)
        for one in read
    }

    def cost(one: Layout) -> int:
        return sum(access_cost(found[one], each, bytes_, 1) for each in (written, one))

    layout = min(read, key=cost)
    return BufferType.of(tile, found[layout]), layout


@lru_cache(maxsize=1024)
def choose_shared_layout(
    shape: tuple[int, ...],
    element_bytes: int,
    accesses: tuple[Layout, ...],
    fragments: tuple[tuple[Layout, tuple[int, ...]], ...] = (),
    per_instruction: int = 0,
) -> SharedLayout:
    """The padded row-major order (of any dimension order) with the cheapest accesses, then least
    memory.

    `fragments`: layouts of sub-tiles (with their shape) that are read by ldmatrix where that fits.
    `per_instruction`: what an access costs besides its passes, in passes.
    """
    best: tuple[tuple[int, int], SharedLayout] | None = None
    candidates = _candidates(shape, element_bytes)
    if fragments:
        # Asynchronous copies write whole 128-byte lines only where rows keep their alignment, which
        # padding destroys: measured 2.3 instead of 4 sectors a request on an H200.
        candidates = _swizzled(shape, element_bytes) + candidates
    for candidate in candidates:
        costs = chain(
            (access_cost(candidate, layout, element_bytes, per_instruction) for layout in accesses),
            (
                fragment_cost(candidate, layout, part, element_bytes, per_instruction)
                for layout, part in fragments
            ),
        )
        total = 0
        for cost in costs:
            total += cost
            if best is not None and total > best[0][0]:
                break
        key = (total, candidate.span)
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
    """Lists dense layouts whose rows are a power of two of bytes, 16-byte units XORed by the row
    number.

    Eight rows at one column then fall into eight different bank groups: the source bits are those
    of the row number, from bit 7 (128 bytes hold all banks once) or the pitch, whichever is higher.
    """
    found = []
    for order in permutations(range(len(shape))) if 2 <= len(shape) <= 3 else ():
        pitch = shape[order[0]] * element_bytes
        if pitch & (pitch - 1) or pitch < 2 * VECTOR_BYTES:
            continue
        strides, step = [0] * len(shape), 1
        for dim in order:
            strides[dim] = step
            step *= shape[dim]
        power = pitch.bit_length() - 1
        bits = min(3, power - 4)
        found.append(SharedLayout(strided(shape, strides).dims, (bits, 4, max(7, power) - 4)))
    return found


def access_cost(
    shared: SharedLayout, layout: Layout, element_bytes: int, per_instruction: int
) -> int:
    """Passes through shared memory that one warp needs to move the whole tile, and
    `per_instruction` for each that asks for some."""
    rank = len(shared.shape)
    width = shared_width(shared, layout, rank, element_bytes)
    size = width * element_bytes
    starts = []
    for lane in range(32):
        at = layout.thread_coordinates(lane % layout.num_threads, rank)
        starts.append(shared.address(_inside(at, shared.shape), element_bytes))
    lanes = _pass_lanes(starts, size)
    groups = [starts[first : first + lanes] for first in range(0, 32, lanes)]
    passes = sum(_busiest_bank(group, size) for group in groups)
    return (passes + per_instruction) * -(-layout.num_values // width)


def _pass_lanes(starts: Sequence[int], size: int) -> int:
    """Lanes of a warp whose accesses of `size` bytes are served together: as many as move 128
    bytes, twice as many where all lanes that differ in bit 0, or all that differ in bit 1, meet at
    the same address. The second half is measured on an H200 (4 or 2 passes for a 16-byte read of
    one row by all); no document says so."""
    lanes = max(1, min(32, 128 // size))
    meet = any(all(starts[i] == starts[i ^ bit] for i in range(32)) for bit in (1, 2))
    return min(32, 2 * lanes) if meet else lanes


def _busiest_bank(starts: Sequence[int], size: int) -> int:
    banks: dict[int, set[int]] = {}
    for start in starts:
        for byte in range(start, start + size, BANK_BYTES):
            word = byte // BANK_BYTES
            banks.setdefault(word % BANKS, set()).add(word)
    return max(len(words) for words in banks.values())


def fragment_cost(
    shared: SharedLayout,
    layout: Layout,
    part: tuple[int, ...],
    element_bytes: int,
    per_instruction: int,
) -> int:
    """What `access_cost` counts, for a warp that reads all fragments of the buffer, `part` (a
    k-step) at a time."""
    shape = shared.shape
    steps = prod(shape) // prod(part)
    plan = plan_matrix_load(layout, part, shared, element_bytes)
    if plan is None:
        return max(1, steps) * access_cost(shared, layout, element_bytes, per_instruction)
    passes = 0
    for matrix in range(plan.matrices):
        banks: dict[int, int] = {}
        for lane in range(8 * matrix, 8 * matrix + 8):
            at = plan.rows.thread_coordinates(lane, len(part))
            first = shared.address(_inside(at, shape), element_bytes) // BANK_BYTES
            for word in range(first, first + 4):
                banks[word % BANKS] = banks.get(word % BANKS, 0) + 1
        passes += max(banks.values())
    return max(1, steps) * (passes + per_instruction) * plan.rows.num_values


def _inside(at: Sequence[int], shape: Sequence[int]) -> tuple[int, ...]:
    """Moves a coordinate past the edge, a phantom's, to the edge: it accesses nothing, and counting
    it there is close enough."""
    return tuple(min(a, s - 1) for a, s in zip(at, shape, strict=True))
