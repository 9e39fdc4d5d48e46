"""cp.async: copies from global to shared memory in groups (PTX ISA 9.7.9.25.3)."""

from __future__ import annotations

import numpy as np

from tilec.runtime.emulator.checking.sync_checker import Checker
from tilec.runtime.emulator.instructions.mbarrier import MbarrierSite
from tilec.runtime.emulator.instructions.memory import lanes_of, own_base
from tilec.runtime.emulator.memories.global_memory import GlobalSite
from tilec.runtime.emulator.memories.shared_memory import SharedSite
from tilec.runtime.emulator.numbers.scalar_types import TYPES
from tilec.runtime.emulator.reading.instruction import Immediate, Instruction, Register
from tilec.runtime.emulator.writing.binding import Binding
from tilec.runtime.emulator.writing.writer import U32, U64, Writer

_IGNORED = {
    "shared", "shared::cta", "shared::cluster", "global", "L2::64B", "L2::128B", "L2::256B",
    "L2::cache_hint",
}  # fmt: skip


def emit_cp(instruction: Instruction, writer: Writer) -> None:
    """cp.async.{ca,cg}, cp.async.commit_group, .wait_group, .wait_all."""
    names = instruction.modifiers
    if names[:1] != ("async",) or len(names) < 2:
        raise writer.unsupported("modifiers")
    if names[1] == "mbarrier":
        _emit_mbarrier_arrive(instruction, writer)
    elif names == ("async", "commit_group"):
        queue = writer.bind("queue", lambda b: b.machine.copies)
        writer.line(f"{queue}.commit({lanes_of(writer)})")
    elif names == ("async", "wait_group"):
        (pending,) = instruction.operands
        if not isinstance(pending, Immediate):
            raise writer.unsupported("operand")
        _emit_wait(instruction, writer, int(pending.value))
    elif names == ("async", "wait_all"):
        queue = writer.bind("queue", lambda b: b.machine.copies)
        writer.line(f"{queue}.commit({lanes_of(writer)})")
        _emit_wait(instruction, writer, 0)
    elif names[1] in ("ca", "cg") and not set(names[2:]) - _IGNORED:
        _emit_copy(instruction, writer)
    else:
        raise writer.unsupported("modifiers")


def _emit_wait(instruction: Instruction, writer: Writer, pending: int) -> None:
    queue = writer.bind("queue", lambda b: b.machine.copies)
    writer.line(f"{queue}.wait({lanes_of(writer)}, {pending})")


def _emit_copy(instruction: Instruction, writer: Writer) -> None:
    destination, source, size, *rest = instruction.operands
    if "L2::cache_hint" in instruction.modifiers:
        rest = rest[:-1]
    if not isinstance(size, Immediate) or size.value not in (4, 8, 16) or len(rest) > 1:
        raise writer.unsupported("copy size")
    if instruction.modifiers[1] == "cg" and size.value != 16:
        raise writer.unsupported("cp.async.cg copies 16 bytes")
    count = int(size.value)
    limit = "None"
    if rest and isinstance(rest[0], Register) and rest[0].bits == 1:  # ignore-src
        limit = f"np.where({writer.read(rest[0], TYPES['pred'])}, 0, {count})"
    elif rest:
        limit = writer.broadcast(writer.read(rest[0], U32), rest[0])
        if isinstance(rest[0], Immediate) and rest[0].value == count:
            limit = "None"
    copy = writer.bind("copy", lambda b: Copy(b, instruction, count))
    writer.line(
        f"{copy}({writer.address(destination, U32)}, {own_base(writer, 'shared')}, "
        f"{writer.address(source, U64)}, {limit}, {lanes_of(writer)})"
    )


def _emit_mbarrier_arrive(instruction: Instruction, writer: Writer) -> None:
    """cp.async.mbarrier.arrive: an arrival when all earlier copies of the lane are there."""
    names = instruction.modifiers[3:]
    if instruction.modifiers[2] != "arrive" or set(names) - {
        "noinc", "shared", "shared::cta", "b64",
    }:  # fmt: skip
        raise writer.unsupported("modifiers")
    scalar = U32 if {"shared", "shared::cta"} & set(names) else U64
    where = f"{writer.address(instruction.operands[0], scalar)}, {own_base(writer, 'shared')}"
    arrive = writer.bind("arrive", lambda b: CopiesArrive(b, instruction, "noinc" in names))
    writer.line(f"{arrive}({where}, {lanes_of(writer)})")


