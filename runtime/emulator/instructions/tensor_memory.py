"""Tensor memory: allocation, and tcgen05.ld, .st, .wait (PTX ISA 9.7.16.7 to .9).

With .pack::16b and .unpack::16b a register holds the low halves of two adjacent columns.

128 lanes x 512 columns of 32 bits per CTA; an address is lane << 16 | column. Warp w reaches lanes
32*(w%4) to 32*(w%4)+31.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from tilec.runtime.emulator.errors import EmulatorError, Place
from tilec.runtime.emulator.instructions.mbarrier import shared_operand
from tilec.runtime.emulator.memories.shared_memory import SharedSite
from tilec.runtime.emulator.reading.instruction import Immediate, Instruction, Register
from tilec.runtime.emulator.writing.binding import Binding
from tilec.runtime.emulator.writing.writer import U32, Writer, vector_elements

if TYPE_CHECKING:
    from tilec.runtime.emulator.execution.machine import Machine

LANES, COLUMNS = 128, 512
_PER = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}


class TensorMemory:
    """The tensor memories of a batch of CTAs and who has allocated which columns."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.reset()

    def reset(self) -> None:
        ctas = self.machine.cta_count if self.machine.uses_tensor_memory else 0
        self.words = np.full((ctas, LANES, COLUMNS), 0xFFFFFFFF, np.uint32)
        self.allocated = np.zeros((ctas, COLUMNS), np.bool_)
        self.relinquished = np.zeros(ctas, np.bool_)
        self.pending = np.zeros((ctas, LANES, COLUMNS), np.int16)
        self.late_loads: list[tuple[np.ndarray, TensorAccess, np.ndarray, np.ndarray]] = []

    def allocate(self, cta: int, columns: int, place: Place) -> int:
        if columns < 32 or columns > COLUMNS or columns & (columns - 1):
            raise EmulatorError(
                f"tcgen05.alloc of {columns} columns: a power of two in 32..512 is needed",
                place, "tensor memory",
            )  # fmt: skip
        if self.relinquished[cta]:
            raise EmulatorError(
                "tcgen05.alloc after relinquish_alloc_permit", place, "tensor memory"
            )
        for start in range(0, COLUMNS, columns):
            if not self.allocated[cta, start : start + columns].any():
                self.allocated[cta, start : start + columns] = True
                return start
        raise EmulatorError(
            f"tcgen05.alloc of {columns} columns would wait for ever", place, "tensor memory"
        )

    def free(self, cta: int, address: int, columns: int, place: Place) -> None:
        part = self.allocated[cta, address : address + columns]
        if address >> 16 or part.size != columns or not part.all():
            raise EmulatorError(
                f"tcgen05.dealloc of columns {address}..{address + columns - 1} that are not all "
                "allocated", place, "tensor memory",
            )  # fmt: skip
        part[...] = False

    def require(self, cta: np.ndarray, columns: np.ndarray, place: Place) -> None:
        """Every column must lie inside the memory and be allocated."""
        first, last = int(columns.min()), int(columns.max())
        if last < COLUMNS and self.allocated[:, first : last + 1].all():
            return  # in all CTAs, as they mostly run side by side
        if last >= COLUMNS or not self.allocated[cta, columns].all():
            raise EmulatorError(
                f"tensor memory access to columns {first}..{last}, which are not all allocated",
                place, "tensor memory",
            )  # fmt: skip

    def check_leaks(self) -> None:
        for cta in np.flatnonzero(self.allocated.any(1)):
            count = int(self.allocated[cta].sum())
            raise EmulatorError(
                f"CTA {cta} of the batch ends with {count} tensor memory columns allocated",
                None, "tensor memory",
            )  # fmt: skip


def emit_alloc(instruction: Instruction, writer: Writer) -> None:
    """alloc, dealloc, relinquish_alloc_permit: once per warp."""
    names = instruction.modifiers
    known = {"cta_group::1", "cta_group::2", "sync", "aligned", "shared::cta", "b32"}
    if set(names[1:]) - known:
        raise writer.unsupported("modifiers")
    writer.begin_warps()
    access = writer.bind("tmem", lambda b: Allocation(b, instruction))
    warps = warp_numbers(writer)
    if names[0] == "relinquish_alloc_permit":
        writer.line(f"{access}.relinquish({warps})")
        return
    first, count = instruction.operands
    columns = writer.read_warps(count, U32)
    if names[0] == "dealloc":
        writer.line(f"{access}.free({warps}, {writer.read_warps(first, U32)}, {columns})")
        return
    spelled = (*names, "shared")
    where = shared_operand(writer, first, spelled)
    writer.line(f"{access}.allocate({warps}, {where}, {columns})")


def warp_numbers(writer: Writer) -> str:
    """Lane numbers / 32 of the running warps."""
    if writer.lanes:
        return "WI"
    writer.factories["warp_numbers"] = lambda b: b.lane_numbers.reshape(-1, 32)[:, 0] >> 5
    return "warp_numbers"


