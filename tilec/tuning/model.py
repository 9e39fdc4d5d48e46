"""Predicts how long a launch takes: to rank candidates, not to replace a measurement.

A multiprocessor runs its share of the programs in rounds of as many as fit at once. A round lasts
as long as the busiest unit (tensor cores or FMA units, load units, shared memory, the path to L2)
needs for all of them, or as one program's chain of waits, whichever is longer; the launch lasts as
long as the rounds of the multiprocessor with most programs (wave quantisation), or as DRAM needs
for every array once (the roofline of Williams, Waterman and Patterson, CACM 52(4), 2009).

The rates that are no facts of the target were fitted to timings on an H200: of 40 products (512^3
to 2048^3, 1 to 256 rows) in 5 to 25 tiles each, what is best by prediction was at most 3 % behind
the best by the clock (test/bench/results/tile-choices-*.json), of 6 of a few rounds of tiles 5
(ragged-*.json). Those of targets with tensor memory are stated, not fitted (`tilec.tuning.rates`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from tilec.ring_stages import ring_stages
from tilec.target import Feature, Target
from tilec.tensor_memory import COLUMNS, LEAST_COLUMNS, power_of_two
from tilec.tuning.machine import Machine
from tilec.tuning.rates import rates_of

ZEROED_BYTES_PER_CLOCK = 30
"""What the copy engine writes of boxes' parts that lie outside of an array."""
CONTENTION = 0.04
"""What the less busy units add to the time of the busiest."""
STORED_BYTES_PER_CLOCK = 37
"""Of one multiprocessor's results, behind its last product."""
MEMORY_LATENCY = 1300
"""Clocks from a request to its line from L2 or DRAM."""
LOADED_LATENCY = 1600
"""The same where the copy engines of all multiprocessors keep asking."""
START_CLOCKS = 100
"""What a multiprocessor takes to start a program, about."""
LOCKSTEP_ROUNDS = 8
"""After so many rounds of programs, the last one counts half."""
LAUNCH_US = 1.4
"""From the start of a grid to its first instructions, and from the last ones to its end."""
HIDDEN_LAUNCH_US = 0.4
"""How much of it hides under the launch before, where the copy engine fills rings."""
AUTO_STAGES = 4
"""Slots of a loop pipelined by cp.async where the author demands no number, shared memory
permitting."""
AUTO_CTAS = 2
"""CTAs a multiprocessor is to have shared memory for, if it has registers for so many."""
REGISTERS_PER_ACCUMULATOR = 2
"""What a loop of matrix instructions takes for each register of its sum."""
DRAM_EFFICIENCY = 0.947
"""The part of DRAM's rate that reading arrays once reaches."""
THREADS_EFFICIENCY = 0.83
"""What is left of that where threads ask instead of the copy engine."""
SHORT_PIECES = 0.03
"""How much longer it takes where it is read in pieces of `LINE_BYTES`; half so in twice those."""
DRAM_SHARE = 3
"""What one multiprocessor can draw from DRAM, in shares of all: a few do not fill its path."""
UNEVEN = 0.33
"""How much longer reading takes for each multiprocessor in two that has no CTA, where more than
half of them have: presumably because they share their way to memory in pairs, whose halves then get
different parts of it. Clusters of 4 are dealt evenly."""
EVEN_CLUSTER = 4
UNHIDDEN = 0.15
"""Part of the shorter of computing and reading DRAM that the longer does not hide."""
OTHER_REGISTERS = 40
"""Per thread, beside accumulators and loaded elements: addresses, fragments, loop state."""
LINE_BYTES = 128
"""What the copy engine takes from L2 at once: a shorter or misplaced row costs as much."""
LONE_WARPGROUP = 0.9
"""What is left of tensor cores where a multiprocessor has one warpgroup, which waits for itself."""
STEP_CLOCKS = 60
"""Of an iteration that waits for a slot of a ring and gives it back, beside what it computes: of
sets of warps in turn a share each, under the other's products."""
THREADS_STEP_CLOCKS = 80
"""Of an iteration whose operands threads bring to warpgroups, turned and 4 bytes at a time."""
WARP_MMA_SPEED = 0.5
"""Of products by single warps, where the target has warpgroup instructions."""
NARROW_LOADS = 0.12
"""Clocks for each element that passes through registers by itself, all warps together."""
NARROW_LOAD_CLOCKS = 0.36
"""The same in one program of one warp, which nothing hides."""

LOADED_REGISTERS = 1.2
"""For each element that waits in a register for its turn: itself, and a part of its address."""
SPILLED = 8
"""Time for each whole register file of a thread that is needed beyond its own."""
PANEL_BYTES = 32 * 1024
"""Of shared memory that results leave through, at most, where rings are."""
LOAD_WARPS = WARPGROUP_WARPS = 4
"""Warps that only load; warps that multiply together."""

