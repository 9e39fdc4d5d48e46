"""Which of two ways the gradients of attention take.

Two kernels can each compute the scores of a block and their gradients: seven products. Or the one
that holds keys hands the gradients on through memory (`handed_kernels.py`): five.
"""

from __future__ import annotations

from math import prod

from tilec.costs.machine import Machine
from tilec.ops.attention_plan import Shapes

MOST_BYTES = 1 << 30
"""Of memory that a call takes for them, beside its results."""
DEALT = 32
"""Queries that change places there (`gradient_kernels.dealt`): four pairs, which are a vector of 16
bytes, for each of the four threads that have a row of a product's sums."""
PRODUCTS = 3
"""Of the kernel that computes them again for the gradients of queries."""


def heads_at_once(sizes: Shapes, number: int, machine: Machine) -> int:
    """Of how many heads of keys the gradients of scores, of `number` bytes each, go through memory
    at a time; 0: they are computed twice."""
    one = number * prod(handed_shape(sizes, 1))
    heads = min(sizes.batch * sizes.few, MOST_BYTES // one)
    return heads if heads and _saves(sizes, number, machine) else 0


def handed_shape(sizes: Shapes, heads: int) -> tuple[int, int, int]:
    """The shape of the array that hands them on, of so many heads of keys."""
    row = -(-sizes.length // DEALT) * DEALT
    return heads * (sizes.heads // sizes.few), sizes.keys, row


def _saves(sizes: Shapes, number: int, machine: Machine) -> bool:
    """Whether they come from memory, beside the last product, faster than they are computed again.
    That they are written costs nothing: products take longer."""
    rates, speed = machine.rates, machine.target.speed
    clock = machine.multiprocessors * machine.clock_mhz * 1e6
    product = sizes.elements + sizes.others  # two operations for each element of either
    product /= speed.tensor_flops * rates.tensor_efficiency * clock
    read = number / (machine.memory_gb_per_s * 1e9 * rates.dram_efficiency)
    return max(product, read) < PRODUCTS * product + 1 / (rates.functions * clock)
