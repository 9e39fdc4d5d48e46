"""Rows that one tile holds: how long those are that a loop walks along, and the tile that fits.

Where no launch brings longer rows, loops along whole axes go round once (`whole_tile`,
`passes/rows/held_rows.py`): the kernel is one of rows in tiles, as long as a cluster keeps them.
Else they stay loops (`short_tile`).

Of a tile that is made for long rows most threads have nothing of a short one. On an H200 rows of
160 columns in tiles of 1024 took 259 us, by torch.compile 87 (cross-entropy of 209324).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilec.call.call_class import CallClass
from tilec.compile.row_walks import HeldAxis, Walk
from tilec.hardware.powers import power_above
from tilec.hardware.sizes import PORTABLE_CTAS

LONGEST = 640
"""Elements: for such a row a tile of 1024, in two warps that meet through shared memory, takes 1.5
times as many instructions, and 3.1 times for one of 160 (cross-entropy, sm_90a)."""
LONGEST_AXIS = 3072
"""Elements of a row that is a whole axis: beyond `RANKED`, a loop that goes round once beats two
or three rounds in which threads wait for each other. Cross-entropy of 1056 rows of 2623 takes 6.3
us for 8.2, of 4000 of 1500 10.1 for 11.9, of 3000 of 3000 13.2 for 13.4; but 8000 of 4096 46.7 for
37.3, with fewer programs side by side (H200)."""
LONGEST_OF_FEW, FEW_EACH = 12288, 2
"""The same where several loops walk along it, and a multiprocessor has no more than so many
programs, which all run at once: each waits less often. Cross-entropy of 260 rows of 4300 takes 4.0
us in a tile of 4352 for 4.8 in 4096, of 164 of 6912 4.7 in 6912 for 5.1 in 8192, of 100 of 11000
4.8 in 11008 for 5.3 in 16384 (H200)."""
RANKED = 1024
"""Elements: shorter rows than that and longer ones than `LONGEST` take tiles of the usual sizes, of
which this one holds them (10019 rows of 700: 14.3 us in tiles of 704, 13.9 in 1024)."""
LONG_STEP = 256
"""Tiles of rows beyond `RANKED` are multiples of this: of 16-byte vectors of 2-byte elements in
each lane."""
LEAST = 32
"""Elements, one a lane."""
PER_OCTAVE = 8
"""Sizes of such tiles: a row of n elements leaves n / 8 of its tile empty at most, or 31."""
PART, LONG_PART, LONGEST_TILE = 128, 256, 32768
"""Tiles that keep a row longer than `LONGEST` are multiples of the first, and of the second beyond
the third, where each CTA of a cluster has an eighth (`tilec.examples.softmax`)."""
LEAST_SHARED = 2
"""CTAs for a row, from which on it is kept however long it is, and if one loop alone walks along
it: a program that loops would leave multiprocessors idle. RMS norm of 2 rows of 245704 f16 takes
5.0 us for 33.2, of 16 of 90000 4.8 for 13.8, of 50 of 200000 f32 29.1 for 52.0 (H200)."""
SPREAD = 2
"""Where memory says how long rows are, a tile holds most of them that has so many times their
mean: at least half, as none is shorter than 0 (Markov)."""


STEPPED, STEPS, CROWD = (64, 2048), 32, 16
"""Rows that memory ends, of which most are longer than the first and no longer than the second,
take short steps where they are only added up: several are loaded at once, and less behind their
ends, if a multiprocessor has more than so many, which wait for each other. Rows of sparse
matrices, 60000 of 200, take 55.9 us in steps of 32, 65.9 of 64, 82.9 of 416; 100000 of 40 31.0,
35.4 and, of 96, 34.6; 4000 of 800 19.6, 18.4 and, of 512, 24.3 (H200)."""


def short_tile(
    walks: Sequence[Walk | None], call: CallClass, longest_axis: int = LONGEST_AXIS
) -> int | None:
    """The tile that holds the longest of the rows that loops walk along in calls of a class; None
    where one is long, as an axis of more elements than `longest_axis`, or nobody knows."""
    longest = walked_length(walks, call)
    if longest is None:
        return None
    if longest > LONGEST:
        are_axes = all(walk is not None and walk.ends is None for walk in walks)
        most = longest_axis if len(walks) > 1 else LONGEST_AXIS
        is_held = are_axes and RANKED < longest <= most
        return -(-longest // LONG_STEP) * LONG_STEP if is_held else None
    step = max(LEAST, (1 << longest.bit_length() >> 1) // PER_OCTAVE)
    return max(1, -(-longest // step)) * step


def short_step(walks: Sequence[Walk | None], call: CallClass) -> int | None:
    """The step of loops that only add up rows that memory ends, many and none of them long; else
    None."""
    longest = walked_length(walks, call)
    if longest is None or not all(walk is not None and walk.only_adds for walk in walks):
        return None
    are_many = all(_rows(walk, call) > CROWD * call.machine.multiprocessors for walk in walks)
    is_stepped = are_many and STEPPED[0] < longest <= STEPPED[1]
    return max(LEAST, power_above(longest // STEPS)) if is_stepped else None


def whole_tile(
    walks: Sequence[Walk | None], call: CallClass
) -> tuple[int, tuple[HeldAxis, ...]] | None:
    """The tile that holds the longest of the axes that loops walk along in calls of a class, and
    these axes; None where one is no axis, or has no elements, or all are short: the second time L1
    has such a row."""
    axes = [_axis(walk, call) for walk in walks]
    held = tuple(dict.fromkeys(axis for axis in axes if axis is not None))
    if not walks or None in axes or not all(length for _, _, length in held):
        return None
    longest = max(length for _, _, length in held)
    if longest <= LONGEST:
        return None
    part = PART if longest <= LONGEST_TILE else LONG_PART
    return -(-longest // part) * part, held


def ctas_of_few(
    programs: int, held: Sequence[HeldAxis], call: CallClass, *, is_read_again: bool
) -> int:
    """How many CTAs may work on each row that is kept, of so many programs; 0 where rows had better
    stay loops. `is_read_again`: loops would read them more than once."""
    longest, all_of_them = max(most for _, _, most in held), call.machine.multiprocessors
    ctas = min(PORTABLE_CTAS, max(1, all_of_them // max(1, programs)))
    if ctas >= LEAST_SHARED:
        return ctas
    are_few = programs * longest <= call.machine.rates.kept_elements * all_of_them
    return ctas if is_read_again and are_few else 0


def walked_length(walks: Sequence[Walk | None], call: CallClass) -> int | None:
    """The most elements that loops walk along in calls of a class; None where nobody knows."""
    known = [_length(walk, call) for walk in walks]
    lengths = [length for length in known if length is not None]
    return max(lengths) if lengths and len(lengths) == len(known) else None


def _axis(walk: Walk | None, call: CallClass) -> HeldAxis | None:
    sizes = None if walk is None or walk.ends is not None else call.sizes[walk.number]
    if walk is None or not isinstance(sizes, tuple):
        return None
    return walk.number, walk.axis, sizes[walk.axis]


def _length(walk: Walk | None, call: CallClass) -> int | None:
    """Elements of a row, of those that memory ends of most."""
    sizes = None if walk is None else call.sizes[walk.number]
    if walk is None or not isinstance(sizes, tuple):
        return None
    if walk.ends is None:
        return sizes[walk.axis]
    if not isinstance(call.sizes[walk.ends], tuple):
        return None
    return -(-SPREAD * sizes[walk.axis] // max(1, _rows(walk, call)))


def _rows(walk: Walk | None, call: CallClass) -> int:
    """How many rows memory ends; 0 where it does not."""
    ends = None if walk is None or walk.ends is None else call.sizes[walk.ends]
    return prod(ends) - walk.is_chained if walk is not None and isinstance(ends, tuple) else 0
