"""Limits of kernels whose tiles hold whole rows: expressions over sizes, as other limits are."""

from __future__ import annotations

import re

_FORM = re.compile(r"max\((?P<size>\w+\.shape\[\d+\]), \d+ \* \(1 - (?P=size)\)\)")


def held_limit(size: str, most: int) -> str:
    """What is more than `most` where a size is, or where it is 0."""
    return f"max({size}, {most + 1} * (1 - {size}))"


def held_size(text: str) -> str | None:
    """The size that such a limit is about; None of any other limit."""
    found = _FORM.fullmatch(text)
    return None if found is None else found["size"]
