"""setmaxnreg: warps give registers to the pool of their CTA and take some (PTX ISA 9.7.19.5).

The pool is what the CTA was launched with: all of it belongs to the warps at first. `.dec` gives
back, `.inc` waits until there are enough. What a thread has at launch ptxas decides
(`launch_registers`, as ptxas 13.0 reports it); where it cannot, it leaves setmaxnreg out.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tilec.runtime.emulator.errors import EmulatorError, Finding
from tilec.runtime.emulator.instructions.control import returns
from tilec.runtime.emulator.reading.instruction import Entry, Immediate, Instruction
from tilec.runtime.emulator.stuck_warps import StuckWarps
from tilec.runtime.emulator.writing.writer import Writer

if TYPE_CHECKING:
    from tilec.runtime.emulator.execution.machine import Machine

_FILE = 64 << 10
_PARTITIONS = 4
"""Parts of a multiprocessor, each with its warps and its share of the registers."""
_LEAST, _MOST, _STEP = 24, 256, 8


def launch_registers(entry: Entry) -> int | None:
    """Registers of a thread at launch: the most that .maxnreg and .minnctapersm leave, and that
    an .inc ever asks for; None where neither directive says."""
    directives = entry.directives
    limits = []
    if directives.get("maxnreg"):
        limits.append(directives["maxnreg"][0])
    threads = directives.get("reqntid") or directives.get("maxntid")
    if threads and directives.get("minnctapersm"):
        warps = -(-math.prod(threads) // 32) * directives["minnctapersm"][0]
        limits.append(_FILE // _PARTITIONS // (-(-warps // _PARTITIONS) * 32) // _STEP * _STEP)
    if not limits:
        return None
    sites = (i for i in entry.instructions if i.opcode == "setmaxnreg")
    most = max((_count(i) for i in sites if i.modifiers[0] == "inc"), default=_MOST)
    return -(-min(*limits, most) // _STEP) * _STEP


class RegisterBudgets:
    """Registers a thread of each warp ([warp][CTA]), and those free in each CTA's pool."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.at_launch = machine.launch.registers or launch_registers(machine.entry)
        self.held = np.zeros(machine.shape[:2], np.int64)
        self.free = np.zeros(machine.cta_count, np.int64)
        self.waiting: list[tuple[int, int, Instruction]] = []

    def reset(self) -> None:
        self.held[...] = self.at_launch or 0
        self.free[...] = 0
        self.waiting.clear()
        self.site: Instruction | None = None

    def ask(self, lanes: np.ndarray, instruction: Instruction) -> bool:
        """Lanes run setmaxnreg; False where that does nothing, else `granted` tells who goes on."""
        self.site = instruction
        if self.at_launch is None:
            self._ignored(instruction)
            return False
        numbers, counts = np.unique(lanes >> 5, return_counts=True)
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            warp, cta = divmod(number, self.machine.cta_count)
            self._require(warp, cta, count, instruction)
            self.waiting.append((warp, cta, instruction))
        return True

    def granted(self) -> list[tuple[int, int, Instruction]]:
        """The waiting (warp, CTA, instruction) that get what they ask for now; who gives back comes
        first."""
        self.waiting.sort(key=lambda asking: asking[2].modifiers[0] == "inc")
        answers = [(asking, self._grant(*asking)) for asking in self.waiting]
        self.waiting = [asking for asking, done in answers if not done]
        return [asking for asking, done in answers if done]

    def _grant(self, warp: int, cta: int, instruction: Instruction) -> bool:
        more = 32 * (_count(instruction) - int(self.held[warp, cta]))
        if more > self.free[cta]:
            return False
        self.free[cta] -= more
        self.held[warp, cta] = _count(instruction)
        return True

    def _require(self, warp: int, cta: int, lanes: int, instruction: Instruction) -> None:
        """The warp comes whole; `.dec` does not ask for more than it has, `.inc` not for less."""
        if lanes != int((~self.machine.exited[warp, cta]).sum()):
            message = "a part of a warp runs setmaxnreg"
            raise EmulatorError(message, instruction.place, "registers")
        kind, count = instruction.modifiers[0], _count(instruction)
        held = int(self.held[warp, cta])
        if (count > held) if kind == "dec" else (count < held):
            raise EmulatorError(
                f"setmaxnreg.{kind} to {count} registers of a warp that has {held} a thread, which "
                "is undefined", instruction.place, "registers",
            )  # fmt: skip

    def _ignored(self, instruction: Instruction) -> None:
        missing = "ptxas leaves setmaxnreg out where it cannot know the registers at launch"
        mend = "say .maxnreg, or .minnctapersm beside .reqntid"
        finding = Finding("registers", "no", None, instruction.place, missing, mend, "warning")
        if self.machine.checker is not None:
            self.machine.launch.reports.add(finding)

    def report(self, stuck: StuckWarps) -> None:
        """Who waits for registers, for the deadlock report."""
        for warp, cta, instruction in self.waiting:
            more = 32 * (_count(instruction) - int(self.held[warp, cta]))
            stuck.add(
                cta, [warp], f"at {instruction.place}: waits for {more} registers; the pool of "
                f"the CTA, launched with {self.at_launch} a thread, has {int(self.free[cta])}",
            )  # fmt: skip

    def check(self) -> None:
        """At the end of the CTAs: EmulatorError if not all warps of a warpgroup have asked for the
        same."""
        if self.site is None:
            return
        whole = self.held[: self.held.shape[0] // 4 * 4].reshape(-1, 4, self.held.shape[1])
        if (whole != whole[:, :1]).any():
            raise EmulatorError(
                "the warps of a warpgroup do not all ask setmaxnreg for the same",
                self.site.place, "registers",
            )  # fmt: skip


def _count(instruction: Instruction) -> int:
    (count,) = instruction.operands
    return int(count.value) if isinstance(count, Immediate) else 0


def emit_setmaxnreg(instruction: Instruction, writer: Writer) -> None:
    """Ends a block: the scheduler lets warps wait."""
    if instruction.modifiers not in (
        ("inc", "sync", "aligned", "u32"), ("dec", "sync", "aligned", "u32"),
    ):  # fmt: skip
        raise writer.unsupported("modifiers")
    if _count(instruction) % _STEP or not _LEAST <= _count(instruction) <= _MOST:
        raise writer.unsupported("a register count that is no multiple of 8 in 24..256")
    returns(instruction, writer)


RULES = {"setmaxnreg": emit_setmaxnreg}
