"""How many CTAs with short programs share a multiprocessor, and what that leaves for their rings.

A program that turns its rings a few times is mostly beginning and end: what its threads load for
themselves, compute and store, while tensor cores and rings wait. A ring with more slots than the
program has turns brings the next programs' tiles earlier, but one warpgroup works on one program
at a time; those of other CTAs work meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tilec.hardware.target import Target
from tilec.passes.rewriting.loops import enclosing_ops, is_program_loop, trips_of
from tilec.passes.roles.rings import Ring

MOST_BESIDE = 4
"""Of short programs on a multiprocessor: one a part of its four, where warps find issue slots. Four
kernels of two turns took with two CTAs 0.73 to 0.83 of the time with one, with three 0.71 to 0.84
(chunks of linear attention on an H200)."""
MOST_TURNS = 4
"""Of a ring in a short program, which keeps as many slots, two at least: all its copies are under
way at once. Longer ones are mostly products."""


class RingSlots(NamedTuple):
    """Slots of every ring, and those of rings around loops; `ctas`: for how many CTAs of a
    multiprocessor they leave room on purpose."""

    each: int
    around: int
    ctas: int = 1


def turns_of(ring: Ring) -> int | None:
    """How often a program turns a ring, at most; None where that is known at run time only."""
    turns = 1
    for op in (ring.loop, *enclosing_ops(ring.loop)):
        if is_program_loop(op):
            break
        if op.name == "scf.for":
            trips = trips_of(op)
            if trips is None:
                return None
            turns *= trips
        elif op.name == "scf.while":
            return None
    return turns


def turns_if_short(rings: Iterable[Ring]) -> int | None:
    """Of the ring that turns most often in a program; None if that is more than `MOST_TURNS`, or
    not known of one."""
    most = 0
    for ring in rings:
        turns = turns_of(ring)
        if turns is None or turns > MOST_TURNS:
            return None
        most = max(most, turns)
    return most


def slots_beside(
    ctas: int, slot_bytes: Sequence[int], other_bytes: int, turns: int, target: Target
) -> RingSlots | None:
    """The slots with which most CTAs, up to `ctas` and two at least, share a multiprocessor; None
    if two do not. `slot_bytes`: of all rings, and of those around others, which have one slot where
    that lets more CTAs in."""
    every, around = slot_bytes
    least = max(2, turns)
    for count in range(ctas, 1, -1):
        room = target.bytes_beside(count) - other_bytes
        if room // every >= least:
            return RingSlots(room // every, room // every, count)
        if around and (room - around) // (every - around) >= least:
            return RingSlots((room - around) // (every - around), 1, count)
    return None
