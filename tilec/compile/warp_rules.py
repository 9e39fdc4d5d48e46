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
