"""The checker's second part: who learns what from barriers, mbarriers, and waits for cp.async."""

from __future__ import annotations

import numpy as np

from tilec.runtime.emulator.checking.checker import SharedChecker
from tilec.runtime.emulator.checking.lifetimes import Lifetimes
from tilec.runtime.emulator.checking.phase_waits import PhaseWaits
from tilec.runtime.emulator.errors import Finding, Place
from tilec.runtime.emulator.reading.instruction import Instruction

_OBJECT = "give the mbarrier bytes of its own, or init it again behind the other use"


class BarrierChecker(SharedChecker):
    """Shared-memory races between threads, and what barriers order."""

    def reset(self) -> None:
        super().reset()
        self.barriers: dict[int, np.ndarray] = {}
        self.cluster = self.clocks.empty(self.domains)
        self.arrivals: dict[int, np.ndarray] = {}
        self.counted: dict[int, dict[int, int]] = {}
        """Per mbarrier: agents and epochs of the bulk copies whose bytes it has counted."""
        self.completed: dict[int, np.ndarray] = {}
        self.phase_waits = PhaseWaits()
        self.lifetimes = Lifetimes(self.clocks, self.machine.warp_count, self.size)
        self.issuer = np.full((self.clocks.warps, self.domains), -1)
        """The lane that issued a warp's last bulk store."""
        self.unwaited: dict[tuple[int, int], tuple[int, int]] = {}
        self.copying, self.copy_site = (
            np.zeros((self.clocks.warps, self.domains), np.int32) for _ in range(2)
        )
        """Per warp: the group of its last cp.async, and which instruction that is."""

    # -- barriers -------------------------------------------------------------------------------

    def barrier_arrived(self, number: int, arrivals: np.ndarray) -> None:
        """Warps ([warp, cta]) arrive at a CTA barrier: what they did is published to it."""
        accumulator = self.barriers.get(number)
        if accumulator is None:
            accumulator = self.barriers[number] = self.clocks.empty(self.machine.cta_count)
        warp, cta = np.nonzero(arrivals)
        self.clocks.release(*self.place_warps(warp, cta), accumulator, cta)

    def barrier_released(self, number: int, waiters: np.ndarray) -> None:
        warp, cta = np.nonzero(waiters)
        self.clocks.acquire(*self.place_warps(warp, cta), self.barriers[number], cta)

    def cluster_arrived(self, arrivals: np.ndarray, relaxed: bool) -> None:
        """barrier.cluster.arrive; .relaxed publishes what fences before it did, nothing else."""
        agent, domain = self.place_warps(*np.nonzero(arrivals))
        publish = self.clocks.release_relaxed if relaxed else self.clocks.release
        publish(agent, domain, self.cluster, domain)

    def cluster_fence(self, lanes: np.ndarray) -> None:
        """fence.acq_rel, fence.sc or fence.mbarrier_init (taken for all writes) of wide scope."""
        warps = self.warps_of(lanes)
        self.clocks.acquire_fence(*warps)
        self.clocks.release_fence(*warps)

    def cluster_released(self, waiters: np.ndarray) -> None:
        agent, domain = self.place_warps(*np.nonzero(waiters))
        self.clocks.acquire(agent, domain, self.cluster, domain)

    def proxy_fence(self, lanes: np.ndarray) -> None:
        self.clocks.fence(*self.warps_of(lanes))

    def launches_waited(self, lanes: np.ndarray) -> None:
        """griddepcontrol.wait: the launch before is over, and what it wrote is there."""
        agent, domain = self.warps_of(lanes)
        self.clocks.known[agent, domain, self.clocks.launches] = 1

    # -- cp.async -------------------------------------------------------------------------------

    def copy_issued(self, offsets: np.ndarray, size: int, lanes: np.ndarray, site: int) -> None:
        """cp.async: a write by the warp's copy stream, numbered by the group it will belong to."""
        cells = self.shadow.cells(offsets, size)
        agent, domain = self.agents_of(np.broadcast_to(lanes, offsets.shape), cells.shape[1])
        group = self.clocks.committed_copies[agent, domain] + 1
        self.write(cells.reshape(-1), agent, domain, site, agent + self.clocks.copies, group)
        if self.collision:
            self.collided(site)
        self.copying[agent, domain] = group
        self.copy_site[agent, domain] = site

    def copies_committed(self, lanes: np.ndarray) -> None:
        agent, domain = self.warps_of(lanes)
        self.clocks.committed_copies[agent, domain] += 1

    def copies_waited(self, lanes: np.ndarray, pending: int) -> None:
        agent, domain = self.warps_of(lanes)
        done = self.clocks.committed_copies[agent, domain] - pending
        self._learn(agent, domain, agent + self.clocks.copies, done)

    def _learn(
        self, agent: np.ndarray, domain: np.ndarray, of: np.ndarray, epoch: np.ndarray
    ) -> None:
        known = self.clocks.known
        known[agent, domain, of] = np.maximum(known[agent, domain, of], epoch)

    def copies_arrived(
        self, cells: np.ndarray, lanes: np.ndarray, instruction: Instruction
    ) -> None:
        """cp.async.mbarrier.arrive: the barrier learns of all copies issued so far."""
        self.mbarrier_arrived(cells, lanes, instruction)
        agent, domain = self.agents_of(lanes)
        for cell, who, where in zip(cells.tolist(), agent.tolist(), domain.tolist(), strict=True):
            group = int(self.clocks.committed_copies[who, where]) + 1
            self._note(cell, who + self.clocks.copies, group)

    # -- mbarriers ------------------------------------------------------------------------------

    def _accumulator(self, cell: int) -> np.ndarray:
        if cell not in self.arrivals:
            self.arrivals[cell] = self.clocks.empty(1)
        return self.arrivals[cell]

    def _note(self, cell: int, agent: int, epoch: int) -> None:
        accumulator = self._accumulator(cell)
        for row in (0, -1) if self.relaxed else (0,):
            accumulator[row, 0, agent] = max(accumulator[row, 0, agent], epoch)

    def _bytes_of(self, cells: np.ndarray) -> np.ndarray:
        """Shadow cells of 8-byte mbarrier cells."""
        return self.shadow.cells(np.asarray(cells) * 8, 8)

    def mbarrier_written(self, cells: np.ndarray, lanes: np.ndarray, site: int) -> None:
        """mbarrier.init and .inval: generic writes of the object."""
        warps = np.broadcast_to(np.asarray(lanes).reshape(-1), cells.shape) >> 5
        for warp in np.unique(warps).tolist():  # one after the other: they may write one object
            shadow = self._bytes_of(cells[warps == warp])
            agent, domain = self.agents_of(np.full(len(shadow), warp * 32), shadow.shape[1])
            self.write(shadow.reshape(-1), agent, domain, site)
        for cell in cells.tolist():
            self.arrivals.pop(cell, None)
            self.completed.pop(cell, None)
            self.phase_waits.forget(cell)
            self.lifetimes.forget(cell)

    def _touch(self, cells: np.ndarray, lanes: np.ndarray, instruction: Instruction) -> None:
        shadow = self._bytes_of(cells)
        agent, domain = self.agents_of(np.broadcast_to(lanes, cells.shape), shadow.shape[1])
        self.read(shadow.reshape(-1), agent, domain, instruction.index)
        last = self.shadow.write_site[shadow.reshape(-1)]
        if not self.of_objects[last].all():  # not mbarrier.init has written them last
            for site in np.unique(last[~self.of_objects[last]]).tolist():
                missing = "the bytes of the mbarrier have been overwritten"
                places = self.instructions[site].place, instruction.place
                self.reports.add(Finding("mbarrier", "shared", *places, missing, _OBJECT))

    def mbarrier_arrived(
        self, cells: np.ndarray, lanes: np.ndarray, instruction: Instruction
    ) -> None:
        lanes = np.broadcast_to(np.asarray(lanes).reshape(-1), cells.shape)
        self._touch(cells, lanes, instruction)
        relaxed = "relaxed" in instruction.modifiers
        for cell, number in _pairs(cells, lanes >> 5):
            agent, domain = self.agents_of(np.array([number * 32]))
            self._require_wait(cell, int(agent[0]), int(domain[0]), instruction.place)
            cta = self._cta_of(cell)
            if cta != number % self.machine.cta_count:
                phase = int(self.machine.mbarriers.phase[cell])
                self.lifetimes.arrives(cta, cell, phase, int(agent[0]), instruction.place)
            publish = self.clocks.release_relaxed if relaxed else self.clocks.release
            publish(agent, domain, self._accumulator(cell), np.array([0]))

    def _cta_of(self, cell: int) -> int:
        """In which CTA of the batch an mbarrier, or what lies at 8 bytes times this, is."""
        return cell * 8 // self.machine.shared_stride

    def reach(self, offsets: np.ndarray, lanes: np.ndarray, site: int) -> None:
        """Lanes touch shared memory at batch byte offsets: other CTAs', perhaps."""
        if self.size == 1:
            return
        ctas = np.asarray(offsets).reshape(-1) // self.machine.shared_stride
        numbers = np.asarray(lanes).reshape(-1) >> 5
        far = ctas != numbers % self.machine.cta_count
        if far.any():
            agents, _ = self.agents_of(numbers[far] * 32)
            place = self.instructions[site].place
            for finding in self.lifetimes.reached(ctas[far], agents, place):
                self.reports.add(finding)

    def shared(
        self, offsets: np.ndarray, size: int, lanes: np.ndarray, store: bool, site: int
    ) -> None:
        super().shared(offsets, size, lanes, store, site)
        self.reach(offsets, np.broadcast_to(lanes, offsets.shape), site)

    def atomic(self, offsets: np.ndarray, size: int, lanes: np.ndarray, site: int) -> None:
        super().atomic(offsets, size, lanes, site)
        self.reach(offsets, np.broadcast_to(lanes, offsets.shape), site)

    def mbarrier_signalled(self, cells: np.ndarray, lane: int, instruction: Instruction) -> None:
        """A bulk copy will complete bytes at mbarriers: they must have been made by then."""
        self._touch(cells, np.full(cells.shape, lane), instruction)

    def _require_wait(self, cell: int, agent: int, domain: int, place: Place) -> None:
        phase = int(self.machine.mbarriers.phase[cell])
        known = self.clocks.happened(agent, domain)
        finding = self.phase_waits.arrived(cell, phase, known, place)
        if finding is not None:
            self.reports.add(finding)

    def _acquire(self, cell: int, agent: np.ndarray, domain: np.ndarray, relaxed: bool) -> None:
        """A warp has waited for the last phase of an mbarrier."""
        told = self.completed[cell]
        if relaxed:
            loads = self.counted.get(cell, {})
            self.clocks.acquire_relaxed(int(agent[0]), int(domain[0]), told[:, 0], loads)
        else:
            self.clocks.acquire(agent, domain, told, np.array([0]))

    def phase_completed(self, cells: np.ndarray) -> None:
        for cell in np.asarray(cells).tolist():
            self.completed[cell] = self._accumulator(cell).copy()

    def times_out(
        self, cells: np.ndarray, lanes: np.ndarray, passed: np.ndarray, instruction: Instruction
    ) -> np.ndarray:
        """Which of the lanes that wait for mbarriers hear false; `passed`: for which the phase is
        complete in the schedule that is run."""
        numbers = lanes >> 5
        late = self.time_limits.due(numbers, instruction.index)
        for cell, number in _pairs(cells[late & passed], numbers[late & passed]):
            if self._is_certain(cell, *self.agent_of(number * 32)):
                late &= (cells != cell) | (numbers != number)
        for cell, number in _pairs(cells[late], numbers[late]):
            agent, _ = self.agent_of(number * 32)
            self.time_limits.returned_false(
                number, instruction.index, agent, cell, instruction.place
            )
        return late

    def _is_certain(self, cell: int, agent: int, domain: int) -> bool:
        """Has the newest completed phase been completed by what is ordered before the warp?"""
        over = self.completed.get(cell)
        return over is None or bool((over[0, 0] <= self.clocks.known[agent, domain]).all())

    def mbarrier_waited(
        self, cells: np.ndarray, lanes: np.ndarray, instruction: Instruction
    ) -> None:
        self._touch(cells, lanes, instruction)
        for cell, number in _pairs(cells, lanes >> 5):
            if cell in self.completed:
                agent, domain = self.agents_of(np.array([number * 32]))
                self._acquire(cell, agent, domain, "relaxed" in instruction.modifiers)
                over = int(self.machine.mbarriers.phase[cell]) - 1
                epoch = int(self.clocks.known[agent[0], domain[0], agent[0]])
                self.phase_waits.waited(cell, over, int(agent[0]), epoch)
                self.time_limits.returned_true(int(agent[0]), cell)
                self.lifetimes.waited(self._cta_of(cell), cell, over)


def _pairs(cells: np.ndarray, warps: np.ndarray) -> list[tuple[int, int]]:
    """Every cell with every warp that comes to it, once, in order."""
    return sorted(set(zip(cells.tolist(), warps.tolist(), strict=True)))
