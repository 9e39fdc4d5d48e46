"""What a rule for the number of warps is: of programs of one kind, how many they want, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tilec.compile.program_facts import ProgramFacts


class Wanted(NamedTuple):
    """How many warps a rule wants, which need be no power of two, and why."""

    warps: int
    why: str


Rule = Callable[[ProgramFacts, int], Wanted | None]
"""From the facts of a program and the lanes of a warp; None of programs of other kinds."""


def spread(program: ProgramFacts, elements: int, each: int, lanes: int, what: str) -> Wanted:
    """As many warps as give each thread so many of the elements; `what` is said of the program."""
    return Wanted(elements // (each * lanes), f"{size_of(program)}, {what}")


def size_of(program: ProgramFacts) -> str:
    """How reports begin that say why."""
    return f"the largest tile has {program.elements} elements"
