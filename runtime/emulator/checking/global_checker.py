"""Races on global memory: between CTAs, and between the warps of a cluster or CTA.

Two accesses of one cluster are ordered by the vector clocks that barriers, mbarriers and fences
move on (`sync_checker.py`). Those of different clusters are ordered by flags that the second's CTA
has seen (`cta_order.py`). That is taken for an order inside a CTA as well. Launches of a stream are
ordered by griddepcontrol.wait, for what the vector clocks order behind it, and by nothing else.

A bulk store writes when it is waited for; cp.async and tensor loads read when they are issued.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from tilec.runtime.emulator.checking.checker import BARRIER, Reports
from tilec.runtime.emulator.checking.cta_order import CtaOrder
from tilec.runtime.emulator.checking.global_shadow import (
    ASYNC,
    ATOMIC,
    IN_FLIGHT,
    GlobalHistory,
    epoch_of,
    in_flight,
    mark,
    of_others,
    site_of,
    strange,
    warp_of,
)
from tilec.runtime.emulator.errors import Finding
from tilec.runtime.emulator.reading.instruction import Instruction

if TYPE_CHECKING:
    from tilec.runtime.emulator.execution.machine import Machine

_CTAS, _WARPS, _PENDING, _EARLIER, _LATER = range(5)
_TEXTS = (
    (
        "two CTAs, and nothing orders this {} against the other's access",
        "let every CTA own its addresses, or use atomics, or a second launch",
    ),
    ("nothing orders this {} against another warp's access", BARRIER),
    (
        "the bulk store may still be under way",
        "run cp.async.bulk.wait_group 0 (.read is not enough), and order this {} behind it",
    ),
    (
        "a launch before this one, whose access that is, may still run at this {}",
        "run griddepcontrol.wait first, and order this {} behind it",
    ),
    (
        "the launch behind this one, whose access that is, does not wait for this {}",
        "run griddepcontrol.wait before that access, and order it behind the wait",
    ),
)
_FENCE = "run fence.proxy.async after the write, before the copy is issued"


def order_of(instruction: Instruction) -> tuple[bool, bool]:
    """Whether it releases, and whether it acquires; what is relaxed does neither."""
    words = set(instruction.modifiers)
    is_membar = instruction.opcode == "membar"
    both = is_membar or not words.isdisjoint(("acq_rel", "sc"))
    return both or "release" in words, both or "acquire" in words


class GlobalChecker:
    """Watches the arena in one launch of `ctas` CTAs of `warps` warps, `size` to a cluster.

    Cells are as small as the smallest access: CTAs may own neighbouring bytes of one word.
    `covered`: the launches before it (numbers) that are over when griddepcontrol.wait ends; None
    where they are when it begins.
    """

    def __init__(
        self, history: GlobalHistory, ctas: int, warps: int, size: int,
        instructions: list[Instruction], reports: Reports, covered: Collection[int] | None = None,
    ) -> None:  # fmt: skip
        self.reports = reports
        self.warps, self.size, self.team = warps, size, warps * size
        self.history, self.shadow = history, history.shadow
        self.number, self.first_warp, self.first_site = history.begin(
            instructions, ctas * warps, self.team
        )
        self.end_warp = self.first_warp + ctas * warps
        self.instructions = history.instructions
        self.covered = covered
        self.order = CtaOrder()
        self.acquired = np.zeros(ctas, np.int64)
        self.time = 1
        self.collision = False

    @property
    def early(self) -> bool:
        """Whether the launch may begin under the one before it."""
        return self.covered is not None

    def end(self) -> None:
        """The launch is over."""
        self.history.end(self.number, self.first_warp, self.end_warp)

    def follow(self, machine: Machine) -> None:
        """Other CTAs run on the machine now."""
        assert machine.checker is not None
        self.clocks = machine.checker.clocks
        self.first_cta = machine.first_cta
        warp, cta = np.divmod(np.arange(self.warps * machine.cta_count), machine.cta_count)
        self.agent, self.domain = machine.checker.place_warps(warp, cta)
        self.numbers = self.first_warp + (machine.first_cta + cta) * self.warps + warp
        self.stores: dict[int, list[tuple[int, np.ndarray, int]]] = {}
        """Per warp (lane number / 32): group, cells and mark of bulk stores not waited for."""

    def _marks(self, lanes: np.ndarray, site: int, width: int, flags: int = 0) -> np.ndarray:
        """Marks of accesses that lanes make now, repeated for the cells of each."""
        epochs = self.clocks.known[self.agent, self.domain, self.agent]
        every = mark(self.numbers, epochs, self.first_site + site, flags)
        marks = every[np.asarray(lanes).reshape(-1) >> 5]
        return np.repeat(marks, width) if width > 1 else marks

    def _mark(self, warp: int, site: int, flags: int = 0) -> np.ndarray:
        """The mark of an access that a warp (lane number / 32) makes now; no dimension."""
        epoch = self.clocks.known[self.agent[warp], self.domain[warp], self.agent[warp]]
        return mark(self.numbers[warp], epoch, self.first_site + site, flags)

    # -- accesses -------------------------------------------------------------------------------

    def access(
        self, offsets: np.ndarray, size: int, lanes: np.ndarray, store: bool, site: int,
        atomic: bool = False,
    ) -> None:  # fmt: skip
        """A plain access of `size` bytes a lane at arena offsets, or (store) an atomic one."""
        self.time += 1
        cells = self.shadow.cells(offsets, size)
        lanes = np.broadcast_to(lanes, offsets.shape)
        marks = self._marks(lanes, site, self.shadow.width(size), ATOMIC * atomic)
        self._after_writes(cells, marks, "write" if store else "read")
        if store:
            self._after_reads(cells, marks)
            self._write(cells, marks)
            self.collision = not atomic and self._collides(cells, marks)
        else:
            self.shadow.note_reads(cells, marks, self.time, self.team)

    def _write(self, cells: np.ndarray, marks: np.ndarray | int) -> None:
        self.history.written = True
        self.shadow.write[cells] = marks
        self.shadow.write_time[cells] = self.time

    def _collides(self, cells: np.ndarray, marks: np.ndarray) -> bool:
        """Whether several warps write a cell in one instruction; CTAs may not, whatever they
        write."""
        kept = self.shadow.write[cells]
        lost = of_others(kept, marks)
        if not lost.any():
            return False
        one, other = (self._cta_of(m[lost]) for m in (kept, marks))
        if (one != other).any():
            self._report(kept[lost][one != other], marks[lost][one != other], "write")
        return bool((one == other).any())

    def collided(self, site: int) -> None:
        """Warps of a CTA wrote different values to one cell in one instruction."""
        place = self.instructions[self.first_site + site].place
        missing = "two warps write one address in one instruction"
        self.reports.add(Finding("race", "global", place, place, missing, BARRIER))

    def copied(self, offsets: np.ndarray, size: int, lanes: np.ndarray, site: int) -> None:
        """cp.async reads global memory."""
        if self.history.written or self.early:
            cells = self.shadow.cells(offsets, size)
            lanes = np.broadcast_to(lanes, offsets.shape)
            marks = self._marks(lanes, site, self.shadow.width(size))
            self._after_writes(cells, marks, "read")
            self._note_early(cells, marks)

    def _after_writes(self, cells: np.ndarray, marks: np.ndarray, what: str) -> None:
        if self.early and self.history.over:
            self._after_launches(cells, marks, what)
        if not self.history.written:
            return
        before = self.shadow.write[cells]
        if not before.any():
            return
        found = of_others(before, marks)
        if self.stores:
            found |= epoch_of(before) == IN_FLIGHT
        if found.any():
            now = np.broadcast_to(marks, cells.shape)[found]
            self._require_order(before[found], self.shadow.write_time[cells[found]], now, what)

    def _waited(self, marks: np.ndarray) -> np.ndarray:
        """Whether the warps of marks are behind griddepcontrol.wait."""
        warps = warp_of(marks) - self.first_warp
        domain = warps // self.team - self.first_cta // self.size
        return self.clocks.known[warps % self.team, domain, self.clocks.launches] != 0

    def _after_launches(self, cells: np.ndarray, marks: np.ndarray, what: str) -> None:
        """What launches that are over by now did to cells, where this one need not have waited."""
        marks = np.broadcast_to(marks, cells.shape)
        waited = self._waited(marks)
        for launch in self.history.over:
            open_ = ~waited if launch.number in (self.covered or ()) else np.ones_like(waited)
            for kept in (launch.writes, launch.reads)[: 2 if what == "write" else 1]:
                before = kept[cells]
                found = open_ & (before != 0) & (before & marks & ATOMIC == 0)
                self._report(before[found], marks[found], what)

    def _note_early(self, cells: np.ndarray, marks: np.ndarray) -> None:
        """Copies read cells that a launch before this one may yet write."""
        marks = np.broadcast_to(marks, cells.shape)
        if self.early and not self._waited(marks).all():
            self.shadow.note_reads(cells, marks, self.time, self.team)

    def _after_reads(self, cells: np.ndarray, marks: np.ndarray) -> None:
        shadow = self.shadow
        last = shadow.read[cells]
        if not last.any():
            return
        marks = np.broadcast_to(marks, cells.shape)
        for before, when in shadow.readers(cells, self.team):
            found = of_others(before, marks)
            if found.any():
                self._require_order(before[found], when[found], marks[found], "write")
        several = shadow.shared[cells]
        if several.any():  # some of them are forgotten
            cta = self._cta_of(marks[several])
            when = shadow.read_time_beside(cells[several], marks[several], self.team)
            late = self.acquired[cta] <= when
            late &= marks[several] & ATOMIC == 0
            self._report(last[several][late], marks[several][late], "write", _CTAS)

    def _cta_of(self, marks: np.ndarray) -> np.ndarray:
        """CTAs of the grid whose marks these are."""
        return (warp_of(marks) - self.first_warp) // self.warps

    def _is_foreign(self, marks: np.ndarray) -> np.ndarray:
        """Whether marks are of other launches."""
        warps = warp_of(marks)
        return (warps < self.first_warp) | (warps >= self.end_warp)

    # -- order ----------------------------------------------------------------------------------

    def _require_order(
        self, first: np.ndarray, when: np.ndarray, second: np.ndarray, what: str
    ) -> None:
        """Reports pairs of marks that nothing orders."""
        one, other = warp_of(first) - self.first_warp, warp_of(second) - self.first_warp
        foreign = self._is_foreign(first)
        one[foreign] = 0
        ordered = self.order.ordered(one // self.warps, when, other // self.warps)
        near = ~strange(first, second, self.team)
        ordered |= first & second & ATOMIC != 0
        if near.any():
            ordered[near] |= epoch_of(first[near]) <= self._known(
                self.clocks.known, one[near], other[near]
            )
        ordered &= (epoch_of(first) != IN_FLIGHT) & ~foreign | (first & second & ATOMIC != 0)
        if not ordered.all():
            self._report(first[~ordered], second[~ordered], what)

    def _known(self, clock: np.ndarray, of: np.ndarray, by: np.ndarray) -> np.ndarray:
        """What warps (`by`) of the running clusters, by number in the launch, know of others of
        theirs."""
        domain = by // self.team - self.first_cta // self.size
        return clock[by % self.team, domain, of % self.team]

    def fence(self, cta: np.ndarray, order: tuple[bool, bool]) -> None:
        """A fence. `order`: whether it releases what came before, and acquires for what follows."""
        self.time += 1
        numbers = np.unique(cta)
        self.order.fence(numbers, order, self.time)
        if order[1]:
            self.acquired[numbers] = self.time

    def flag(
        self, offsets: np.ndarray, cta: np.ndarray, order: tuple[bool, bool], opcode: str
    ) -> None:
        """An atomic, or a strong load or store, at offsets of the arena; `order` as of a fence."""
        self.time += 1
        cta = np.broadcast_to(cta, offsets.shape).reshape(-1)
        self.order.access(offsets.reshape(-1), cta, order, self.time, opcode)
        if order[1]:
            self.acquired[cta] = self.time

    # -- bulk copies ----------------------------------------------------------------------------

    def bulk_read(self, cells: np.ndarray, lane: int, site: int) -> None:
        """A bulk load reads cells: through the async proxy, to which generic writes are fenced."""
        now = self._mark(lane >> 5, site)
        self._after_writes(cells, now, "read")
        self._note_early(cells, now)
        before = self.shadow.write[cells]
        before = before[(before != 0) & (before & ASYNC == 0) & ~strange(before, now, self.team)]
        one, other = (
            np.broadcast_to(warp_of(marks) - self.first_warp, before.shape)
            for marks in (before, now)
        )
        known, fenced = (
            self._known(c, one, other) for c in (self.clocks.known, self.clocks.fenced)
        )
        epochs = epoch_of(before)
        unfenced = (epochs > fenced) & ((epochs <= known) | (one == other))
        second = self.instructions[self.first_site + site].place
        for first in np.unique(site_of(before[unfenced])).tolist():
            missing = "the async proxy may not see this write of the generic proxy"
            place = self.instructions[first].place
            finding = Finding("missing proxy fence", "global", place, second, missing, _FENCE)
            self.reports.add(finding)

    def bulk_written(self, cells: np.ndarray, lane: int, site: int, reduces: bool) -> None:
        """A bulk store, or reduction, writes cells until its group is waited for."""
        self.time += 1
        warp, flags = lane >> 5, ATOMIC * reduces
        now = self._mark(warp, site, flags)
        self._after_writes(cells, now, "write")
        self._after_reads(cells, now)
        store = in_flight(int(self.numbers[warp]), self.first_site + site, flags)
        self._write(cells, store)
        group = int(self.clocks.committed_stores[self.agent[warp], self.domain[warp]]) + 1
        self.stores.setdefault(warp, []).append((group, cells, store))

    def bulk_waited(self, warps: np.ndarray, pending: int) -> None:
        """Warps (lane numbers / 32) have waited for their bulk stores to be written."""
        for warp in warps.tolist():
            now = self.agent[warp], self.domain[warp]
            done = int(self.clocks.committed_stores[now]) - pending
            left = []
            for group, cells, store in self.stores.pop(warp, []):
                if group > done:
                    left.append((group, cells, store))
                    continue
                flags = store & (ATOMIC | ASYNC)
                site = int(site_of(np.asarray(store))) - self.first_site
                mine = cells[self.shadow.write[cells] == store]
                self.shadow.write[mine] = self._mark(warp, site, flags)
            if left:
                self.stores[warp] = left

    # -- reports --------------------------------------------------------------------------------

    def _report(
        self, firsts: np.ndarray, seconds: np.ndarray, what: str, kind: int | None = None
    ) -> None:
        """Pairs of marks that nothing orders, each pair of instructions once a kind."""
        kinds = np.where(strange(firsts, seconds, self.warps), _CTAS, _WARPS)
        kinds[epoch_of(firsts) == IN_FLIGHT] = _PENDING
        if kind is not None:
            kinds[...] = kind
        foreign = self._is_foreign(firsts)
        kinds[foreign] = np.where(warp_of(firsts) < self.first_warp, _EARLIER, _LATER)[foreign]
        if kind is not None:
            kinds[...] = kind
        pairs = np.stack([site_of(firsts), site_of(seconds), kinds], 1)
        for first, second, found in np.unique(pairs, axis=0).tolist():
            missing, mend = _TEXTS[found]
            one, other = (self.instructions[site].place for site in (first, second))
            self.reports.add(
                Finding("race", "global", one, other, missing.format(what), mend.format(what))
            )
