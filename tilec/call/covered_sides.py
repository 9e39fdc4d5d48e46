"""Sides of elementwise tiles that are no longer than what programs cover.

The usual tile spans so many elements, 16 x 64 of f32, whatever the arrays' sizes are. Rows of 115
elements leave nine tenths of a tile of 1024 to threads that only wait, and columns of 18 three
quarters of one of 64. So a side that covers an axis in a few pieces is as short as these, and what
that leaves of the tile's elements goes to its other sides.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from math import prod

from tilec.call.short_rows import LEAST, PER_OCTAVE
from tilec.hardware.powers import power_above, power_below

LEAST_WALKED = 16
"""Elements of a step down columns at least: sums of segments of 4 rows in tiles of 16 x 64 take 2.2
us, of 8 x 64 2.6, of 32 x 64 2.8 (140 segments of 136 f32, H200)."""


def covering(
    usual: Mapping[str, int], lengths: Mapping[str, int], walked: Collection[str] = ()
) -> dict[str, int]:
    """The sides in place of the `usual` ones, in the order of a tile's dimensions; `lengths`: how
    many elements programs cover along each together, where that is known; `walked`: those that
    loops walk on by. Down columns none gets longer beside them; along rows of half of the usual
    side at most one step is a row, and others get longer."""
    names, elements = list(usual), prod(usual.values())
    rows = [name for name in walked if name == names[-1]]
    down = [name for name in walked if name != names[-1]]
    sides = {
        name: min(side, _piece(lengths[name], side, name == names[-1])) if name in lengths else side
        for name, side in usual.items()
    }
    sides |= {name: min(usual[name], max(LEAST_WALKED, sides[name])) for name in down}
    for name in rows:
        sides[name] = min(usual[name], power_above(lengths.get(name, usual[name])))
    for name in [] if down else names[::-1]:
        room = power_below(elements // prod(sides.values()))
        if room > 1 and name in lengths:
            longer = room * sides[name]
            sides[name] = max(
                sides[name], min(longer, _piece(lengths[name], longer, name == names[-1]))
            )
    return sides


def covered_lengths(
    usual: Mapping[str, int],
    walked: Mapping[str, int | None],
    grid_of: Callable[[Mapping[str, int]], Sequence[int] | None],
) -> dict[str, int]:
    """How many elements all programs cover along each side together, where that is one size of the
    grid, which is as long as that where a side is 1; or what is `walked` along. `grid_of`: the grid
    of programs with these sides, None where there are none."""
    lengths = {name: length for name, length in walked.items() if length is not None}
    for name, side in usual.items():
        if name in walked:
            continue
        by_one, by_more = (grid_of({**usual, name: n}) for n in (1, 2 * side))
        if by_more is not None and by_one is not None:
            sizes = [pair for pair in zip(by_more, by_one, strict=True) if pair[0] != pair[1]]
            if len(sizes) == 1 and -(-sizes[0][1] // (2 * side)) == sizes[0][0]:
                lengths[name] = sizes[0][1]
    return lengths


def covering_reasons(
    sides: Sequence[tuple[str, int]], lengths: Mapping[str, int]
) -> dict[str, str]:
    """Why each side is as long as it is."""
    about = {name: f" of {length} elements that programs cover" for name, length in lengths.items()}
    return {n: f"{side}: its part of an elementwise tile{about.get(n, '')}" for n, side in sides}


def _piece(length: int, side: int, is_last: bool) -> int:
    """The shortest side that covers a length in as many pieces as one of `side` elements."""
    pieces = -(-length // side)
    needed = -(-length // pieces)
    if needed <= LEAST or not is_last:
        return power_above(needed)
    step = max(LEAST, power_below(needed) // PER_OCTAVE)
    return -(-needed // step) * step
