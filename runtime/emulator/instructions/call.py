"""Calls of the two functions that device code may call: vprintf and __assertfail."""

from __future__ import annotations

import re

import numpy as np

from tilec.runtime.emulator.errors import EmulatorError
from tilec.runtime.emulator.instructions.memory import lanes_of
from tilec.runtime.emulator.memories.global_memory import ARENA_BASE
from tilec.runtime.emulator.memories.spaces import LOCAL_WINDOW, SHARED_WINDOW
from tilec.runtime.emulator.reading.instruction import Instruction
from tilec.runtime.emulator.writing.binding import Binding
from tilec.runtime.emulator.writing.writer import Writer

_CONVERSION = re.compile(r"%([-+ #0]*)(\d*)(\.\d+)?(hh|h|ll|l|j|z|t|L)?([diouxXeEfgGaAcsp%])")


def emit_call(instruction: Instruction, writer: Writer) -> None:
    call = instruction.call
    if call is None or call.callee not in ("vprintf", "__assertfail"):
        raise writer.unsupported(f"call of {call.callee if call else '?'}")
    blocks = ", ".join(writer.call_block(name) for name in call.arguments)
    kind = Print if call.callee == "vprintf" else AssertFail
    function = writer.bind("call", lambda b: kind(b, instruction))
    writer.line(f"{function}({lanes_of(writer)}, {blocks})")
    for name in call.returns:
        writer.line(f"{writer.call_block(name)}[0] = np.zeros({lanes_of(writer)}.shape, np.uint32)")


class _Callee:
    def __init__(self, binding: Binding, instruction: Instruction) -> None:
        self.machine = binding.machine
        self.place = instruction.place

    def read(self, address: int, count: int, lane: int) -> bytes:
        """Bytes at a generic address as `lane` sees it."""
        machine = self.machine
        if address >= ARENA_BASE:
            start = address - ARENA_BASE
            return machine.launch.memory.bytes[start : start + count].tobytes()
        if address >= SHARED_WINDOW:
            start = int(machine.shared_base.reshape(-1)[lane]) + address - SHARED_WINDOW
            return machine.shared[start : start + count].tobytes()
        start = int(machine.local_base.reshape(-1)[lane]) + address - LOCAL_WINDOW
        return machine.local[start : start + count].tobytes()

    def text(self, address: int, lane: int) -> str:
        """A C string."""
        if not address:
            return ""
        raw = self.read(address, 4096, lane)
        return raw.split(b"\0", 1)[0].decode("utf-8", "replace")


class Print(_Callee):
    """vprintf(format, arguments): C formatting; the text goes to the launch's `printed`."""

    def __call__(self, lanes: np.ndarray, form: dict, arguments: dict) -> None:
        order = np.broadcast_to(lanes, lanes.shape).reshape(-1)
        forms = np.broadcast_to(form[0], lanes.shape).reshape(-1)
        pointers = np.broadcast_to(arguments[0], lanes.shape).reshape(-1)
        for lane, where, pointer in sorted(
            zip(order, forms, pointers, strict=True), key=self._by_thread
        ):
            text = self.text(int(where), int(lane))
            self.machine.launch.printed.append(self._format(text, int(pointer), int(lane)))

    def _by_thread(self, item: tuple) -> tuple[int, int]:
        warp, cta, lane = np.unravel_index(item[0], self.machine.shape)
        return int(cta), int(warp) * 32 + int(lane)

    def _format(self, form: str, pointer: int, lane: int) -> str:
        offset = 0

        def convert(match: re.Match[str]) -> str:
            nonlocal offset
            flags, width, precision, length, letter = match.groups()
            if letter == "%":
                return "%"
            wide = letter in "eEfgGaAsp" or length in ("l", "ll", "j", "z", "t")
            size = 8 if wide else 4
            offset = -(-offset // size) * size
            raw = self.read(pointer + offset, size, lane)
            offset += size
            return self._convert(raw, letter, f"%{flags}{width}{precision or ''}", lane)

        return _CONVERSION.sub(convert, form)

    def _convert(self, raw: bytes, letter: str, head: str, lane: int) -> str:
        if letter in "eEfgG":
            return (head + letter) % np.frombuffer(raw, np.float64)[0]
        if letter in "aA":
            return float(np.frombuffer(raw, np.float64)[0]).hex()
        value = int.from_bytes(raw, "little", signed=letter in "di")
        if letter == "s":
            return (head + "s") % self.text(value, lane)
        if letter == "p":
            return f"{value:#x}"
        return (head + letter) % value


class AssertFail(_Callee):
    """__assertfail(message, file, line, function, size): the launch ends with the message."""

    def __call__(self, lanes: np.ndarray, *blocks: dict) -> None:
        lane = int(lanes.reshape(-1)[0])
        values = [int(np.broadcast_to(block[0], lanes.shape).flat[0]) for block in blocks]
        message, file, line, function = values[:4]
        where = f"{self.text(file, lane)}:{line}"
        warp, cta, thread = np.unravel_index(lane, self.machine.shape)
        raise EmulatorError(
            f"assertion failed: {self.text(message, lane)} ({where}, in "
            f"{self.text(function, lane)}), CTA {tuple(self.machine.cta_ids[cta].tolist())}, "
            f"thread {int(warp) * 32 + int(thread)}",
            self.place,
            "assertion",
        )


RULES = {"call": emit_call}
