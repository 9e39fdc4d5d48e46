"""Thread-block clusters: mapa, getctarank and barrier.cluster (PTX ISA 9.7.9.24, 9.7.13.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tilec.runtime.emulator.errors import EmulatorError, Place
from tilec.runtime.emulator.memories.spaces import CLUSTER_RANK_SHIFT, SHARED_WINDOW
from tilec.runtime.emulator.numbers.scalar_types import TYPES
from tilec.runtime.emulator.reading.instruction import Instruction
from tilec.runtime.emulator.writing.writer import U32, U64, Writer

if TYPE_CHECKING:
    from tilec.runtime.emulator.execution.machine import Machine

_LOW = (1 << CLUSTER_RANK_SHIFT) - 1


def emit_mapa(instruction: Instruction, writer: Writer) -> None:
    """The address of the same variable in the shared memory of CTA `b` of the cluster."""
    destination, address, rank = instruction.operands
    names = instruction.modifiers
    value = writer.read(rank, U32)
    if names in (("shared::cluster", "u32"), ("shared::cluster", "u64")):
        scalar = TYPES[names[1]]
        wide = f"np.{scalar.dtype.name}"
        source = writer.read(address, scalar)
        shifted = f"({value}.astype({wide}) << {wide}({CLUSTER_RANK_SHIFT}))"
        writer.assign(destination, scalar, f"({source} & {wide}({_LOW})) | {shifted}")
    elif names == ("u64",):
        source = f"(({writer.read(address, U64)} - np.uint64({SHARED_WINDOW})) & np.uint64({_LOW}))"
        shifted = f"({value}.astype(np.uint64) << np.uint64({CLUSTER_RANK_SHIFT}))"
        writer.assign(destination, U64, f"({source} | {shifted}) + np.uint64({SHARED_WINDOW})")
    else:
        raise writer.unsupported("modifiers")


def emit_getctarank(instruction: Instruction, writer: Writer) -> None:
    if instruction.modifiers not in (("shared::cluster", "u32"), ("shared::cluster", "u64")):
        raise writer.unsupported("modifiers")
    scalar = TYPES[instruction.modifiers[1]]
    destination, address = instruction.operands
    shift = f"np.{scalar.dtype.name}({CLUSTER_RANK_SHIFT})"
    value = f"({writer.read(address, scalar)} >> {shift}).astype(np.uint32)"
    writer.assign(destination, U32, value)


class ClusterBarriers:
    """The one barrier of every cluster: arrivals of threads, and the phase each waits for."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.size = machine.launch.cluster_size
        clusters = machine.cta_count // self.size
        self.phase = np.zeros(clusters, np.int64)
        self.arrived = np.zeros(machine.shape, np.bool_)
        self.lane_phase = np.zeros(machine.shape, np.int64)
        self.came = np.zeros(machine.shape, np.bool_)
        """Threads that have arrived, and not waited since."""
        self.waiting: dict[int, np.ndarray] = {}

    def _per_cluster(self, lanes: np.ndarray) -> np.ndarray:
        """Lanes [warp][CTA][32] to one row per cluster."""
        return lanes.transpose(1, 0, 2).reshape(self.phase.size, -1)

    def arrive(self, mask: np.ndarray, place: Place, relaxed: bool = False) -> None:
        """EmulatorError for threads that have not waited since they arrived last."""
        if (self.came & mask).any():
            text = "a thread arrives twice at the barrier of its cluster, and has not waited"
            raise EmulatorError(text, place, "cluster barrier")
        self.came |= mask
        ctas = np.arange(self.machine.cta_count) // self.size
        phase = np.broadcast_to(self.phase[ctas][None, :, None], mask.shape)
        self.lane_phase[mask] = phase[mask] + 1
        self.arrived |= mask
        if self.machine.checker is not None:
            self.machine.checker.cluster_arrived(np.asarray(mask.any(2)), relaxed)
        self.complete()

    def complete(self) -> None:
        """Flip the phase of clusters in which every living thread has arrived."""
        alive = self._per_cluster(~self.machine.exited)
        came = self._per_cluster(self.arrived)
        done = (came | ~alive).all(1) & came.any(1)
        if done.any():
            self.phase[done] += 1
            spread = np.repeat(done, self.size)
            self.arrived &= ~spread[None, :, None]

    def passed(self, mask: np.ndarray) -> np.ndarray:
        """Those lanes of `mask` whose phase has completed."""
        ctas = np.arange(self.machine.cta_count) // self.size
        return mask & (self.phase[ctas][None, :, None] >= self.lane_phase)

    def wait(self, pc: int, mask: np.ndarray, place: Place) -> None:
        """EmulatorError for threads that have not arrived."""
        if (mask & ~self.came).any():
            text = "a thread waits at the barrier of its cluster, and has not arrived"
            raise EmulatorError(text, place, "cluster barrier")
        self.came &= ~mask
        present = self.waiting.get(pc)
        self.waiting[pc] = mask if present is None else present | mask

    def released(self) -> list[tuple[int, np.ndarray]]:
        """Waiting lanes that may go on now."""
        found = []
        for pc, mask in list(self.waiting.items()):
            free = self.passed(mask)
            if free.any():
                if self.machine.checker is not None:
                    self.machine.checker.cluster_released(np.asarray(free.any(2)))
                found.append((pc, free))
                self.waiting[pc] = mask & ~free
        return found


RULES = {"mapa": emit_mapa, "getctarank": emit_getctarank}
