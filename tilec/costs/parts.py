"""Predicts what it takes that CTAs sum parts of a program's loop (pass split-sums)."""

from __future__ import annotations

from tilec.costs.machine import Machine
from tilec.costs.work import Work
from tilec.hardware.part_meeting import Meeting
from tilec.hardware.sizes import PORTABLE_CTAS
from tilec.terms.demands import MOST_PARTS


def parts_in_memory(programs: int, meeting: Meeting, machine: Machine) -> list[int]:
    """In how many parts each of so many programs may be summed that are no cluster: as many as fill
    all multiprocessors, or those that have clusters, once or twice."""
    every = machine.multiprocessors
    filled = (machine.clustered(PORTABLE_CTAS), every, 2 * every)
    found = {min(MOST_PARTS, ctas // max(1, programs) // 4 * 4) for ctas in filled}
    may_be = (n for n in found if n > 1 and n not in meeting.clusters)
    return sorted(n for n in may_be if meeting.is_short(n))


def gather_us(work: Work, machine: Machine) -> float:
    """Microseconds in which a program's parts meet in clusters, each of which adds up its stripe of
    the sums, and in memory."""
    rates, in_memory = machine.rates, 0.0
    if work.groups > 1:
        in_memory = rates.meet_in_memory + work.left_bytes / rates.summed_bytes
    if work.parts == 1:
        return in_memory
    rate = rates.gathered_bytes
    if work.sends_words:
        rate = rates.gathered_across if work.sends_vectors else rates.gathered_words
    wide = rates.gather_wide if work.parts > PORTABLE_CTAS else 0.0
    return in_memory + (rates.gather + wide) * work.meetings + work.sent_bytes / rate
