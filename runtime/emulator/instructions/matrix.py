"""ldmatrix, stmatrix, movmatrix: 8x8 matrices of 16-bit elements (PTX ISA 9.7.14.5.15-17).

stmatrix also stores 16x8 matrices of bytes, transposed.
"""

from __future__ import annotations

import numpy as np

from tilec.runtime.emulator.memories.shared_memory import SharedSite
from tilec.runtime.emulator.numbers.scalar_types import TYPES
from tilec.runtime.emulator.reading.instruction import Instruction
from tilec.runtime.emulator.writing.binding import Binding
from tilec.runtime.emulator.writing.writer import Writer, vector_elements

U32 = TYPES["u32"]
_COUNT = {"x1": 1, "x2": 2, "x4": 4}


def _parse(instruction: Instruction, writer: Writer) -> tuple[int, bool]:
    names = list(instruction.modifiers)
    if is_byte_store(instruction):  # .trans is always said, and does what follows here
        names[2], names[-1] = "m8n8", "b16"
        names.remove("trans")
    if names[:3] != ["sync", "aligned", "m8n8"] or names[-1] != "b16":
        raise writer.unsupported("modifiers")
    middle = names[3:-1]
    count = [_COUNT[name] for name in middle if name in _COUNT]
    rest = set(middle) - set(_COUNT) - {"trans", "shared", "shared::cta"}
    if rest or len(count) != 1:
        raise writer.unsupported("modifiers")
    return count[0], "trans" in middle


def emit_ldmatrix(instruction: Instruction, writer: Writer) -> None:
    count, transposed = _parse(instruction, writer)
    registers = vector_elements(instruction.operands[0])
    if len(registers) != count:
        raise writer.unsupported("vector length")
    writer.begin_warps()
    load = writer.bind("ldmatrix", lambda b: MatrixAccess(b, instruction, count, transposed))
    value = writer.fresh()
    base = _warp_base(writer)
    address = writer.fresh()
    writer.line(f"{address} = {_warp_address(writer, instruction.operands[1])}")
    writer.line(f"{value} = {load}.load({address}, {base}, {_lanes(writer)})")
    for position, register in enumerate(registers):
        writer.assign_warps(register, U32, f"{value}[:, {position}]")


def emit_stmatrix(instruction: Instruction, writer: Writer) -> None:
    count, transposed = _parse(instruction, writer)
    registers = vector_elements(instruction.operands[1])
    if len(registers) != count:
        raise writer.unsupported("vector length")
    writer.begin_warps()
    store = writer.bind("stmatrix", lambda b: MatrixAccess(b, instruction, count, transposed))
    values = ", ".join(writer.read_warps(register, U32) for register in registers)
    address = _warp_address(writer, instruction.operands[0])
    writer.line(f"{store}.store({address}, {_warp_base(writer)}, {_lanes(writer)}, ({values},))")


def _warp_address(writer: Writer, operand: object) -> str:
    """Shared addresses as (warps, 32)."""
    if not writer.lanes:
        return f"{writer.address(operand, U32)}.reshape(-1, 32)"  # type: ignore[arg-type]
    writer.selector = ".reshape(-1, 32)[WI]"
    value = writer.address(operand, U32)  # type: ignore[arg-type]
    writer.selector = "[L]"
    return value


def _warp_base(writer: Writer) -> str:
    if writer.lanes:
        name = "shared_base_flat"
        writer.factories[name] = lambda b: b.machine.shared_base.reshape(-1)
        return f"{name}.reshape(-1, 32)[WI, :1]"
    name = "shared_base_warps"
    writer.factories[name] = lambda b: b.cut(b.machine.shared_base).reshape(-1, 32)[:, :1]
    return name


def _lanes(writer: Writer) -> str:
    """Flat numbers of the first lanes of the warps."""
    if writer.lanes:
        return "WI"
    name = "warp_numbers"
    writer.factories[name] = lambda b: b.lane_numbers.reshape(-1, 32)[:, 0] >> 5
    return name


