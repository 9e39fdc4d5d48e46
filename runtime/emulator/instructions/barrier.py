"""CTA barriers: who has arrived at bar.sync / barrier.cta, and when they go on (9.7.13.1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tilec.runtime.emulator.errors import EmulatorError
from tilec.runtime.emulator.instructions.control import form_of_barrier
from tilec.runtime.emulator.reading.instruction import Immediate, Instruction, Register
from tilec.runtime.emulator.stuck_warps import StuckWarps
from tilec.runtime.emulator.writing.binding import Rectangle

if TYPE_CHECKING:
    from tilec.runtime.emulator.execution.machine import Machine


@dataclass
class _Barrier:
    """One of the 16 barriers of every CTA in the batch."""

    arrived: np.ndarray  # (CTAs,) warps that came
    expected: np.ndarray  # (CTAs,) warps to come; -1: every warp that has not exited
    waiting: np.ndarray  # [warp][CTA][32] lanes that wait
    arrivals: np.ndarray  # [warp][CTA] warps that came, for the reports
    instruction: Instruction | None = None
    predicates: np.ndarray | None = None
    resume: dict[int, np.ndarray] = field(default_factory=dict)


class CtaBarriers:
    """All barriers of a machine. `arrive` returns the lanes that may go on, with their pc."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.barriers: dict[int, _Barrier] = {}

    def _barrier(self, number: int) -> _Barrier:
        found = self.barriers.get(number)
        if found is None:
            warps, ctas, _ = self.machine.shape
            found = self.barriers[number] = _Barrier(
                np.zeros(ctas, np.int64),
                np.full(ctas, -1, np.int64),
                np.zeros(self.machine.shape, np.bool_),
                np.zeros((warps, ctas), np.bool_),
            )
        return found

    def passes_at_once(self, instruction: Instruction, rectangle: Rectangle | None) -> bool:
        """Do whole CTAs stand at a plain `bar.sync n` that nobody else has arrived at?"""
        if rectangle is None or rectangle.shape[0] != self.machine.warp_count:
            return False
        number = instruction.operands[0] if len(instruction.operands) == 1 else None
        form = form_of_barrier(instruction)
        if not isinstance(number, Immediate) or form is None or form.kind != "sync":
            return False
        barrier = self.barriers.get(int(number.value))
        if not 0 <= number.value < 16:
            return False
        return barrier is None or not barrier.arrived[rectangle.slices[1]].any()

    def arrive(
        self,
        instruction: Instruction,
        mask: np.ndarray,
        numbers: np.ndarray,
        counts: np.ndarray | None,
        predicate: np.ndarray | None,
    ) -> list[tuple[int, np.ndarray]]:
        """Lanes of `mask` arrive; the arrays hold values of those lanes (flat order of mask)."""
        released: list[tuple[int, np.ndarray]] = []
        for number in np.unique(numbers):
            part = np.zeros_like(mask)
            part[mask] = numbers == number
            if not 0 <= number < 16:
                raise EmulatorError(
                    f"barrier number {number} is not 0..15", instruction.place, "barrier"
                )
            own_counts = counts[numbers == number] if counts is not None else None
            own_predicate = predicate[numbers == number] if predicate is not None else None
            released += self._arrive(int(number), instruction, part, own_counts, own_predicate)
        return released

    def _arrive(
        self,
        number: int,
        instruction: Instruction,
        mask: np.ndarray,
        counts: np.ndarray | None,
        predicate: np.ndarray | None,
    ) -> list[tuple[int, np.ndarray]]:
        barrier = self._barrier(number)
        form = form_of_barrier(instruction)
        assert form is not None
        warps = np.asarray(mask.any(2))
        came = warps.sum(0)
        self._expect(barrier, number, instruction, mask, counts)
        if (barrier.arrivals & warps).any() and form.aligned:
            raise EmulatorError(
                f"a warp arrives twice at barrier {number} in one phase",
                instruction.place,
                "barrier",
            )
        barrier.arrivals |= warps
        barrier.arrived += came
        barrier.instruction = instruction
        if self.machine.checker is not None:
            self.machine.checker.barrier_arrived(number, warps)
        released: list[tuple[int, np.ndarray]] = []
        after = instruction.index + 1
        if form.kind == "arrive":
            released.append((after, mask))
        else:
            barrier.waiting |= mask
            resume = barrier.resume.setdefault(after, np.zeros_like(mask))
            resume |= mask
        if form.kind == "red":
            assert predicate is not None
            if barrier.predicates is None:
                barrier.predicates = np.zeros_like(mask)
            barrier.predicates[mask] = predicate
        return released + self._complete(number, barrier)

    def _expect(
        self,
        barrier: _Barrier,
        number: int,
        instruction: Instruction,
        mask: np.ndarray,
        counts: np.ndarray | None,
    ) -> None:
        """Note the expected number of warps; all arrivals of a phase must agree."""
        ctas = np.flatnonzero(mask.any((0, 2)))
        if counts is None:
            wanted = np.full(ctas.size, -1)
        else:
            spread = np.zeros(mask.shape, np.int64)
            spread[mask] = counts
            wanted = spread.max((0, 2))[ctas]
            if (wanted % 32).any() or (wanted <= 0).any():
                raise EmulatorError(
                    f"barrier {number} expects {int(wanted.max())} threads: not a positive "
                    "multiple of 32",
                    instruction.place,
                    "barrier",
                )
            wanted = wanted // 32
        fresh = barrier.arrived[ctas] == 0
        differs = ~fresh & (barrier.expected[ctas] != wanted)
        if differs.any() and not self._same(barrier, ctas, wanted):
            raise EmulatorError(
                f"barrier {number}: arrivals of one phase expect different thread counts",
                instruction.place,
                "barrier",
            )
        barrier.expected[ctas[fresh]] = wanted[fresh]

    def _same(self, barrier: _Barrier, ctas: np.ndarray, wanted: np.ndarray) -> bool:
        """No count and the count of all warps mean the same."""
        every = self.machine.warp_count
        one = np.where(wanted < 0, every, wanted)
        other = np.where(barrier.expected[ctas] < 0, every, barrier.expected[ctas])
        return bool((one == other).all())

    def _complete(self, number: int, barrier: _Barrier) -> list[tuple[int, np.ndarray]]:
        alive = (~self.machine.exited).any(2)
        needed = np.where(barrier.expected < 0, (alive | barrier.arrivals).sum(0), barrier.expected)
        done = (barrier.arrived >= needed) & (barrier.arrived > 0)
        if not done.any():
            return []
        if barrier.predicates is not None:
            self._reduce(barrier, done)
        released = []
        for pc, mask in list(barrier.resume.items()):
            part = mask & done[None, :, None]
            if part.any():
                if self.machine.checker is not None:
                    self.machine.checker.barrier_released(number, np.asarray(part.any(2)))
                released.append((pc, part))
                mask &= ~done[None, :, None]
        barrier.waiting &= ~done[None, :, None]
        barrier.arrivals &= ~done[None, :]
        barrier.arrived[done] = 0
        return released

    def _reduce(self, barrier: _Barrier, done: np.ndarray) -> None:
        """bar.red: every lane receives the reduction over its CTA's waiting lanes."""
        instruction = barrier.instruction
        assert instruction is not None
        assert barrier.predicates is not None
        form = form_of_barrier(instruction)
        assert form is not None
        lanes = barrier.waiting & done[None, :, None]
        true = barrier.predicates & lanes
        if form.operation == "popc":
            values = true.sum((0, 2)).astype(np.uint32)
        elif form.operation == "or":
            values = true.any((0, 2))
        else:
            values = (true | ~lanes).all((0, 2))
        register = instruction.operands[0]
        assert isinstance(register, Register)
        row = self.machine.registers[register.bits][register.index]
        spread = np.asarray(values)[None, :, None]
        row[lanes] = np.broadcast_to(spread, lanes.shape)[lanes]

    def recheck(self) -> list[tuple[int, np.ndarray]]:
        """After lanes exited: barriers that counted on them may be complete."""
        released = []
        for number, barrier in self.barriers.items():
            if barrier.waiting.any():
                released += self._complete(number, barrier)
        return released

    def report(self, stuck: StuckWarps) -> None:
        """Who waits at which barrier, for the deadlock report."""
        for number, barrier in self.barriers.items():
            for cta in np.flatnonzero(barrier.waiting.any((0, 2))):
                warps = np.flatnonzero(barrier.waiting[:, cta].any(1)).tolist()
                expected = int(barrier.expected[cta])
                wanted = "every warp" if expected < 0 else f"{expected} warps"
                place = barrier.instruction.place if barrier.instruction else ""
                came = int(barrier.arrived[cta])
                text = f"at barrier {number} for {wanted}, {came} came, at {place}"
                stuck.add(int(cta), warps, text)
