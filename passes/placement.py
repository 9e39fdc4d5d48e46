"""Where allocations that are alive at different times lie: the same memory, one after the other."""

from __future__ import annotations

from tilec.passes.lifetimes import Allocation


def place(allocations: list[Allocation]) -> int:
    """Fills in offsets; returns how much memory they take together.

    Largest first, each at the lowest free offset among those that are alive with it.
    """
    placed: list[Allocation] = []
    for each in sorted(allocations, key=lambda a: -a.size):
        each.offset = _lowest_offset(each, placed)
        placed.append(each)
    return max((a.offset + a.size for a in placed), default=0)


def _lowest_offset(allocation: Allocation, placed: list[Allocation]) -> int:
    align = allocation.alignment
    offset = 0
    for other in sorted((a for a in placed if a.meets(allocation)), key=lambda a: a.offset):
        if offset + allocation.size <= other.offset:
            break
        end = other.offset + other.size
        offset = max(offset, -(-end // align) * align)
    return offset
