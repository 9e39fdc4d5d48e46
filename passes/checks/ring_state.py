"""What the slots of a ring have seen so far, and what may not happen to them."""

from __future__ import annotations

from collections import Counter
from dataclasses import field

from mlir import ir

from tilec.dialects.gpu_tile import MakeRingOp
from tilec.records import dataclass


class Broken(Exception):
    """The protocol is broken at `op`; `other`: what it does not agree with."""

    def __init__(self, op: ir.Operation, why: str, other: ir.Operation | None = None) -> None:
        super().__init__(why)
        self.op, self.why, self.other = op, why, other


@dataclass(frozen=True)
class Turn:
    """A turn of a ring as a value of the program: its slot."""

    ring: ir.Value
    number: int
    slots: int

    @property
    def slot(self) -> int:
        """The slot's number."""
        return self.number % self.slots


_EARLY = "its slot's turn before: a wait names the parity of a phase only, and would pass"


@dataclass
class RingState:
    """A ring in the shared memory of one CTA.

    `filled`, `freed`: how often each slot became full, and free again. `arrived`, `released`: what
    has come since, `bytes`: what was announced and has not. `acquired`, `waited`: by which op
    each turn so far was; `last_release`: the op that released each slot last. `alone`: whether the
    CTA is in no cluster, where another one may acquire a slot, or hear that it is full, for both.
    """

    made: MakeRingOp
    alone: bool
    filled: Counter[int] = field(default_factory=Counter)
    freed: Counter[int] = field(default_factory=Counter)
    arrived: Counter[int] = field(default_factory=Counter)
    released: Counter[int] = field(default_factory=Counter)
    bytes: Counter[int] = field(default_factory=Counter)
    acquired: dict[int, ir.Operation] = field(default_factory=dict)
    waited: dict[int, ir.Operation] = field(default_factory=dict)
    last_release: dict[int, ir.Operation] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.slots, self.fills, self.releases = (
            self.made.slots,
            self.made.fills,
            self.made.releases,
        )

    def may_acquire(self, turn: int, op: ir.Operation) -> bool:
        """Whether the slot of a turn is free for it."""
        slot, before = turn % self.slots, turn // self.slots
        if self.freed[slot] > before:
            why = f"acquires turn {turn} of a ring whose slot was released for a later one"
            raise Broken(op, why, self.last_release.get(slot))
        if self.freed[slot] < before - 1:
            raise Broken(op, f"acquires turn {turn} of a ring in front of {_EARLY}")
        return self.freed[slot] == before

    def is_full(self, turn: int, op: ir.Operation, *, previous: bool) -> bool:
        """Whether the slot of a turn was published for it (or for the turn before it)."""
        slot, before = turn % self.slots, turn // self.slots
        wanted = before + (not previous)
        if self.filled[slot] > before + 1:
            why = f"waits for turn {turn} of a ring whose slot was filled again"
            raise Broken(op, why, self.acquired.get(turn))
        if self.filled[slot] < wanted - 1:
            raise Broken(op, f"waits for turn {turn} of a ring in front of {_EARLY}")
        return self.filled[slot] >= wanted

    def announce(self, slot: int, bytes_: int, op: ir.Operation) -> None:
        """Counts one arrival at the slot of a turn, and adds `bytes` to those that copies still
        have to bring."""
        self.bytes[slot] += bytes_
        self.publish(slot, 1, op)

    def publish(self, slot: int, times: int, op: ir.Operation) -> None:
        """Arrivals that make a slot full."""
        self.arrived[slot] += times
        if self.arrived[slot] > self.fills:
            raise Broken(op, f"publishes a slot more than {self.fills} times a turn")
        self._fill(slot, op)

    def bring(self, slot: int, bytes_: int, op: ir.Operation) -> None:
        """Notes that bytes of a copy have arrived at a slot, which may fill it."""
        self.bytes[slot] -= bytes_
        self._fill(slot, op)

    def _fill(self, slot: int, op: ir.Operation) -> None:
        if self.arrived[slot] < self.fills or self.bytes[slot]:
            return
        self.arrived[slot] = 0
        self.filled[slot] += 1
        turns = [turn for turn in self.acquired if turn % self.slots == slot]
        known = self.alone or self.acquired
        if self.releases and known and self.filled[slot] > len(turns):
            raise Broken(op, "publishes a slot that nobody has acquired for the turn")

    def release(self, slot: int, times: int, op: ir.Operation) -> None:
        """Arrivals that make a slot free."""
        self.last_release[slot] = op
        self.released[slot] += times
        while self.released[slot] >= self.releases:
            self.released[slot] -= self.releases
            self.freed[slot] += 1
        turns = [turn for turn in self.acquired if turn % self.slots == slot]
        if self.freed[slot] * self.releases + self.released[slot] > len(turns) * self.releases:
            raise Broken(op, f"releases a slot more than {self.releases} times a turn")
