"""How many iterations of a loop may be under way while others are worked on.

What a loop loads for its next turn comes while it works on this one: a turn has to take as long as
memory does. Each iteration more takes registers, and a thread of more than a few leaves room for
fewer beside it, which hide the latency as well.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.gpu_tile.types import layout_of
from tilec.dialects.tile.reduction import Combining
from tilec.dialects.types import is_tile
from tilec.hardware.sizes import VECTOR_BYTES, WORD_BYTES
from tilec.hardware.target import Target
from tilec.passes.analysis.register_pressure import registers_of
from tilec.passes.copies.loads_ahead import AheadLoads
from tilec.passes.layouts.axis_levels import Place, axis_levels
from tilec.passes.rewriting.free_ops import is_one_element
from tilec.passes.rewriting.loops import terminator
from tilec.passes.rewriting.walk import find_ops

WORDS_AHEAD = 96
"""Registers of a thread that may hold what later iterations of an unrolled loop need."""
MOST_TIMES = 8
"""Iterations of an unrolled loop's body: beside 4, selective scans in 4 warps take 161 us for 213,
73 for 95 and 95 for 125 (H200)."""
MOST_OF_WORDS = 16
"""The same where a thread loads a register in each: sums over 5327 images of 23 x 143 f32 in 8
parts take 32.1 us for 48.4, whole 217 for 350 (H200)."""
MOST_INSTRUCTIONS = 512
"""Of a thread in an unrolled loop's body, about: an element of a tile each."""
HELD_THREADS = 1024
"""Of a multiprocessor, that loops leave registers for which hide the latency with fewer iterations:
a delta rule of 4096 steps with two sums of 32 lanes each, its share of a step loaded ahead too,
takes 2.26 ms with 4 iterations in threads of 64 registers; with 8 in 134, which a multiprocessor
holds 256 of, and the share in its place 6.35 (H200)."""
OF_MANY = 2
"""Iterations that only add up, or hand nothing on, loaded at once where there are many programs,
which hide the latency for each other: a thread holds no more registers than leave a multiprocessor
all its threads. Sums of 32768 to 524288 rows of 1024 to 16384 f16 take 238 to 243 us so, with 8
iterations ahead 250 to 267, with 4 ahead as long but for rows of 5000 (243 for 240), of 8192 rows
of 32768 f32 239, one by one 246; 8960 rows times a vector 41.9, with 8 ahead 47.5, 2 ahead 42.8.
Norms of 4096 rows of 4096 bf16 in steps of 1024 take 19.4 us, with 8 ahead, in 198 registers, 30.5,
of 16384 of 5120 95 and 145, upper triangles of 4096 x 4096 in steps of 2048 17.6 and 22.3; but
norms of 2048 of 16384, which are few programs, 52 and 40 (H200)."""
_ADDING = (
    *("arith.addf", "arith.addi", "arith.maximumf", "arith.minimumf", "arith.maxnumf"),
    *("arith.minnumf", "arith.maxsi", "arith.minsi", "arith.maxui", "arith.minui"),
)
CLOCKS, STEP_CLOCKS, MEETING_CLOCKS, LATENCY = 100, 30, 150, 800
"""Of an iteration without what threads pass on; of one step of that, from lane to lane; of a buffer
between warps, with its barrier; and from a request to its line."""


def iterations_ahead(found: AheadLoads, room: int, held: int, target: Target) -> int:
    """How many iterations of a loop may be under way, a power of two.

    `room`: registers of a thread beside the `held` that it holds while one iteration is worked on.
    """
    by_numbers = found.goes_by_numbers or any(map(is_one_element, found.loads))
    is_a_word = found.registers == 1 and not by_numbers
    times = MOST_OF_WORDS if is_a_word and only_adds(found.loop) else MOST_TIMES
    while times > 1 and not _fits(found, times, room):
        times //= 2
    few, clocks = target.registers_per_sm // HELD_THREADS, _least_clocks(found.loop)
    while held + (2 * times - 1) * found.registers > few and times // 2 * clocks >= LATENCY:
        times //= 2
    return times


def has_several_vectors(found: AheadLoads) -> bool:
    """Whether a thread has more than one vector of a tile: then fewer threads have as much under
    way, and 8 iterations ahead are as good or better (rows of 2048, 5000 and 4099 f32 take 240, 238
    and 238 us so, with `OF_MANY` at once 239, 240 and 243, H200). Not of rows that go by numbers,
    which come out of L2: sums of 3 rows of 320 bf16, 30000 of them, take 12.1 us with `OF_MANY` at
    once, 17.5 with 8 ahead, 20000 of 4 of 768 f16 17.7 and 25.4 (H200)."""
    vectors = (registers_of(load.results[0]) * WORD_BYTES > VECTOR_BYTES for load in found.loads)
    return not found.goes_by_numbers and any(vectors)


def only_adds(loop: ir.Operation) -> bool:
    """Whether a loop hands on what its iterations add up, and nothing else."""
    body = loop.regions[0].blocks[0]
    carried, yielded = list(body.arguments)[1:], list(terminator(body).operands)
    for argument, value in zip(carried, yielded, strict=True):
        users = [use.owner.operation for use in argument.uses]
        if len(users) != 1 or users[0].name not in _ADDING or users[0].results[0] != value:
            return False
    return bool(carried)


def carries(loop: ir.Operation) -> bool:
    """Whether a loop hands anything on from iteration to iteration."""
    return len(loop.regions[0].blocks[0].arguments) > 1


def iterations_at_once(found: AheadLoads, room: int, *, are_few: bool) -> int:
    """How many iterations of a loop may load at once what each works on, 1 to half of `MOST_TIMES`:
    there is none between that works meanwhile, and a last turn of few has less to load in vain. Up
    to `MOST_OF_WORDS` where programs `are_few`: others do not hide the latency.

    `room`: as of `iterations_ahead`, where elements have a register each.
    """
    words = sum(layout_of(load.results[0]).num_values for load in found.loads)
    times = MOST_OF_WORDS if are_few else MOST_TIMES // 2
    while times > 1 and not times * words <= min(WORDS_AHEAD, room):
        times //= 2
    return times


def _fits(found: AheadLoads, times: int, room: int) -> bool:
    """Whether `times` iterations' loads fit beside those that are worked on."""
    words = found.registers
    body = found.loop.regions[0].blocks[0]
    tiles = [r for view in body.operations for r in view.operation.results if is_tile(r)]
    work = sum(layout_of(tile).num_values for tile in tiles)
    fits = times * words <= WORDS_AHEAD and 2 * times * words <= room + words
    return fits and times * work <= MOST_INSTRUCTIONS


def _least_clocks(loop: ir.Operation) -> int:
    """Clocks of an iteration, at least: threads pass on what they reduce or scan step by step."""
    steps = meetings = 0
    for op in find_ops(loop, Combining):
        levels = axis_levels(layout_of(op.operands[0]), op.opview.axis)
        steps += sum((level.size - 1).bit_length() for level in levels if level.place is Place.LANE)
        meetings += any(level.place is Place.WARP for level in levels)
    return CLOCKS + STEP_CLOCKS * steps + MEETING_CLOCKS * meetings
