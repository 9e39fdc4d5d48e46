"""clusterlaunchcontrol: a running cluster takes over one that has not started (PTX ISA 9.7.13.17).

try_cancel takes the last cluster of the grid that is not in a batch yet. The response, which is
opaque to kernels, holds x, y, z of its first CTA and a word that is 1 where there was one.
"""

from __future__ import annotations

import numpy as np

from tilec.runtime.emulator.checking.sync_checker import BulkLoad
from tilec.runtime.emulator.instructions.bulk_copy import BulkSite
from tilec.runtime.emulator.instructions.mbarrier import locate_shared, shared_operand
from tilec.runtime.emulator.instructions.memory import lanes_of
from tilec.runtime.emulator.numbers.scalar_types import TYPES
from tilec.runtime.emulator.reading.instruction import Instruction
from tilec.runtime.emulator.writing.binding import Binding
from tilec.runtime.emulator.writing.writer import U32, U64, Writer, vector_elements

PRED = TYPES["pred"]
_REQUEST = {"async", "shared::cta", "mbarrier::complete_tx::bytes", "multicast::cluster::all",
            "b128"}  # fmt: skip
_BYTES = 16


def emit_launch_control(instruction: Instruction, writer: Writer) -> None:
    operation, *names = instruction.modifiers
    if operation == "try_cancel" and not set(names) - _REQUEST:
        return _emit_request(instruction, writer)
    if operation == "query_cancel":
        return _emit_query(instruction, writer)
    raise writer.unsupported("modifiers")


def _emit_request(instruction: Instruction, writer: Writer) -> None:
    response, barrier = instruction.operands
    spelled = instruction.modifiers
    where = shared_operand(writer, response, spelled)
    signal = shared_operand(writer, barrier, spelled)
    request = writer.bind("cancel", lambda b: Request(b, instruction))
    writer.line(f"{request}({where}, {signal.partition(', ')[0]}, {lanes_of(writer)})")


class Request(BulkSite):
    """One try_cancel: 16 bytes arrive in shared memory, an mbarrier is told."""

    def __init__(self, binding: Binding, instruction: Instruction) -> None:
        super().__init__(binding, instruction)
        self.everywhere = "multicast::cluster::all" in instruction.modifiers

    def __call__(
        self, response: np.ndarray, base: np.ndarray, barrier: np.ndarray, lanes: np.ndarray
    ) -> None:
        base = np.broadcast_to(base, response.shape)
        places = locate_shared(self.shared_site, response, base).reshape(-1)
        cells = self.barrier_site.cells(barrier, base)
        for i, lane in enumerate(np.broadcast_to(lanes, response.shape).reshape(-1).tolist()):
            answer = self.machine.launch.take_cluster()
            self._issue(int(places[i]), int(cells[i]), answer, lane)

    def _issue(self, place: int, cell: int, answer: np.ndarray, lane: int) -> None:
        machine, stride = self.machine, self.machine.shared_stride
        own = place // stride
        ctas = self.ctas_of_mask(own, -1) if self.everywhere else [own]
        for cta in ctas:
            chunk = np.array([(place + (cta - own) * stride) // 16])
            signal = cell + (cta - own) * stride // 8
            token = None
            if machine.checker is not None:
                token = machine.checker.bulk_load(chunk, lane, self.instruction.index)
            machine.arriving.begin(chunk)

            def work(
                chunk: np.ndarray = chunk, signal: int = signal,
                token: BulkLoad | None = token,
            ) -> None:  # fmt: skip
                self.chunks[chunk] = answer.view(np.complex128)
                machine.arriving.end(chunk)
                if machine.checker is not None and token is not None:
                    machine.checker.bulk_loaded(token, signal)
                machine.mbarriers.complete(np.array([signal]), np.array([_BYTES]), self.place)

            machine.async_work.submit_copy(work, [signal])


def _emit_query(instruction: Instruction, writer: Writer) -> None:
    names = instruction.modifiers[1:]
    destination, response = instruction.operands
    halves = vector_elements(response)
    if len(halves) != 2:
        raise writer.unsupported("response")
    low, high = (writer.read(half, U64) for half in halves)
    words = [f"({half} >> np.uint64({shift})).astype(np.uint32)"
             for half in (low, high) for shift in (0, 32)]  # fmt: skip
    if names == ("is_canceled", "pred", "b128"):
        writer.assign(destination, PRED, f"({words[3]} == np.uint32(1))")
        return
    axes = {f"get_first_ctaid::{axis}": word for axis, word in zip("xyz", words, strict=False)}
    if names[1:] == ("b32", "b128") and names[0] in axes:
        writer.assign(destination, U32, axes[names[0]])
    elif names == ("get_first_ctaid", "v4", "b32", "b128"):
        elements = vector_elements(destination)
        if len(elements) != 4:
            raise writer.unsupported("vector length")
        for element, word in zip(elements, (*words[:3], "np.uint32(0)"), strict=True):
            writer.assign(element, U32, word)
    else:
        raise writer.unsupported("modifiers")


RULES = {"clusterlaunchcontrol": emit_launch_control}
