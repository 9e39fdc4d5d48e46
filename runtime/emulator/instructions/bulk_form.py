"""What the modifiers of a bulk copy say (PTX ISA 9.7.9.25.4 and .5)."""

from __future__ import annotations

from tilec.runtime.emulator.numbers.scalar_types import TYPES
from tilec.runtime.emulator.reading.instruction import Instruction
from tilec.runtime.emulator.writing.writer import Writer

_REDUCTIONS = {"add", "min", "max", "inc", "dec", "and", "or", "xor"}
_HINTS = {"L2::cache_hint", "tile", "bulk_group", "mbarrier::complete_tx::bytes", "noftz"}
_SPACES = {"global", "shared::cta", "shared::cluster"}


class BulkForm:
    """What the modifiers of a bulk copy say."""

    def __init__(self, instruction: Instruction, writer: Writer) -> None:
        names = list(instruction.modifiers)
        self.reduce = "reduce" in names
        names = [name for name in names if name not in ("reduce", "async", "bulk")]
        self.rank = 0
        if names[:1] == ["tensor"]:
            self.rank = int(names[1][0]) if names[1] in ("1d", "2d", "3d", "4d", "5d") else 0
            names = names[2:]
            if not self.rank:
                raise writer.unsupported("tensor rank")
        spaces = [name for name in names if name in _SPACES]
        if len(spaces) != 2:
            raise writer.unsupported("state spaces")
        self.to, self.source = spaces
        self.operation = ""
        self.element = None
        self.multicast = False
        self.pairs = False
        self.load = self.to.startswith("shared")
        self.im2col = "im2col" in names and self.rank >= 3 and self.load
        known = _SPACES | _HINTS | ({"im2col"} if self.im2col else set())
        for name in names:
            if name in known:
                continue
            if name in _REDUCTIONS and self.reduce:
                self.operation = name
            elif name in TYPES and self.reduce and not self.rank:
                self.element = TYPES[name]
            elif name == "multicast::cluster":
                self.multicast = True
            elif name in ("cta_group::1", "cta_group::2"):
                self.pairs = name == "cta_group::2"
            else:
                raise writer.unsupported(f"modifier .{name}")
        self.signals = "mbarrier::complete_tx::bytes" in names
        self.cached = "L2::cache_hint" in names
