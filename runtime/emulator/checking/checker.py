"""Happens-before checking of shared memory: which accesses nothing orders.

Vector clocks in the style of FastTrack (Flanagan and Freund, PLDI 2009); `clocks.py` names the
agents. Every shared cell knows its last write and the last read of every agent. One schedule
is executed; a race is reported when the clocks do not order two accesses, whether or not the values
came out right.

Lanes of one warp are not told apart, so a missing bar.warp.sync is not seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tilec.runtime.emulator.checking.bank_conflicts import conflicts
from tilec.runtime.emulator.checking.clocks import Clocks
from tilec.runtime.emulator.checking.register_checker import takes_fragments
from tilec.runtime.emulator.checking.shadow import SharedShadow, granule_of
from tilec.runtime.emulator.checking.time_limits import TimeLimits
from tilec.runtime.emulator.errors import Finding, Place

if TYPE_CHECKING:
    from tilec.runtime.emulator.execution.launch import Launch
    from tilec.runtime.emulator.execution.machine import Machine

BARRIER = "put a bar.sync that both warps pass between the two accesses"
_COPY = "let the copying warp run cp.async.wait_group, then pass a bar.sync with this one"
_PRODUCT = "wait with wgmma.wait_group, or for the mbarrier of tcgen05.commit, first"
_TENSOR_LOAD = "let the loading warp run tcgen05.wait::ld, and order this one behind it"
_TENSOR_STORE = "let the storing warp run tcgen05.wait::st, and order this one behind it"
_LOAD = "wait for the mbarrier that the bulk copy signals"


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


class SharedChecker:
    """Watches one machine. Byte offsets are those of the batch's shared memory bytes.

    "agent" and "domain" below are the number of a warp within its cluster and of the cluster.
    """

    def __init__(self, machine: Machine, reports: Reports) -> None:
        self.machine = machine
        self.launch: Launch = machine.launch
        self.instructions = machine.entry.instructions
        self.reports = reports
        self.granule = granule_of(self.instructions)
        self.of_objects = np.array([i.opcode == "mbarrier" for i in self.instructions])
        """Per instruction: whether it works on mbarriers."""
        self.fragments = any(takes_fragments(instruction) for instruction in self.instructions)
        self.relaxed = any(
            i.opcode in ("mbarrier", "barrier") and "relaxed" in i.modifiers
            for i in self.instructions
        )

    def reset(self) -> None:
        """Forget everything: other CTAs run on the machine now."""
        warps, ctas, _ = self.machine.shape
        self.size = self.launch.cluster_size
        self.domains = ctas // self.size
        self._agents, self._domains = self.place_warps(*np.divmod(np.arange(warps * ctas), ctas))
        tensor = self.machine.uses_tensor_memory
        self.clocks = Clocks(warps * self.size, self.domains, tensor, self.fragments, self.relaxed)
        self.shadow = SharedShadow(self.machine.shared.size, self.granule, self.clocks.readers)
        self.time_limits = TimeLimits()
        self.collision = False
        self.memory = "shared"

    # -- who ------------------------------------------------------------------------------------

    def place_warps(self, warp: np.ndarray, cta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Warps of CTAs of the batch as (agent, domain)."""
        return cta % self.size * self.machine.warp_count + warp, cta // self.size

    def agents_of(self, lanes: np.ndarray, width: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Agent and domain of each lane, repeated for the cells of its access."""
        number = np.asarray(lanes).reshape(-1) >> 5
        if width > 1:
            number = number.repeat(width)
        return self._agents[number], self._domains[number]

    def agent_of(self, lane: int) -> tuple[int, int]:
        """Agent and domain of one lane."""
        warp, cta = divmod(lane >> 5, self.machine.cta_count)
        return cta % self.size * self.machine.warp_count + warp, cta // self.size

    def warps_of(self, lanes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Agent and domain of the warps of the lanes, each once."""
        numbers = np.unique(np.asarray(lanes).reshape(-1) >> 5)
        return self._agents[numbers], self._domains[numbers]

    # -- accesses -------------------------------------------------------------------------------

    def shared(
        self, offsets: np.ndarray, size: int, lanes: np.ndarray, store: bool, site: int
    ) -> None:
        """A plain access of `size` bytes per lane."""
        if lanes.shape != offsets.shape:
            lanes = np.broadcast_to(lanes, offsets.shape)
        statistics = self.launch.statistics
        statistics.shared_accesses += 1
        statistics.bank_conflicts += conflicts(offsets, size, lanes)
        cells = self.shadow.cells(offsets, size)
        agent, domain = self.agents_of(lanes, cells.shape[1])
        if store:
            self.write(cells.reshape(-1), agent, domain, site)
        else:
            self.read(cells.reshape(-1), agent, domain, site)

    def rows(self, offsets: np.ndarray, warps: np.ndarray, store: bool, site: int) -> None:
        """ldmatrix/stmatrix: (warps, rows) offsets of 16 bytes; `warps` are lane numbers / 32."""
        lanes = np.repeat(np.asarray(warps).reshape(-1) * 32, offsets.shape[1])
        numbers = lanes + np.tile(np.arange(offsets.shape[1]), offsets.shape[0])
        self.shared(offsets.reshape(-1), 16, numbers, store, site)

    def read(self, cells: np.ndarray, agent: np.ndarray, domain: np.ndarray, site: int) -> None:
        shadow, known = self.shadow, self.clocks.known
        bad = shadow.write_epoch[cells] > known[agent, domain, shadow.write_agent[cells]]
        if np.count_nonzero(bad):  # a fifth of any()'s time
            self.report_writes(cells[bad], site, agent[bad], "read after write")
        self.require_initialised(cells, site)
        shadow.note_reads(cells, agent, known[agent, domain, agent], site)

    def require_initialised(self, cells: np.ndarray, site: int) -> None:
        known = self.shadow.initialised[cells]
        if np.count_nonzero(known) != known.size:
            self.shadow.initialised[cells[~known]] = True
            place = self.instructions[site].place
            missing, mend = "nothing wrote these bytes before", "write them, or do not read them"
            finding = Finding("uninitialised read", self.memory, None, place, missing, mend)
            self.reports.add(finding)

    def write(
        self,
        cells: np.ndarray,
        agent: np.ndarray,
        domain: np.ndarray,
        site: int,
        writer: np.ndarray | None = None,
        epoch: np.ndarray | None = None,
        atomic: bool = False,
    ) -> None:
        """A write by `writer` (the warp `agent` itself unless told), which `agent` issues now."""
        shadow, known = self.shadow, self.clocks.known
        bad = shadow.write_epoch[cells] > known[agent, domain, shadow.write_agent[cells]]
        if atomic:
            bad &= ~shadow.write_atomic[cells]
        if np.count_nonzero(bad):
            self.report_writes(cells[bad], site, agent[bad], "write after write")
        late = shadow.late_reads(cells, known, agent, domain)
        if np.count_nonzero(late):
            self.report_reads(late, cells, site)
        writer = agent if writer is None else writer
        shadow.write_agent[cells] = writer
        shadow.write_epoch[cells] = known[agent, domain, agent] if epoch is None else epoch
        self.collision = not atomic and bool((shadow.write_agent[cells] != writer).any())
        shadow.write_site[cells] = site
        shadow.write_atomic[cells] = atomic
        shadow.initialised[cells] = True

    def collided(self, site: int) -> None:
        """Warps wrote different values to one cell in one instruction."""
        place = self.instructions[site].place
        self.race(place, place, "two warps write one address in one instruction", BARRIER)

    def atomic(self, offsets: np.ndarray, size: int, lanes: np.ndarray, site: int) -> None:
        """An atomic read-modify-write: atomics do not race with each other."""
        cells = self.shadow.cells(offsets, size)
        agent, domain = self.agents_of(np.broadcast_to(lanes, offsets.shape), cells.shape[1])
        self.write(cells.reshape(-1), agent, domain, site, atomic=True)

    # -- reports --------------------------------------------------------------------------------

    def report_writes(self, cells: np.ndarray, site: int, agent: np.ndarray, what: str) -> None:
        """Unordered earlier writes of `cells`, sorted by what kind of agent wrote."""
        clocks, second = self.clocks, self.instructions[site].place
        writers = self.shadow.write_agent[cells]
        copies = (writers >= clocks.copies) & (writers < clocks.tensor_stores)
        stores = (writers >= clocks.tensor_stores) & (writers < clocks.loads)
        own = copies & (writers - clocks.copies == agent)
        loads = writers >= clocks.loads
        warps = writers < clocks.warps
        products = (writers >= clocks.products) & (writers < clocks.stores)
        for chosen, missing, mend in (
            (own, "the copy may still be under way", "wait with cp.async.wait_group first"),
            (copies & ~own, "nothing orders the other warp's copy before it", _COPY),
            (loads, "the bulk copy may still be under way", _LOAD),
            (products, "the matrix product may still be under way", _PRODUCT),
            (stores, "the tcgen05.st may still be under way", _TENSOR_STORE),
            (warps, f"nothing orders the {what} of another warp", BARRIER),
        ):
            for first in np.unique(self.shadow.write_site[cells[chosen]]):
                advice = self.time_limits.advice(agent[chosen].tolist())
                self.race(self.instructions[int(first)].place, second, missing, mend + advice)

    def report_reads(self, late: np.ndarray, cells: np.ndarray, site: int) -> None:
        """Unordered earlier reads: `late` is as `SharedShadow.late_reads` gives it."""
        row, position = np.nonzero(late)
        reader = self.shadow.readers[row]
        second, clocks = self.instructions[site].place, self.clocks
        sites = self.shadow.read_site[row, cells[position]]
        for first in np.unique(sites):
            chosen = sites == first
            kind = int(reader[chosen][0]) // clocks.warps
            missing, mend = (
                ("nothing orders the write after another warp's read", BARRIER),
                ("a matrix product may still read these bytes", _PRODUCT),
                ("a bulk store may still read these bytes", "wait with wait_group.read first"),
                ("a tcgen05.ld may still read these cells", _TENSOR_LOAD),
            )[kind]
            self.race(self.instructions[int(first)].place, second, missing, mend)

    def race(
        self, first: Place, second: Place, missing: str, mend: str, severity: str = "error",
        kind: str = "race",
    ) -> None:  # fmt: skip
        self.reports.add(Finding(kind, self.memory, first, second, missing, mend, severity))
