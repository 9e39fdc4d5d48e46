"""Shapes of tiles that loops walk on by in arrays of several dimensions, for the model to rank.

A tile of a loop has so many elements, whatever its shape. Which shape is fast follows from the
call: long rows and few columns of them leave few programs, with little under way, and short rows
leave threads without work; many columns a program fill lines, few of them make programs. So shapes
of about as many elements are predicted, then larger and smaller tiles of those that promise most.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from tilec.hardware.powers import power_above
from tilec.hardware.sizes import WARP_SIZE

LEAST_ROW = 16
"""Elements of a row at least: with 2 bytes each a sector of a line (32 bytes)."""
PROMISING = 2
"""Shapes, the fastest by prediction, of which other sizes are predicted."""
TIMES = (1 / 8, 1 / 4, 1 / 2, 2)
"""Times as many rows."""
TIMES_ALONE = (1 / 64, 1 / 32, 1 / 16, *TIMES)
"""Times as many elements of an only side, down to a warp's: beside loops that take one row after
the other long tiles leave few programs. Filters of 268 rows of 17131 channels, whose threads wait
for memory in each row, are 9 programs of 2048 channels, or 134 of 128."""

Sides = dict[str, int]


def shapes(usual: Mapping[str, int], lengths: Mapping[str, int]) -> list[Sides]:
    """Tiles of as many elements as that of the `usual` sides, in the order of a tile's dimensions,
    from long rows to short ones; no longer than the `lengths` that are known."""
    if len(usual) == 1:
        return [_held(dict(usual), next(iter(usual)), prod(usual.values()), lengths)]
    *before, rows, row = usual
    elements = prod(usual.values())
    beside = {name: usual[name] for name in before}
    most = min(elements // prod(beside.values()), _most(row, lengths))
    found = []
    while most >= min(LEAST_ROW, _most(row, lengths)):
        found.append(_held({**beside, rows: elements, row: most}, rows, elements, lengths))
        most //= 2
    return [each for number, each in enumerate(found) if each not in found[:number]]


def sizes(shape: Mapping[str, int], lengths: Mapping[str, int]) -> list[Sides]:
    """The same tile with more and fewer rows; no fewer elements than a warp has lanes."""
    rows = list(shape)[-2:][0]
    least = -(-WARP_SIZE * shape[rows] // prod(shape.values()))
    every = TIMES if len(shape) > 1 else TIMES_ALONE
    others = [max(1, least, int(times * shape[rows])) for times in every]
    return [{**shape, rows: n} for n in dict.fromkeys(others) if n <= _most(rows, lengths)]


def _held(shape: Sides, rows: str, elements: int, lengths: Mapping[str, int]) -> Sides:
    """The shape with as many rows as leave it so many elements."""
    beside = prod(size for name, size in shape.items() if name != rows)
    return {**shape, rows: min(max(1, elements // beside), _most(rows, lengths))}


def _most(name: str, lengths: Mapping[str, int]) -> int:
    """Elements that a side has at most: a power of two that holds all there are."""
    return power_above(max(1, lengths[name])) if name in lengths else 1 << 30
