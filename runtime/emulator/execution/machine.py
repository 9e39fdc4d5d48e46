"""The state of one batch of CTAs: registers, shared and local memory, special registers."""

from __future__ import annotations

import time

import numpy as np

from tilec.runtime.emulator.checking.register_checker import RegisterChecker
from tilec.runtime.emulator.checking.tensor_checker import TensorChecker
from tilec.runtime.emulator.errors import EmulatorError, Place
from tilec.runtime.emulator.execution.async_work import AsyncWork
from tilec.runtime.emulator.execution.launch import Launch
from tilec.runtime.emulator.instructions.arriving import Arriving
from tilec.runtime.emulator.instructions.cp_async import CheckedCopies, EagerCopies
from tilec.runtime.emulator.instructions.late_copies import LateCopies
from tilec.runtime.emulator.instructions.mbarrier import Mbarriers
from tilec.runtime.emulator.instructions.register_budget import RegisterBudgets
from tilec.runtime.emulator.instructions.tensor_memory import TensorMemory
from tilec.runtime.emulator.instructions.wgmma import ProductGroups
from tilec.runtime.emulator.numbers.scalar_types import DTYPES
from tilec.runtime.emulator.reading.instruction import Entry
from tilec.runtime.emulator.stuck_warps import ranges

_FILE_DTYPE = {1: "p", 16: "u2", 32: "u4", 64: "u8"}


