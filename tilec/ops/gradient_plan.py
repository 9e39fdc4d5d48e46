"""Which of two ways the gradients of attention take.

Two kernels can each compute the scores of a block and their gradients: seven products. Or the one
that holds keys hands the gradients on through memory (`handed_kernels.py`): five.
"""

from __future__ import annotations

from math import prod

from tilec.costs.machine import Machine
from tilec.ops.attention_plan import Shapes

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
    rates, speed = machine.rates, machine.target.speed
    clock = machine.multiprocessors * machine.clock_mhz * 1e6
    product = sizes.elements + sizes.others  # two operations for each element of either
    product /= speed.tensor_flops * rates.tensor_efficiency * clock
    read = number / (machine.memory_gb_per_s * 1e9 * rates.dram_efficiency)
    handed = max(product, read) + WRITTEN * read
    return handed < PRODUCTS * product + 1 / (rates.functions * clock)
