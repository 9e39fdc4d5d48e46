"""What CTAs know of each other's accesses to global memory, by flags that lie in it.

A CTA publishes what it did, and what it knows, by a write of a flag that releases, or that is
relaxed and stands behind a fence. Another one learns it by a read that acquires, or that is relaxed
in front of a fence, of what was written there or of what read-modify-writes made of it (PTX ISA,
Memory Consistency Model: release and acquire patterns, observation order). A relaxed write without
a fence tells that it was done and nothing else.

What one warp of a CTA publishes or learns counts for all of them.
"""

from __future__ import annotations

import numpy as np

Known = dict[int, int]
"""By CTA of the grid: the time before which all that it did is ordered."""


class CtaOrder:
    """The CTAs of one launch, by their numbers in the grid. An order: (releases, acquires)."""

    def __init__(self) -> None:
        self._known: dict[int, Known] = {}
        self._told: dict[int, Known] = {}
        """What relaxed reads have told a CTA; a fence makes it known."""
        self._fenced: dict[int, Known] = {}
        """What a CTA's relaxed writes publish."""
        self._flags: dict[int, Known] = {}
        """By address: what is published there."""

    def fence(self, ctas: np.ndarray, order: tuple[bool, bool], time: int) -> None:
        """A fence in these CTAs."""
        for cta in ctas.tolist():
            if order[1]:
                self._learn(cta, self._told.pop(cta, {}))
            if order[0]:
                self._fenced[cta] = self._published(cta, time)

    def access(
        self, addresses: np.ndarray, ctas: np.ndarray, order: tuple[bool, bool], time: int,
        opcode: str,
    ) -> None:  # fmt: skip
        """Strong accesses, one after the other, by an "ld", "st", "atom" or "red"."""
        if not order[0] and not self._flags and not self._fenced:
            return  # nobody has published anything, nor does anybody now
        previous = None
        for pair in zip(addresses.tolist(), ctas.tolist(), strict=True):
            if pair == previous:
                continue
            previous = address, cta = pair
            there = self._flags.get(address)
            if there and opcode in ("ld", "atom"):
                _join(self._told.setdefault(cta, {}), there)
                if order[1]:
                    self._learn(cta, there)
            if opcode == "ld":
                continue
            told = self._published(cta, time) if order[0] else self._fenced.get(cta, {})
            if there and opcode != "st":
                _join(there, told)
            elif there or told:
                self._flags[address] = dict(told)

    def ordered(self, first: np.ndarray, when: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Whether CTAs (`second`) know of what others (`first`) did at these times."""
        pairs, inverse = np.unique(first << 32 | second, return_inverse=True)
        known = [
            self._known.get(pair & 0xFFFFFFFF, {}).get(pair >> 32, 0) for pair in pairs.tolist()
        ]
        return np.array(known, np.int64)[inverse] > when

    def _learn(self, cta: int, told: Known) -> None:
        if told:
            _join(self._known.setdefault(cta, {}), told)

    def _published(self, cta: int, time: int) -> Known:
        return {**self._known.get(cta, {}), cta: time}


def _join(known: Known, told: Known) -> None:
    for cta, time in told.items():
        if time > known.get(cta, 0):
            known[cta] = time