TENSOR_SPEEDS: Mapping[str, float] = {"f16": 1, "bf16": 1, "f8": 2, "i8": 2, "tf32": 0.5}
"""Of tensor cores, by the kind of their operands, against f16; `fma` and `f64` have own units."""


class Unit(Enum):
    """Who multiplies tiles."""

    WARPS = auto()
    """Each warp by itself (`mma.sync`), or FMA units."""
    WARPGROUPS = auto()
    """Warpgroups, with the sum in their registers (`wgmma`)."""
    TENSOR_MEMORY = auto()
    """One thread for the CTA, with the sum in tensor memory (`tcgen05.mma`)."""


class Way(Enum):
    """How operands of a loop come to shared memory."""

    ENGINE = auto()
    """Boxes by the copy engine, in a ring that warps of its own keep full."""
    THREADS = auto()
    """16 bytes or less a thread by cp.async, some stages ahead."""
    REGISTERS = auto()
    """Element by element through registers, waited for in each iteration."""


@dataclass(frozen=True)
class LoopWork:
    """One iteration of a loop, run `trips` times a program; straight-line code is run once.

    `flops` by kind of operand (see `TENSOR_SPEEDS`, and "fma", "f64"). `global_bytes`: loaded,
    `line_bytes`: in whole lines, where that is more. `staged_bytes`: what one slot of a pipeline
    holds; `stages`: the slots demanded, None for the compiler's choice. `narrow_loads`: elements
    that go through registers one by one. `unit`: who multiplies; `columns` of tensor memory that
    the sum takes. `zeroed_bytes`: filled in by the copy engine for what lies outside of arrays.
    """

    trips: int = 1
    flops: Mapping[str, int] = field(default_factory=dict)
    global_bytes: int = 0
    shared_bytes: int = 0
    staged_bytes: int = 0
    stages: int | None = None
    stored_bytes: int = 0
    line_bytes: int = 0
    narrow_loads: int = 0
    way: Way = Way.THREADS
    unit: Unit = Unit.WARPS
    columns: int = 0
    zeroed_bytes: int = 0


@dataclass(frozen=True)
class Work:
    """What a launch does: `programs` times the loops, on arrays of `array_bytes` in all.

    `accumulators`: 32-bit registers of the largest accumulator, `elements` those of the largest
    other tile, both of the whole program. `guessed`: what could not be told before a run. `teams`:
    sets of so many warps that take the programs of a CTA in turn.
    `cluster`: CTAs that load together what they share. `piece_bytes`: how much of the largest array
    a program reads at one place, 0 if unknown.
    """

    programs: int
    warps: int
    loops: tuple[LoopWork, ...]
    array_bytes: int
    accumulators: int = 0
    elements: int = 0
    guessed: tuple[str, ...] = ()
    teams: int = 1
    cluster: int = 1
    piece_bytes: int = 0

    @property
    def columns(self) -> int:
        """Of tensor memory, for one sum."""
        return max((loop.columns for loop in self.loops), default=0)

    @property
    def hides_ends(self) -> bool:
        """Whether the next program's products run under the end of this one: by other warps, or
        since two sums fit tensor memory."""
        return self.has_engine and (self.teams > 1 or 0 < 2 * self.columns <= COLUMNS)

    @property
    def has_engine(self) -> bool:
        """Whether the copy engine fills rings."""
        return any(loop.way is Way.ENGINE for loop in self.loops)


