"""Predicts a launch whose last round of programs is cut into parts along k.

The round lasts a part of its time then, and the partial sums are written, waited for and added up.
Of 15 rounds nothing is left, because multiprocessors have come apart by then, and a card at its
power limit clocks higher while some of them idle.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tilec.costs.machine import Machine
from tilec.costs.model import predict
from tilec.costs.work import SUM_BYTES, Work


def predict_with_tail(work: Work, parts: Iterable[int], machine: Machine) -> dict[int, float]:
    """Microseconds where each program of the last round becomes so many, for each of `parts`; none
    where there is no whole round before it, nothing left behind, or several programs share a
    multiprocessor."""
    workers, rates = machine.multiprocessors, machine.rates
    rounds, left = divmod(work.programs, workers)
    if not rounds or not left:
        return {}
    whole = predict(replace(work, programs=rounds * workers), machine)
    if whole.occupancy != 1:
        return {}
    each = work.accumulators * SUM_BYTES / rates.summed_bytes
    return {
        n: whole.us * (1 + -(-left * n // workers) / (n * rounds)) + rates.meeting + (n - 1) * each
        for n in parts
    }
