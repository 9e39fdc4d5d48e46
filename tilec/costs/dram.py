"""What reading from DRAM takes beside its rate: what L2 does not hold any more, and multiprocessors
without a CTA."""

from __future__ import annotations

from tilec.costs.machine import Machine
from tilec.costs.work import Work


def read_again(work: Work, occupancy: int, machine: Machine) -> float:
    """Bytes that programs read in another loop before, and L2 does not hold any more: those of all
    programs at once have to fit."""
    at_once = min(work.programs, occupancy * machine.multiprocessors) * work.again_bytes
    kept = machine.rates.kept * machine.l2_bytes
    return work.programs * work.again_bytes * min(1.0, max(0.0, at_once / kept - 1))


def unevenness(work: Work, occupancy: int, machine: Machine) -> float:
    """How much longer DRAM needs because multiprocessors without a CTA are among others: in the
    last round, or in the only one."""
    all_of_them = machine.multiprocessors
    idle = -work.programs % all_of_them
    if not work.has_engine or all_of_them < work.programs <= occupancy * all_of_them:
        return 1.0
    rates = machine.rates
    uneven = rates.uneven / max(work.cluster, work.parts)
    if work.programs > all_of_them:
        return 1 + uneven * idle / (2 * work.programs)
    is_even = work.cluster >= rates.even_cluster and rates.evenly_idle * idle <= all_of_them
    if is_even or 2 * idle >= all_of_them:
        return 1.0
    return 1 + uneven * 2 * idle / all_of_them
