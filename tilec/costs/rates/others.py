"""Rates of targets on whose devices nobody has timed the model's tiles.

Where nothing else is known they are Hopper's.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

from tilec.costs.rates.sm_90a import RATES as HOPPER

SINGLE_WARPS = replace(
    HOPPER,
    record="sm80-products-h200-2026-11-21.json",
    shared_bytes=144,
    tensor_efficiency=0.9,
    l2_bytes_for_all=64,
    merging=inf,
    gain=1.3,
)
"""Of targets whose single warps multiply: as these reach shared memory and tensor cores on an H200,
which the record is of."""

STATED = replace(
    HOPPER, record="", l2_bytes_for_all=64, merging=inf, tensor_efficiency=1.0, gain=2.0
)
"""Of targets with tensor memory, without a margin for what a program loses: so a prediction ranks
tiles by the unit they keep busiest, and is too short as a time. A line of 128 bytes from L2 in two
clocks, as since Volta (Jia et al., arXiv:1804.06826, table 3.1); 32 banks of 4 bytes (CUDA C++
Programming Guide, "Shared Memory"). Products are issued one behind the other by a thread that does
nothing else: nothing lies between them."""
