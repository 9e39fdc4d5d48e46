"""Happens-before checking: which accesses to shared and global memory nothing orders.

Vector clocks in the style of FastTrack (Flanagan and Freund, PLDI 2009). A warp is one agent; each
asynchronous engine of a warp is one more: its copies (cp.async) are numbered by commit group. Every
shared cell knows its last write and the last read of every agent. One schedule is executed; a race
is reported when the clocks do not order two accesses, whether or not the values came out right.

Lanes of one warp are not told apart, so a missing bar.warp.sync is not seen. Between CTAs an order
exists only through atomics and strong accesses; that check is coarse: a release by the writer and a
later acquire by the reader count as an order, whichever address they used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tilec.runtime.emulator.bank_conflicts import conflicts
from tilec.runtime.emulator.errors import Finding, Place
from tilec.runtime.emulator.instruction import Instruction
from tilec.runtime.emulator.scalar_types import TYPES

if TYPE_CHECKING:
    from tilec.runtime.emulator.launch import Launch
    from tilec.runtime.emulator.machine import Machine

_SUBWORD = {name for name, scalar in TYPES.items() if scalar.bits < 32 and scalar.kind != "x"}


def granule_of(instructions: list[Instruction]) -> int:
    """Bytes per shadow cell: 4 unless the kernel accesses shared memory in smaller pieces."""
    smallest = 4
    for instruction in instructions:
        if instruction.opcode not in ("ld", "st", "atom", "red"):
            continue
        names = instruction.modifiers
        if "global" in names or "param" in names or "local" in names or names[-1] not in _SUBWORD:
            continue
        count = 2 if "v2" in names else 4 if "v4" in names else 1
        smallest = min(smallest, max(TYPES[names[-1]].size * count, 1))
    return smallest


class Reports:
    """The findings of a launch, each pair of places once."""

    def __init__(self, findings: list[Finding]) -> None:
        self.findings = findings
        self._seen: set[tuple[object, ...]] = set()

    def add(self, finding: Finding) -> None:
        key = (finding.kind, finding.memory, finding.first, finding.second, finding.missing)
        if key not in self._seen:
            self._seen.add(key)
            self.findings.append(finding)


class Clocks:
    """Vector clocks of the warps of a batch: `known[warp, cta, agent]`.

    Agents of a CTA: its warps, then the cp.async stream of each warp.
    """

    def __init__(self, warps: int, ctas: int) -> None:
        self.warps = warps
        self.agents = 2 * warps
        self.known = np.zeros((warps, ctas, self.agents), np.int32)
        own = np.arange(warps)
        self.known[own, :, own] = 1
        self.committed = np.zeros((warps, ctas), np.int32)

    def release(self, arrivals: np.ndarray, accumulator: np.ndarray) -> None:
        """Warps (boolean [warp, cta]) add what they know to the CTAs' accumulator, then tick."""
        part = np.where(arrivals[:, :, None], self.known, 0)
        np.maximum(accumulator, part.max(0), out=accumulator)
        warp, cta = np.nonzero(arrivals)
        self.known[warp, cta, warp] += 1

    def acquire(self, waiters: np.ndarray, accumulator: np.ndarray) -> None:
        warp, cta = np.nonzero(waiters)
        self.known[warp, cta] = np.maximum(self.known[warp, cta], accumulator[cta])


