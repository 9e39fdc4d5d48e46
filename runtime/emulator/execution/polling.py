"""Threads that ask memory again and again: time must pass for them, and hanging ones must be seen.

Who waits at an mbarrier is parked; who polls a word of memory runs for ever. While somebody polls,
all groups of lanes have their turns, one after the other, since any of them may be who is waited
for. A launch hangs if its whole state comes back again and again when all had one: nothing in it
will ever differ.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping

import numpy as np

from tilec.runtime.emulator.execution.machine import Machine

MOST_POLLS = 4
"""Times polling blocks may run before others get a turn, or asynchronous work goes on."""
_FIRST_LOOK = 128
"""Rounds without asynchronous work after which states are compared; then after twice as many."""
_LOOKS = 32
_RETURNS = 6
"""So often must one state come back."""


class Polling:
    """Counts polls of one machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._polls = 0
        self._idle = 0
        self._last = -1
        self._states: Counter[int] = Counter()

    def saw(self) -> None:
        """A polling block has run."""
        self._polls += 1

    @property
    def is_long(self) -> bool:
        """Whether it is someone else's turn."""
        return self._polls >= MOST_POLLS

    def let_time_pass(self) -> bool:
        """Starts anew; whether asynchronous work has been done."""
        self._polls = 0
        if self._machine.async_work.run_one():
            self._idle = 0
            return True
        return False

    def next_turn(self, ready: Mapping[int, np.ndarray]) -> int:
        """Whose turn it is, of lanes by the index of their next instruction."""
        later = [pc for pc in ready if pc > self._last]
        self._last = min(later or ready)
        return self._last

    def hangs(self, ready: Mapping[int, np.ndarray]) -> bool:
        """Whether nothing will ever change; call once a turn without asynchronous work."""
        if any(pc > self._last for pc in ready):  # some have not had theirs in this round
            return False
        self._idle += 1
        begin = 1 << (self._idle.bit_length() - 1)
        if self._idle < _FIRST_LOOK or self._idle >= begin + _LOOKS:
            self._states.clear()
            return False
        state = self._digest(ready)
        self._states[state] += 1
        return self._states[state] >= _RETURNS

    def _digest(self, ready: Mapping[int, np.ndarray]) -> int:
        machine = self._machine
        places = (each for pc in sorted(ready) for each in (np.array([pc]), ready[pc]))
        memories = (machine.shared, machine.launch.memory.bytes)
        parts = (*machine.registers.values(), *memories, *places)
        found = machine.mbarriers.progress + (int(machine.exited.sum()) << 32)
        for part in parts:
            found = zlib.adler32(part.view("u1").reshape(-1).data, found & 0xFFFFFFFF)
        return found
