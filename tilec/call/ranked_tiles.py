"""What candidates of `tl.auto` are ranked by: predicted times, by themselves and in clusters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilec.costs.kernel_work import ProgramWork
from tilec.costs.launch_work import KernelWork, launch_work
from tilec.costs.machine import Machine
from tilec.costs.model import predict
from tilec.costs.work import ALONE, Way, Work

CLUSTERS = ((2, 1), (1, 2))
"""Programs along the first axes of the grid that load together what they share."""


@dataclass(frozen=True)
class Ranked:
    """Predicted microseconds of a candidate, by its cluster (`predictions`), and how many times as
    fast as one by itself a cluster must be (`gain`)."""

    predictions: Mapping[tuple[int, int], float]
    gain: float

    @property
    def cluster(self) -> tuple[int, int]:
        """The cluster in which it is the fastest, by more than the model errs if not by itself."""
        return min(self.predictions, key=self._doubted)

    @property
    def us(self) -> float:
        """What it is ranked by."""
        return self._doubted(self.cluster)

    def _doubted(self, cluster: tuple[int, int]) -> float:
        return self.predictions[cluster] * (1 if cluster == ALONE else self.gain)


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
