"""Errors and findings of the emulator: what went wrong, at which line of PTX and of the source."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SourceLocation:
    """A place in the kernel's own source, taken from the PTX `.loc` directives."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(slots=True, unsafe_hash=True)  # not frozen: these are made by the thousand
class Place:
    """Where an instruction stands: the line of the PTX text and, if `.loc` told, of the source.

    `words`: the instruction's, or the text of its line as one.
    """

    ptx_line: int
    source: SourceLocation | None
    words: tuple[str, ...]

    @property
    def text(self) -> str:
        """The instruction on one line."""
        text = " ".join(" ".join(self.words).partition(";")[0].split())
        for mark in (",", ";", "]", ")", "|"):
            text = text.replace(f" {mark}", mark)
        for mark in ("[ ", "( "):
            text = text.replace(mark, mark[0])
        return text.replace("@ ", "@").replace("! ", "!").replace("| ", "|").replace(" + ", "+")

    def __str__(self) -> str:
        source = f"{self.source} " if self.source else ""
        return f"{source}(PTX line {self.ptx_line}: {self.text})"


class PtxError(ValueError):
    """The PTX text cannot be read; `ptx_line` is the line of the text (from 1)."""

    def __init__(self, message: str, ptx_line: int) -> None:
        super().__init__(f"PTX line {ptx_line}: {message}")
        self.ptx_line = ptx_line


class UnsupportedInstruction(PtxError):
    """The PTX is (or may be) right, but the emulator has no meaning for this instruction."""

    def __init__(self, reason: str, place: Place) -> None:
        super().__init__(f"unsupported: {reason} in `{place.text}`", place.ptx_line)
        self.place = place


MENDS = {
    "error": "correct the kernel",
    "out of bounds": "mask the access, or make the array larger",
    "misaligned": "align the address to the size of the access",
    "deadlock": "let every warp that is waited for arrive",
    "step limit": "let the loop end, or allow more steps if the kernel is merely long",
    "assertion": "the kernel's own condition does not hold",
    "divergence": "let all lanes of the warp reach the instruction together",
    "mbarrier": "initialise the mbarrier, and arrive as often as its count says",
    "tensor map": "pass the address of a .param that holds a tensor map of the copy's rank",
    "slot": "let the index stay below the number of slots, as gpu.ring_position does",
    "tensor memory": "allocate before use, free before the end, stay in the warp's own lanes",
    "descriptor": "encode the matrix descriptor as the PTX ISA says",
    "registers": "let whole warpgroups ask: .dec for no more than they have, .inc for no less",
    "ended CTA": "let the cluster meet (barrier.cluster, not .relaxed) behind the last access",
    "cluster barrier": "let each thread arrive, then wait, in turn",
    "barrier": "use one count, a multiple of 32, for all arrivals of a phase",
}


class EmulatorError(RuntimeError):
    """The running kernel did something a GPU would not survive, or an assertion of it failed."""

    is_mistake = True

    def __init__(self, message: str, place: Place | None = None, kind: str = "error") -> None:
        super().__init__(f"{message}, at {place}" if place else message)
        self.message = message
        self.place = place
        self.kind = kind

    def finding(self) -> Finding:
        """The error as check mode reports it."""
        return Finding(self.kind, self.memory, None, self.place, self.message, MENDS[self.kind])

    @property
    def memory(self) -> str:
        for name in ("shared", "local"):
            if self.message.startswith((f"{name} memory", f"misaligned {name}")):
                return name
        return "global" if "argument" in self.message else "no"


@dataclass(frozen=True)
class Finding:
    """One synchronisation or memory mistake seen in check mode.

    kind:   the rule broken, e.g. "race", "uninitialised read", "divergent barrier".
    memory: "shared", "global", "mbarrier", "tensor memory" ...
    second: the access that showed the mistake; first: the earlier one it collides with.
    missing: the order that is not there; mend: what would establish it.
    """

    kind: str
    memory: str
    first: Place | None
    second: Place | None
    missing: str
    mend: str
    severity: str = "error"

    def __str__(self) -> str:
        where = [str(place) for place in (self.first, self.second) if place]
        memory = self.memory if self.memory.endswith("memory") else f"{self.memory} memory"
        what = {"no": self.kind, "register": f"{self.kind} on registers"}.get(
            self.memory, f"{self.kind} on {memory}"
        )
        return f"{self.severity}: {what}: {' against '.join(where)}: {self.missing}; {self.mend}"