class SharedShadow:
    """Last write and last reads of every cell of the batch's shared memory."""

    def __init__(self, size: int, granule: int, agents: int) -> None:
        cells = size // granule
        self.granule = granule
        self.write_agent = np.zeros(cells, np.int32)
        self.write_epoch = np.zeros(cells, np.int32)
        self.write_site = np.zeros(cells, np.int32)
        self.write_atomic = np.zeros(cells, np.bool_)
        self.read_epoch = np.zeros((agents, cells), np.int32)
        self.read_site = np.zeros((agents, cells), np.int32)
        self.initialised = np.zeros(cells, np.bool_)

    def cells(self, offsets: np.ndarray, size: int) -> np.ndarray:
        """(accesses, cells per access) of accesses of `size` bytes at batch byte offsets."""
        first = offsets.reshape(-1, 1) // self.granule
        return first + np.arange(max(size // self.granule, 1))


class Checker:
    """Watches one machine. Byte offsets are those of the batch's shared memory bytes."""

    def __init__(self, machine: Machine, reports: Reports) -> None:
        self.machine = machine
        self.launch: Launch = machine.launch
        self.instructions = machine.entry.instructions
        self.reports = reports
        self.granule = granule_of(self.instructions)
        self.reset()

    def reset(self) -> None:
        """Forget everything: other CTAs run on the machine now."""
        warps, ctas, _ = self.machine.shape
        self.clocks = Clocks(warps, ctas)
        self.shadow = SharedShadow(self.machine.shared.size, self.granule, warps)
        self.barriers: dict[int, np.ndarray] = {}
        self.collision = False

    # -- shared memory -------------------------------------------------------------------------

    def _agents(self, lanes: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
        """Warp and CTA of each access, repeated for the cells of it."""
        ctas = self.machine.cta_count
        warp = np.repeat(lanes.reshape(-1) // (32 * ctas), width)
        return warp, np.repeat(lanes.reshape(-1) // 32 % ctas, width)

    def shared(
        self, offsets: np.ndarray, size: int, lanes: np.ndarray, store: bool, site: int
    ) -> None:
        """A plain access of `size` bytes per lane."""
        lanes = np.broadcast_to(lanes, offsets.shape)
        statistics = self.launch.statistics
        statistics.shared_accesses += 1
        statistics.bank_conflicts += conflicts(offsets, size, lanes)
        cells = self.shadow.cells(offsets, size)
        warp, cta = self._agents(lanes, cells.shape[1])
        if store:
            self.write(cells.reshape(-1), warp, cta, site)
        else:
            self.read(cells.reshape(-1), warp, cta, site)

    def rows(self, offsets: np.ndarray, warps: np.ndarray, store: bool, site: int) -> None:
        """ldmatrix/stmatrix: (warps, rows) offsets of 16 bytes; `warps` are lane numbers / 32."""
        lanes = np.repeat(np.asarray(warps).reshape(-1) * 32, offsets.shape[1])
        numbers = lanes + np.tile(np.arange(offsets.shape[1]), offsets.shape[0])
        self.shared(offsets.reshape(-1), 16, numbers, store, site)

    def read(self, cells: np.ndarray, warp: np.ndarray, cta: np.ndarray, site: int) -> None:
        shadow = self.shadow
        known = self.clocks.known[warp, cta, shadow.write_agent[cells]]
        bad = shadow.write_epoch[cells] > known
        if bad.any():
            self._report_write(cells[bad], site, warp[bad], "read after write")
        fresh = ~shadow.initialised[cells]
        if fresh.any():
            self._report_uninitialised(site)
            shadow.initialised[cells[fresh]] = True
        shadow.read_epoch[warp, cells] = self.clocks.known[warp, cta, warp]
        shadow.read_site[warp, cells] = site

    def write(
        self,
        cells: np.ndarray,
        warp: np.ndarray,
        cta: np.ndarray,
        site: int,
        agent: np.ndarray | None = None,
        epoch: np.ndarray | None = None,
        atomic: bool = False,
    ) -> None:
        """A write by `agent` (the warp itself unless told), issued by `warp` now."""
        shadow, known = self.shadow, self.clocks.known
        seen = known[warp, cta, shadow.write_agent[cells]]
        bad = shadow.write_epoch[cells] > seen
        if atomic:
            bad &= ~shadow.write_atomic[cells]
        if bad.any():
            self._report_write(cells[bad], site, warp[bad], "write after write")
        reads = shadow.read_epoch[:, cells]
        late = reads > known[warp, cta].T[: reads.shape[0]]
        if late.any():
            self._report_reads(late, cells, site)
        agent = warp if agent is None else agent
        shadow.write_agent[cells] = agent
        shadow.write_epoch[cells] = known[warp, cta, warp] if epoch is None else epoch
        self.collision = not atomic and bool((shadow.write_agent[cells] != agent).any())
        shadow.write_site[cells] = site
        shadow.write_atomic[cells] = atomic
        shadow.initialised[cells] = True

    def collided(self, site: int) -> None:
        """Warps wrote different values to one cell in one instruction."""
        place = self.instructions[site].place
        self._race(place, place, "two warps write one address in one instruction", _BARRIER)

    def atomic(self, offsets: np.ndarray, size: int, lanes: np.ndarray, site: int) -> None:
        """An atomic read-modify-write: atomics do not race with each other."""
        lanes = np.broadcast_to(lanes, offsets.shape)
        cells = self.shadow.cells(offsets, size)
        warp, cta = self._agents(lanes, cells.shape[1])
        self.write(cells.reshape(-1), warp, cta, site, atomic=True)

    def _report_write(self, cells: np.ndarray, site: int, warp: np.ndarray, what: str) -> None:
        shadow, second = self.shadow, self.instructions[site].place
        agents = shadow.write_agent[cells]
        stream = agents >= self.clocks.warps
        own = stream & (agents - self.clocks.warps == warp)
        for chosen, missing, mend in (
            (own, "the copy may still be under way", "wait with cp.async.wait_group first"),
            (stream & ~own, "nothing orders the other warp's copy before it", _COPY),
            (~stream, f"nothing orders the {what} of another warp", _BARRIER),
        ):
            for first in np.unique(shadow.write_site[cells[chosen]]):
                self._race(self.instructions[int(first)].place, second, missing, mend)

    def _report_reads(self, late: np.ndarray, cells: np.ndarray, site: int) -> None:
        agent, position = np.nonzero(late)
        second = self.instructions[site].place
        for first in np.unique(self.shadow.read_site[agent, cells[position]]):
            place = self.instructions[int(first)].place
            self._race(
                place, second, "nothing orders the write after another warp's read", _BARRIER
            )

    def _race(self, first: Place, second: Place, missing: str, mend: str) -> None:
        self.reports.add(Finding("race", "shared", first, second, missing, mend))

    def _report_uninitialised(self, site: int) -> None:
        place = self.instructions[site].place
        missing = "nothing wrote these bytes before"
        mend = "write them, or do not read them"
        self.reports.add(Finding("uninitialised read", "shared", None, place, missing, mend))

    # -- cp.async ------------------------------------------------------------------------------

    def copy_issued(self, offsets: np.ndarray, size: int, lanes: np.ndarray, site: int) -> None:
        """cp.async: a write by the warp's copy stream, numbered by the group it will belong to."""
        cells = self.shadow.cells(offsets, size)
        warp, cta = self._agents(np.broadcast_to(lanes, offsets.shape), cells.shape[1])
        group = self.clocks.committed[warp, cta] + 1
        self.write(cells.reshape(-1), warp, cta, site, warp + self.clocks.warps, group)
        if self.collision:
            self.collided(site)

    def copies_committed(self, lanes: np.ndarray) -> None:
        warp, cta = self._warps_of(lanes)
        self.clocks.committed[warp, cta] += 1

    def copies_waited(self, lanes: np.ndarray, pending: int) -> None:
        warp, cta = self._warps_of(lanes)
        agent = warp + self.clocks.warps
        done = self.clocks.committed[warp, cta] - pending
        known = self.clocks.known
        known[warp, cta, agent] = np.maximum(known[warp, cta, agent], done)

    def _warps_of(self, lanes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        numbers = np.unique(lanes.reshape(-1) >> 5)
        return numbers // self.machine.cta_count, numbers % self.machine.cta_count

    # -- barriers ------------------------------------------------------------------------------

    def barrier_arrived(self, number: int, arrivals: np.ndarray) -> None:
        """Warps ([warp, cta]) arrive at a CTA barrier: what they did is published to it."""
        accumulator = self.barriers.get(number)
        if accumulator is None:
            shape = (self.machine.cta_count, self.clocks.agents)
            accumulator = self.barriers[number] = np.zeros(shape, np.int32)
        self.clocks.release(arrivals, accumulator)

    def barrier_released(self, number: int, waiters: np.ndarray) -> None:
        self.clocks.acquire(waiters, self.barriers[number])


_BARRIER = "put a bar.sync that both warps pass between the two accesses"
_COPY = "let the copying warp run cp.async.wait_group, then pass a bar.sync with this one"
