"""What ptxas makes of a kernel, in its report: where there is one, it is asked instead of guessed.

The compiler estimates whether a kernel's values fit its registers (`estimate-registers`); ptxas
knows, and also whether it had to wait for each warpgroup instruction by itself (its advice C7510 to
C7519). It takes as long as the compilation, so only reports ask it, each code once a process.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from tilec.compile.assembler import Assembly, assemble, locate_tool
from tilec.executable.kernel import CompiledKernel
from tilec.hardware.target import find_target

_SERIALISED = re.compile(r"\((C751\d)\)|\b(C751\d)\b")


def ask_ptxas(kernel: CompiledKernel) -> None:
    """Puts what ptxas says in the place of what was estimated, where there is a ptxas."""
    if locate_tool("ptxas") is not None:
        add_resources(kernel, _assembled(kernel.ptx, kernel.target))


def add_resources(kernel: CompiledKernel, assembly: Assembly) -> None:
    """The same for a kernel that is assembled already."""
    decisions = kernel.report["decisions"]
    estimated = [entry for entry in decisions if entry["about"] == "registers"]
    where = next((entry["at"] for entry in decisions if entry["at"]), "")
    decisions[:] = [entry for entry in decisions if entry["about"] != "registers"]
    if assembly.spills:
        where = estimated[0]["at"] if estimated else where
        why = f"ptxas, of {assembly.registers} registers a thread: values go to memory and back"
        decisions.append(_entry("registers", where, f"{assembly.spills} bytes spilled", why))
    for message in assembly.messages:
        if found := _SERIALISED.search(message):
            why = f"ptxas {found[1] or found[2]}: {message}"
            decisions.append(_entry("wgmma", where, "one at a time", why))


@lru_cache(maxsize=64)
def _assembled(ptx: str, target: str) -> Assembly:
    return assemble(ptx, find_target(target))


def _entry(about: str, at: str, chosen: str, why: str) -> dict[str, Any]:
    return {"about": about, "at": at, "chosen": chosen, "why": why}
