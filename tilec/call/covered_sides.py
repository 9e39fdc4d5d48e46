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

GridOf = Callable[[Mapping[str, int], int], Sequence[int] | None]
"""The grid of programs with such sides where arrays have no axis shorter than so many elements;
None where there is none."""


def covering(
    usual: Mapping[str, int], lengths: Mapping[str, int], walked: Collection[str] = ()
) -> dict[str, int]:
    """The sides in place of the `usual` ones, in the order of a tile's dimensions; `lengths`: how
    many elements programs cover along each together, where that is known; `walked`: those that
    loops walk on by. Down columns none gets longer beside them; along rows of half of the usual
    side at most one step is a row, and others get longer."""
    names, elements = list(usual), prod(usual.values())
    lengths = {name: max(1, length) for name, length in lengths.items()}  # no array is too short
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
    grid_of: GridOf,
) -> dict[str, int]:
    """How many elements all programs cover along each side together, where that is one size of the
    grid, which is as long as that where a side is 1; or what is `walked` along."""
    lengths = {name: length for name, length in walked.items() if length is not None}
    for name, side in usual.items():
        if name in walked:
            continue
        # One element takes one program whatever the side is: longer axes say whose it is.
        longer, pairs = (_by_one_and_more(usual, name, n, grid_of) for n in (2 * side + 1, 0))
        decided = [axis for axis, (by_one, by_more) in enumerate(longer) if by_one != by_more]
        if len(decided) != 1 or not pairs:
            continue
        (by_one, by_more), *others = pairs.pop(decided[0]), *pairs
        if all(one == more for one, more in others) and -(-by_one // (2 * side)) == by_more:
            lengths[name] = by_one
    return lengths


def _by_one_and_more(
    usual: Mapping[str, int], name: str, least: int, grid_of: GridOf
) -> list[tuple[int, int]]:
    """Each size of the grid where a side is 1, and where it is twice the usual one; none where
    there is no such grid."""
    found = [grid_of({**usual, name: side}, least) for side in (1, 2 * usual[name])]
    by_one, by_more = ([] if grid is None else grid for grid in found)
    return list(zip(by_one, by_more, strict=False))


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
