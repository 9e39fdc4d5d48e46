"""mbarrier objects in shared memory (PTX ISA 9.7.13.15): counts, transactions, phases, waits.

The state of every 8-byte cell of the batch's shared memory lies in arrays beside the bytes. A
phase completes when no arrival and no transaction byte is pending; `parity` is that of the phase
in progress, so a wait for parity p succeeds when the phase in progress has another parity.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tilec.runtime.emulator.errors import EmulatorError, Finding, Place
from tilec.runtime.emulator.instructions.memory import lanes_of, own_base
from tilec.runtime.emulator.memories.shared_memory import SharedSite
from tilec.runtime.emulator.memories.spaces import SHARED_WINDOW
from tilec.runtime.emulator.numbers.scalar_types import TYPES
from tilec.runtime.emulator.reading.instruction import Instruction, Operand, Register, Sink
from tilec.runtime.emulator.writing.binding import Binding
from tilec.runtime.emulator.writing.writer import U32, U64, Writer

if TYPE_CHECKING:
    from tilec.runtime.emulator.execution.machine import Machine

_SPACES = {"shared", "shared::cta", "shared::cluster"}
_ORDERS = {"release", "acquire", "relaxed", "cta", "cluster", "b64", "noComplete", "async"}
_MAXIMUM = (1 << 20) - 1


class Mbarriers:
    """All mbarriers of a machine; indices are batch byte offsets divided by 8."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.valid = np.zeros(0, np.bool_)
        self.reset()

    def reset(self) -> None:
        cells = self.machine.shared.size // 8
        self.valid = np.zeros(cells, np.bool_)
        self.expected = np.zeros(cells, np.int64)
        self.pending = np.zeros(cells, np.int64)
        self.transactions = np.zeros(cells, np.int64)
        self.phase = np.zeros(cells, np.int64)
        self.last_arrival: dict[int, Place] = {}
        self.progress = 0

    def initialise(self, cells: np.ndarray, counts: np.ndarray, place: Place) -> None:
        if ((counts < 1) | (counts > _MAXIMUM)).any():
            raise EmulatorError(
                f"mbarrier.init with count {int(counts.flat[0])}, not 1..{_MAXIMUM}",
                place,
                "mbarrier",
            )
        self.valid[cells] = True
        self.expected[cells] = self.pending[cells] = counts
        self.transactions[cells] = 0
        self.phase[cells] = 0

    def invalidate(self, cells: np.ndarray, place: Place) -> None:
        self._require(cells, place)
        self.valid[cells] = False

    def _require(self, cells: np.ndarray, place: Place) -> None:
        if self.machine.any_ended:
            self.machine.require_running(cells * 8 // self.machine.shared_stride, place)
        if np.count_nonzero(self.valid[cells]) != cells.size:
            bad = int(cells[~self.valid[cells]].flat[0]) * 8
            offset, cta = bad % self.machine.shared_stride, bad // self.machine.shared_stride
            raise EmulatorError(
                f"no mbarrier was initialised at shared offset {offset:#x} of CTA {cta}",
                place,
                "mbarrier",
            )

    def expect(self, cells: np.ndarray, count: np.ndarray, place: Place) -> None:
        self._require(cells, place)
        np.add.at(self.transactions, cells, count)
        self._limit(cells, place)

    def _limit(self, cells: np.ndarray, place: Place) -> None:
        if (np.abs(self.transactions[cells]) > _MAXIMUM).any():
            raise EmulatorError("mbarrier transaction count out of range", place, "mbarrier")

    def arrive(self, cells: np.ndarray, count: np.ndarray, place: Place) -> None:
        if not cells.size:
            return
        self._require(cells, place)
        np.subtract.at(self.pending, cells, count)
        touched = np.unique(cells)
        if (self.pending[touched] < 0).any():
            raise EmulatorError(
                "more arrivals at an mbarrier than its count in one phase", place, "mbarrier"
            )
        for cell in touched:
            self.last_arrival[int(cell)] = place
        self._complete(touched)

    def arrive_late(self, cell: int, place: Place) -> None:
        """The arrival of asynchronous work; its barrier may have been invalidated meanwhile."""
        if self.valid[cell]:
            self.arrive(np.array([cell]), np.array([1]), place)
            return
        missing = "the mbarrier is invalidated while an asynchronous arrival is still to come"
        mend = "wait for the phase before mbarrier.inval"
        finding = Finding("lost arrival", "mbarrier", None, place, missing, mend, "warning")
        self.machine.launch.reports.add(finding)
        self.progress += 1

    def complete(self, cells: np.ndarray, count: np.ndarray, place: Place) -> None:
        """complete_tx: `count` bytes of an asynchronous copy have come."""
        self._require(cells, place)
        np.subtract.at(self.transactions, cells, count)
        self._limit(cells, place)
        self._complete(np.unique(cells))

    def _complete(self, cells: np.ndarray) -> None:
        done = cells[(self.pending[cells] == 0) & (self.transactions[cells] == 0)]
        self.progress += 1
        if done.size:
            self.phase[done] += 1
            self.pending[done] = self.expected[done]
            if self.machine.checker is not None:
                self.machine.checker.phase_completed(done)

    def passed(self, cells: np.ndarray, parity: np.ndarray, place: Place) -> np.ndarray:
        """Has the phase of this parity completed?"""
        self._require(cells, place)
        return (self.phase[cells] & 1) != (parity & 1)

    def describe(self, cell: int, parity: int) -> str:
        """One waiter's barrier, for the deadlock report."""
        offset = cell * 8 % self.machine.shared_stride
        text = (
            f"mbarrier at shared offset {offset:#x}: waits for parity {parity}, phase "
            f"{int(self.phase[cell])} in progress, {int(self.pending[cell])} of "
            f"{int(self.expected[cell])} arrivals missing, {int(self.transactions[cell])} "
            "transaction bytes missing"
        )
        last = self.last_arrival.get(cell)
        return f"{text}, last arrival {last}" if last else f"{text}, nobody arrived"


class MbarrierSite:
    """Addresses of one mbarrier operand to cells."""

    def __init__(self, binding: Binding, instruction: Instruction) -> None:
        self.machine = binding.machine
        self.place = instruction.place
        self.instruction = instruction
        self.site = SharedSite(binding.machine, 8, instruction.place)

    def cells(self, address: np.ndarray, base: np.ndarray) -> np.ndarray:
        return (locate_shared(self.site, address, base) >> 3).reshape(-1)


def locate_shared(site: SharedSite, address: np.ndarray, base: np.ndarray) -> np.ndarray:
    """Batch byte offsets of shared addresses, 32-bit or generic, in lane order."""
    address = np.asarray(address)
    if address.dtype.itemsize == 8:
        generic = address >= np.uint64(SHARED_WINDOW)
        address = np.where(generic, address - np.uint64(SHARED_WINDOW), address).astype(np.uint32)
    return np.asarray(site.locate(address, base))


def shared_operand(writer: Writer, operand: Operand, names: tuple[str, ...]) -> str:
    """Arguments `address, base` for a shared address: 32-bit if the space is said."""
    scalar = U32 if _SPACES & set(names) else U64
    return f"{writer.address(operand, scalar)}, {own_base(writer, 'shared')}"


def emit_mbarrier(instruction: Instruction, writer: Writer) -> None:
    operation, rest = instruction.modifiers[0], instruction.modifiers[1:]
    if operation in ("init", "inval"):
        if set(rest) - _SPACES - {"b64"}:
            raise writer.unsupported("modifiers")
        return _emit_init(instruction, writer)
    if operation in ("arrive", "arrive_drop"):
        if set(rest) - _SPACES - _ORDERS - {"expect_tx"}:
            raise writer.unsupported("modifiers")
        return _emit_arrive(instruction, writer)
    if operation in ("expect_tx", "complete_tx"):
        if set(rest) - _SPACES - _ORDERS:
            raise writer.unsupported("modifiers")
        return _emit_transactions(instruction, writer)
    if operation in ("try_wait", "test_wait"):
        if set(rest) - _SPACES - _ORDERS - {"parity"}:
            raise writer.unsupported("modifiers")
        return _emit_wait(instruction, writer)
    raise writer.unsupported(f"mbarrier.{operation}")


def _emit_init(instruction: Instruction, writer: Writer) -> None:
    where = shared_operand(writer, instruction.operands[0], instruction.modifiers)
    count = "1"
    if instruction.modifiers[0] == "init":
        count = writer.read(instruction.operands[1], U32)
    name = writer.bind("mbarrier", lambda b: _Init(b, instruction))
    writer.line(f"{name}({where}, {lanes_of(writer)}, {count})")


class _Init(MbarrierSite):
    def __call__(
        self, address: np.ndarray, base: np.ndarray, lanes: np.ndarray, count: np.ndarray
    ) -> None:
        cells = self.cells(address, base)
        checker = self.machine.checker
        if checker is not None:
            checker.mbarrier_written(cells, lanes, self.instruction.index)
        if self.instruction.modifiers[0] == "inval":
            self.machine.mbarriers.invalidate(cells, self.place)
            return
        counts = np.broadcast_to(count, address.shape).reshape(-1).astype(np.int64)
        self.machine.mbarriers.initialise(cells, counts, self.place)


def _emit_arrive(instruction: Instruction, writer: Writer) -> None:
    operands = list(instruction.operands)
    expects = "expect_tx" in instruction.modifiers
    destination: Operand = Sink()
    if not _is_address(operands[0]):
        destination = operands.pop(0)
    where = shared_operand(writer, operands[0], instruction.modifiers)
    amount = writer.read(operands[1], U32) if len(operands) > 1 else "1"
    name = writer.bind("mbarrier", lambda b: _Arrive(b, instruction, expects))
    state = writer.fresh()
    writer.line(f"{state} = {name}({where}, {lanes_of(writer)}, {amount})")
    if not isinstance(destination, Sink):
        writer.assign(destination, U64, state)


def _is_address(operand: Operand) -> bool:
    return type(operand).__name__ == "Address"


class _Arrive(MbarrierSite):
    """mbarrier.arrive, with .expect_tx first; gives the state of the phase before arriving."""

    def __init__(self, binding: Binding, instruction: Instruction, expects: bool) -> None:
        super().__init__(binding, instruction)
        self.expects = expects
        self.drops = instruction.modifiers[0] == "arrive_drop"
        self.releases = (
            "cluster" in instruction.modifiers and "relaxed" not in instruction.modifiers
        )

    def __call__(
        self, address: np.ndarray, base: np.ndarray, lanes: np.ndarray, amount: np.ndarray
    ) -> np.ndarray:
        cells = self.cells(address, base)
        amounts = np.broadcast_to(amount, address.shape).reshape(-1).astype(np.int64)
        state = (self.machine.mbarriers.phase[cells] & 1).astype(np.uint64).reshape(address.shape)
        checker = self.machine.checker
        if checker is not None:
            checker.mbarrier_arrived(cells, lanes, self.instruction)
        if self.machine.async_work.late and self.machine.launch.cluster_size > 1:
            cells, amounts = self._delay(cells, amounts, np.broadcast_to(lanes, address.shape))
        self._arrive(cells, amounts)
        return state

    def _arrive(self, cells: np.ndarray, amounts: np.ndarray) -> None:
        barriers = self.machine.mbarriers
        if self.expects:
            barriers.expect(cells, amounts, self.place)
            amounts = np.ones_like(amounts)
        if self.drops:
            np.subtract.at(barriers.expected, cells, amounts)
        barriers.arrive(cells, amounts, self.place)

    def _delay(
        self, cells: np.ndarray, amounts: np.ndarray, lanes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Arrivals in other CTAs are under way for a while; those that are left come at once."""
        lanes = lanes.reshape(-1)
        work = self.machine.async_work
        if self.releases:
            work.released(lanes)
        far = cells * 8 // self.machine.shared_stride != (lanes >> 5) % self.machine.cta_count
        for i in np.flatnonzero(far).tolist():
            work.arrive(int(lanes[i]), partial(self._arrive, cells[i : i + 1], amounts[i : i + 1]))
        return cells[~far], amounts[~far]


def _emit_transactions(instruction: Instruction, writer: Writer) -> None:
    where = shared_operand(writer, instruction.operands[0], instruction.modifiers)
    amount = writer.read(instruction.operands[1], U32)
    name = writer.bind("mbarrier", lambda b: _Transactions(b, instruction))
    writer.line(f"{name}({where}, {amount})")


class _Transactions(MbarrierSite):
    def __call__(self, address: np.ndarray, base: np.ndarray, amount: np.ndarray) -> None:
        cells = self.cells(address, base)
        amounts = np.broadcast_to(amount, address.shape).reshape(-1).astype(np.int64)
        if self.instruction.modifiers[0] == "expect_tx":
            self.machine.mbarriers.expect(cells, amounts, self.place)
        else:
            self.machine.mbarriers.complete(cells, amounts, self.place)


def _emit_wait(instruction: Instruction, writer: Writer) -> None:
    """Waits end a block: the scheduler parks the lanes whose phase has not completed."""
    destination, address, parity, *_ = instruction.operands
    if not isinstance(destination, Register) or destination.bits != 1:
        raise writer.unsupported("destination")
    where = shared_operand(writer, address, instruction.modifiers)
    value = writer.read(parity, U32 if "parity" in instruction.modifiers else U64)
    guard = "None"
    if instruction.guard is not None:
        guard = writer.read(instruction.guard, TYPES["pred"])
    name = writer.bind("mbarrier", lambda b: _Wait(b, instruction))
    writer.line(f"return {guard}, *{name}({where}, {guard}, {value}),")


class _Wait(MbarrierSite):
    """Cells and parities of the waiting lanes; where the guard is off nothing is looked at."""

    def __call__(
        self,
        address: np.ndarray,
        base: np.ndarray,
        guard: np.ndarray | None,
        parity: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        parity = np.broadcast_to(parity, address.shape)
        if guard is None:
            return self.cells(address, base).reshape(address.shape), parity
        cells = np.zeros(address.shape, np.int64)
        if guard.any():
            cells[guard] = self.cells(address[guard], np.broadcast_to(base, address.shape)[guard])
        return cells, parity


RULES = {"mbarrier": emit_mbarrier}
