"""How long arrays must be for every ring of a kernel to wrap, from what its compilation decided.

A ring of `stages` slots has wrapped twice when 3 * stages tiles went through it: faults such as a
slot given back too early, or a parity that is right for the first turn alone, need that many. A CTA
of a persistent launch takes three programs. No size here comes from a list.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any
from unittest import mock

import numpy as np

from tilec.call.jit import Kernel
from tilec.costs.machine import Machine, machine_of
from tilec.executable.grid import check_grid
from tilec.executable.kernel import CompiledKernel
from tilec.hardware.target import Target
from tilec.ops import product_launch
from tilec.runtime import emulator_device
from tilec.runtime.emulator.execution.scheduler import Scheduler

CTAS = 2
"""CTAs (or clusters) of a persistent launch here: so that three programs each are not many."""
TURNS = 2
PROGRAMS = 3
LEFT_OVER = 16
"""Elements of the last tile: whole 16 bytes of every type, as tensor copies want rows."""


@dataclass(frozen=True)
class RingPlan:
    """Of a compiled kernel: the slots of its longest ring, 1 without one, how many programs give
    each CTA of a launch three, 1 where each program has a CTA of its own, and in how many parts
    CTAs run a loop."""

    stages: int = 1
    programs: int = 1
    parts: int = 1
    constants: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, kernel: CompiledKernel) -> RingPlan:
        """The plan of a kernel; one written by hand has two mbarriers a slot or STAGES slots, two
        slots at least."""
        entries = kernel.report["decisions"]
        decided = [int(entry["stages"]) for entry in entries if "stages" in entry]
        stages = kernel.constants.get("STAGES")
        told = [stages] if isinstance(stages, int) else []
        by_hand = any(entry["chosen"] == "as written" for entry in entries)
        counted = max(2, kernel.ptx.count("mbarrier.init") // 2) if by_hand else 1
        clusters = PROGRAMS * CTAS * prod(kernel.cluster) + 1
        programs = clusters if kernel.persistent else 1
        parts = max(int(entry.get("parts", 1)) for entry in entries) if entries else 1
        return cls(max([1, counted, *decided, *told]), programs, parts, dict(kernel.constants))

    @property
    def iterations(self) -> int:
        """Tiles that a loop takes, the last of them ragged: each slot is refilled `TURNS` times, by
        each CTA that runs a part of the loop."""
        return (TURNS + 1) * self.stages * self.parts

    def along(self, tile: int, left_over: int = LEFT_OVER) -> int:
        """Elements along a loop in steps of `tile`."""
        return (self.iterations - 1) * tile + left_over

    def across(self, tile: int, beside: int = 1, left_over: int = LEFT_OVER) -> int:
        """Elements along a dimension of the grid in tiles of `tile`, where `beside` programs stand
        beside each; the last is ragged."""
        return max(1, -(-self.programs // beside) - 1) * tile + left_over

    def grown(self, other: RingPlan) -> RingPlan:
        """Long enough for both, with the other's tiles."""
        mine = self.stages, self.programs, self.parts
        wanted = other.stages, other.programs, other.parts
        return RingPlan(*map(max, mine, wanted), other.constants)

    def covers(self, other: RingPlan) -> bool:
        """Whether what is long enough for this one is for the other, whose tiles are the same."""
        mine = self.stages, self.programs, self.parts
        wanted = other.stages, other.programs, other.parts
        enough = all(one >= least for one, least in zip(mine, wanted, strict=True))
        return enough and self.constants == other.constants


@dataclass(frozen=True)
class Call:
    """A kernel with arguments; `expected`: by position, what it leaves in float64; `tolerance` is
    relative to the largest of it."""

    kernel: Kernel[...] | Callable[..., Any]
    arguments: list[Any]
    expected: dict[int, np.ndarray]
    tolerance: float = 1e-2
    constants: Mapping[str, Any] = field(default_factory=dict)


Case = Callable[[RingPlan], Call]
"""Makes a call of the size that a plan asks for."""


class Recorder:
    """The kernels that ran, in order, and how often the mbarriers of each completed a phase: by
    their offsets in shared memory, the most of any CTA."""

    def __init__(self) -> None:
        self.kernels: list[CompiledKernel] = []
        self.phases: list[dict[int, int]] = []
        self.grids: list[tuple[int, int]] = []

    def plan(self) -> RingPlan:
        """That of all kernels together."""
        plans = [RingPlan.of(kernel) for kernel in self.kernels]
        constants = {name: value for plan in plans for name, value in plan.constants.items()}
        names = ("stages", "programs", "parts")
        most = (max(getattr(plan, name) for plan in plans) for name in names)
        return RingPlan(*most, constants)


@contextmanager
def recorded(*, only_plan: bool = False) -> Iterator[Recorder]:
    """Records what runs on the emulator, with `CTAS` in a persistent launch, for so many
    multiprocessors, as the model that chooses tiles sees them. `only_plan`: nothing runs."""
    recorder = Recorder()
    run, launch = Scheduler.run, emulator_device.EmulatorDevice.launch

    def small_machine(device: Any, target: Target) -> Machine:
        return replace(machine_of(device, target), multiprocessors=CTAS)

    def run_and_note(self: Scheduler) -> Generator[None, None, None]:
        yield from run(self)
        machine = self.machine
        cells = np.flatnonzero(machine.mbarriers.valid)
        found = recorder.phases[-1]
        for cell, phase in zip(cells, machine.mbarriers.phase[cells], strict=True):
            offset = int(cell) * 8 % machine.shared_stride
            found[offset] = max(found.get(offset, 0), int(phase))

    def launch_and_note(
        self: Any, loaded: Any, arguments: Any, grid: Any, stream: Any = None
    ) -> None:
        recorder.kernels.append(loaded.kernel)
        recorder.phases.append({})
        programs = check_grid(grid)
        ctas = loaded.kernel.launched(programs, CTAS * prod(loaded.kernel.cluster))
        recorder.grids.append((prod(programs), prod(ctas)))
        if not only_plan:
            launch(self, loaded, arguments, grid, stream)

    with (
        mock.patch.object(Scheduler, "run", run_and_note),
        mock.patch.object(emulator_device.EmulatorDevice, "launch", launch_and_note),
        mock.patch.object(emulator_device, "RESIDENT_CTAS", CTAS),
        mock.patch.object(product_launch, "machine_of", small_machine),
    ):
        yield recorder
