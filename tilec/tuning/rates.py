"""Rates of a multiprocessor that predictions count with and no target states as its speed.

Of `sm_90a` (and, for want of others, `sm_80`) they were fitted to timings on an H200. Of `sm_100a`
nobody has timed anything: they are what NVIDIA states, without a margin for what a program loses.
So a prediction there ranks tiles by which unit they keep busiest, and is too short as a time.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilec.target import Feature, Target


@dataclass(frozen=True)
class Rates:
    """`l2_bytes`, `shared_bytes`: a clock, of one multiprocessor; `l2_bytes_for_all`: where all of
    them ask. `tensor_efficiency`: of tensor cores that are kept busy. `fitted`: whether they come
    from timings."""

    l2_bytes: int
    l2_bytes_for_all: int
    shared_bytes: int
    tensor_efficiency: float
    fitted: bool


FITTED = Rates(72, 60, 160, 0.85, True)
"""64 and 128 bytes, where the clock is an eighth above the one that predictions count with (and a
tenth more, because not all that is counted passes shared memory twice); tensor cores of two
warpgroups lose what lies between instructions, and the clock falls under load."""
SINGLE_WARPS = Rates(72, 72, 144, 0.9, True)
"""The same as single warps reach them, which leave room for more beside."""
STATED = Rates(64, 64, 128, 1.0, False)
"""A line of 128 bytes from L2 in two clocks, as since Volta (Jia et al., arXiv:1804.06826, table
3.1, and the fit above); 32 banks of 4 bytes (CUDA C++ Programming Guide, "Shared Memory"). Products
are issued one behind the other by a thread that does nothing else: nothing lies between them."""


def rates_of(target: Target) -> Rates:
    """The rates of the usual device of a target."""
    if target.supports(Feature.TCGEN05):
        return STATED
    return FITTED if target.supports(Feature.WGMMA) else SINGLE_WARPS
