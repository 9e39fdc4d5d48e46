"""Predicts what it takes that CTAs sum parts of a program's loop (pass split-sums)."""

from __future__ import annotations

from tilec.costs.machine import Machine
from tilec.costs.work import Work
from tilec.hardware.sizes import PORTABLE_CTAS


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
