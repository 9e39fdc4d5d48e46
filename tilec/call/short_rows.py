"""Rows that one tile holds: how long those are that a loop walks along, and the tile that fits.

Of a tile that is made for long rows most threads have nothing of a short one. On an H200 rows of
160 columns in tiles of 1024 took 259 us, by torch.compile 87 (cross-entropy of 209324).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilec.call.call_class import CallClass
from tilec.compile.row_walks import Walk

LONGEST = 640
"""Elements: for such a row a tile of 1024, in two warps that meet through shared memory, takes 1.5
times as many instructions, and 3.1 times for one of 160 (cross-entropy, sm_90a)."""
LEAST = 32
"""Elements, one a lane."""
PER_OCTAVE = 8
"""Sizes of such tiles: a row of n elements leaves n / 8 of its tile empty at most, or 31."""
SPREAD = 2
"""Where memory says how long rows are, a tile holds most of them that has so many times their
mean: at least half, as none is shorter than 0 (Markov)."""


def short_tile(walks: Sequence[Walk | None], call: CallClass) -> int | None:
    """The tile that holds the longest of the rows that loops walk along in calls of a class; None
    where one is long, or nobody knows."""
    known = [_length(walk, call) for walk in walks]
    longest = max((length for length in known if length is not None), default=LONGEST + 1)
    if None in known or longest > LONGEST:
        return None
    step = max(LEAST, (1 << longest.bit_length() >> 1) // PER_OCTAVE)
    return max(1, -(-longest // step)) * step


def _length(walk: Walk | None, call: CallClass) -> int | None:
    """Elements of a row, of those that memory ends of most."""
    sizes = None if walk is None else call.sizes[walk.number]
    if walk is None or not isinstance(sizes, tuple):
        return None
    if walk.ends is None:
        return sizes[walk.axis]
    ends = call.sizes[walk.ends]
    if not isinstance(ends, tuple):
        return None
    return -(-SPREAD * sizes[walk.axis] // max(1, prod(ends) - walk.is_chained))