class CopiesArrive(MbarrierSite):
    """cp.async.mbarrier.arrive; without .noinc the pending count is raised first."""

    def __init__(self, binding: Binding, instruction: Instruction, keeps_count: bool) -> None:
        super().__init__(binding, instruction)
        self.keeps_count = keeps_count

    def __call__(self, address: np.ndarray, base: np.ndarray, lanes: np.ndarray) -> None:
        machine = self.machine
        cells = self.cells(address, base)
        lanes = np.broadcast_to(lanes, address.shape).reshape(-1).copy()
        ones = np.ones(cells.size, np.int64)
        if not self.keeps_count:
            np.add.at(machine.mbarriers.pending, cells, ones)
        if machine.checker is not None:
            machine.checker.copies_arrived(cells, lanes, self.instruction)
        copies = machine.copies

        def work() -> None:
            copies.finish(lanes)
            machine.mbarriers.arrive(cells, ones, self.place)

        machine.async_work.submit_copy(work, cells.tolist())


class Copy:
    """One cp.async instruction of one block."""

    def __init__(self, binding: Binding, instruction: Instruction, size: int) -> None:
        machine = binding.machine
        self.size = size
        self.shift = size.bit_length() - 1
        self.instruction = instruction
        self.shared_site = SharedSite(machine, size, instruction.place)
        self.global_site = GlobalSite(machine.launch.memory, size, instruction.place, False)
        self.bytes_site = GlobalSite(machine.launch.memory, 1, instruction.place, False)
        dtype = {4: np.uint32, 8: np.uint64, 16: np.complex128}[size]
        self.shared_rows = machine.shared[: machine.shared.size // 16 * 16].view(dtype)
        self.global_rows = machine.launch.memory.rows(np.dtype(dtype), 1)
        self.memory = machine.launch.memory
        self.queue = machine.copies

    def __call__(
        self,
        destination: np.ndarray,
        base: np.ndarray,
        source: np.ndarray,
        limit: np.ndarray | None,
        lanes: np.ndarray,
    ) -> None:
        where = self.shared_site.locate(destination, base) >> self.shift
        if limit is None or (limit == self.size).all():
            index = self.global_site.locate(source) >> self.shift
            full = None
        else:
            index, full = self._limited(source, limit)
        self.queue.issue(self, where, index, full, limit, source, lanes)

    def _limited(self, source: np.ndarray, limit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Indices of the lanes that copy whole rows; the others are filled byte by byte."""
        if int(limit.max()) > self.size:
            raise self.memory.fail(
                int(source.flat[0]), int(limit.max()), "src-size beyond cp-size",
                self.instruction.place,
            )  # fmt: skip
        full = limit == self.size
        index = np.zeros(source.shape, np.int64)
        if full.any():
            index[full] = self.global_site.locate(source[full]) >> self.shift
        return index, full

    def transfer(
        self,
        where: np.ndarray,
        index: np.ndarray,
        full: np.ndarray | None,
        limit: np.ndarray | None,
        source: np.ndarray,
    ) -> None:
        """Move the bytes now."""
        if full is None:
            self.shared_rows[where] = self.global_rows[index]
            return
        assert limit is not None
        rows = np.zeros(where.shape, self.shared_rows.dtype)
        rows[full] = self.global_rows[index[full]]
        partial = ~full & (limit > 0)
        if partial.any():
            rows[partial] = self._partial(source[partial], limit[partial])
        self.shared_rows[where] = rows

    def _partial(self, source: np.ndarray, limit: np.ndarray) -> np.ndarray:
        """Rows of which only the first `limit` bytes come from global memory."""
        block = np.zeros((source.size, self.size), np.uint8)
        for byte in range(self.size):
            used = limit > byte
            if used.any():
                offsets = self.bytes_site.locate(source[used] + np.uint64(byte))
                block[used, byte] = self.memory.bytes[offsets]
        return block.view(self.shared_rows.dtype)[:, 0]


class EagerCopies:
    """Copies happen when they are issued; groups mean nothing."""

    def issue(self, copy: Copy, where, index, full, limit, source, lanes) -> None:
        copy.transfer(where, index, full, limit, source)

    def commit(self, lanes: np.ndarray) -> None:
        """A group closes: nothing is pending."""

    def wait(self, lanes: np.ndarray, pending: int) -> None:
        """Everything is there already."""

    def finish(self, lanes: np.ndarray) -> None:
        """Everything is there already."""


class CheckedCopies(EagerCopies):
    """Copies that happen at once while the checker is told when they were ordered."""

    def __init__(self, checker: Checker) -> None:
        self.checker = checker

    def issue(self, copy: Copy, where, index, full, limit, source, lanes) -> None:
        site = copy.instruction.index
        self.checker.copy_issued(where << copy.shift, copy.size, lanes, site)
        everywhere = self.checker.launch.global_checker
        if everywhere is not None and (everywhere.history.written or everywhere.early):
            whole = slice(None) if full is None else full
            sources, readers = index[whole] << copy.shift, np.broadcast_to(lanes, index.shape)
            everywhere.copied(sources, copy.size, readers[whole], site)
        copy.transfer(where, index, full, limit, source)

    def commit(self, lanes: np.ndarray) -> None:
        self.checker.copies_committed(lanes)

    def wait(self, lanes: np.ndarray, pending: int) -> None:
        self.checker.copies_waited(lanes, pending)


RULES = {"cp": emit_cp}