@dataclass(frozen=True)
class Prediction:
    """`us`: microseconds of a launch. `occupancy`: programs a multiprocessor runs at once.

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
    target = machine.target
    panels = _panels(work)
    stages = [stages_of(loop, target, work.accumulators, panels) for loop in work.loops]
    shared = max(
        (s * loop.staged_bytes for s, loop in zip(stages, work.loops, strict=True)), default=0
    )
    shared += panels
    registers = registers_of(work, target)
    occupancy, limit = _occupancy(work, shared, registers, target)
    reason = _impossible(work, shared, registers, limit, target)
    if reason:
        return Prediction(float("inf"), 0, 0.0, shared, registers, "", reason)
    if work.programs == 0:
        return Prediction(0.0, occupancy, 0.0, shared, registers, "nothing to do")
    clocks, bound = _clocks(work, stages, occupancy, machine)
    busy = clocks / machine.clock_mhz
    active = min(1.0, DRAM_SHARE * work.programs / machine.multiprocessors)
    rate = machine.memory_gb_per_s * 1e3 * DRAM_EFFICIENCY * active
    memory = work.array_bytes / (rate * (1 if work.has_engine else THREADS_EFFICIENCY))
    memory *= _unevenness(work, machine)
    memory *= 1 + (SHORT_PIECES * LINE_BYTES / work.piece_bytes if work.piece_bytes else 0)
    us = max(busy, memory) + UNHIDDEN * min(busy, memory)
    if memory > busy:
        bound = "DRAM"
    waves = work.programs / (machine.multiprocessors * occupancy)
    launch = LAUNCH_US - (HIDDEN_LAUNCH_US if work.has_engine else 0)
    return Prediction(us + launch, occupancy, waves, shared, registers, bound)


def _unevenness(work: Work, machine: Machine) -> float:
    """How much longer DRAM needs because multiprocessors without a CTA are among others."""
    all_of_them = machine.multiprocessors
    idle = -work.programs % all_of_them
    if not work.has_engine:
        return 1.0
    if work.programs > all_of_them:
        return 1 + UNEVEN * idle / work.programs
    if work.cluster >= EVEN_CLUSTER or 2 * idle >= all_of_them:
        return 1.0
    return 1 + UNEVEN * 2 * idle / all_of_them


def stages_of(loop: LoopWork, target: Target, accumulators: int = 0, other_bytes: int = 0) -> int:
    """The slots a loop's pipeline has: demanded, or as many as the compiler gives it, with so many
    `accumulators` and beside `other_bytes` of shared memory."""
    if not loop.staged_bytes or loop.way is Way.REGISTERS:
        return 1
    if loop.stages is not None:
        return loop.stages
    if loop.way is Way.ENGINE:
        return max(1, ring_stages(loop.staged_bytes, other_bytes, target))
    fitting_ctas = target.registers_per_sm // max(1, REGISTERS_PER_ACCUMULATOR * accumulators)
    ctas = AUTO_CTAS if target.supports(Feature.WGMMA) else max(1, min(AUTO_CTAS, fitting_ctas))
    return max(1, min(AUTO_STAGES, target.shared_bytes // ctas // loop.staged_bytes))


def _panels(work: Work) -> int:
    """Shared memory that results leave through, beside rings: two panels of 128 bytes a row."""
    stored = max((loop.stored_bytes for loop in work.loops), default=0)
    return work.teams * min(stored, PANEL_BYTES) if work.has_engine else 0


def registers_of(work: Work, target: Target) -> int:
    """Registers a thread needs, about: its part of the tiles, and what every thread has."""
    threads = work.warps * target.warp_size
    loaded = max((loop.narrow_loads for loop in work.loops), default=0)
    tiles = -(-work.accumulators // threads) + -(-work.elements // threads)
    tiles += int(LOADED_REGISTERS * loaded / threads)
    return -(-(tiles + OTHER_REGISTERS) // 8) * 8


def _occupancy(work: Work, shared: int, registers: int, target: Target) -> tuple[int, str]:
    """CTAs a multiprocessor holds, and what keeps it from holding more."""
    threads = work.teams * work.warps * target.warp_size
    loading = LOAD_WARPS * target.warp_size if work.has_engine else 0
    per_sm = target.shared_bytes + target.shared_bytes_per_cta
    limits = {
        "CTAs": target.ctas_per_sm,
        "threads": target.threads_per_sm // (threads + loading),
        "registers": target.registers_per_sm
        // (threads * min(registers, target.registers_per_thread)),
        "shared memory": per_sm // (shared + target.shared_bytes_per_cta),
    }
    if work.columns:
        sums = 2 * work.columns if work.hides_ends else work.columns
        limits["tensor memory"] = COLUMNS // max(LEAST_COLUMNS, power_of_two(sums))
    limit = min(limits, key=lambda name: limits[name])
    return limits[limit], limit


def _impossible(work: Work, shared: int, registers: int, limit: str, target: Target) -> str:
    threads = work.teams * work.warps * target.warp_size
    if work.teams > 1 and not (target.supports(Feature.WGMMA) and work.has_engine):
        return f"no sets of warps take programs in turn on {target.name}, or none loads ahead"
    if threads > target.max_threads:
        return f"{threads} threads a program; {target.name} has at most {target.max_threads}"
    if shared > target.shared_bytes:
        return (
            f"its stages take {shared} bytes of shared memory; a program has at most "
            f"{target.shared_bytes} on {target.name}"
        )
    accumulators = -(-work.accumulators // (work.warps * target.warp_size))
    if accumulators + OTHER_REGISTERS // 2 > target.registers_per_thread:
        return (
            f"{accumulators} registers a thread for the accumulator alone; a thread has at most "
            f"{target.registers_per_thread}"
        )
    if min(registers, target.registers_per_thread) * threads > target.registers_per_sm:
        return f"about {registers} registers for each of {threads} threads; {limit} do not suffice"
    return ""


def _clocks(work: Work, stages: list[int], occupancy: int, machine: Machine) -> tuple[float, str]:
    """Clocks of the multiprocessor with most programs, and what they are spent on."""
    busy: dict[str, float] = {}
    chain, end, fill = 0.0, 0.0, 0.0
    most = -(-work.programs // machine.multiprocessors)
    for loop, slots in zip(work.loops, stages, strict=True):
        warps = min(occupancy, most) * work.teams * work.warps
        units = _units(loop, warps, machine, work.programs)
        for unit, clocks in units.items():
            busy[unit] = busy.get(unit, 0.0) + loop.trips * clocks
        step = STEP_CLOCKS / work.teams if loop.way is Way.ENGINE else 0
        longest = _together(units | {"arithmetic": units["arithmetic"] + step})
        if slots > 1:
            # A ring of n slots has n - 1 loads on the way while it computes, one fewer where a slot
            # is held until the instructions behind it are issued.
            ahead = max(1, slots - (1 if loop.unit is Unit.WARPS else 2))
            fill = MEMORY_LATENCY
            latency = LOADED_LATENCY if loop.way is Way.ENGINE else MEMORY_LATENCY
            chain += loop.trips * max(longest, latency / ahead if loop.trips > slots else 0)
        else:
            alone = 2 * units["arithmetic"] if loop.way is Way.REGISTERS else longest
            chain += loop.trips * (alone + _waits(loop, work.warps))
        end += loop.stored_bytes / STORED_BYTES_PER_CLOCK
    chain = max(chain, end) if work.hides_ends else chain + end
    fill += end if work.hides_ends else 0.0
    excess = registers_of(work, machine.target) / machine.target.registers_per_thread - 1
    slower = 1 + SPILLED * max(0.0, excess)
    unit = max(busy, key=lambda name: busy[name])
    each = (_together(busy) + START_CLOCKS) * slower
    chain *= slower
    rounds, rest = divmod(most, occupancy)
    # A warp that only loads has the next program's operands there when this one ends.
    fills = 1 if work.has_engine else rounds + bool(rest)
    full = max(occupancy * each, chain)
    last = max(rest * each, chain) if rest else 0.0
    is_waiting = chain + fill > min(occupancy, most) * each
    # The later the last round, the less it counts: programs drift apart, and the clock of a card
    # that is limited by power rises while some multiprocessors idle.
    exact = work.programs / machine.multiprocessors
    whole = rounds * full + last
    whole -= max(0.0, whole - exact * full / occupancy) * exact / (exact + LOCKSTEP_ROUNDS)
    return whole + fills * fill, "latency" if is_waiting else unit


def _together(units: Mapping[str, float]) -> float:
    """Clocks of all units that work at the same time."""
    most = max(units.values())
    return most + CONTENTION * (sum(units.values()) - most)


def _waits(loop: LoopWork, warps: int) -> float:
    """Clocks of one iteration without a pipeline that are spent waiting."""
    waits = float(MEMORY_LATENCY) if loop.global_bytes else 0.0
    return waits + loop.narrow_loads / warps * NARROW_LOAD_CLOCKS


def _units(loop: LoopWork, warps: int, machine: Machine, programs: int) -> dict[str, float]:
    """Clocks that one iteration keeps each unit of a multiprocessor busy."""
    target = machine.target
    speed, rate = target.speed, rates_of(target)
    tensor = speed.tensor_flops * 1.0
    if loop.unit is Unit.WARPGROUPS:
        tensor *= rate.tensor_efficiency * (LONE_WARPGROUP if warps <= WARPGROUP_WARPS else 1)
    elif loop.unit is Unit.TENSOR_MEMORY:
        tensor *= rate.tensor_efficiency
    elif target.supports(Feature.WGMMA) or target.supports(Feature.TCGEN05):
        tensor *= WARP_MMA_SPEED
    rates = {kind: tensor * factor for kind, factor in TENSOR_SPEEDS.items()}
    rates |= {"fma": speed.fma_flops, "f64": speed.f64_flops}
    by_threads = loop.way is Way.THREADS and loop.unit is Unit.WARPGROUPS
    copying = THREADS_STEP_CLOCKS if by_threads else 0
    share = machine.multiprocessors / min(programs, machine.multiprocessors)
    l2_bytes = min(rate.l2_bytes, rate.l2_bytes_for_all * share)
    copied = (max(loop.global_bytes, loop.line_bytes) + loop.stored_bytes) / l2_bytes
    return {
        "arithmetic": sum(flops / rates[kind] for kind, flops in loop.flops.items()) + copying,
        "loads": loop.narrow_loads * NARROW_LOADS,
        "shared memory": loop.shared_bytes / rate.shared_bytes,
        "L2": copied + loop.zeroed_bytes / ZEROED_BYTES_PER_CLOCK,
    }
