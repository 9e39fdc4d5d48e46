"""Predicts a launch whose last round of programs is cut into parts along k.

The round lasts a part of its time then, and the partial sums are written, waited for and added up.
Fitted to timings on an H200 (bf16, tiles of 128 x 256, 2 to 8 parts, 1 to 5 rounds): 3 % off at
most where there are few rounds. Of 15 rounds nothing is left, because multiprocessors have come
apart by then, and a card at its power limit clocks higher while some of them idle: who chooses
should ask for a clear gain.
"""

from __future__ import annotations

from dataclasses import replace

from tilec.tuning.machine import Machine
from tilec.tuning.model import Work, predict

MEETING_US = 8.0
"""One more program for a multiprocessor, partial sums on their way to L2, a flag, its reader."""
SUMMED_BYTES_PER_US = 52_000
"""Of partial sums that one multiprocessor waits for, reads and adds up."""
SUM_BYTES = 4


def predict_with_tail(work: Work, parts: int, machine: Machine) -> float:
    """Microseconds where each program of the last round becomes `parts`; infinite where there is
    no whole round before it, nothing left behind, or several programs share a multiprocessor."""
    workers = machine.multiprocessors
    rounds, left = divmod(work.programs, workers)
    if not rounds or not left:
        return float("inf")
    whole = predict(replace(work, programs=rounds * workers), machine)
    if whole.occupancy != 1:
        return float("inf")
    shares = -(-left * parts // workers)
    summed = (parts - 1) * work.accumulators * SUM_BYTES / SUMMED_BYTES_PER_US
    return whole.us * (1 + shares / (parts * rounds)) + MEETING_US + summed
