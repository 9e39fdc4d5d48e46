"""Powers of two: what counts of threads, columns and lanes are rounded to."""

from __future__ import annotations


def power_above(number: int) -> int:
    """The least power of two that is not below `number`, 1 for 0."""
    return 1 << max(0, number - 1).bit_length()


def power_below(number: int) -> int:
    """The greatest power of two that is not above `number`, 1 for 0."""
    return 1 << (max(1, number).bit_length() - 1)
