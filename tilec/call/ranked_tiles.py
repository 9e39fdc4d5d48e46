"""What candidates of `tl.auto` are ranked by: predicted times, by themselves and in clusters, and
of programs without products by their warps.

Where there are many programs with little to load each, one warp a program has as much under way as
a multiprocessor needs: it meets no other, and no CTA begins for it. Of few programs each needs
several, which issue more at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import prod
from typing import Any

from tilec.costs.kernel_work import ProgramWork
from tilec.costs.launch_work import KernelWork, launch_work, ruled_sizes
from tilec.costs.machine import Machine
from tilec.costs.model import predict
from tilec.costs.parts import parts_in_memory
from tilec.costs.streams import programs_at_once, registers_of, stream_us
from tilec.costs.work import ALONE, Way, Work
from tilec.hardware.sizes import WARP_SIZE
from tilec.records import dataclass
from tilec.terms.demands import PARTS

CLUSTERS = ((2, 1), (1, 2))
"""Programs along the first axes of the grid that load together what they share."""
WARPS = (1, 2, 4, 8, 16)
"""Of a CTA, whose rules go no further for tiles that loops walk on by."""
LEAST_EACH, MOST_EACH = 4, 32
"""Elements of the largest tile that a thread has, where warps are ranked."""


@dataclass(frozen=True)
class Ranked:
    """Predicted microseconds of a candidate, by its cluster (`predictions`), and how many times as
    fast as one by itself a cluster must be (`gain`); and as others it must be (`doubt`). `warps`:
    those of a program; None where rules say (`compile/program_size.py`)."""

    predictions: Mapping[tuple[int, int], float]
    gain: float
    doubt: float = 1.0
    warps: int | None = None

    @property
    def cluster(self) -> tuple[int, int]:
        """The cluster in which it is the fastest, by more than the model errs if not by itself."""
        return min(self.predictions, key=self._doubted)

    @property
    def us(self) -> float:
        """What it is ranked by."""
        return self.doubt * self._doubted(self.cluster)

    def _doubted(self, cluster: tuple[int, int]) -> float:
        return self.predictions[cluster] * (1 if cluster == ALONE else self.gain)


def parts_of(program: ProgramWork, arguments: Mapping[str, Any], machine: Machine) -> Iterable[int]:
    """In how many parts a program may be summed, as far as the author leaves that open: each a
    cluster, and others that meet in memory."""
    if program.parts is not None:
        return PARTS[:1]
    clusters = tuple(program.summed) or PARTS[:1]
    if program.meeting is None:
        return clusters
    programs = prod(ruled_sizes(program, arguments) or ())
    return *clusters, *parts_in_memory(programs, program.meeting, machine)


def rank(
    program: ProgramWork, arguments: Mapping[str, Any], parts: int, machine: Machine
) -> Ranked | None:
    """Predicts the launch of a program, summed in so many parts; None where it cannot be."""
    work = launch_work(program, arguments, parts=parts).work
    alone = predict(work, machine)
    if alone.impossible:
        return None
    us: dict[tuple[int, int], float] = {ALONE: alone.us}
    if parts == 1 and program.may_share and by_engine(work):
        us |= _clustered(program, arguments, machine)
    return Ranked(us, machine.rates.shared_gain)


def rank_stream(
    program: ProgramWork,
    arguments: Mapping[str, Any],
    parts: int,
    machine: Machine,
    *,
    is_usual: bool,
) -> Ranked | None:
    """Predicts the launch of a program whose loops load and multiply nothing, summed in so many
    parts, with the warps that make it the fastest; where it `is_usual` with those of rules, which
    are known to be good. None where more CTAs would sum parts than run at once: what several do
    for few programs, these do for each other."""
    work, rates = launch_work(program, arguments, parts=parts).work, machine.rates.streams
    at_once = programs_at_once(work, machine) * machine.clustered(work.parts)
    if parts > 1 and work.programs > at_once:
        return None
    each = [n for n in WARPS if LEAST_EACH <= work.elements // (WARP_SIZE * n) <= MOST_EACH]
    fits = [n for n in each if _has_registers(replace(work, warps=n), machine)]
    is_fixed = is_usual or program.demands_warps or program.accumulators > 0
    warps = [program.warps] if is_fixed else [program.warps, *fits]
    us = {n: stream_us(replace(work, warps=n), machine) for n in warps}
    first = min(us, key=lambda n: us[n])
    doubt = 1.0 if is_usual else rates.gain
    chosen = None if first == program.warps else first
    return Ranked({ALONE: us[first]}, machine.rates.shared_gain, doubt, chosen)


def _has_registers(work: Work, machine: Machine) -> bool:
    """Whether no thread of a program has more than a multiprocessor has for it."""
    most = machine.target.registers_per_sm // (work.warps * WARP_SIZE)
    return registers_of(work, machine) <= min(most, machine.target.registers_per_thread)


def _clustered(
    program: ProgramWork, arguments: Mapping[str, Any], machine: Machine
) -> dict[tuple[int, int], float]:
    """Predicted microseconds in each cluster that a launch may have."""
    launches = {one: launch_work(program, arguments, cluster=one) for one in CLUSTERS}
    return {
        one: predict(launch.work, machine).us
        for one, launch in launches.items()
        if _may_share(launch, one)
    }


def _may_share(launch: KernelWork, cluster: tuple[int, int]) -> bool:
    """Whether the copy engine fills all rings, and the grid is no shorter than a cluster."""
    is_long = all(n >= side for n, side in zip(launch.grid, cluster, strict=False))
    return is_long and by_engine(launch.work)


def by_engine(work: Work) -> bool:
    """Whether there are rings, all filled by the copy engine."""
    rings = [loop for loop in work.loops if loop.staged_bytes]
    return bool(rings) and all(loop.way is Way.ENGINE for loop in rings)
