"""PTX as people compare it: without what differs between machines, and with registers that keep
their names where code in front of them changes.

    mov.u32   %r17, %tid.x;              mov.u32   %mov1, %tid.x;
    shr.u32   %r18, %r17, 5;      ->     shr.u32   %shr1, %mov1, 5;
  $L__BB0_3:                           $L__BB0_3:
    add.s32   %r19, %r18, 1;             add.s32   %3.add1, %shr1, 1;

A register is called after the block and the instruction that define it first, and counted among
those of its block. One more comparison of rows in front of a loop changed 712 lines of a product's
file as LLVM numbers registers, and 90 so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

_LABEL = re.compile(r"\$L__BB\d+_(\d+):")
_NOISE = re.compile(r"\s*\.(?:loc|file|reg)\b|\$L__(?:tmp|func_begin|func_end)\d*:")
_INSTRUCTION = re.compile(r"\s*(?:@!?%\w+\s+)?([a-z]\w*)[\w.:]*\s+(.*)")
_REGISTER = re.compile(r"%[a-z]+\d+\b")


def readable(ptx: str) -> str:
    """PTX without comments, blank lines and debug information, its registers renamed."""
    code = re.split(r"^\s*\.section\b", ptx, maxsplit=1, flags=re.MULTILINE)[0]
    stripped = (line.partition("//")[0].rstrip() for line in code.splitlines())
    joined = re.sub(r"([\w,}])\n\t\t", r"\1 ", "\n".join(line for line in stripped if line))
    lines = [line for line in joined.splitlines() if not _NOISE.match(line)]
    names: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for prefix, word, register in _definitions(lines):
        if register not in names:
            counts[prefix + word] += 1
            names[register] = f"%{prefix}{word}{counts[prefix + word]}"
    renamed = (_REGISTER.sub(lambda found: names.get(found[0], found[0]), line) for line in lines)
    return "\n".join(renamed) + "\n"


def _definitions(lines: list[str]) -> Iterator[tuple[str, str, str]]:
    """The block, as a prefix, the instruction's first word, and the register, in their order."""
    prefix = ""
    for line in lines:
        label = _LABEL.match(line)
        if label:
            prefix = f"{label[1]}."
        instruction = _INSTRUCTION.match(line)
        if instruction:
            first = re.match(r"\{[^}]*\}|[^,;\[]*", instruction[2])
            for register in _REGISTER.findall(first[0] if first else ""):
                yield prefix, instruction[1], register
