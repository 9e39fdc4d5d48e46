"""The checker's third part: asynchronous engines: bulk copies, and products."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilec.runtime.emulator.checking.barrier_checker import BarrierChecker
from tilec.runtime.emulator.errors import Finding, Place

_FENCE = "run fence.proxy.async after the write, before the async proxy is let at the bytes"
_READ_FENCE = "run fence.proxy.async after the read, before others are told that the bytes are free"


class BulkLoad(NamedTuple):
    """A bulk copy that fills shared memory of a CTA: its agent and epoch, and what came before."""

    agent: int
    epoch: int
    clock: np.ndarray
    cta: int
    place: Place


class Checker(BarrierChecker):
    """Shared-memory races, with every way of ordering accesses."""

    # -- bulk copies and wgmma ------------------------------------------------------------------

    def _chunk_cells(self, chunks: np.ndarray) -> np.ndarray:
        return self.shadow.cells(np.asarray(chunks).reshape(-1) * 16, 16).reshape(-1)

    def _async_order(
        self, cells: np.ndarray, agent: int, domain: int, site: int, what: str, warps: int = 1
    ) -> None:
        """Generic writes before an async access need the proxy fence; unordered ones race.

        agent: the first of the `warps` that issue it together; all must be ordered after the write.
        """
        shadow, clocks = self.shadow, self.clocks
        writer, epoch = shadow.write_agent[cells], shadow.write_epoch[cells]
        known, fenced = (
            clock[agent : agent + warps, domain].min(0) if warps > 1 else clock[agent, domain]
            for clock in (clocks.known, clocks.fenced)
        )
        allowed = np.where(clocks.generic, np.minimum(known, fenced), known)
        if not np.count_nonzero(epoch > allowed[writer]):
            return
        bad = epoch > known[writer]
        if bad.any():
            self.report_writes(cells[bad], site, np.full(int(bad.sum()), agent), what)
        unfenced = ~bad & clocks.generic[writer] & (epoch > fenced[writer])
        copies = writer >= clocks.copies
        for chosen, severity in ((unfenced & ~copies, "error"), (unfenced & copies, "warning")):
            for first in np.unique(shadow.write_site[cells[chosen]]):
                place, second = self.instructions[int(first)].place, self.instructions[site].place
                missing = "the async proxy may not see this write of the generic proxy"
                self.race(place, second, missing, _FENCE, severity, "missing proxy fence")

    def bulk_load(self, chunks: np.ndarray, lane: int, site: int) -> BulkLoad:
        """A bulk copy starts to write 16-byte chunks of a CTA."""
        cells = self._chunk_cells(chunks)
        agent, domain = self.agent_of(lane)
        self._async_order(cells, agent, domain, site, "write after write")
        clocks, shadow = self.clocks, self.shadow
        late = shadow.late_reads(cells, clocks.overwritable(agent, domain))
        if np.count_nonzero(late):
            self._report_overwritten(late, cells, clocks.known[agent, domain], site)
        load, epoch = clocks.new_load(domain)
        cta = self._cta_of(int(np.asarray(chunks).flat[0]) * 2)
        place = self.instructions[site].place
        self.lifetimes.uses("unfinished load", cta, load, epoch, place)
        clock = clocks.fork(agent, domain)
        shadow.write_agent[cells] = load
        shadow.write_epoch[cells] = epoch
        shadow.write_site[cells] = site
        shadow.write_atomic[cells] = False
        shadow.initialised[cells] = True
        return BulkLoad(load, epoch, clock, cta, place)

    def _report_overwritten(
        self, late: np.ndarray, cells: np.ndarray, known: np.ndarray, site: int
    ) -> None:
        """Reads that a bulk load may precede: nothing orders them, or no proxy fence does.

        "Accessing the same memory location across multiple proxies needs a cross-proxy fence" (PTX
        ISA, async proxy). Triton puts it between local_load and a tensor copy
        (proxy-fence-insertion, fence_write_after_read), and its own checker asks for it (pull
        request 10668). Without it, an arrival at an mbarrier behind the reads let rows be
        overwritten on an H200 (passes/HOPPER.md) and elsewhere (NVIDIA/nccl-extensions issue 8,
        deepseek-ai/DeepEP pull request 642). A warning is all for the address that tcgen05.alloc
        wrote, which Triton reads without one.
        """
        shadow = self.shadow
        racing = shadow.late_reads(cells, known)
        if racing.any():
            self.report_reads(racing, cells, site)
        row, position = np.nonzero(late & ~racing)
        overwritten = cells[position]
        pairs = np.stack([shadow.read_site[row, overwritten], shadow.write_site[overwritten]], 1)
        for first, written in np.unique(pairs, axis=0).tolist():
            place, second = self.instructions[first].place, self.instructions[site].place
            severity = "warning" if self.instructions[written].opcode == "tcgen05" else "error"
            missing = "the async proxy may overwrite what the generic proxy still reads"
            self.race(place, second, missing, _READ_FENCE, severity, "missing proxy fence")
        shadow.read_epoch[row, overwritten] = 0  # said once: the next copy follows this one

    def bulk_loaded(self, load: BulkLoad, cell: int) -> None:
        """The copy is complete: its mbarrier learns of it, and of what came before it."""
        self._note(cell, load.agent, load.epoch)
        self._join(cell, load.clock)
        if self.relaxed:
            self.counted.setdefault(cell, {})[load.agent] = load.epoch
        cta = self._cta_of(cell)
        if cta != load.cta:
            phase = int(self.machine.mbarriers.phase[cell])
            self.lifetimes.signals(cta, cell, phase, -1, load.place)

    def bulk_sent(self, chunks: np.ndarray, load: BulkLoad) -> None:
        """The copy reads chunks of shared memory until it is complete."""
        cta = self._cta_of(int(np.asarray(chunks).flat[0]) * 2)
        self.lifetimes.uses("unfinished send", cta, load.agent, load.epoch, load.place)

    def _join(self, cell: int, clock: np.ndarray) -> None:
        accumulator = self._accumulator(cell)
        np.maximum(accumulator[:, 0], clock, out=accumulator[:, 0])

    def bulk_source(self, chunks: np.ndarray, lane: int, site: int) -> np.ndarray:
        """A bulk copy reads chunks; their cells."""
        cells = self._chunk_cells(chunks)
        agent, domain = self.agent_of(lane)
        self._async_order(cells, agent, domain, site, "read after write")
        self.require_initialised(cells, site)
        return cells

    def bulk_store(self, chunks: np.ndarray, lane: int, site: int) -> None:
        """A bulk store reads chunks until its group is waited for, by the lane that issued it."""
        cells = self.bulk_source(chunks, lane, site)
        agent, domain = self.agent_of(lane)
        self.issuer[agent, domain] = lane
        group = int(self.clocks.committed_stores[agent, domain]) + 1
        self.unwaited[agent, domain] = (group, site)
        self.shadow.note_reads(cells, agent + self.clocks.stores, group, site)

    def _issuers(self, lanes: np.ndarray) -> np.ndarray:
        """Lanes that issued the last bulk store of their warps: groups are a thread's own."""
        flat = np.asarray(lanes).reshape(-1)
        agent, domain = self.agents_of(flat)
        return flat[self.issuer[agent, domain] == flat]

    def bulk_committed(self, lanes: np.ndarray) -> None:
        agent, domain = self.warps_of(self._issuers(lanes))
        self.clocks.committed_stores[agent, domain] += 1

    def bulk_waited(self, lanes: np.ndarray, pending: int, read: bool) -> None:
        """wait_group, or `read`: wait_group.read, which says nothing of what the stores write."""
        lanes = self._issuers(lanes)
        if not read and self.launch.global_checker is not None:
            self.launch.global_checker.bulk_waited(lanes >> 5, pending)
        agent, domain = self.warps_of(lanes)
        done = self.clocks.committed_stores[agent, domain] - pending
        self._learn(agent, domain, agent + self.clocks.stores, done)

    def finish(self) -> None:
        """The CTAs end: bulk stores must have read their shared memory by now, and what reaches
        into it must be over."""
        for agent, domain in zip(*np.nonzero(self.copying), strict=True):
            cta = domain * self.size + agent // self.machine.warp_count
            place = self.instructions[self.copy_site[agent, domain]].place
            last = int(self.copying[agent, domain])
            self.lifetimes.uses("unfinished copy", cta, agent + self.clocks.copies, last, place)
        for finding in self.lifetimes.finish():
            self.reports.add(finding)
        for (agent, domain), (group, site) in self.unwaited.items():
            if group > self.clocks.known[agent, domain, agent + self.clocks.stores]:
                place = self.instructions[site].place
                missing = "the CTA may end while the bulk store still reads its shared memory"
                mend = "run cp.async.bulk.wait_group.read 0 before the end"
                finding = Finding("unfinished store", "shared", None, place, missing, mend)
                self.reports.add(finding)

    def product_reads(
        self, chunks: np.ndarray, leaders: np.ndarray, groups: np.ndarray, site: int
    ) -> None:
        """wgmma reads chunks (one block per warpgroup) until its group is waited for."""
        for block, leader, group in zip(chunks, leaders.tolist(), groups.tolist(), strict=True):
            cells = self._chunk_cells(block)
            agent, domain = self.agent_of(leader * 32)
            self._async_order(cells, agent, domain, site, "read after write", warps=4)
            self.require_initialised(cells, site)
            self.shadow.note_reads(cells, agent + self.clocks.products, group, site)
            cta = leader % self.machine.cta_count
            self.multiplies(cta, agent, group, site)

    def multiplies(self, cta: int, agent: int, group: int, site: int) -> None:
        """A product that a warp issued reads shared memory of a CTA until its group is complete."""
        place = self.instructions[site].place
        self.lifetimes.uses("unfinished product", cta, agent + self.clocks.products, group, place)

    def fragments_taken(self, warps: np.ndarray) -> None:
        """Warps (lane numbers / 32) issue a product that takes what they have read from registers:
        it is there, so another proxy may overwrite it.

        CUTLASS's mixed-input products give slots back behind such products without a fence, and no
        row was overwritten on an H200 (passes/HOPPER.md). That every read before the product is
        over, not merely those that it takes, is an assumption: shared memory answers a warp in
        order.
        """
        self.clocks.perform_reads(*self.agents_of(np.asarray(warps) * 32))

    def products_waited(self, warps: np.ndarray, done: np.ndarray) -> None:
        """Warps (lane numbers / 32) have waited for their warpgroup's products."""
        agent, domain = self.agents_of(np.asarray(warps) * 32)
        # A CTA's warpgroups begin at its own first warp; a cluster's CTAs may have any number.
        in_group = np.asarray(warps) // self.machine.cta_count % 4
        stream = agent - in_group + self.clocks.products
        self._learn(agent, domain, stream, done)
