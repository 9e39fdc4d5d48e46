"""Which of three ways the gradients of attention take.

Two kernels can each compute the scores of a block and their gradients: seven products. Or the one
that holds keys hands the gradients on through memory (`handed_kernels.py`): five. Or, where there
are few programs, one kernel does what the two do, in small blocks (`paired_kernels.py`).
"""

from __future__ import annotations

from math import prod

from tilec.costs.machine import Machine
from tilec.hardware.powers import power_below
from tilec.hardware.target import Feature
from tilec.ops.attention_plan import Shapes
from tilec.records import dataclass

MOST_BYTES = 1 << 31
"""Of memory that a call takes for them, beside its results, where the caller names no `scratch`.
With half of it heads of 128 elements, 16384 long, take 1.03 times as long, causal 1.05 times; with
twice as much 0.97 to 1.00 (H200)."""
DEALT = 32
"""Queries that change places there (`gradient_kernels.dealt`): four pairs, which are a vector of 16
bytes, for each of the four threads that have a row of a product's sums."""
BLOCK = 128
"""Queries, and keys, of the blocks of which all is there or nothing under a causal mask."""
PRODUCTS = 3
"""Of the kernel that computes them again for the gradients of queries."""
WRITTEN = 0.6
"""Of the time to read them, all else that it costs: to write them beside products, another launch,
some heads at a time. 0.4 to 0.5 for full, to 0.9 for causal gradients (H200)."""
LEAST_ROUNDS = 1.5
"""Programs a multiprocessor of a launch that is one of several: at its end it waits for the longest
of them. Of 64 heads of 128 elements, 4096 long, 4 at a time (1.0 of these) take 1.20 times as long
as all at once, causal 1.28 times, causal 8 (1.9) 1.07
and 16 (3.9) 1.03 times; computed twice 1.14 and 1.09 times (H200)."""
MOST_HEADS = 1 << 16
"""Of queries, of all batches: so far are their numbers known to fit indices of 32 bits."""

HELD, WIDE = 64, 128
"""Keys, or queries, that a program of one kernel holds: the rows of an instruction of one
warpgroup, or of two."""
MOST_PAIRED, MOST_WIDE = 128, 64
"""Elements of a head there: sums of more take more registers than such a program has."""
SECOND = 5.5
"""Steps of `HELD` by `HELD` of such a program that a second launch takes, and its CTAs that come
together (4.4 us of 0.8 with 64 elements; 8 of 1.0 with 128; H200)."""
LARGE = 2.4
"""Of these steps, that a program of two kernels takes for each of its own, in both: 128 rows by
64 to 128 a step, of which CTAs of a cluster share the work (`LARGEST_PARTS` at most)."""
LARGEST_PARTS = 8
"""As many as every cluster has CTAs."""
WIDE_STEP = 1.5
"""Of these steps, that one takes with `WIDE` rows."""
OF_KEYS = 8 / 7
"""Of these steps, that one of keys takes: four products, one of queries three."""


@dataclass(frozen=True)
class Paired:
    """One kernel for all gradients: whether programs of keys lie `apart` from those of queries, and
    the rows that each holds."""

    apart: bool
    held: int


def paired(sizes: Shapes, causal: bool, window: int | None, machine: Machine) -> Paired | None:
    """How one kernel computes all gradients; None where two are faster.

    It pays where all programs run at once: a launch less, and under a causal mask all take as long
    where each has both walks. Two kernels cut their few, large programs into parts instead, which
    is better the fewer programs there are, and the longer.
    """
    most, many = max(sizes.elements, sizes.others), machine.multiprocessors
    if most > MOST_PAIRED or not machine.target.supports(Feature.WGMMA):
        return None
    shared, heads = sizes.heads // sizes.few, sizes.batch * sizes.few
    keys, queries = (-(-n // HELD) for n in (sizes.keys, sizes.length))
    large = heads * -(-max(sizes.keys, sizes.length) // BLOCK)
    parts = min(LARGEST_PARTS, power_below(max(1, many // large)))
    seen = max(keys, queries) if window is None else -(-window // HELD) + 1
    of_keys, of_queries = shared * min(queries, seen), min(keys, seen)
    chains: dict[Paired | None, float] = {}
    chains[None] = SECOND + LARGE * (4 * of_keys + 3 * shared * of_queries) / 7 / parts
    if heads * (keys + shared * queries) <= many:
        chains[Paired(True, HELD)] = max(OF_KEYS * of_keys, of_queries)
    if causal and sizes.keys == sizes.length:
        both = min(shared * (keys + 1), of_keys + shared * of_queries)
        if heads * keys <= many:
            chains[Paired(False, HELD)] = both
        elif large <= many and most <= MOST_WIDE and sizes.keys > WIDE:
            chains[Paired(False, WIDE)] = WIDE_STEP * (both + shared)
    return min(chains, key=lambda how: chains[how])


def heads_at_once(sizes: Shapes, number: int, machine: Machine, most: int | None = None) -> int:
    """Of how many heads of keys the gradients of scores, of `number` bytes each, go through memory
    at a time, of which they take `most` bytes, if the caller says how many; 0: they are computed
    twice."""
    if sizes.batch * sizes.heads > MOST_HEADS:
        return 0
    one = number * prod(handed_shape(sizes, 1))
    fitting = (MOST_BYTES if most is None else most) // one
    if not fitting:
        return 0
    every = sizes.batch * sizes.few
    heads = -(-every // -(-every // fitting))  # about as many in the last launch
    return heads if _saves(sizes, heads, number, machine) else 0


def handed_shape(sizes: Shapes, heads: int) -> tuple[int, int, int]:
    """The shape of the array that hands them on, of so many heads of keys."""
    row = -(-sizes.length // DEALT) * DEALT
    return heads * (sizes.heads // sizes.few), sizes.keys, row


def _saves(sizes: Shapes, heads: int, number: int, machine: Machine) -> bool:
    """Whether they go through memory, and come from it beside the last product, faster than they
    are computed again, so many heads of keys at a time."""
    programs = heads * -(-sizes.keys // BLOCK)
    if heads < sizes.batch * sizes.few and programs < LEAST_ROUNDS * machine.multiprocessors:
        return False
    if 2 * programs <= machine.multiprocessors:
        return False  # CTAs of a cluster share the work of each
    rates, speed = machine.rates, machine.target.speed
    clock = machine.multiprocessors * machine.clock_mhz * 1e6
    product = sizes.elements + sizes.others  # two operations for each element of either
    product /= speed.tensor_flops * rates.tensor_efficiency * clock
    read = number / (machine.memory_gb_per_s * 1e9 * rates.dram_efficiency)
    handed = max(product, read) + WRITTEN * read
    return handed < PRODUCTS * product + 1 / (rates.functions * clock)
