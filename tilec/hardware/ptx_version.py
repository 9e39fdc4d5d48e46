"""The PTX ISA version that a text needs: the lowest, so that as many drivers as can take it do.

`needed` asks for the instructions alone; what an author wrote in `tl.inline_ptx` counts, too. A
driver takes the version of its own CUDA release and every earlier one.
"""

from __future__ import annotations

import re
from functools import lru_cache

from tilec.hardware.ptx_forms import (
    ANYWHERE,
    FEATURES,
    FEATURES_OF_WORDS,
    FIRST,
    FORMS,
    KNOWN,
    LATER,
    SHAPES,
)
from tilec.hardware.target import PTX_VERSIONS, Feature, Target
from tilec.messages.diagnostics import CompileError, Location
from tilec.records import dataclass

NEWEST = PTX_VERSIONS[-1]
"""What tilec prints at most, and takes an instruction for that it does not know."""

_RELEASES = {
    (11, 8): 78, (12, 0): 80, (12, 1): 81, (12, 2): 82, (12, 3): 83, (12, 4): 84, (12, 5): 85,
    (12, 6): 85, (12, 7): 86, (12, 8): 87, (12, 9): 88, (13, 0): 90,
}  # fmt: skip
"""PTX ISA version of a CUDA release ("Release Notes", "PTX Release History")."""

# Both begin with characters, not with `^` or `\b`, at which Python's search looks everywhere.
_NAME = re.compile(r"[\n;{}:]\s*(?:@!?[%\w$]+\s+)?([a-z][\w.]*(?:::[\w.]+)*)(?=[\s;])")
"""Names of instructions, in a text behind a line's end."""
_GIVEN = re.compile(
    r"((?:cp\.async\.c[ag]|min(?<!\wmin)|max(?<!\wmax)|mbarrier\.arrive)\.[\w.]*(?:::[\w.]*)*)"
    r"\s([^;]*);"
)
"""Instructions that are other forms by what they are given."""
_SHAPE = re.compile(SHAPES)
_WORDS = KNOWN | {word for row in FORMS for word in row.split(".")}
_WORDS |= {word for forms in (*FORMS.values(), ANYWHERE) for f in forms for word in f.split(".")}


@dataclass(frozen=True)
class Need:
    """An instruction of a text, and the version (times ten) that brought it."""

    version: int
    instruction: str


def needed(ptx: str, target: Target) -> Need:
    """Finds what of a text needs the highest version, which is at least the target's lowest."""
    found = {(name, "") for name in instructions(ptx)}
    found |= {(match[1], _given(*match.groups())) for match in _GIVEN.finditer(ptx)}
    needs = [Need(_version(*f, target.name), " with ".join(filter(None, f))) for f in found]
    highest = max(needs, key=lambda need: (need.version, need.instruction), default=None)
    if highest is None or highest.version <= target.lowest_ptx:
        return Need(target.lowest_ptx, f".target {target.name}")
    return highest


def check_needed(ptx: str, target: Target, version: int) -> None:
    """CompileError at the line of the program whose instruction `version` does not have."""
    need = needed(ptx, target)
    if need.version > version:
        raise CompileError(
            f"{need.instruction} needs PTX ISA {shown(need.version)}, the program is compiled for "
            f"{shown(version)}",
            _source(ptx, need.instruction),
            [f"help: drivers of CUDA {release_with(need.version)} and later take it"],
        )


def newest_of_driver(cuda_version: int) -> int:
    """The highest version of `PTX_VERSIONS` that a driver takes; `cuda_version` as
    cuDriverGetVersion gives it (12040)."""
    release = (cuda_version // 1000, cuda_version % 1000 // 10)
    return max((ptx for known, ptx in _RELEASES.items() if known <= release), default=FIRST)


def release_with(version: int) -> str:
    """The first CUDA release whose driver takes a version ("12.8"); "11.8" for all before."""
    return "{}.{}".format(*min(release for release, ptx in _RELEASES.items() if ptx >= version))


def feature_of(instruction: str) -> Feature | None:
    """Finds the feature, which not every target has, that an instruction needs of the hardware."""
    words = instruction.split(".")
    for count in range(len(words), 0, -1):
        if (head := ".".join(words[:count])) in FEATURES:
            return FEATURES[head]
    return next((FEATURES_OF_WORDS[w] for w in words if w in FEATURES_OF_WORDS), None)


def instructions(text: str) -> set[str]:
    """The names of the instructions in a text."""
    return set(_NAME.findall(f"\n{text}"))


def printed_version(ptx: str) -> int:
    """The version (times ten) that a text says it is of."""
    ((major, minor),) = re.findall(r"^\.version (\d+)\.(\d+)", ptx, re.MULTILINE)
    return int(major) * 10 + int(minor)


def shown(version: int) -> str:
    """A version as PTX writes it."""
    return f"{version // 10}.{version % 10}"


def _given(name: str, operands: str) -> str:
    """Finds what of its operands makes an instruction another form."""
    if name.startswith("cp."):
        fourth = operands.split(",")[3:]
        if not fourth or "cache_hint" in name:
            return ""
        return "" if re.match(r"\s*(%r|\d)", fourth[0]) else "ignore-src"
    if name.startswith("m") and name[1] != "b":
        return "three inputs" if operands.count(",") == 3 else ""
    return "sink" if operands.lstrip().startswith("_") else ""


@lru_cache(maxsize=4096)
def _version(name: str, given: str, target: str) -> int:
    """The version of an instruction of that name; NEWEST where the table does not know it."""
    words = name.split(".")
    if words[0] not in KNOWN or not all(w in _WORDS or _SHAPE.fullmatch(w) for w in words):
        return NEWEST
    heads = [".".join(words[: n + 1]) for n in range(len(words))]
    opcode = next((head for head in reversed(heads) if head in FORMS), "")
    forms = FORMS.get(opcode, {})
    here = {"", given} | {f for f in {*forms, *ANYWHERE} if f".{f}." in f"{name}."}
    return max(LATER.get((target, opcode, f), forms.get(f, ANYWHERE.get(f, FIRST))) for f in here)


def _source(ptx: str, instruction: str) -> Location | None:
    """The line of the author's source that the first such instruction of a text comes from."""
    name, _, given = instruction.partition(" with ")
    ptx = f"\n{ptx}"
    matches = _GIVEN.finditer(ptx) if given else _NAME.finditer(ptx)
    at = next(m.start(1) for m in matches if m[1] == name and (not given or _given(*m.groups())))
    files = dict(re.findall(r'^\s*\.file\s+(\d+) "([^"]*)"', ptx, re.MULTILINE))
    lines = re.findall(r"^\s*\.loc\s+(\d+) (\d+) (\d+)", ptx[:at], re.MULTILINE)
    for file, line, column in reversed(lines):
        if int(line) and file in files:
            return Location(files[file], int(line), max(1, int(column)))
    return None
