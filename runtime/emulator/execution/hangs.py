"""Where a launch that hangs, or does not end, stands: who waits for what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tilec.runtime.emulator.errors import Place
from tilec.runtime.emulator.execution.machine import Machine
from tilec.runtime.emulator.instructions.barrier import CtaBarriers
from tilec.runtime.emulator.instructions.cluster import ClusterBarriers
from tilec.runtime.emulator.reading.instruction import Instruction
from tilec.runtime.emulator.stuck_warps import StuckWarps


@dataclass
class Parked:
    """Lanes that wait for a phase of an mbarrier each."""

    instruction: Instruction
    lanes: np.ndarray
    cells: np.ndarray
    parity: np.ndarray


class Schedule(Protocol):
    """What is looked at of a `Scheduler`: lanes, as masks [warp][CTA][32] by the index of their
    next instruction, that may run (`ready`) or are held until others come, and all that waits."""

    machine: Machine
    ready: dict[int, np.ndarray]
    held: dict[int, np.ndarray]
    parked: list[Parked]
    barriers: CtaBarriers
    cluster_barriers: ClusterBarriers


def stuck_warps(scheduler: Schedule, doing: str) -> StuckWarps:
    """Every warp that has not ended, and what it waits for; `doing`: what those do that do
    not wait."""
    stuck = StuckWarps(scheduler.machine.first_cta)
    for pc, mask in scheduler.ready.items():
        place = scheduler.machine.entry.instructions[pc].place
        for warp, cta in zip(*np.nonzero(mask.any(2)), strict=True):
            stuck.add(int(cta), [int(warp)], f"{doing}, now at {place}")
    scheduler.barriers.report(stuck)
    for parked in scheduler.parked:
        _report_parked(scheduler.machine, parked, stuck)
    scheduler.machine.register_budgets.report(stuck)
    for pc, mask in scheduler.cluster_barriers.waiting.items():
        place = scheduler.machine.entry.instructions[pc - 1].place
        for warp, cta in zip(*np.nonzero(mask.any(2)), strict=True):
            stuck.add(int(cta), [int(warp)], f"at the cluster barrier, {place}")
    for pc, mask in scheduler.held.items():
        place = scheduler.machine.entry.instructions[pc].place
        warp, cta, lane = (int(part[0]) for part in np.nonzero(mask))
        stuck.add(cta, [warp], f"divergent, lane {lane} waits for the others at {place}")
    return stuck


def _report_parked(machine: Machine, parked: Parked, stuck: StuckWarps) -> None:
    pairs = np.stack([parked.lanes >> 5, parked.cells, parked.parity.astype(np.int64)], 1)
    for warp_number, cell, parity in np.unique(pairs, axis=0).tolist():
        warp, cta = divmod(warp_number, machine.cta_count)
        text = machine.mbarriers.describe(cell, parity & 1)
        stuck.add(cta, [warp], f"at {parked.instruction.place}: {text}")


def stuck_place(scheduler: Schedule) -> Place | None:
    """One place where threads are stuck."""
    for pc in scheduler.held:
        return scheduler.machine.entry.instructions[pc].place
    for parked in scheduler.parked:
        return parked.instruction.place
    for pc in scheduler.ready:
        return scheduler.machine.entry.instructions[pc].place
    for _, _, instruction in scheduler.machine.register_budgets.waiting:
        return instruction.place
    for barrier in scheduler.barriers.barriers.values():
        if barrier.waiting.any() and barrier.instruction is not None:
            return barrier.instruction.place
    return None
