"""The checker's third part: tensor memory, and what tcgen05 orders (PTX ISA 9.7.16.6).

Loads, stores, products and copies of tcgen05 are asynchronous. Of two that touch one cell the
second comes behind the first where

1. both are of one queue (products, copies and shifts that one lane issues): in order by itself;
2. one warp issued both: the first is waited for by tcgen05.wait;
3. else: the first is complete (tcgen05.wait, or a tcgen05.commit), its warp runs
   tcgen05.fence::before_thread_sync (a commit has its own) and synchronises with the second's warp,
   which runs tcgen05.fence::after_thread_sync before the access. A warp that waits for the mbarrier
   of its own products does so too.

Without complete work, or without synchronisation, the two race; where the fences alone are not
there, the finding is a "missing tensor fence". tcgen05.dealloc is synchronous and needs none behind
the synchronisation.
Stricter than PTX: a copy and a product of different lanes need the commit although fences suffice.
Laxer: of one queue, products of different shapes, and copies behind products, are taken as ordered.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from tilec.runtime.emulator.checking.shadow import SharedShadow
from tilec.runtime.emulator.checking.sync_checker import Checker
from tilec.runtime.emulator.reading.instruction import Instruction

_SLABS, _COLUMNS = 8, 512  # tensor memory is watched in pieces of 16 lanes x 1 column
_BEFORE = (
    "the synchronisation in between does not order the first access",
    "run tcgen05.fence::before_thread_sync behind it, before the others are told",
)
_AFTER = (
    "the synchronisation in between does not order the second access",
    "run tcgen05.fence::after_thread_sync behind the wait or barrier",
)


class TensorChecker(Checker):
    """Races in shared and in tensor memory."""

    def reset(self) -> None:
        super().reset()
        self.forked: dict[tuple[int, int], np.ndarray] = {}
        cells = self.machine.cta_count * _SLABS * _COLUMNS * self.machine.uses_tensor_memory
        self.tensor = SharedShadow(int(cells), 1, self.clocks.readers)

    def allocated(self, offset: np.ndarray, lane: int, site: int) -> None:
        """tcgen05.alloc writes the address: no later proxy fence is asked for this write."""
        cells = self.shadow.cells(offset, 4).reshape(-1)
        agent, domain = self.agents_of(np.array([lane]), cells.size)
        load, epoch = self.clocks.new_load(int(domain[0]))
        numbers = np.full(cells.size, load), np.full(cells.size, epoch)
        self.write(cells, agent, domain, site, *numbers)
        self._learn(agent[:1], domain[:1], numbers[0][:1], numbers[1][:1])

    @contextmanager
    def _in_tensor_memory(self) -> Iterator[None]:
        """The rules below hold for the cells of tensor memory."""
        kept = self.shadow
        self.shadow, self.memory = self.tensor, "tensor memory"
        yield
        self.shadow, self.memory = kept, "shared"

    def _tensor_cells(
        self, cta: np.ndarray | int, rows: np.ndarray, columns: np.ndarray
    ) -> np.ndarray:
        return (np.asarray(cta) * _SLABS + (rows >> 4)) * _COLUMNS + columns

    def _cells_of(self, cta: int, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The cells of one CTA at these places, each once."""
        return self._once(self._tensor_cells(cta, rows, columns))

    def _once(self, cells: np.ndarray) -> np.ndarray:
        """Each of the cells once, in order: np.unique takes longer where they are many."""
        touched = np.zeros(self.tensor.initialised.size, np.bool_)
        touched[cells] = True
        return np.flatnonzero(touched)

    def tensor_access(
        self, cta: np.ndarray, rows: np.ndarray, columns: np.ndarray, warps: np.ndarray,
        store: bool, site: int,
    ) -> None:  # fmt: skip
        """tcgen05.ld and .st of warps (lane numbers / 32); arrays [warp, register, lane]."""
        cells = self._tensor_cells(cta, rows, columns)
        with self._in_tensor_memory():
            for block, warp in zip(cells, warps.tolist(), strict=True):
                touched = self._once(block)
                agent, domain = self.agents_of(np.array([warp * 32]), touched.size)
                who, where = agent[:1], domain[:1]
                self._require_fences(touched, int(who[0]), int(where[0]), site, store)
                if store:
                    epoch = self.clocks.awaited_stores[who, where] + 1
                    writer = agent + self.clocks.tensor_stores
                    epochs = np.repeat(epoch, touched.size)
                    mine = touched[self.shadow.write_agent[touched] == writer[0]]
                    self.shadow.write_epoch[mine] = 0  # a warp's stores keep their order
                    self.write(touched, agent, domain, site, writer, epochs)
                else:
                    self.read(touched, agent, domain, site)
                    reader = int(who[0]) + self.clocks.tensor_loads
                    epoch = self.clocks.awaited_loads[who, where] + 1
                    self.shadow.note_reads(touched, reader, epoch, site)

    def tensor_freed(self, cta: int, columns: np.ndarray, warp: int, site: int) -> None:
        """tcgen05.dealloc by a warp (lane number / 32): whoever uses the columns must be done."""
        cells = self._tensor_cells(cta, np.arange(_SLABS)[:, None] * 16, columns).reshape(-1)
        agent, domain = self.agents_of(np.array([warp * 32]), cells.size)
        with self._in_tensor_memory():
            self.write(cells, agent, domain, site)
            self.shadow.initialised[cells] = False

    def tensor_waited(self, warps: np.ndarray, stores: bool) -> None:
        """tcgen05.wait::st or ::ld: the warps' own accesses of tensor memory are complete."""
        clocks = self.clocks
        agent, domain = self.agents_of(np.asarray(warps) * 32)
        awaited = clocks.awaited_stores if stores else clocks.awaited_loads
        awaited[agent, domain] += 1
        stream = agent + (clocks.tensor_stores if stores else clocks.tensor_loads)
        self._learn(agent, domain, stream, awaited[agent, domain])
        clocks.tensor_order[agent, domain, stream] = awaited[agent, domain]

    def tensor_product(self, parts: list[np.ndarray], lane: int, site: int) -> None:
        """tcgen05.mma or .cp reads chunks of shared memory until it is committed and waited for."""
        agent, domain = self.agent_of(lane)
        group = int(self.clocks.committed_products[agent, domain]) + 1
        stream = agent + self.clocks.products
        for part in parts:
            cells = self._chunk_cells(part)
            self._async_order(cells, agent, domain, site, "read after write")
            self.require_initialised(cells, site)
            self.shadow.note_reads(cells, stream, group, site)
            self.multiplies(self._cta_of(int(part.flat[0]) * 2), agent, group, site)
        self.forked[agent, domain] = self.clocks.fork(agent, domain)

    def tensor_operand(
        self, cta: int, rows: np.ndarray, columns: np.ndarray, lane: int, site: int
    ) -> None:
        """tcgen05.mma reads tensor memory (operand A, or D to add to)."""
        cells = self._cells_of(cta, rows, columns)
        with self._in_tensor_memory():
            stream, group, _, _ = self._pipelined(cells, lane, site, False)
            self.require_initialised(cells, site)
            self.shadow.note_reads(cells, stream, group, site)

    def _pipelined(
        self, cells: np.ndarray, lane: int, site: int, store: bool
    ) -> tuple[int, int, int, int]:
        """Writes before an access of the lane's tcgen05 queue: those of the queue are in order."""
        who, where = self.agent_of(lane)
        stream = who + self.clocks.products
        writer = self.shadow.write_agent[cells]
        bad = self.shadow.write_epoch[cells] > self.clocks.known[who, where][writer]
        bad &= writer != stream
        if bad.any():
            what = "write after write" if store else "read after write"
            self.report_writes(cells[bad], site, np.full(int(bad.sum()), who), what)
        self._require_fences(cells, who, where, site, store, stream)
        group = int(self.clocks.committed_products[who, where]) + 1
        return stream, group, who, where

    def tensor_written(
        self, cta: int, rows: np.ndarray, columns: np.ndarray, lane: int, site: int
    ) -> None:
        """tcgen05.mma or .cp writes tensor memory."""
        cells = self._cells_of(cta, rows, columns)
        with self._in_tensor_memory():
            stream, group, who, where = self._pipelined(cells, lane, site, True)
            late = self.shadow.late_reads(cells, self.clocks.known[who, where])
            late[self.shadow.readers == stream] = False
            if late.any():
                self.report_reads(late, cells, site)
            self.shadow.write_agent[cells] = stream
            self.shadow.write_epoch[cells] = group
            self.shadow.write_site[cells] = site
            self.shadow.initialised[cells] = True

    def products_committed(self, targets: list[int], lane: int, instruction: Instruction) -> None:
        """tcgen05.commit: the mbarriers learn of the lane's products issued so far."""
        agent, domain = self.agents_of(np.array([lane]))
        who, where = int(agent[0]), int(domain[0])
        group = int(self.clocks.committed_products[who, where]) + 1
        clock = self.forked.pop((who, where), None)
        if clock is None:  # without products since the last commit the arrival is the thread's own
            clock = self.clocks.fork(who, where)
        self.clocks.commit_products(clock, who, group)
        for cell in targets:
            self._require_wait(cell, who, where, instruction.place)
            self._join(cell, clock)
            phase = int(self.machine.mbarriers.phase[cell])
            self.lifetimes.signals(self._cta_of(cell), cell, phase, lane, instruction.place)
        self.clocks.committed_products[who, where] = group

    # -- tcgen05.fence --------------------------------------------------------------------------

    def tensor_fence(self, lanes: np.ndarray, before: bool) -> None:
        """tcgen05.fence::before_thread_sync, or ::after_thread_sync."""
        agent, domain = self.warps_of(lanes)
        (self.clocks.fence_before if before else self.clocks.fence_after)(agent, domain)

    def _require_fences(
        self, cells: np.ndarray, who: int, where: int, site: int, store: bool, queue: int = -1
    ) -> None:
        """Earlier accesses that are complete, and known to the warp, but not through fences.

        `queue`: the stream of products that the access belongs to, if it does.
        """
        if not self.launch.tensor_fences:
            return
        clocks, shadow = self.clocks, self.shadow
        order, known = (c[who, where] for c in (clocks.tensor_order, clocks.known))
        writer, epoch = shadow.write_agent[cells], shadow.write_epoch[cells]
        late = (epoch > order[writer]) & (epoch <= known[writer])
        late &= (writer >= clocks.warps) & (writer != queue)
        self._missing_fences(
            writer[late], epoch[late], shadow.write_site[cells[late]], who, where, site
        )
        if not store:
            return
        late = shadow.late_reads(cells, order) & ~shadow.late_reads(cells, known)
        late[(shadow.readers < clocks.warps) | (shadow.readers == queue)] = False
        row, position = np.nonzero(late)
        epochs = shadow.read_epoch[row, cells[position]]
        sites = shadow.read_site[row, cells[position]]
        self._missing_fences(shadow.readers[row], epochs, sites, who, where, site)

    def _missing_fences(
        self, agents: np.ndarray, epochs: np.ndarray, sites: np.ndarray, who: int, where: int,
        site: int,
    ) -> None:  # fmt: skip
        """Which of the two fences is missing between accesses of agents and one of a warp."""
        if not agents.size:
            return
        told = epochs <= self.clocks.thread_order[who, where, agents]
        for chosen, (missing, mend) in ((~told, _BEFORE), (told, _AFTER)):
            for first in np.unique(sites[chosen]):
                one, other = (self.instructions[int(i)].place for i in (first, site))
                self.race(one, other, missing, mend, kind="missing tensor fence")
