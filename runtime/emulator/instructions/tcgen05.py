"""tcgen05: which file executes what, and commit (PTX ISA 9.7.16)."""

from __future__ import annotations

from functools import partial

import numpy as np

from tilec.runtime.emulator.instructions.mbarrier import MbarrierSite, shared_operand
from tilec.runtime.emulator.instructions.memory import lanes_of
from tilec.runtime.emulator.instructions.tensor_copy import emit_copy, emit_shift
from tilec.runtime.emulator.instructions.tensor_memory import emit_access, emit_alloc, emit_wait
from tilec.runtime.emulator.instructions.tensor_product import cta_group, emit_product
from tilec.runtime.emulator.numbers.scalar_types import TYPES
from tilec.runtime.emulator.reading.instruction import Instruction
from tilec.runtime.emulator.writing.writer import Writer

U16 = TYPES["u16"]
_FENCES = ("fence::before_thread_sync",), ("fence::after_thread_sync",)


def emit_tcgen05(instruction: Instruction, writer: Writer) -> None:
    names = instruction.modifiers
    if names in _FENCES:
        writer.line("pass")
        if writer.checked:
            checker = writer.bind("checker", lambda b: b.machine.checker)
            writer.line(f"{checker}.tensor_fence({lanes_of(writer)}, {names == _FENCES[0]})")
    elif names[0] in ("alloc", "dealloc", "relinquish_alloc_permit"):
        emit_alloc(instruction, writer)
    elif names[0].startswith("wait::"):
        emit_wait(instruction, writer)
    elif names[0] in _OPERATIONS:
        _OPERATIONS[names[0]](instruction, writer)
    else:
        raise writer.unsupported(f"tcgen05.{names[0]}")


def _emit_commit(instruction: Instruction, writer: Writer) -> None:
    names = instruction.modifiers
    known = {
        "commit", "cta_group::1", "cta_group::2", "mbarrier::arrive::one", "shared::cluster",
        "shared::cta", "b64", "multicast::cluster",
    }  # fmt: skip
    cta_group(names, writer)
    if set(names) - known:
        raise writer.unsupported("modifiers")
    address, *rest = instruction.operands
    mask = writer.broadcast(writer.read(rest[0], U16), rest[0]) if rest else "None"
    where = _barrier_operand(writer, address, names)
    commit = writer.bind("commit", lambda b: Commit(b, instruction))
    writer.line(f"{commit}({where}, {mask}, {lanes_of(writer)})")


def _barrier_operand(writer: Writer, address: object, names: tuple[str, ...]) -> str:
    """The barrier's address may be 32-bit or generic, whatever the state space says."""
    register = getattr(getattr(address, "base", None), "bits", 64)
    spelled = names if register == 32 else ()
    return shared_operand(writer, address, spelled)  # type: ignore[arg-type]


class Commit(MbarrierSite):
    """tcgen05.commit: an arrival when the lane's earlier asynchronous work is done."""

    def __call__(
        self, address: np.ndarray, base: np.ndarray, mask: np.ndarray | None, lanes: np.ndarray
    ) -> None:
        machine = self.machine
        base = np.broadcast_to(base, address.shape)
        cells = self.cells(address, base)
        lanes = np.broadcast_to(lanes, address.shape).reshape(-1)
        for i, (cell, lane) in enumerate(zip(cells.tolist(), lanes.tolist(), strict=True)):
            targets = [cell]
            if mask is not None:
                targets = self._multicast(cell, lane, int(mask.reshape(-1)[i]))
            if machine.checker is not None:
                machine.checker.products_committed(targets, lane, self.instruction)

            for target in targets:
                arrival = partial(machine.mbarriers.arrive_late, target, self.place)
                machine.async_work.submit(arrival, lane)

    def _multicast(self, cell: int, lane: int, mask: int) -> list[int]:
        size, step = self.machine.launch.cluster_size, self.machine.shared_stride // 8
        first = lane // 32 % self.machine.cta_count // size * size
        return [cell % step + (first + rank) * step for rank in range(size) if mask >> rank & 1]


_OPERATIONS = {
    "ld": emit_access,
    "st": emit_access,
    "mma": emit_product,
    "commit": _emit_commit,
    "cp": emit_copy,
    "shift": emit_shift,
}
RULES = {"tcgen05": emit_tcgen05}