class Machine:
    """Lanes are laid out [warp][CTA][32]; `ctas` is the number of CTAs in the batch."""

    def __init__(self, launch: Launch, entry: Entry, ctas: int) -> None:
        self.launch = launch
        self.entry = entry
        self.mode = launch.mode
        self.cta_count = ctas
        self.warp_count = -(-launch.threads // 32)
        self.shape = (self.warp_count, ctas, 32)
        self.registers = {
            bits: np.zeros((count, *self.shape), DTYPES[_FILE_DTYPE[bits]])
            for bits, count in entry.registers.items()
        }
        size = -(-launch.shared_size // 128) * 128 + 128
        self.shared_stride = size
        raw = np.zeros(ctas * size + 64, np.uint8)
        skip = -raw.__array_interface__["data"][0] % 64
        self.shared = raw[skip : skip + ctas * size]
        lanes = self.warp_count * ctas * 32
        self.local_stride = launch.local_size
        self.local = np.zeros(lanes * launch.local_size + 16, np.uint8)
        self.lane_numbers = np.arange(lanes).reshape(self.shape)
        self.shared_base = np.zeros(self.shape, np.int64)
        self.shared_base[...] = (np.arange(ctas) * size).reshape(1, ctas, 1)
        self.local_base = self.lane_numbers * launch.local_size
        self._special: dict[tuple[str, str], np.ndarray] = {}
        self.cta_ids = np.zeros((ctas, 3), np.int64)
        self.first_cta = 0
        self.exited = np.zeros(self.shape, np.bool_)
        self.ended: np.ndarray = np.zeros(ctas, np.bool_)
        self.any_ended = False
        """CTAs whose threads have all exited: their shared memory is somebody else's."""
        self.carry = np.zeros(self.shape, np.bool_)
        self.call_blocks: dict[str, dict[int, np.ndarray]] = {}
        self.uses_tensor_memory = any(i.opcode == "tcgen05" for i in entry.instructions)
        self.checker = TensorChecker(self, launch.reports) if launch.mode == "check" else None
        self.register_checker = RegisterChecker(self) if self.checker else None
        self.copies = self._make_copies(lanes)
        self.mbarriers = Mbarriers(self)
        self.register_budgets = RegisterBudgets(self)
        self.async_work = AsyncWork(lanes, ctas, launch.mode == "late", launch.seed)
        self.arriving = Arriving(self.shared, self.copies)
        self.products = ProductGroups(self)
        self.tensor_memory = TensorMemory(self)
        self._start = time.perf_counter_ns()

    def _make_copies(self, lanes: int) -> EagerCopies | LateCopies | CheckedCopies:
        if self.mode == "late":
            return LateCopies(lanes)
        return CheckedCopies(self.checker) if self.checker else EagerCopies()

    def reset(self, first: int) -> None:
        """Make the machine run the CTAs first, first+1, ... of the grid."""
        self.first_cta = first
        self.cta_ids[...] = self.launch.cta_ids(first + np.arange(self.cta_count))
        self.shared[...] = 0xFF if self.mode != "eager" else 0
        self.local[...] = 0
        if isinstance(self.copies, LateCopies):
            self.copies.reset()
        self.mbarriers.reset()
        self.register_budgets.reset()
        self.async_work.reset()
        self.arriving.reset()
        self.products.reset()
        if self.uses_tensor_memory:
            self.tensor_memory.reset()
        if self.checker is not None:
            self.checker.reset()
        if self.launch.global_checker is not None:
            self.launch.global_checker.follow(self)
        if self.register_checker is not None:
            self.register_checker.reset()
        thread = np.arange(self.warp_count * 32).reshape(self.warp_count, 1, 32)
        self.exited[...] = thread >= self.launch.threads
        self.ended[...] = self.any_ended = False
        for (name, _), values in self._special.items():
            values[...] = self._special_values(name)

    def exit(self, lanes: np.ndarray) -> None:
        """Lanes exit; a CTA without others ends, and whatever comes next finds its own bytes in the
        shared memory that it had."""
        self.exited.reshape(-1)[lanes.reshape(-1)] = True
        before, self.ended = self.ended, np.all(self.exited, axis=(0, 2))
        self.any_ended = bool(self.ended.any())
        if self.any_ended:
            self.launch.let_next(self.first_cta + np.flatnonzero(self.ended))
        if self.async_work.late:
            self.shared.reshape(self.cta_count, -1)[self.ended & ~before] = 0xFF

    def require_running(self, ctas: np.ndarray | int, place: Place) -> None:
        """EmulatorError if the shared memory of CTAs is not theirs any more."""
        if not self.any_ended:
            return
        lost = np.unique(np.asarray(ctas)[self.ended[ctas]])
        if lost.size:
            size = self.launch.cluster_size
            ranks = ranges("CTA", (int(cta) % size for cta in lost))
            whose = "its CTA" if size == 1 else f"{ranks} of the cluster"
            text = f"shared memory of {whose} is accessed, which has ended"
            raise EmulatorError(text, place, "ended CTA")

    def address_of(self, name: str) -> int:
        """The address of a variable in its own state space."""
        return self.launch.address_of(name)

    def clock(self) -> int:
        """Nanoseconds since the start: only differences mean anything."""
        return time.perf_counter_ns() - self._start

    def special(self, name: str, dtype: np.dtype) -> np.ndarray:
        """A special register of every lane, shape [warp][CTA][32]."""
        key = (name, dtype.name)
        if key not in self._special:
            values = np.zeros(self.shape, dtype)
            values[...] = self._special_values(name)
            self._special[key] = values
        return self._special[key]

    def _special_values(self, name: str) -> np.ndarray | int:
        name, _, axis = name.lstrip("%").partition(".")
        launch = self.launch
        column = "xyz".index(axis) if axis else 0
        thread = np.arange(self.warp_count * 32).reshape(self.warp_count, 1, 32)
        bx, by, _ = launch.block
        if name == "tid":
            return (thread % bx, thread // bx % by, thread // (bx * by))[column]
        if name == "ctaid":
            return self.cta_ids[:, column].reshape(1, -1, 1)
        uniform = {
            "ntid": launch.block[column],
            "nctaid": launch.grid[column],
            "nwarpid": self.warp_count,
            "WARP_SZ": 32,
            "smid": 0,
            "nsmid": 1,
            "gridid": 0,
            "dynamic_smem_size": launch.dynamic_size,
            "total_smem_size": launch.shared_size,
        }
        if name in uniform:
            return uniform[name]
        if name.startswith("lanemask"):
            return _lane_mask(name)
        if name == "laneid":
            return thread % 32
        if name == "warpid":
            return thread // 32
        return self._cluster_values(name, column)

    def _cluster_values(self, name: str, column: int) -> np.ndarray | int:
        cluster = self.launch.cluster
        within = self.cta_ids % np.array(cluster)
        if name == "cluster_ctaid":
            return within[:, column].reshape(1, -1, 1)
        if name == "clusterid":
            return (self.cta_ids // np.array(cluster))[:, column].reshape(1, -1, 1)
        if name == "cluster_ctarank":
            rank = within[:, 0] + cluster[0] * (within[:, 1] + cluster[1] * within[:, 2])
            return rank.reshape(1, -1, 1)
        if name == "cluster_nctarank":
            return cluster[0] * cluster[1] * cluster[2]
        if name == "cluster_nctaid":
            return cluster[column]
        if name == "is_explicit_cluster":
            return int(cluster != (1, 1, 1))
        return self.launch.grid[column] // cluster[column]  # nclusterid


def _lane_mask(name: str) -> np.ndarray:
    lane = np.arange(32, dtype=np.uint64)
    bit = np.uint64(1) << lane
    below = bit - np.uint64(1)
    everything = np.uint64(0xFFFFFFFF)
    return {
        "lanemask_eq": bit,
        "lanemask_lt": below,
        "lanemask_le": below | bit,
        "lanemask_ge": everything & ~below,
        "lanemask_gt": everything & ~(below | bit),
    }[name]
