"""setmaxnreg: how many registers each warpgroup asks for (PTX ISA 9.7.19.5).

An .inc waits until the pool of the CTA has enough registers. The emulator does not wait: what the
warps of a CTA ask for in the end is added up, and must fit the 64 Ki registers of a multiprocessor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tilec.runtime.emulator.errors import EmulatorError
from tilec.runtime.emulator.execution.writer import Writer
from tilec.runtime.emulator.reading.instruction import Immediate, Instruction

if TYPE_CHECKING:
    from tilec.runtime.emulator.execution.machine import Machine

POOL = 64 << 10
_LEAST = 24


class RegisterBudgets:
    """Registers per thread that each warp ([warp][CTA]) asked for last; 0 where none was asked."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.asked = np.zeros(machine.shape[:2], np.int64)
        self.site: Instruction | None = None

    def reset(self) -> None:
        self.asked[...] = 0
        self.site = None

    def ask(self, warps: np.ndarray, count: int, instruction: Instruction) -> None:
        """Warps are lane numbers / 32."""
        self.asked.reshape(-1)[warps] = count
        self.site = instruction

    def check(self) -> None:
        """At the end of the CTAs: EmulatorError if an .inc would have waited for ever, or if not
        all warps of a warpgroup asked for the same."""
        if self.site is None:
            return
        whole = self.asked[: self.asked.shape[0] // 4 * 4].reshape(-1, 4, self.asked.shape[1])
        if (whole != whole[:, :1]).any():
            raise EmulatorError(
                "the warps of a warpgroup do not all ask setmaxnreg for the same",
                self.site.place, "registers",
            )  # fmt: skip
        given = self.machine.entry.directives.get("maxnreg", (_LEAST,))[0]
        total = 32 * np.where(self.asked > 0, self.asked, given).sum(0)
        if int(total.max()) > POOL:
            raise EmulatorError(
                f"setmaxnreg would wait for ever: the warps of a CTA ask for {int(total.max())} "
                f"registers, there are {POOL}", self.site.place, "registers",
            )  # fmt: skip


def emit_setmaxnreg(instruction: Instruction, writer: Writer) -> None:
    if instruction.modifiers not in (
        ("inc", "sync", "aligned", "u32"), ("dec", "sync", "aligned", "u32"),
    ):  # fmt: skip
        raise writer.unsupported("modifiers")
    (count,) = instruction.operands
    value = int(count.value) if isinstance(count, Immediate) else 0
    if value % 8 or not 24 <= value <= 256:
        raise writer.unsupported("a register count that is no multiple of 8 in 24..256")
    writer.begin_warps()
    budgets = writer.bind("budgets", lambda b: b.machine.register_budgets)
    site = writer.constant(instruction)
    warps = "WI"
    if not writer.lanes:
        writer.factories["warp_numbers"] = lambda b: b.lane_numbers.reshape(-1, 32)[:, 0] >> 5
        warps = "warp_numbers"
    writer.line(f"{budgets}.ask({warps}, {value}, {site})")


RULES = {"setmaxnreg": emit_setmaxnreg}
