"""What a launch does, in the model's terms: programs, loops, bytes, who moves and multiplies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from enum import Enum, auto
from functools import cached_property

from tilec.hardware.ring_stages import sent_in_vectors, sent_together
from tilec.hardware.sizes import VECTOR_BYTES, WARP_SIZE
from tilec.hardware.tensor_memory import COLUMNS
from tilec.records import dataclass

ALONE = (1, 1)
"""The cluster of a program by itself: along rows and columns of tiles, the first axes of a grid."""
SUM_BYTES = 4
"""Of an element of a partial sum: f32 or i32, as tensor cores add up."""
TENSOR_SPEEDS: Mapping[str, float] = {"f16": 1, "bf16": 1, "f8": 2, "i8": 2, "tf32": 0.5}
"""Of tensor cores, by the kind of their operands, against f16; `fma` and `f64` have own units."""


class Unit(Enum):
    """The unit that multiplies tiles."""

    WARPS = auto()
    """Each warp by itself (`mma.sync`), or FMA units."""
    WARPGROUPS = auto()
    """Warpgroups, with the sum in their registers (`wgmma`)."""
    TENSOR_MEMORY = auto()
    """One thread for the CTA, with the sum in tensor memory (`tcgen05.mma`)."""


class Way(Enum):
    """The way in which operands of a loop come to shared memory."""

    ENGINE = auto()
    """Boxes by the copy engine, in a ring that warps of its own keep full."""
    THREADS = auto()
    """16 bytes or less a thread by cp.async, some stages ahead."""
    REGISTERS = auto()
    """Element by element through registers, waited for in each iteration."""


WAYS = (Way.ENGINE, Way.THREADS, Way.REGISTERS)
"""The fastest first."""


class Stored(Enum):
    """The way in which results get to their array."""

    ROWS = auto()
    """In rows as they are summed, 16 bytes and more at a time."""
    TRANSPOSED = auto()
    """16 bytes at a time, but across those rows: rearranged in shared memory first."""
    ELEMENTS = auto()
    """One by one, neighbours together: their rows begin anywhere."""
    SCATTERED = auto()
    """One by one as threads hold them: in parts of sectors."""


@dataclass(frozen=True)
class Passing:
    """A reduction or scan, of which warps that share a column take in what each other has: of so
    many `columns` in all, those of a thread in `slots` of instructions and `words` for each warp;
    `together` are the columns that one warp has."""

    columns: int
    together: int
    slots: int
    words: int

    def others(self, warps: int) -> int:
        """Of so many warps of a program, those beside a warp that share its columns."""
        return max(0, warps // max(1, self.columns // self.together) - 1)


@dataclass
class LoopWork:
    """One iteration of a loop, run `trips` times a program; straight-line code is run once. Whoever
    reads a kernel adds to it; from then on others are made of it (`dataclasses.replace`).

    `flops` by kind of operand (see `TENSOR_SPEEDS`, and "fma", "f64"). `global_bytes`: loaded,
    `line_bytes`: in whole lines, where that is more; `asked_bytes`: the same if all rows began with
    a line. `readers`: for operands of products, those bytes in lines, and how many programs ask for
    each of them. `staged_bytes`: what one slot of a pipeline
    holds; `stages`: those demanded, None for the compiler's choice. `narrow_loads`: elements
    that come one by one, `vector_copies`: 16 bytes that threads copy beside these. `unit`: who
    multiplies; `columns` of tensor memory that the sum takes. `zeroed_bytes`: filled in by the copy
    engine for what lies outside of arrays.

    `is_waited_for`: whether registers take some of what is multiplied, too, so that each iteration
    waits for memory.

    `stored`: how results leave, `stored_rows` and `stored_elements` of a tile; shared memory that
    they leave through beside a ring: `leaving_bytes`.

    `computed`: instructions of one element each beside products, `functions` of them special ones,
    `prepared` those by which who multiplies makes operands of what is loaded, `filled` those of a
    load role; `beside`: elements that meet a product's sums in registers, and come one by one;
    `waiting_products`: how many wait for what is computed from another one's result, which `groups`
    of warps with rows of their own do by themselves; `is_rotated`: whether the last product runs
    under the next iteration's work (`passes/rotate_dots.py`); `handed_on`: elements of those
    products' left operands; `recurs`: whether one multiplies what the loop carries; `exchanges`:
    reductions whose results an iteration without products waits for; `crossed`: reductions and
    scans of one with products, across warps; `passings`: all of one without; `spread_loads`: loads
    of rows or columns of larger tiles, which each thread does for its elements; `meets`: whether
    its threads pass on what they scan or reduce; `runs_ahead`: whether its loads come iterations
    ahead (`passes/prefetch_loads.py`); `uneven_rows`: how many there are of what it walks along,
    where memory says how long each is, else 0.
    """

    trips: float = 1
    flops: Mapping[str, int] = field(default_factory=dict)
    global_bytes: int = 0
    shared_bytes: int = 0
    staged_bytes: int = 0
    stages: int | None = None
    stored_bytes: int = 0
    line_bytes: int = 0
    asked_bytes: int = 0
    readers: tuple[tuple[int, float], ...] = ()
    narrow_loads: int = 0
    vector_copies: int = 0
    way: Way = Way.THREADS
    unit: Unit = Unit.WARPS
    columns: int = 0
    zeroed_bytes: int = 0
    stored: Stored = Stored.ROWS
    stored_rows: int = 0
    stored_elements: int = 0
    leaving_bytes: int = 0
    computed: int = 0
    functions: int = 0
    prepared: int = 0
    filled: int = 0
    beside: int = 0
    waiting_products: int = 0
    groups: int = 1
    is_waited_for: bool = False
    is_rotated: bool = True
    handed_on: int = 0
    recurs: bool = False
    exchanges: int = 0
    crossed: int = 0
    passings: tuple[Passing, ...] = ()
    spread_loads: int = 0
    meets: bool = False
    runs_ahead: bool = False
    uneven_rows: int = 0

    @property
    def has_role(self) -> bool:
        """Whether warps of their own fill its ring: by the engine, or for warpgroups."""
        by_threads = self.way is Way.THREADS and self.unit is Unit.WARPGROUPS
        return bool(self.staged_bytes) and (self.way is Way.ENGINE or by_threads)


def in_stripes(loop: LoopWork, parts: int) -> LoopWork:
    """What is left of storing results where each of so many CTAs stores a stripe of them."""
    return replace(
        loop,
        stored_bytes=loop.stored_bytes // parts,
        stored_rows=-(-loop.stored_rows // parts),
        stored_elements=loop.stored_elements // parts,
    )


@dataclass(frozen=True)
class Work:
    """What a launch does: `programs` times the loops, on arrays of `array_bytes` in all.

    `accumulators`: 32-bit registers of the sums that a loop holds at once, `elements` those of the
    largest other tile, both of the whole program. `outer_bytes`: of operands that are loaded in
    front of the loop that multiplies them. `longest`: how many times as long as the mean the
    longest program is; `in_pairs`: whether long ones go with short ones. `guessed`: what could not
    be told before a run. `teams`: sets of so many warps that take the programs of a CTA in turn.
    `cluster`: CTAs that load together what they share. `piece_bytes`: how much of the largest array
    a program reads at one place, 0 if unknown. `torn_bytes`: of results whose rows begin anywhere;
    `written_bytes`: of all of them.
    `again_bytes`: what a program without products has read in another loop before.
    `parts`: CTAs of a cluster that each sum a part of a program's loop (pass split-sums); each
    counts as a program. `groups`: clusters, or such CTAs, that meet in memory; the last of them
    reads `left_bytes` there. `sums`: 32-bit registers of each tile that they add up; `sends_words`:
    whether few of these are sent word by word, since rows of what is stored run down their columns.
    `spread`: how many more or fewer programs may have work, where only memory says which.
    `access_bytes`: of a thread's accesses at most, as rows begin; `row_bytes`: of the rows of the
    largest tile that is loaded.
    """

    programs: int
    warps: int
    loops: tuple[LoopWork, ...]
    array_bytes: int
    accumulators: int = 0
    elements: int = 0
    guessed: tuple[str, ...] = ()
    teams: int = 1
    cluster: int = 1
    piece_bytes: int = 0
    torn_bytes: int = 0
    written_bytes: int = 0
    outer_bytes: int = 0
    longest: float = 1
    in_pairs: bool = True
    again_bytes: float = 0
    parts: int = 1
    groups: int = 1
    left_bytes: int = 0
    sums: tuple[int, ...] = ()
    sends_words: bool = False
    spread: float = 0
    access_bytes: int = VECTOR_BYTES
    row_bytes: int = VECTOR_BYTES

    @cached_property
    def columns(self) -> int:
        """The columns of tensor memory for one sum."""
        return max((loop.columns for loop in self.loops), default=0)

    @property
    def hides_ends(self) -> bool:
        """Whether the next program's products run under the end of this one: by other warps, or
        since two sums fit tensor memory."""
        return self.has_engine and (self.teams > 1 or 0 < 2 * self.columns <= COLUMNS)

    @property
    def sent_bytes(self) -> int:
        """The sums that each CTA gets from those that sum other parts of a program's loop."""
        return sum(self.sums) * SUM_BYTES * (self.parts - 1) // self.parts

    @property
    def meetings(self) -> int:
        """How often the CTAs that sum parts send some of them."""
        return 1 if self._sends_together else len(self.sums)

    @property
    def sends_vectors(self) -> bool:
        """Whether threads send sums 16 bytes at a time."""
        return all(sent_in_vectors(words // (self.warps * WARP_SIZE)) for words in self.sums)

    @property
    def parts_bytes(self) -> int:
        """The shared memory that parts are sent to."""
        together = sum(self.sums) if self._sends_together else max(self.sums, default=0)
        return together * SUM_BYTES if self.parts > 1 else 0

    @property
    def _sends_together(self) -> bool:
        return sent_together([SUM_BYTES * words for words in self.sums])

    @cached_property
    def shares_ctas(self) -> bool:
        """Whether programs are of one warp that share CTAs (`passes/pack_programs.py`)."""
        multiplies = any(loop.flops for loop in self.loops)
        alone = self.parts * self.groups == 1 and not multiplies and not self.has_engine
        return self.warps == 1 and alone

    @cached_property
    def has_engine(self) -> bool:
        """Whether the copy engine fills rings."""
        return any(loop.way is Way.ENGINE for loop in self.loops)
