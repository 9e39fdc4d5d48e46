"""Predicts how long a launch takes: to rank candidates, not to replace a measurement.

A multiprocessor runs its share of the programs in rounds of as many as fit at once. A round lasts
as long as the busiest unit (tensor cores or FMA units, shared memory, the path to L2) needs for all
of them, or as one program's chain of waits, whichever is longer; the launch lasts as long as the
rounds of the multiprocessor with most programs (wave quantisation), or as DRAM needs for every
array once (the roofline of Williams, Waterman and Patterson, CACM 52(4), 2009).

The rates that are no facts of the target are round figures measured on an H200 (test/bench).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tilec.target import Feature, Target
from tilec.tuning.machine import Machine

L2_BYTES_PER_CLOCK = 40
"""What one multiprocessor gets from L2 while all ask: 5.5 TB/s of 132 at 1.1 to 1.7 GHz."""
SHARED_BYTES_PER_CLOCK = 128
"""32 banks of 4 bytes (CUDA C++ Programming Guide, "Shared Memory")."""
MEMORY_LATENCY = 800
"""Clocks from a request to its line from L2 or DRAM, under load."""
START_CLOCKS = 100
"""What a multiprocessor takes to start a program, about."""
LAUNCH_US = 2.0
"""From the start of a grid to its first instructions, and from the last ones to its end."""
AUTO_STAGES = 4
"""Slots of a pipelined loop where the author demands no number, shared memory permitting."""
AUTO_CTAS = 2
"""CTAs a multiprocessor is to have shared memory for, if it has registers for so many."""
REGISTERS_PER_ACCUMULATOR = 2
"""What a loop of matrix instructions takes for each register of its sum."""
DRAM_SHARE = 1.25
"""What one multiprocessor can draw from DRAM, in shares of all: a few do not fill its path."""
UNHIDDEN = 0.1
"""Part of the shorter of computing and reading DRAM that the longer does not hide."""
OTHER_REGISTERS = 40
"""Per thread, beside accumulators and loaded elements: addresses, fragments, loop state."""
WARP_TILE = 64
"""Rows and columns of an accumulator that one warp works on, about: each operand is read from
shared memory once a warp that needs it."""

TENSOR_SPEEDS: Mapping[str, float] = {"f16": 1, "bf16": 1, "f8": 2, "i8": 2, "tf32": 0.5}
"""Of tensor cores, by the kind of their operands, against f16; `fma` and `f64` have own units."""


@dataclass(frozen=True)
class LoopWork:
    """One iteration of a loop, run `trips` times a program; straight-line code is run once.

    `flops` by kind of operand (see `TENSOR_SPEEDS`, and "fma", "f64"). `staged_bytes`: what one
    slot of a pipeline holds; `stages`: the slots demanded, None for the compiler's choice.
    """

    trips: int = 1
    flops: Mapping[str, int] = field(default_factory=dict)
    global_bytes: int = 0
    shared_bytes: int = 0
    staged_bytes: int = 0
    stages: int | None = None


@dataclass(frozen=True)
class Work:
    """What a launch does: `programs` times the loops, on arrays of `array_bytes` in all.

    `accumulators`: 32-bit registers of the largest accumulator, `elements` those of the largest
    other tile, both of the whole program. `guessed`: what could not be told before a run.
    """

    programs: int
    warps: int
    loops: tuple[LoopWork, ...]
    array_bytes: int
    accumulators: int = 0
    elements: int = 0
    guessed: tuple[str, ...] = ()


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
    stages = [stages_of(loop, target, work.accumulators) for loop in work.loops]
    shared = max(
        (s * loop.staged_bytes for s, loop in zip(stages, work.loops, strict=True)), default=0
    )
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
    memory = work.array_bytes / (machine.memory_gb_per_s * 1e3 * active)
    us = max(busy, memory) + UNHIDDEN * min(busy, memory)
    if memory > busy:
        bound = "DRAM"
    waves = work.programs / (machine.multiprocessors * occupancy)
    return Prediction(us + LAUNCH_US, occupancy, waves, shared, registers, bound)


def stages_of(loop: LoopWork, target: Target, accumulators: int = 0) -> int:
    """The slots a loop's pipeline has: demanded, or as many as leave room for a second CTA, where
    the `accumulators` of this one leave it registers."""
    if loop.stages is not None:
        return loop.stages
    if not loop.staged_bytes:
        return 1
    fitting_ctas = target.registers_per_sm // max(1, REGISTERS_PER_ACCUMULATOR * accumulators)
    # A pass of its own deals out shared memory to warpgroups' rings.
    ctas = AUTO_CTAS if target.supports(Feature.WGMMA) else max(1, min(AUTO_CTAS, fitting_ctas))
    return max(1, min(AUTO_STAGES, target.shared_bytes // ctas // loop.staged_bytes))


def registers_of(work: Work, target: Target) -> int:
    """Registers a thread needs, about: its part of the tiles, and what every thread has."""
    threads = work.warps * target.warp_size
    tiles = -(-work.accumulators // threads) + -(-work.elements // threads)
    return -(-(tiles + OTHER_REGISTERS) // 8) * 8


def _occupancy(work: Work, shared: int, registers: int, target: Target) -> tuple[int, str]:
    """CTAs a multiprocessor holds, and what keeps it from holding more."""
    threads = work.warps * target.warp_size
    per_sm = target.shared_bytes + target.shared_bytes_per_cta
    limits = {
        "CTAs": target.ctas_per_sm,
        "threads": target.threads_per_sm // threads,
        "registers": target.registers_per_sm
        // (threads * min(registers, target.registers_per_thread)),
        "shared memory": per_sm // (shared + target.shared_bytes_per_cta),
    }
    limit = min(limits, key=lambda name: limits[name])
    return limits[limit], limit


def _impossible(work: Work, shared: int, registers: int, limit: str, target: Target) -> str:
    threads = work.warps * target.warp_size
    if threads > target.max_threads:
        return f"{threads} threads a program; {target.name} has at most {target.max_threads}"
    if shared > target.shared_bytes:
        return (
            f"its stages take {shared} bytes of shared memory; a program has at most "
            f"{target.shared_bytes} on {target.name}"
        )
    accumulators = -(-work.accumulators // threads)
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
    chain = float(MEMORY_LATENCY)
    for loop, slots in zip(work.loops, stages, strict=True):
        units = _units(loop, machine.target)
        for unit, clocks in units.items():
            busy[unit] = busy.get(unit, 0.0) + loop.trips * clocks
        longest = max(units.values())
        wait = MEMORY_LATENCY if loop.global_bytes else 0
        # A ring of n slots has n - 1 loads on the way while it computes.
        chain += loop.trips * (max(longest, wait / (slots - 1)) if slots > 1 else longest + wait)
    unit = max(busy, key=lambda name: busy[name])
    each = busy[unit] + START_CLOCKS
    most = -(-work.programs // machine.multiprocessors)
    rounds, rest = divmod(most, occupancy)
    full = max(occupancy * each, chain)
    last = max(rest * each, chain) if rest else 0.0
    is_waiting = chain > min(occupancy, most) * each
    return rounds * full + last, "latency" if is_waiting else unit


def _units(loop: LoopWork, target: Target) -> dict[str, float]:
    """Clocks that one iteration keeps each unit of a multiprocessor busy."""
    speed = target.speed
    rates = {kind: speed.tensor_flops * factor for kind, factor in TENSOR_SPEEDS.items()}
    rates |= {"fma": speed.fma_flops, "f64": speed.f64_flops}
    return {
        "arithmetic": sum(flops / rates[kind] for kind, flops in loop.flops.items()),
        "shared memory": loop.shared_bytes / SHARED_BYTES_PER_CLOCK,
        "L2": loop.global_bytes / L2_BYTES_PER_CLOCK,
    }