class MatrixAccess:
    """One ldmatrix or stmatrix: 16-byte rows, row r of matrix j addressed by lane 8j+r."""

    def __init__(
        self, binding: Binding, instruction: Instruction, count: int, transposed: bool
    ) -> None:
        machine = binding.machine
        self.count = count
        self.transposed = transposed
        self.bytes = is_byte_store(instruction)
        self.site = SharedSite(machine, 16, instruction.place)
        self.rows = machine.shared[: machine.shared.size // 16 * 16].view(np.uint32).reshape(-1, 4)
        self.instruction = instruction
        self.checker = machine.checker

    def _where(self, address: np.ndarray, base: np.ndarray, warps: np.ndarray) -> np.ndarray:
        where = self.site.locate(address[:, : 8 * self.count], base)
        if self.checker is not None:
            store = self.instruction.opcode == "stmatrix"
            self.checker.rows(where, warps, store, self.instruction.index)
        return where >> 4

    def load(self, address: np.ndarray, base: np.ndarray, warps: np.ndarray) -> np.ndarray:
        """(warps, count, 32): what each lane receives of each matrix."""
        rows = self.rows.take(self._where(address, base, warps), 0)
        if self.transposed:
            rows = transpose_matrices(rows.reshape(-1, self.count, 32))
        return rows.reshape(-1, self.count, 32)

    def store(
        self,
        address: np.ndarray,
        base: np.ndarray,
        warps: np.ndarray,
        values: tuple[np.ndarray, ...],
    ) -> None:
        words = np.stack(values, 1)
        if self.bytes:
            words = transpose_bytes(words)
        if self.transposed:
            words = transpose_matrices(words)
        self.rows[self._where(address, base, warps)] = words.reshape(-1, 8 * self.count, 4)


def transpose_matrices(words: np.ndarray) -> np.ndarray:
    """(warps, count, 32) words of row-major 8x8 16-bit matrices, each matrix transposed."""
    halves = np.ascontiguousarray(words).view(np.uint16).reshape(*words.shape[:2], 8, 8)
    transposed = np.ascontiguousarray(halves.transpose(0, 1, 3, 2))
    return transposed.view(np.uint32).reshape(words.shape)


def is_byte_store(instruction: Instruction) -> bool:
    """stmatrix.m16n8.trans.b8 (sm_100a)."""
    names = instruction.modifiers
    shape = names[:3] == ("sync", "aligned", "m16n8") and names[-1] == "b8"
    return instruction.opcode == "stmatrix" and shape and "trans" in names


def transpose_bytes(words: np.ndarray) -> np.ndarray:
    """(warps, count, 32) words of 16x8 matrices of bytes as 8 rows of 16 bytes each.

    Byte j of lane l is element (l/4 + 8*(j/2), 2*(l%4) + j%2), which goes to byte l/4 + 8*(j/2) of
    the row that belongs to column 2*(l%4) + j%2.
    """
    fragments = np.ascontiguousarray(words).view(np.uint8).reshape(*words.shape[:2], 8, 4, 2, 2)
    rows = np.ascontiguousarray(fragments.transpose(0, 1, 3, 5, 4, 2))  # [t, j%2, j/2, l/4]
    return rows.view(np.uint32).reshape(words.shape)


def emit_movmatrix(instruction: Instruction, writer: Writer) -> None:
    if instruction.modifiers != ("sync", "aligned", "m8n8", "trans", "b16"):
        raise writer.unsupported("modifiers")
    destination, source = instruction.operands
    writer.begin_warps()
    function = writer.function(transpose_matrices)
    value = f"{function}({writer.read_warps(source, U32)}[:, None])[:, 0]"
    writer.assign_warps(destination, U32, value)


RULES = {"ldmatrix": emit_ldmatrix, "stmatrix": emit_stmatrix, "movmatrix": emit_movmatrix}
