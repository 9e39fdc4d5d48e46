"""Layouts worth considering for a tile, and what each costs in memory traffic.

`blocked_layout` spreads a tile over the CTA so that neighbouring lanes hold neighbouring vectors
along the contiguous dimension; `access_cost` counts the 32-byte sectors a warp's accesses touch
(CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory") plus a charge per instruction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod

from tilec.hardware.layout import Layout, Mode, copies, normalize
from tilec.hardware.mma_instruction import MmaInstruction
from tilec.hardware.powers import power_above, power_below
from tilec.hardware.sizes import LINE_BYTES, SECTOR_BYTES, VECTOR_BYTES, WARP_SIZE

INSTRUCTION_COST = 64
"""Bytes of traffic one warp-wide access instruction is worth: half of what one of 4 bytes a thread
moves, so that where sectors are the same the wider and fewer win. Not timed by itself."""
LINE_COST = 16
"""Bytes of traffic each more line of L1 that an instruction reads is worth: a clock, in which DRAM
brings a multiprocessor of an H200 18 (4.8 TB/s over 132 at 1.98 GHz)."""


def neighbours_together(layout: Layout, dim: int) -> Layout:
    """The layout with neighbours along `dim`, of which a thread has several far apart, in one
    thread."""
    apart = [mode for mode in layout.values if mode.dim == dim and mode.size > 1]
    if len(apart) != 1 or apart[0].stride == 1:
        return layout
    each = apart[0].size
    threads = (replace(m, stride=m.stride * each) if m.dim == dim else m for m in layout.threads)
    values = (replace(m, stride=1) if m == apart[0] else m for m in layout.values)
    return normalize(Layout(tuple(threads), tuple(values)))


@lru_cache(maxsize=4096)
def blocked_layout(
    shape: tuple[int, ...],
    contiguous: int,
    width: int,
    num_threads: int,
    *,
    narrow: bool = True,
    along: int | None = None,
) -> Layout:
    """Vectors of `width` along `contiguous`, lanes first along it, then along the other dimensions.

    `narrow`: narrower vectors where there are too few for all threads. `along`: the most threads
    along `contiguous`.

    The split of threads between dimensions is the one with the fewest registers (phantoms count)
    that still gives each row segment a full sector; ties go to longer segments. Of three times a
    power of two of threads each third has a third of the registers, or a copy.
    """
    third = num_threads & -num_threads
    if third != num_threads:
        one = blocked_layout(shape, contiguous, width, third, narrow=narrow, along=along)
        return _dealt(one, num_threads // third, contiguous)
    rank = len(shape)
    if rank == 0:
        return Layout((copies(num_threads),), ())
    order = [contiguous, *(d for d in reversed(range(rank)) if d != contiguous)]
    while width > 1 and (
        shape[contiguous] % width or (narrow and prod(shape) < width * num_threads)
    ):
        width //= 2
    units = [shape[d] // width if d == contiguous else shape[d] for d in order]
    best: tuple[tuple[int, int], list[int]] | None = None
    for count in _powers(num_threads if along is None else min(along, num_threads)):
        split = [count, *_spread(units[1:], num_threads // count)]
        registers = width * prod(-(-u // s) for u, s in zip(units, split, strict=True))
        useful = min(count, units[0])
        # A segment shorter than two sectors halves the useful bytes per request.
        penalty = 2 if useful * width < min(16, shape[contiguous]) else 1
        key = (registers * penalty, -useful)
        if best is None or key < best[0]:
            best = (key, split)
    assert best is not None
    return _block(shape, order, best[1], width, num_threads)


def _dealt(layout: Layout, groups: int, contiguous: int) -> Layout:
    """The slowest registers that fall into `groups` equal parts, vectors along `contiguous` not
    among them, spread over that many times the threads. Where there are none, those farthest apart
    along their dimension, more than one, in parts of which the last ends behind the tile; else
    copies."""
    for number, mode in reversed(list(enumerate(layout.values))):
        if (mode.dim, mode.stride) == (contiguous, 1):
            continue
        if mode.stride and mode.size % groups == 0:
            own = mode.size // groups
            kept = (*layout.values[:number], Mode(own, mode.stride, mode.dim))
            threads = (*layout.threads, Mode(groups, own * mode.stride, mode.dim))
            return normalize(Layout(threads, (*kept, *layout.values[number + 1 :])))
    for number, mode in reversed(list(enumerate(layout.values))):
        if mode.size > 1 and mode.stride and _is_farthest(mode, layout):
            own = -(-mode.size // groups)
            kept = (*layout.values[:number], Mode(own, mode.stride, mode.dim))
            threads = (*layout.threads, Mode(groups, own * mode.stride, mode.dim))
            return normalize(Layout(threads, (*kept, *layout.values[number + 1 :])))
    return normalize(Layout((*layout.threads, copies(groups)), layout.values))


def _is_farthest(mode: Mode, layout: Layout) -> bool:
    """Whether no other step along a mode's dimension is as long as its own."""
    others = [one for one in (*layout.threads, *layout.values) if one != mode]
    return all(one.stride < mode.stride for one in others if one.dim == mode.dim)


