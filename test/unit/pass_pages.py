"""Pages of documentation whose blocks are what the passes print, shortened."""

from __future__ import annotations

import itertools
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilec.call.jit import Kernel
from tilec.messages.report import show_report

BLOCK = re.compile(r"^## ([a-z0-9-]+)$.*?^```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
"""A section: its name, and its first block."""


@dataclass(frozen=True)
class Dump:
    """Lines of the program behind a pass, those that match `pattern`.

    `start`, `end`: matches of the first and the last line to look at, all of the kernel without.
    """

    stage: str
    pattern: str
    start: str = ""
    end: str = ""

    def block(self, dumps: dict[str, str], compiled: Any) -> str:
        """The lines, indented by loops, gaps as three dots."""
        dump = dumps[self.stage]
        body = dump[dump.index("func.func") : dump.rindex("return")].split("\n")[1:]
        lines = list(filter(None, map(shortened, body)))
        if self.start:
            lines = lines[next(i for i, line in enumerate(lines) if re.search(self.start, line)) :]
        if self.end:
            lines = lines[
                : next(i for i, line in enumerate(lines) if re.search(self.end, line)) + 1
            ]
        return kept(lines, self.pattern)


@dataclass(frozen=True)
class Opcodes:
    """The PTX instructions whose names start with `pattern`, in order, repetitions counted."""

    pattern: str

    def block(self, dumps: dict[str, str], compiled: Any) -> str:
        """One line for each run of an opcode."""
        opcode = re.compile(rf"^(?:@\S+ +)?((?:{self.pattern})[\w.:]*)")
        matches = (opcode.match(line.strip()) for line in compiled.ptx.split("\n"))
        runs = itertools.groupby(match[1] for match in matches if match)
        return "".join(f"{len(list(run)):2} {name}\n" for name, run in runs)


@dataclass(frozen=True)
class Report:
    """The decisions about anything that matches `pattern`, without positions."""

    pattern: str = ""

    def block(self, dumps: dict[str, str], compiled: Any) -> str:
        """One decision a line, with its layout below."""
        *lines, _ = show_report(compiled.report).split("\n")  # the last has times
        decisions = [re.sub(r"^\S+:\d+:\d+: ", "", line) for line in lines]
        return "".join(f"{line}\n" for line in decisions if re.search(self.pattern, line))


@dataclass(frozen=True)
class Program:
    """A kernel and what the page's sections show of it."""

    kernel: Kernel
    specs: Sequence[str]
    constants: dict[str, Any]
    target: str
    sections: dict[str, Dump | Opcodes | Report] = field(default_factory=dict)

    def blocks(self) -> dict[str, str]:
        """What each section is to show."""
        with tempfile.TemporaryDirectory() as directory:
            compiled = self.kernel.compile(
                self.specs, self.constants, target=self.target, dump_dir=directory
            )
            paths = Path(directory).glob("*.mlir")
            dumps = {path.stem.partition("-")[2]: path.read_text() for path in paths}
        return {name: shown.block(dumps, compiled) for name, shown in self.sections.items()}


@dataclass(frozen=True)
class Page:
    """A file and the programs it follows."""

    path: Path
    programs: Sequence[Program]

    @property
    def sections(self) -> list[str]:
        """Names of the sections that have blocks."""
        return [name for program in self.programs for name in program.sections]

    def expected(self) -> dict[str, str]:
        """What each section is to show."""
        return {
            name: block for program in self.programs for name, block in program.blocks().items()
        }

    def written(self) -> dict[str, str]:
        """What each section shows."""
        return dict(BLOCK.findall(self.path.read_text()))

    def rewrite(self) -> None:
        """Writes the blocks anew."""
        expected = self.expected()

        def replaced(match: re.Match[str]) -> str:
            head = match[0][: match.start(2) - match.start()]
            return f"{head}{expected[match[1]]}```"

        self.path.write_text(BLOCK.sub(replaced, self.path.read_text()))


def shortened(line: str) -> str:
    """A line of a dump without positions and, but for buffers, without types."""
    line = re.sub(r" loc\(.*$", "", line).strip()
    if "gpu_tile.alloc" in line:
        return line
    line = re.sub(r"^(.*scf\.while .*) : \(.*\{$", r"\1 {", line).partition(" : (")[0]
    line = re.sub(r"( -> \(.*\))?( *: i32)? \{$", " {", line)
    return re.sub(r" : (index|i32|i1|tensor<.*|memref<.*|!gpu_tile\.pending<.*)$", "", line)


def kept(lines: Sequence[str], pattern: str) -> str:
    """The lines that match, indented by loops, gaps as three dots."""
    found: list[str] = []
    depth = 0
    for line in lines:
        if not re.search(pattern, line):
            if found and found[-1].strip() != "...":
                found.append("  " * depth + "...")
            continue
        depth -= line.startswith("}")
        found.append("  " * depth + line)
        depth += line.endswith("{")
    return "\n".join(found[:-1] if found[-1].strip() == "..." else found) + "\n"
