"""Predicts what it takes that CTAs of a cluster sum parts of a program's loop (pass split-sums)."""

from __future__ import annotations

from tilec.costs.machine import Machine
from tilec.costs.work import Work
from tilec.hardware.sizes import PORTABLE_CTAS


def gather_us(work: Work, machine: Machine) -> float:
    """Microseconds in which a program's parts meet, and each adds up its stripe of the sums."""
    if work.parts == 1:
        return 0.0
    rates = machine.rates
    rate = rates.gathered_bytes
    if work.sends_words:
        rate = rates.gathered_across if work.sends_vectors else rates.gathered_words
    wide = rates.gather_wide if work.parts > PORTABLE_CTAS else 0.0
    return (rates.gather + wide) * work.meetings + work.sent_bytes / rate