class Allocation:
    """One alloc, dealloc or relinquish instruction."""

    def __init__(self, binding: Binding, instruction: Instruction) -> None:
        self.machine = binding.machine
        self.place = instruction.place
        self.instruction = instruction
        self.site = SharedSite(self.machine, 4, instruction.place)
        self.words = self.machine.shared[: self.machine.shared.size // 4 * 4].view(np.uint32)

    def allocate(
        self, warps: np.ndarray, address: np.ndarray, base: np.ndarray, columns: np.ndarray
    ) -> None:
        where = np.broadcast_to(self.site.locate(address, base), address.shape).reshape(-1)
        step = where.size // warps.size
        for i, warp in enumerate(warps.tolist()):
            cta = warp % self.machine.cta_count
            start = self.machine.tensor_memory.allocate(cta, int(columns[i].max()), self.place)
            offset = where[i * step : i * step + 1]
            if self.machine.checker is not None:
                self.machine.checker.allocated(offset, warp * 32, self.instruction.index)
            self.words[offset >> 2] = start

    def free(self, warps: np.ndarray, address: np.ndarray, columns: np.ndarray) -> None:
        for i, warp in enumerate(warps.tolist()):
            cta = warp % self.machine.cta_count
            first, count = int(address[i].max()), int(columns[i].max())
            self.machine.tensor_memory.free(cta, first, count, self.place)
            if self.machine.checker is not None:
                columns_freed = np.arange(first, first + count)
                self.machine.checker.tensor_freed(cta, columns_freed, warp, self.instruction.index)

    def relinquish(self, warps: np.ndarray) -> None:
        self.machine.tensor_memory.relinquished[warps % self.machine.cta_count] = True


def emit_access(instruction: Instruction, writer: Writer) -> None:
    """tcgen05.ld and tcgen05.st."""
    names = instruction.modifiers
    load = names[0] == "ld"
    packed = len(names) == 7 and names[5] == ("pack::16b" if load else "unpack::16b")
    if names[1:3] != ("sync", "aligned") or names[-1] != "b32" or len(names) != 6 + packed:
        raise writer.unsupported("modifiers")
    shape, repeat = names[3], names[4]
    if shape not in _PER or not repeat.startswith("x") or not repeat[1:].isdigit():
        raise writer.unsupported("shape")
    operands = list(instruction.operands)
    vector = operands.pop(0) if load else operands.pop()
    split = 0
    if shape == "16x32bx2":
        offset = operands.pop()
        if not isinstance(offset, Immediate):
            raise writer.unsupported("half split offset")
        if packed:
            raise writer.unsupported("16-bit packing of .16x32bx2")
        split = int(offset.value)
    registers = vector_elements(vector)
    if len(registers) != _PER[shape] * int(repeat[1:]):
        raise writer.unsupported("vector length")
    if load and any(not isinstance(r, Register) or r.bits != 32 for r in registers):
        raise writer.unsupported("destination registers")
    writer.begin_warps()
    access = writer.bind("tmem", lambda b: TensorAccess(b, instruction, shape, split, packed))
    address = f"{writer.read_warps(_address_register(writer, operands[0]), U32)}"
    offset_bytes = operands[0].offset  # type: ignore[union-attr]
    address = f"({address} + np.uint32({offset_bytes}))"
    if load:
        writer.line(f"{access}.load({warp_numbers(writer)}, {address})")
        return
    values = ", ".join(writer.read_warps(register, U32) for register in registers)
    writer.line(f"{access}.store({warp_numbers(writer)}, {address}, ({values},))")


def _address_register(writer: Writer, operand: object):
    base = getattr(operand, "base", None)
    if not isinstance(base, (Register, Immediate)):
        raise writer.unsupported("tensor memory address")
    return base


@lru_cache(maxsize=64)
def placement(shape: str, registers: int, split: int) -> tuple[np.ndarray, np.ndarray]:
    """Row and column, relative to the address, of register r of lane l: arrays [r, l]."""
    r, lane = np.meshgrid(np.arange(registers), np.arange(32), indexing="ij")
    if shape == "32x32b":
        return lane, r
    if shape == "16x64b":
        return lane // 4 + 8 * (lane % 2), lane // 2 % 2 + 2 * r
    if shape == "16x128b":
        return lane // 4 + 8 * (r % 2), lane % 4 + 4 * (r // 2)
    if shape == "16x256b":
        return lane // 4 + 8 * (r // 2 % 2), r % 2 + 2 * (lane % 4) + 8 * (r // 4)
    return lane % 16, r + split * (lane // 16)


class TensorAccess:
    """One tcgen05.ld or .st instruction bound to a machine."""

    def __init__(
        self, binding: Binding, instruction: Instruction, shape: str, split: int, packed: bool
    ) -> None:
        self.machine = binding.machine
        self.place = instruction.place
        self.site = instruction.index
        vector = instruction.operands[0 if instruction.modifiers[0] == "ld" else -1]
        registers = vector_elements(vector)
        self.packed = packed
        self.rows, self.columns = placement(shape, len(registers), split)
        if packed:  # [half, register, lane] as [register, lane] of twice as many registers
            self.rows = np.concatenate([self.rows, self.rows])
            self.columns = np.concatenate([2 * self.columns, 2 * self.columns + 1])
        self.indices = np.array([getattr(r, "index", 0) for r in registers])
        files = self.machine.registers[32]
        self.registers = files.reshape(files.shape[0], -1, 32)

    def _where(
        self, warps: np.ndarray, address: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """CTA, row and column of [warp, register, lane]."""
        ctas = self.machine.cta_count
        first = address[:, 0].astype(np.int64)
        if (address != address[:, :1]).any():
            raise EmulatorError(
                "tensor memory address differs between the lanes of a warp",
                self.place,
                "divergence",
            )
        rows = (first >> 16)[:, None, None] + self.rows
        columns = (first & 0xFFFF)[:, None, None] + self.columns
        quarter = (warps // ctas % 4)[:, None, None]
        if (rows // 32 != quarter).any():
            raise EmulatorError(
                f"tensor memory lanes {int(rows.min())}..{int(rows.max())} are out of the reach of "
                "a warp, which is lanes 32*(warp%4) and the next 31", self.place, "tensor memory",
            )  # fmt: skip
        cta = np.broadcast_to((warps % ctas)[:, None, None], rows.shape)
        self.machine.tensor_memory.require(cta, columns, self.place)
        return cta, rows, columns

    def load(self, warps: np.ndarray, address: np.ndarray) -> None:
        memory = self.machine.tensor_memory
        cta, rows, columns = self._where(warps, address)
        if self.machine.checker is not None:
            self.machine.checker.tensor_access(cta, rows, columns, warps, False, self.site)
        if self.machine.register_checker is not None:
            self.machine.register_checker.load(warps, self.indices, self.site)
        if self.machine.mode == "late":
            self.registers[self.indices[:, None], warps] = 0xFFFFFFFF
            memory.late_loads.append((warps.copy(), self, address.copy(), warps))
            return
        self._fetch(warps, address)

    def _fetch(self, warps: np.ndarray, address: np.ndarray) -> None:
        memory = self.machine.tensor_memory
        cta, rows, columns = self._where(warps, address)
        values = memory.words[cta, rows, columns]
        pending = memory.pending[cta, rows, columns] > 0
        values[pending] = 0xFFFFFFFF
        if self.packed:  # the low halves of two columns in one register
            low, high = np.split(values & np.uint32(0xFFFF), 2, 1)
            values = low | high << np.uint32(16)
        self.registers[self.indices[:, None], warps] = values.transpose(1, 0, 2)

    def store(self, warps: np.ndarray, address: np.ndarray, values: tuple[np.ndarray, ...]) -> None:
        memory = self.machine.tensor_memory
        cta, rows, columns = self._where(warps, address)
        if self.machine.checker is not None:
            self.machine.checker.tensor_access(cta, rows, columns, warps, True, self.site)
        words = np.stack(values, 1)
        if self.packed:
            words = np.concatenate([words & np.uint32(0xFFFF), words >> np.uint32(16)], 1)
        memory.words[cta, rows, columns] = words


def emit_wait(instruction: Instruction, writer: Writer) -> None:
    """tcgen05.wait::ld and ::st."""
    if instruction.modifiers not in (
        ("wait::ld", "sync", "aligned"), ("wait::st", "sync", "aligned"),
    ):  # fmt: skip
        raise writer.unsupported("modifiers")
    writer.begin_warps()
    function = writer.function(finish_accesses)
    machine = writer.bind("machine", lambda b: b.machine)
    stores = instruction.modifiers[0] == "wait::st"
    writer.line(f"{function}({machine}, {warp_numbers(writer)}, {stores})")


def finish_accesses(machine: Machine, warps: np.ndarray, stores: bool) -> None:
    """These warps have waited for their stores, or loads: late ones happen, the checker learns."""
    if machine.checker is not None:
        machine.checker.tensor_waited(warps, stores)
    if machine.register_checker is not None and not stores:
        machine.register_checker.wait(warps, 0)
    memory = machine.tensor_memory
    if stores or not memory.late_loads:
        return
    waiting = set(np.asarray(warps).tolist())
    left = []
    for owners, access, address, numbers in memory.late_loads:
        mine = np.array([w in waiting for w in owners.tolist()])
        if mine.any():
            access._fetch(numbers[mine], address[mine])
        if not mine.all():
            left.append((owners[~mine], access, address[~mine], numbers[~mine]))
    memory.late_loads = left
