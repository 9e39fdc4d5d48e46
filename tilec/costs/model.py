"""Predicts how long a launch takes: to rank candidates, not to replace a measurement.

A multiprocessor runs its part of the programs in rounds of as many as fit at once. A round lasts
as long as the busiest unit (tensor cores or FMA units, load units, shared memory, the path to L2)
needs for all of them, or as one program's chain of waits, whichever is longer; the launch lasts as
long as the rounds of the multiprocessor with most programs (wave quantisation), or as DRAM needs
for every array once (the roofline of Williams, Waterman and Patterson, CACM 52(4), 2009). Of
programs that differ in length, as many as two a multiprocessor, long ones go with short ones.

The formulas are here, the numbers are facts of the target or in `tilec.costs.rates`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import ceil

from tilec.costs.dram import read_again, unevenness
from tilec.costs.machine import Machine
from tilec.costs.parts import gather_us
from tilec.costs.rates import Rates
from tilec.costs.units import units_of
from tilec.costs.work import LoopWork, Stored, Unit, Way, Work
from tilec.hardware.powers import power_above
from tilec.hardware.ring_stages import (
    FEW_WARPS,
    MANY_SLOTS,
    OUTER_SLOTS,
    around_ring,
    copied_stages,
    ring_stages,
)
from tilec.hardware.sizes import LINE_BYTES, WARP_SIZE, WARPGROUP_WARPS
from tilec.hardware.target import Feature, Target
from tilec.hardware.tensor_memory import COLUMNS, LEAST_COLUMNS
from tilec.records import dataclass

LOAD_WARPS = 4
"""Warps that only load: a role begins at a warpgroup (PTX ISA 9.0, "setmaxnreg")."""
LOADING_REGISTERS = 24
"""Of each thread of those warps, the fewest that `setmaxnreg` gives, (PTX ISA 9.0)."""
REGISTER_STEP = 8
"""Of `setmaxnreg` (PTX ISA 9.0)."""
RAGGED = range(-4, 5)
"""Quarters of `Work.spread` by which programs that have work may be more than expected, each as
likely: whether they take a round more is not known before the run."""


@dataclass(frozen=True)
class Prediction:
    """The time of a launch. `us`: microseconds. `occupancy`: programs a multiprocessor runs at
    once.

    `waves`: rounds that the whole device needs, in full devices. `impossible`: why this cannot run,
    else empty.
    """

    us: float
    occupancy: int
    waves: float
    shared_bytes: int
    registers: int
    bound: str
    impossible: str = ""


def predict(work: Work, machine: Machine) -> Prediction:
    """The prediction for one launch; `us` is infinite where it is impossible."""
    target, rates = machine.target, machine.rates
    panels = _panels(work) + work.parts_bytes
    slots = [_slots(loop, work, panels, target) for loop in work.loops]
    stages = [own for own, _ in slots]
    around = work.outer_bytes * max((outer for _, outer in slots), default=1)
    shared = panels + around + max(map(_held_bytes, work.loops, stages), default=0)
    registers = registers_of(work, machine)
    occupancy, limit = _occupancy(work, shared, registers, target)
    reason = _impossible(work, shared, registers, (occupancy, limit), machine)
    staged = [n for loop, n in zip(work.loops, stages, strict=True) if loop.staged_bytes]
    if not reason and work.cluster > 1 and work.has_engine and staged and max(staged) < 2:
        reason = "CTAs share copies that run ahead of their readers; there is room for one slot"
    if reason:
        return Prediction(float("inf"), 0, 0.0, shared, registers, "", reason)
    if work.programs == 0:
        return Prediction(0.0, occupancy, 0.0, shared, registers, "nothing to do")
    clocks, bound = _clocks(work, stages, occupancy, machine)
    busy = clocks / machine.clock_mhz
    active = min(1.0, rates.dram_share * work.programs / machine.multiprocessors)
    rate = machine.memory_gb_per_s * 1e3 * rates.dram_efficiency * active
    moved = work.array_bytes + (rates.torn - 1) * work.torn_bytes
    moved += (rates.written - 1) * work.written_bytes
    moved += read_again(work, occupancy, machine)
    memory = moved / (rate * (1 if work.has_engine else rates.dram_threads))
    memory *= unevenness(work, occupancy, machine)
    memory *= 1 + (rates.short_pieces * LINE_BYTES / work.piece_bytes if work.piece_bytes else 0)
    us = max(busy, memory) + rates.unhidden * min(busy, memory)
    if memory > busy:
        bound = "DRAM"
    waves = work.programs / (machine.multiprocessors * occupancy)
    us += gather_us(work, machine) + (rates.cluster if work.cluster > 1 else 0)
    return Prediction(
        us + _launch(work, shared, machine), occupancy, waves, shared, registers, bound
    )


def _slots(loop: LoopWork, work: Work, panels: int, target: Target) -> tuple[int, int]:
    """Slots of a loop's ring and of those around it: as many, or two, or one, and the rest for the
    loop (`passes/roles/ring_slots.py`)."""
    if not work.outer_bytes or not loop.staged_bytes:
        return stages_of(loop, target, work.accumulators, panels, work.warps), 1
    whole = replace(loop, staged_bytes=loop.staged_bytes + work.outer_bytes)
    slots = stages_of(whole, target, work.accumulators, panels, work.warps)
    if slots >= MANY_SLOTS or (not loop.has_role and slots > 1):
        return slots, slots
    around = OUTER_SLOTS[0 if slots > 1 else 1]
    beside = panels + around * work.outer_bytes
    return stages_of(loop, target, work.accumulators, beside, work.warps), around


def _held_bytes(loop: LoopWork, stages: int) -> int:
    """The shared memory of a loop: its slots, and what comes through registers once."""
    once = loop.global_bytes - loop.staged_bytes if loop.way is Way.REGISTERS else 0
    return stages * loop.staged_bytes + once


def _launch(work: Work, shared: int, machine: Machine) -> float:
    """Microseconds of the launch itself, behind another, which begins under one whose CTAs fill a
    multiprocessor each (`passes/overlap_launches.py`)."""
    rates = machine.rates
    has_roles = any(loop.has_role for loop in work.loops)
    if not has_roles or machine.target.fits_twice(shared):
        return rates.launch
    is_beside = 2 * work.programs <= machine.multiprocessors
    return rates.launch - rates.hidden_launch - (rates.hidden_beside if is_beside else 0)


def stages_of(
    loop: LoopWork,
    target: Target,
    accumulators: int = 0,
    other_bytes: int = 0,
    warps: int = FEW_WARPS,
) -> int:
    """The slots a loop's pipeline has: demanded, or as many as the compiler gives it, with so many
    `accumulators` of `warps`, and beside `other_bytes` of shared memory."""
    if not loop.staged_bytes:
        return 1
    if loop.stages is not None:
        return loop.stages
    if loop.has_role:
        return max(1, ring_stages(loop.staged_bytes, other_bytes + around_ring(), target))
    # A role of its own fills rings for warpgroups, and registers are dealt out by role.
    has_roles = target.supports(Feature.WGMMA)
    sums = 0 if has_roles else accumulators
    return copied_stages(loop.staged_bytes, sums, warps, target)


def _panels(work: Work) -> int:
    """The shared memory that results leave through, beside rings."""
    return work.teams * max((loop.leaving_bytes for loop in work.loops), default=0)


def registers_of(work: Work, machine: Machine) -> int:
    """Registers a thread needs, about: its part of the tiles, and what every thread has. Elements
    on their way take no more than there are."""
    held = _held(work, machine)
    room = max(0, machine.target.registers_per_thread - held)
    return -(-(held + min(room, int(_loaded(work, machine)))) // 8) * 8


def _most_registers(work: Work, target: Target) -> int:
    """Registers that a thread may have beside warps that only load."""
    threads = work.teams * work.warps * target.warp_size
    loading = LOAD_WARPS * target.warp_size * LOADING_REGISTERS if work.has_engine else 0
    room = max(1, (target.registers_per_sm - loading) // threads)
    return min(target.registers_per_thread, room // REGISTER_STEP * REGISTER_STEP or 1)


def _held(work: Work, machine: Machine) -> int:
    """Registers of a thread that its part of the tiles takes, and what every thread has."""
    threads = work.warps * machine.target.warp_size
    tiles = -(-work.accumulators // threads) + -(-work.elements // threads)
    beside = max((loop.beside for loop in work.loops), default=0)
    return tiles + -(-beside // threads) + machine.rates.other_registers


def _comes_late(loop: LoopWork, work: Work, machine: Machine) -> bool:
    """Whether what meets a product's sums is loaded where it is needed: registers hold the next
    iteration's, two elements each, beside it only where there are so many."""
    threads = work.warps * machine.target.warp_size
    ahead = -(-loop.beside // (2 * threads))
    return bool(ahead) and _held(work, machine) + ahead > _most_registers(work, machine.target)


def _loaded(work: Work, machine: Machine) -> float:
    """Registers of a thread for an iteration's elements that come through them one by one."""
    loaded = max((x.narrow_loads for x in work.loops if x.way is Way.REGISTERS), default=0)
    return machine.rates.loaded_registers * loaded / (work.warps * machine.target.warp_size)


def _goes(work: Work, machine: Machine) -> float:
    """The number of times, 1 at least, that loaded elements fill the registers which are left: so
    many goes they come in."""
    room = machine.target.registers_per_thread - _held(work, machine)
    return max(1.0, _loaded(work, machine) / max(1, room))


def _occupancy(work: Work, shared: int, registers: int, target: Target) -> tuple[int, str]:
    """The number of CTAs that a multiprocessor holds, and what keeps it from holding more."""
    threads = work.teams * work.warps * target.warp_size
    loading = LOAD_WARPS * target.warp_size if work.has_engine else 0
    per_sm = target.shared_bytes + target.shared_bytes_per_cta
    limits = {
        "CTAs": target.threads_per_sm if work.shares_ctas else target.ctas_per_sm,
        "threads": target.threads_per_sm // (threads + loading),
        "registers": target.registers_per_sm
        // (threads * min(registers, target.registers_per_thread)),
        "shared memory": per_sm // (shared + target.shared_bytes_per_cta),
    }
    if work.columns:
        sums = 2 * work.columns if work.hides_ends else work.columns
        limits["tensor memory"] = COLUMNS // max(LEAST_COLUMNS, power_above(sums))
    limit = min(limits, key=lambda name: limits[name])
    return limits[limit], limit


def _impossible(
    work: Work, shared: int, registers: int, held: tuple[int, str], machine: Machine
) -> str:
    """Says why a launch cannot be, else nothing; `held`: as `_occupancy`."""
    (occupancy, limit), target = held, machine.target
    threads = work.teams * work.warps * target.warp_size
    at_once = max(1, occupancy) * machine.clustered(work.parts)
    if work.parts * work.groups > 1 and work.programs > at_once:
        return f"{work.programs} CTAs in clusters of {work.parts} are more than run at once"
    if work.teams > 1 and not (target.supports(Feature.WGMMA) and work.has_engine):
        return f"no sets of warps take programs in turn on {target.name}, or none loads ahead"
    if threads > target.max_threads:
        return f"{threads} threads a program; {target.name} has at most {target.max_threads}"
    if shared > target.shared_bytes:
        return (
            f"its stages take {shared} bytes of shared memory; a program has at most "
            f"{target.shared_bytes} on {target.name}"
        )
    if work.columns > COLUMNS:
        return f"its sums take {work.columns} columns of tensor memory, which has {COLUMNS}"
    accumulators = -(-work.accumulators // (work.warps * target.warp_size))
    if accumulators + machine.rates.other_registers // 2 > target.registers_per_thread:
        return (
            f"{accumulators} registers a thread for the accumulator alone; a thread has at most "
            f"{target.registers_per_thread}"
        )
    if min(registers, target.registers_per_thread) * threads > target.registers_per_sm:
        return f"about {registers} registers for each of {threads} threads; {limit} do not suffice"
    return ""


def _clocks(work: Work, stages: list[int], occupancy: int, machine: Machine) -> tuple[float, str]:
    """Clocks of the multiprocessor with most programs, and what they are spent on."""
    rates, target = machine.rates, machine.target
    busy: dict[str, float] = {}
    chain, end, fill, together = 0.0, 0.0, 0.0, 0.0
    most = -(-work.programs // machine.multiprocessors)
    for loop, slots in zip(work.loops, stages, strict=True):
        units = units_of(loop, machine, work.programs)
        for unit, clocks in units.items():
            busy[unit] = busy.get(unit, 0.0) + loop.trips * clocks
        if slots > 1 and loop.way is not Way.REGISTERS:
            fill = rates.memory_latency
            iteration = _pipelined(loop, units, slots, work, machine)
        else:
            goes = _goes(work, machine)
            iteration = _in_order(loop, units, work, rates) + _waits(loop, units, goes, rates)
        is_late = loop.is_waited_for or _comes_late(loop, work, machine)
        iteration += rates.memory_latency if is_late else 0.0
        iteration += (loop.exchanges + rates.crossed * loop.crossed) * rates.exchange
        chain += loop.trips * iteration
        # What waits for its own products gains nothing from programs beside it (64 x 32 tiles of
        # attention, two CTAs a multiprocessor of an H200).
        together += loop.trips * iteration if loop.waiting_products else 0.0
        stores = _stores(loop, rates)
        end += stores
        if loop.stored in (Stored.ELEMENTS, Stored.SCATTERED):  # by the units that load
            busy["loads"] += stores
    chain = max(chain, end) if work.hides_ends else chain + end
    fill += end if work.hides_ends else 0.0
    excess = registers_of(work, machine) / _most_registers(work, target) - 1
    slower = 1 + rates.spilled * max(0.0, excess)
    start = rates.shared_start if work.shares_ctas else rates.start
    each = (max(_together(busy, rates), together) + start / work.teams) * slower
    is_waiting = chain * slower + fill > min(occupancy, most) * each
    unit = max(busy, key=lambda name: busy[name])
    # A warp that only loads has the next program's operands there when this one ends.
    fills = 1 if work.has_engine else -(-most // occupancy)
    clocks = _rounds(work, occupancy, each, chain * slower, machine) + fills * fill
    return clocks, "latency" if is_waiting else unit


def _rounds(work: Work, occupancy: int, each: float, chain: float, machine: Machine) -> float:
    """Clocks of all rounds of programs, of which so many run at once: the units are busy with
    `each`, none takes less than its `chain`."""
    full = max(occupancy * each, chain)
    # The later the last round, the less it counts: programs drift apart, and the clock of a card
    # that is limited by power rises while some multiprocessors idle.
    exact = work.programs / machine.multiprocessors
    whole = 0.0
    for more in RAGGED if work.spread else (0,):
        programs = work.programs + more * work.spread / RAGGED[-1]
        rounds, rest = divmod(ceil(programs / machine.multiprocessors), occupancy)
        last = max(rest * each, chain) if rest else 0.0
        whole += rounds * full + last
    whole /= len(RAGGED) if work.spread else 1
    late = exact / (exact + machine.rates.lockstep_rounds)
    beyond = work.longest - 1
    if beyond > 0 and work.in_pairs and occupancy == 1 and 1 < exact <= 2:
        return full * _in_pairs(exact, work.longest)
    # Where programs differ in length, some multiprocessors get more of the long ones.
    whole += full / occupancy * beyond * min(1.0, machine.rates.straggling / exact)
    return whole - max(0.0, whole - exact * full / occupancy) * late


def _in_pairs(exact: float, longest: float) -> float:
    """How many programs of mean length the busiest multiprocessor is busy for, where there are
    `exact` ones for each, at most two. The longest have one of their own, and of the others the
    longer go with the shorter (`passes/schedule_programs.py`); lengths spread evenly around their
    mean, up to `longest` times that."""
    shortest = max(0.0, 2 - longest)
    paired = 1 - 1 / exact  # the part of programs that are the second of theirs
    return max(longest, 2 * (shortest + (longest - shortest) * paired))


def _pipelined(
    loop: LoopWork, units: Mapping[str, float], slots: int, work: Work, machine: Machine
) -> float:
    """Clocks of an iteration of one program whose operands come to a ring of so many slots."""
    rates = machine.rates
    step, latency = 0.0, rates.memory_latency
    if loop.way is Way.ENGINE:
        asking = min(1.0, work.programs / machine.multiprocessors)
        latency += asking * (rates.loaded_latency - rates.memory_latency)
        step = rates.step + (rates.cluster_step if work.cluster > 1 else 0)
    arithmetic = units["arithmetic"] + step / work.teams
    is_alone = work.warps * work.teams == WARPGROUP_WARPS and not loop.waiting_products
    if is_alone and loop.way is Way.ENGINE and loop.unit is Unit.WARPGROUPS:
        arithmetic = max(arithmetic + rates.lone_step, rates.lone_least)
    stepped = {**units, "arithmetic": arithmetic}
    longest = _in_order(loop, stepped, work, rates)
    # A ring of n slots has n - 1 loads on the way while it computes, one fewer where a slot is held
    # until the instructions behind it are issued: of two slots none.
    ahead = slots - (1 if loop.unit is Unit.WARPS else 2)
    if loop.trips <= slots:
        return longest
    # Products that something waits for end in their iteration, with all that they read.
    if not ahead and not loop.waiting_products:
        return longest + latency
    return max(longest, latency / max(1, ahead))


def _in_order(loop: LoopWork, units: Mapping[str, float], work: Work, rates: Rates) -> float:
    """Clocks of an iteration of one program."""
    turns = _in_turns(loop, units, work, rates)
    filling = _issued(loop.filled, LOAD_WARPS, rates)
    longest = max(_prepared(loop, units, work, rates), filling)
    if loop.is_rotated:
        between = loop.waiting_products * rates.between_products
        return max(longest, turns) + between + _handing(loop, work, rates)
    # Others compute, or multiply, while a group of warps waits for its products; but they keep
    # step, and a group by itself is done sooner.
    groups = _groups(loop, work)
    each = rates.waited_alone if groups == 1 else rates.waited_products / groups
    waited = loop.waiting_products * each
    handing = 0.0 if loop.recurs else _handing(loop, work, rates)
    return max(longest, turns + waited + handing)


def _handing(loop: LoopWork, work: Work, rates: Rates) -> float:
    """Clocks in which warps hand on what they compute for others, which share their rows. Those of
    a recurrence wait for each other's products anyway: by tiles that were the fastest of some, two
    groups of warps are no slower than one there (`product_warps.py`)."""
    shares = loop.waiting_products and loop.groups < work.warps // WARPGROUP_WARPS
    return loop.handed_on * rates.handed_on if shares else 0.0


def _groups(loop: LoopWork, work: Work) -> int:
    """Groups of warps that multiply, and compute, each by itself."""
    return min(max(1, work.warps // WARPGROUP_WARPS), loop.groups) * work.teams


def _prepared(loop: LoopWork, units: Mapping[str, float], work: Work, rates: Rates) -> float:
    """Clocks of all units, and of the threads of a program that compute operands of products, a
    part while they multiply another: nearly the longer of both (a norm)."""
    together = _together(units, rates)
    issued = _issued(loop.prepared, work.warps, rates)
    power = rates.prepared_overlap
    return (together**power + issued**power) ** (1 / power) if issued else together


def _issued(instructions: int, warps: int, rates: Rates) -> float:
    """Clocks in which so many warps compute operands: a warpgroup has one in each scheduler, which
    more of them share."""
    return rates.lone_issue * instructions / (min(warps, WARPGROUP_WARPS) * WARP_SIZE)


def _in_turns(loop: LoopWork, units: Mapping[str, float], work: Work, rates: Rates) -> float:
    """Clocks to multiply and to compute in an iteration where products wait for what is computed of
    others: one group of warps multiplies while others compute. The more there are, the nearer the
    sum of both comes to the longer of them (a norm, between that of sums and that of maxima); but
    where all products end in their iteration groups keep step, and it stays the sum."""
    if not loop.waiting_products:
        return 0.0
    power = 1 + (rates.overlap * (_groups(loop, work) - 1) if loop.is_rotated else 0)
    computing = max(units["instructions"], units["functions"])
    return (units["arithmetic"] ** power + computing**power) ** (1 / power)


def _together(units: Mapping[str, float], rates: Rates) -> float:
    """Clocks of all units that work at the same time."""
    most = max(units.values())
    return most + rates.contention * (sum(units.values()) - most)


def _stores(loop: LoopWork, rates: Rates) -> float:
    """Clocks of a program's results behind its last product."""
    if loop.stored is Stored.SCATTERED:
        return loop.stored_elements * rates.scattered_store
    if loop.stored is Stored.ELEMENTS:
        return loop.stored_elements * rates.narrow_store + loop.stored_rows * rates.narrow_row
    rate = rates.stored_bytes if loop.stored is Stored.ROWS else rates.rearranged_bytes
    return loop.stored_bytes / rate


def _waits(loop: LoopWork, units: Mapping[str, float], goes: float, rates: Rates) -> float:
    """Clocks of one iteration without a pipeline that are spent waiting, beside its busiest unit:
    what comes through registers, in so many goes, or fills the only slot of a ring, is there before
    anything is multiplied."""
    if not loop.global_bytes:
        return 0.0
    alone = {Way.REGISTERS: units["arithmetic"], Way.ENGINE: units["L2"]}
    return rates.memory_latency * goes + alone.get(loop.way, 0.0)
