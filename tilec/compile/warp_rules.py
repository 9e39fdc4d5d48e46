"""What a rule for the number of warps is: of programs of one kind, how many they want, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tilec.compile.program_facts import ProgramFacts


class Wanted(NamedTuple):
    """How many warps a rule wants, which need be no power of two, and why."""

    warps: int
    why: str


NEARLY = 8
"""A number of warps that is short of a power of two by no more than this part of it counts as that:
tiles between powers of two are as near to it. Sums of five rows of 435 bf16 in tiles of 448 take
9.9 us in one warp, in tiles of 512 and two 8.9; softmax of rows of 769 f16 and a bias in tiles of
896 8.2 in one, 7.1 in two (H200; elements come one by one in both). Of less nothing says so."""

COSTLY_SLOTS, COSTLY_PER_THREAD = 16, 8
"""Instructions of a step of a scan, from which on a thread has so many elements at most where there
are few programs: it takes one step after the other. Running logarithms of sums, 322 rows of 1024
f32, take 3.9 us in 4 warps, 5.8 in two, 4.7 in 8; 107 of 4096 5.8 in 16, 6.5 in 8, 10.6 in four;
but 3000 of 1024 15.6 in one, 17.2 in two and 18.0 in four. In a loop 1168 of 1072, in tiles of
1280, take 11.0 us in four, 15.5 in two, 14.8 in 8, and 300 of 5000 13.7, 24.9 and 15.3 (H200)."""

Rule = Callable[[ProgramFacts, int], Wanted | None]
"""From the facts of a program and the lanes of a warp; None of programs of other kinds."""


def spread(program: ProgramFacts, elements: int, each: int, lanes: int, what: str) -> Wanted:
    """As many warps as give each thread so many of the elements, or nearly; `what` is said of the
    program."""
    warps = NEARLY * elements // ((NEARLY - 1) * each * lanes)
    return Wanted(warps, f"{size_of(program)}, {what}")


def size_of(program: ProgramFacts) -> str:
    """How reports begin that say why."""
    return f"the largest tile has {program.elements} elements"


def costly_steps(program: ProgramFacts, lanes: int) -> int:
    """The warps that scans in costly steps want where launches have few programs; 0 of others."""
    is_costly = program.reductions.scan_slots >= COSTLY_SLOTS and not program.is_crowded
    return program.elements // (COSTLY_PER_THREAD * lanes) if is_costly else 0