def _powers(limit: int) -> Iterable[int]:
    power = 1
    while power <= limit:
        yield power
        power *= 2


def _spread(units: list[int], threads: int) -> list[int]:
    """Threads per dimension, each the largest power of two that does not exceed its units."""
    split = []
    for size in units:
        here = 1
        while here * 2 <= size and here * 2 <= threads:
            here *= 2
        split.append(here)
        threads //= here
    return split


def _block(
    shape: Sequence[int], order: list[int], split: list[int], width: int, num_threads: int
) -> Layout:
    threads, values = [], [Mode(width, 1, order[0])]
    for position, (dim, count) in enumerate(zip(order, split, strict=True)):
        step = width if position == 0 else 1
        useful = 1
        while useful < count and useful * step < shape[dim]:
            useful *= 2
        threads.append(Mode(useful, step, dim))
        if useful < count:
            threads.append(copies(count // useful))
        repeats = -(-shape[dim] // (useful * step))
        values.append(Mode(repeats, useful * step, dim))
    threads.append(copies(num_threads // prod(m.size for m in threads)))
    return normalize(Layout(tuple(threads), tuple(values)))


@lru_cache(maxsize=4096)
def access_cost(
    layout: Layout,
    shape: tuple[int, ...],
    contiguous: int | None,
    element_bytes: int,
    width: int,
    *,
    is_load: bool,
) -> int:
    """Bytes of traffic to load or store the tile from global memory in this layout, whole CTA.

    `width`: neighbours one instruction may move. Instructions that load the rest of up to 16 bytes
    in the registers of a thread find in L1 what the first one brought, in as many lines as it has,
    and so do warps that load what another one does; stores go through to L2.
    """
    rank = len(shape)
    first = layout.values[0] if layout.values else None
    run = together = 1
    if (
        contiguous is not None
        and first is not None
        and (first.dim, first.stride) == (contiguous, 1)
    ):
        held = first.size & -first.size
        run = min(width, held)
        together = max(run, min(held, VECTOR_BYTES // element_bytes)) if is_load else run
    sectors = _touched(layout, rank, contiguous, element_bytes, together, SECTOR_BYTES)
    instruction = INSTRUCTION_COST
    if together > run:
        instruction += (-(-sectors * SECTOR_BYTES // LINE_BYTES) - 1) * LINE_COST
    traffic = sectors * SECTOR_BYTES
    if not is_load and contiguous is not None:
        traffic = _stored(layout, rank, contiguous, element_bytes, run, width)
    warps = max(1, layout.num_threads // WARP_SIZE)
    different = warps // warp_copies(layout) if is_load else warps
    moved = different * traffic + warps * (together // run * instruction)
    return -(-layout.num_values // together) * moved


def _stored(
    layout: Layout, rank: int, contiguous: int, element_bytes: int, run: int, width: int
) -> int:
    """Bytes of the sectors that an instruction of a warp stores to, whole ones, in the mean of all
    places in a sector where rows may begin: at multiples of `width` elements."""
    step = max(1, min(width, SECTOR_BYTES // element_bytes))
    shifts = range(0, SECTOR_BYTES // element_bytes, step)
    touched = sum(
        _touched(layout, rank, contiguous, element_bytes, run, SECTOR_BYTES, shift)
        for shift in shifts
    )
    return touched * SECTOR_BYTES // len(shifts)


def warp_copies(layout: Layout) -> int:
    """How many warps hold the same elements."""
    below = copied = 1
    for mode in layout.threads:
        if not mode.stride:
            copied *= max(1, mode.size // max(1, WARP_SIZE // below))
        below *= mode.size
    return copied


def store_requests(
    layout: Layout, shape: tuple[int, ...], contiguous: int, element_bytes: int, width: int
) -> int:
    """How often stores of a tile in this layout ask L2: an instruction of a warp asks once for each
    line that it touches. `width`: neighbours that one instruction may move."""
    first = layout.values[0] if layout.values else None
    follows = first is not None and (first.dim, first.stride) == (contiguous, 1)
    run = min(width, first.size & -first.size) if first is not None and follows else 1
    lines = _touched(layout, len(shape), contiguous, element_bytes, run, LINE_BYTES)
    return lines * -(-layout.num_values // run) * max(1, layout.num_threads // 32)


def _touched(
    layout: Layout,
    rank: int,
    contiguous: int | None,
    element_bytes: int,
    run: int,
    unit: int,
    shift: int = 0,
) -> int:
    """Units of so many bytes in which a warp has its first `run` neighbours, where rows begin
    `shift` elements behind the beginning of one."""
    units: set[tuple[int, ...]] = set()
    for lane in range(min(32, layout.num_threads)):
        at = list(layout.thread_coordinates(lane, rank))
        if contiguous is None:
            units.add(tuple(at))
            continue
        begin = at[contiguous] + shift
        for element in (begin, begin + run - 1):
            at[contiguous] = element * element_bytes // unit
            units.add(tuple(at))
    return len(units)


def warp_grid(
    instruction: MmaInstruction, shape: Sequence[int], num_warps: int, *, rows_only: bool
) -> tuple[int, int]:
    """Gives (warps along m, warps along n) for an accumulator: fewest padded tiles, then least
    operand traffic.

    `rows_only`: whole rows in one warp, so that a reduction along n needs no shared memory.
    """
    best: tuple[tuple[int, int], tuple[int, int]] | None = None
    for warps_n in _powers(1 if rows_only else num_warps):
        warps_m = num_warps // warps_n
        tiles_m = -(-shape[-2] // (instruction.m * warps_m))
        tiles_n = -(-shape[-1] // (instruction.n * warps_n))
        rows, columns = tiles_m * instruction.m, tiles_n * instruction.n
        key = (rows * columns, rows + columns)
        if best is None or key < best[0]:
            best = (key, (warps_m, warps_n))
    assert best is not None
    return best[1]


def thread_tile_layout(shape: Sequence[int], num_threads: int) -> Layout:
    """The accumulator of a dot by fma: micro-tiles of up to 4x4 per thread, repeated.

    Four neighbours along n and along m let each operand come by 16-byte reads; a warp is as square
    as that allows, so that its reads are few and neighbours.
    """
    rank = len(shape)
    m, n = rank - 2, rank - 1
    tile_m, tile_n = min(4, power_below(shape[m])), min(4, power_below(shape[n]))
    while tile_m * tile_n > 1 and shape[m] * shape[n] < num_threads * tile_m * tile_n:
        if tile_m >= tile_n:
            tile_m //= 2
        else:
            tile_n //= 2
    across = min(power_below(-(-shape[n] // tile_n)), max(1, _square_root(num_threads)))
    down = min(num_threads // across, power_above(-(-shape[m] // tile_m)))
    rest = num_threads // (across * down)
    # A warp is 8 threads along n by 4 along m: 128 bytes of rhs and 64 of lhs per 16-byte read.
    # Lanes 0 and 1 read the same rhs, lanes 0 and 2 the same lhs: `buffer_layouts._pass_lanes`.
    lanes_n = min(8, across)
    lanes_m = min(max(1, 32 // lanes_n), down)
    pair = min(2, lanes_m)
    threads = (
        Mode(pair, tile_m, m),
        Mode(lanes_n, tile_n, n),
        Mode(lanes_m // pair, pair * tile_m, m),
        Mode(across // lanes_n, lanes_n * tile_n, n),
        Mode(down // lanes_m, lanes_m * tile_m, m),
        copies(rest),
    )
    values = (
        Mode(tile_n, 1, n),
        Mode(tile_m, 1, m),
        Mode(-(-shape[n] // (across * tile_n)), across * tile_n, n),
        Mode(-(-shape[m] // (down * tile_m)), down * tile_m, m),
        *(Mode(shape[d], 1, d) for d in range(m)),
    )
    return normalize(Layout(threads, values))


def _square_root(threads: int) -> int:
    """The power of two nearest above the square root."""
    return 1 << ((threads.bit_length()) // 2)
