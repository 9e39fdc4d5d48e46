"""Ways to break one synchronisation of a PTX text: the kinds, and every mutant of a kernel."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """`pattern` finds an instruction behind its guard; `breaks` gives the broken line."""

    name: str
    pattern: str
    breaks: Callable[[str], str | None]


@dataclass(frozen=True)
class Mutant:
    """One broken line of a text, lines counted from 1."""

    kind: str
    line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.kind}, line {self.line}: {self.before}"


def _drop(_: str) -> str:
    return ""


def _narrow(_: str) -> str:
    """A meeting of one warp in place of its CTA's or role's."""
    return "bar.warp.sync 0xffffffff;"


def _weaken(line: str) -> str:
    """A wait that leaves one group more unfinished."""
    return re.sub(r"(\d+)\s*;", lambda found: f"{int(found[1]) + 1};", line)


def _pass(line: str) -> str:
    """A try_wait or test_wait that always succeeds."""
    predicate = re.search(r"wait\S*\s+([^,\s]+)\s*,", line)
    assert predicate, line
    return f"setp.eq.u32 {predicate[1]}, %tid.x, %tid.x;"


def _once(line: str) -> str:
    """A try_wait or test_wait that nobody repeats: what it returns is taken for true."""
    return f"{line} {_pass(line)}"


def _last_operand(line: str, operation: str) -> str:
    """The line with a 32-bit operation applied to its last operand."""
    head, operand = re.fullmatch(r"(.*,)\s*([^,]+?)\s*;?", line).groups()  # type: ignore[union-attr]
    guard = re.match(r"\s*(@\S+)\s", head)
    change = operation.format("broken", operand)
    body = head[guard.end() :] if guard else head
    mark = f"{guard[1]} " if guard else ""
    return f"{{ .reg .b32 broken; {change} {mark}{body} broken; }}"


def _hold(line: str) -> str:
    """A setmaxnreg that asks for 8 registers more."""
    return re.sub(r"(\d+)\s*;", lambda found: f"{int(found[1]) + 8};", line)


def _flip(line: str) -> str:
    """A wait for the other parity."""
    return _last_operand(line, "xor.b32 {0}, {1}, 1;")


def _more(line: str) -> str:
    return _last_operand(line, "add.u32 {0}, {1}, 16;")


def _less(line: str) -> str:
    return _last_operand(line, "sub.u32 {0}, {1}, 16;")


def _one_more(line: str) -> str:
    return _last_operand(line, "add.u32 {0}, {1}, 1;")


_WAIT = r"(cp\.async|wgmma|cp\.async\.bulk)\.wait_group\S*"
_PARITY = r"mbarrier\.(try|test)_wait\.parity"
_EXPECT = r"mbarrier\.(arrive\.)?expect_tx"

KINDS = (
    Kind("barrier dropped", r"(bar\.sync|barrier\.sync|barrier\.cluster)", _drop),
    Kind("barrier narrowed to a warp", r"(bar\.sync|barrier\.sync)", _narrow),
    Kind("wait dropped", rf"({_WAIT}|cp\.async\.wait_all|tcgen05\.wait)", _drop),
    Kind("wait weakened by one", rf"{_WAIT}\s+\d", _weaken),
    Kind("commit dropped", r"(cp\.async|wgmma|cp\.async\.bulk)\.commit_group", _drop),
    Kind("tcgen05.commit dropped", r"tcgen05\.commit", _drop),
    Kind("proxy fence dropped", r"fence\.proxy\.async", _drop),
    Kind("wgmma.fence dropped", r"wgmma\.fence", _drop),
    Kind("tcgen05.fence dropped", r"tcgen05\.fence", _drop),
    Kind("init fence dropped", r"fence\.mbarrier_init", _drop),
    Kind("mbarrier wait dropped", r"mbarrier\.(try|test)_wait", _pass),
    Kind("retry dropped", r"mbarrier\.(try|test)_wait", _once),
    Kind("mbarrier parity flipped", _PARITY, _flip),
    Kind("mbarrier init dropped", r"mbarrier\.init", _drop),
    Kind("mbarrier count raised", r"mbarrier\.init", _one_more),
    Kind("arrive dropped", r"mbarrier\.arrive\.(?!expect)", _drop),
    Kind("8 registers more", r"setmaxnreg(?!\S*\s+256)", _hold),
    Kind("expect dropped", _EXPECT, _drop),
    Kind("expect 16 bytes more", _EXPECT, _more),
    Kind("expect 16 bytes less", _EXPECT, _less),
)


def mutants(text: str) -> Iterator[tuple[Mutant, str]]:
    """Every mutant of a text, with the whole broken text."""
    lines = text.split("\n")
    for kind in KINDS:
        search = re.compile(rf"^\s*(@!?\S+\s+)?{kind.pattern}")
        for number, line in enumerate(lines):
            if not search.match(line):
                continue
            broken = kind.breaks(line.partition("//")[0].strip())
            mutant = Mutant(kind.name, number + 1, " ".join(line.split()), broken or "")
            yield mutant, "\n".join([*lines[:number], broken or "", *lines[number + 1 :]])
