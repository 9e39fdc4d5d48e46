"""Registers of asynchronous work in check mode: locked until it has been waited for.

PTX ISA 9.7.15.7.1 (wgmma.fence) and 9.7.15.5.2 (wgmma.mma_async): the accumulators of a product,
and the registers that hold its A, may not be touched before its group has been waited for; what
other instructions did to a register is ordered before a product that uses it by wgmma.fence, which
also precedes the first product of a warp. Products of one shape that follow each other on the same
accumulators need neither. The destinations of tcgen05.ld are locked until tcgen05.wait::ld
(9.7.16.8).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from tilec.runtime.emulator.errors import Finding
from tilec.runtime.emulator.reading.instruction import (
    Address,
    Entry,
    Instruction,
    Operand,
    Pair,
    Register,
    Vector,
)
from tilec.runtime.emulator.writing.writer import Writer

if TYPE_CHECKING:
    from tilec.runtime.emulator.execution.machine import Machine

_NEVER = 1 << 60


def registers_of(operand: Operand) -> Iterable[Register]:
    """The registers that an operand names."""
    if isinstance(operand, Register):
        yield operand
    elif isinstance(operand, Address):
        yield from registers_of(operand.base)
        for coordinate in operand.coordinates:
            yield from registers_of(coordinate)
    elif isinstance(operand, Vector):
        for element in operand.elements:
            yield from registers_of(element)
    elif isinstance(operand, Pair):
        yield from registers_of(operand.first)
        yield from registers_of(operand.second)


def is_product(instruction: Instruction) -> bool:
    return instruction.opcode == "wgmma" and instruction.modifiers[:1] == ("mma_async",)


def takes_fragments(instruction: Instruction) -> bool:
    """A product whose A is in registers."""
    return is_product(instruction) and isinstance(instruction.operands[1], Vector)


def is_load(instruction: Instruction) -> bool:
    return instruction.opcode == "tcgen05" and instruction.modifiers[:1] == ("ld",)


def watched_registers(entry: Entry) -> frozenset[int]:
    """The 32-bit registers that asynchronous work uses: D and A of wgmma, those of tcgen05.ld."""
    found = set()
    for instruction in entry.instructions:
        count = 2 if is_product(instruction) else int(is_load(instruction))
        for operand in instruction.operands[:count]:
            if isinstance(operand, (Vector, Register)):
                found.update(r.index for r in registers_of(operand) if r.bits == 32)
    return frozenset(found)


def accesses_of(instruction: Instruction, watched: frozenset[int]) -> dict[int, bool]:
    """The watched registers that an instruction uses by itself, and whether it writes them."""
    accesses: dict[int, bool] = {}
    if not watched or instruction.opcode == "wgmma":
        return accesses
    for position, operand in enumerate(instruction.operands):
        writes = position == 0 and not isinstance(operand, Address)
        for register in registers_of(operand):
            if register.bits == 32 and register.index in watched:
                accesses[register.index] = accesses.get(register.index, False) or writes
    return accesses


def emit_touch(instruction: Instruction, writer: Writer) -> None:
    """Before an instruction that reads or writes such registers: tell the checker."""
    accesses = accesses_of(instruction, writer.watched)
    if not accesses:
        return
    indices, written = np.array(list(accesses)), np.array(list(accesses.values()))
    touch = writer.bind("touch", lambda b: _Touch(b.machine, indices, written, instruction.index))
    if writer.lanes:
        writer.line(f"{touch}(np.unique(L >> 5))")
        return
    writer.factories["warp_numbers"] = lambda b: b.lane_numbers.reshape(-1, 32)[:, 0] >> 5
    writer.line(f"{touch}(warp_numbers)")


class RegisterChecker:
    """What every warp of a machine did to the registers of its products; rows are registers."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.instructions = machine.entry.instructions
        registers = sorted(watched_registers(machine.entry))
        self.row = np.zeros(max(registers, default=-1) + 1, np.int64)
        self.row[registers] = np.arange(len(registers))
        self.shape = len(registers), machine.warp_count * machine.cta_count
        self.reset()

    def reset(self) -> None:
        rows, warps = self.shape
        self.group = np.full((rows, warps), _NEVER)  # of the pending product that uses it
        self.written = np.zeros((rows, warps), np.bool_)  # ... as its accumulator
        self.product = np.zeros((rows, warps), np.int32)
        self.dirty = np.zeros((rows, warps), np.bool_)  # touched since the last wgmma.fence
        self.toucher = np.zeros((rows, warps), np.int32)
        self.fenced = np.zeros(warps, np.bool_)

    def fence(self, warps: np.ndarray) -> None:
        self.dirty[:, warps] = False
        self.fenced[warps] = True

    def issue(
        self, warps: np.ndarray, group: np.ndarray, d: np.ndarray, a: np.ndarray, site: int
    ) -> None:
        """A product of `group` (per warp) starts, with accumulators d and A in registers a."""
        if not self.fenced[warps].all():
            self._report(None, site, "no wgmma.fence precedes the first product")
            self.fenced[warps] = True
        d, a = self.row[d], self.row[a]
        used = np.concatenate([d, a])[:, None]
        dirty = self.dirty[used, warps]
        for first in np.unique(self.toucher[used, warps][dirty]):
            self._report(int(first), site, "no wgmma.fence lies between the access of a register "
                                           "and the product that uses it")  # fmt: skip
        for rows, written in ((a, False), (d, True)):
            self.group[rows[:, None], warps] = group
            self.written[rows[:, None], warps] = written
            self.product[rows[:, None], warps] = site

    def load(self, warps: np.ndarray, destinations: np.ndarray, site: int) -> None:
        """tcgen05.ld starts to write registers; `wait(warps, 0)` says that it is done."""
        where = self.row[destinations][:, None], warps
        self.group[where] = 0
        self.written[where] = True
        self.product[where] = site

    def wait(self, warps: np.ndarray, done: np.ndarray | int) -> None:
        """Products of group `done` (per warp) and before are complete."""
        part = self.group[:, warps]
        self.group[:, warps] = np.where(part <= done, _NEVER, part)

    def touch(
        self, registers: np.ndarray, writes: np.ndarray, warps: np.ndarray, site: int
    ) -> None:
        """Another instruction reads, or `writes`, these registers."""
        where = self.row[registers][:, None], warps
        pending = self.group[where] != _NEVER
        if pending.any():
            bad = pending & (self.written[where] | writes[:, None])
            for first in np.unique(self.product[where][bad]):
                user = self.instructions[int(first)]
                missing = "the matrix product may still use this register"
                mend = "wait with wgmma.wait_group first"
                if user.opcode == "tcgen05":
                    missing = "the load from tensor memory may not have written this register yet"
                    mend = "run tcgen05.wait::ld first"
                second = self.instructions[site].place
                self._add(Finding("race", "register", user.place, second, missing, mend))
        self.dirty[where] = True
        self.toucher[where] = site

    def _report(self, first: int | None, site: int, missing: str) -> None:
        place = None if first is None else self.instructions[first].place
        second = self.instructions[site].place
        mend = "run wgmma.fence.sync.aligned right before the products"
        self._add(Finding("missing wgmma fence", "register", place, second, missing, mend))

    def _add(self, finding: Finding) -> None:
        self.machine.launch.reports.add(finding)


class _Touch:
    """One instruction that reads or writes registers of products."""

    def __init__(
        self, machine: Machine, registers: np.ndarray, writes: np.ndarray, site: int
    ) -> None:
        assert machine.register_checker is not None
        self.checker = machine.register_checker
        self.registers, self.writes, self.site = registers, writes, site

    def __call__(self, warps: np.ndarray) -> None:
        self.checker.touch(self.registers, self.writes, warps, self.site)
