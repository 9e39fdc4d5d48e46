"""Predicts launches of programs without products whose loops load: to rank the shapes of their
tiles and their warps by what is under way.

A multiprocessor holds so many warps; each has an iteration's loads under way and waits for them.
How long all programs take follows from rounds of such warps, each as long as a program's chain of
waits, or from what their instructions take, or from memory, whichever is longest. Where memory says
how long rows are, some program has a much longer one: it lasts as long as that one's iterations.
"""

from __future__ import annotations

from math import ceil, log

from tilec.costs.machine import Machine
from tilec.costs.parts import gather_us
from tilec.costs.work import LoopWork, Work
from tilec.hardware.sizes import SECTOR_BYTES, WARP_SIZE
from tilec.hardware.target import Target


def stream_us(work: Work, machine: Machine) -> float:
    """Microseconds of one launch."""
    rates = machine.rates.streams
    each = work.programs / machine.multiprocessors
    chain = sum(loop.trips * _waits(loop, work, machine) for loop in work.loops) + rates.end
    busy = rates.next if work.shares_ctas else rates.begin
    busy += sum(loop.trips * _busy(loop, work, machine) for loop in work.loops)
    rounds = max(1.0, each / min(programs_at_once(work, machine), ceil(each) or 1))
    longest = chain + _longer(work, machine)
    clocks = max(rounds * chain, ceil(each) * busy, longest) + rates.tail * longest
    computing = clocks / machine.clock_mhz
    memory = work.array_bytes / _dram_bytes(work, machine)
    most, least = max(computing, memory), min(computing, memory)
    return most + rates.unhidden * least + rates.launch + gather_us(work, machine)


def programs_at_once(work: Work, machine: Machine) -> int:
    """Programs that a multiprocessor holds."""
    target = machine.target
    threads = work.warps * WARP_SIZE
    registers = threads * min(target.registers_per_thread, registers_of(work, machine))
    most = _most_programs(work, target)
    return max(
        1, int(min(most, target.threads_per_sm // threads, target.registers_per_sm // registers))
    )


def registers_of(work: Work, machine: Machine) -> float:
    """Registers of a thread, what it takes in of other warps at once among them."""
    rates = machine.rates.streams
    passings = (passing for loop in work.loops for passing in loop.passings)
    taken = max((one.words * one.others(work.warps) for one in passings), default=0)
    return rates.registers + rates.held * work.elements / (work.warps * WARP_SIZE) + taken


def _most_programs(work: Work, target: Target) -> int:
    """As many as there are CTAs, or warps where these share CTAs."""
    warps = target.threads_per_sm // target.warp_size
    return warps if work.shares_ctas else target.ctas_per_sm


def _waits(loop: LoopWork, work: Work, machine: Machine) -> float:
    """Clocks of an iteration of a program by itself."""
    rates = machine.rates.streams
    latency = rates.latency if loop.global_bytes else 0.0
    ahead = max(1.0, min(rates.ahead, loop.trips)) if loop.runs_ahead else 1.0
    meetings = 0 if work.warps == 1 else loop.exchanges
    issued = _instructions(loop, work, machine) * rates.issue
    return latency / ahead + issued + meetings * rates.meeting


def _busy(loop: LoopWork, work: Work, machine: Machine) -> float:
    """Clocks for which an iteration keeps a multiprocessor's schedulers and load units busy."""
    rates = machine.rates.streams
    accesses = (loop.global_bytes + loop.stored_bytes) / (WARP_SIZE * work.access_bytes)
    instructions = work.warps * _instructions(loop, work, machine) * rates.instruction
    stores = loop.stored_bytes / rates.stored_bytes
    return instructions + accesses * rates.access + stores


def _instructions(loop: LoopWork, work: Work, machine: Machine) -> float:
    """Of a thread in an iteration."""
    passed = sum(one.slots * one.others(work.warps) for one in loop.passings)
    spread = loop.spread_loads * machine.rates.streams.spread_load
    return loop.computed / (work.warps * WARP_SIZE) + passed + spread


def _longer(work: Work, machine: Machine) -> float:
    """Clocks by which the longest program takes longer than the mean one: of rows whose lengths
    fall off exponentially the longest is as long as the logarithm of their number."""
    rates, more = machine.rates.streams, 0.0
    for loop in work.loops:
        if loop.uneven_rows:
            times = max(1.0, rates.longest * log(loop.uneven_rows))
            more += (times - 1) * (loop.trips - 1 / 2) * _waits(loop, work, machine)
    return more


def _dram_bytes(work: Work, machine: Machine) -> float:
    """Bytes that DRAM gives in a microsecond."""
    rates = machine.rates.streams
    lost = rates.narrow * SECTOR_BYTES / max(SECTOR_BYTES, work.row_bytes)
    return machine.memory_gb_per_s * 1e3 * rates.dram_efficiency * (1 - lost)
