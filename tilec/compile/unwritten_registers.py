"""Registers that PTX reads though nothing writes them become 0 at the entry.

LLVM names a register of its own where an instruction may be given anything. ptxas knows no place
for a register that is never written: behind `setmaxnreg` of N it may take R(N - 2), one of the two
that the hardware keeps of each thread's, and the GPU stops with an illegal instruction (H100 and
H200).

Before:   .reg .b32 %r<4>;
          prmt.b32 %r2, %r1, %r3, 0x1U;       (byte 1 of %r1; the others may be anything)
After:    .reg .b32 %r<4>;
          mov.b32 %r3, 0;                     (ptxas gives the instruction RZ)
          prmt.b32 %r2, %r1, %r3, 0x1U;

Does not handle: registers that only some paths write, which have a place; those of 128 bits.
"""

from __future__ import annotations

import re
from itertools import zip_longest

# Two begin with characters, not with `^`, at which Python's search looks everywhere.
_DECLARATIONS = re.compile(r"\n(?:\t\.reg \.\w+ *\t%[a-z]+<\d+>;[^\n]*\n)+")
_DECLARED = re.compile(r"\.reg \.(pred|b16|b32|b64) *\t%([a-z]+)<")
_REGISTER = re.compile(r"%[a-z]+\d+\b")
_FIRST_OPERAND = re.compile(
    r"[\n;{]\s*(?:@!?%?\w+\s+)?[a-z][\w.:]*\s+(\{[^}]*\}|\(?[^\[,;\s][^,;]*)"
)
"""What an instruction writes comes first. Where that is an address, nothing is written."""


def write_all(ptx: str) -> str:
    """Gives every register of every function a value where the text gives it none."""
    text, begin = [], 0
    found = list(_DECLARATIONS.finditer(ptx))
    for match, following in zip_longest(found, found[1:]):
        text.append(ptx[begin : match.end()])
        begin = following.start() if following else len(ptx)
        body = ptx[match.end() : begin]
        text += [*_moves(match[0], body), body]
    return "".join((*text, ptx[begin:]))


def _moves(declarations: str, body: str) -> list[str]:
    kinds = {prefix: kind for kind, prefix in _DECLARED.findall(declarations)}
    written = _REGISTER.findall(" ".join(_FIRST_OPERAND.findall(f"\n{body}")))
    unwritten = set(_REGISTER.findall(body)).difference(written)
    moves = []
    for register in sorted(unwritten, key=lambda name: (len(name), name)):
        kind = kinds.get(register.strip("%0123456789"))
        if kind is not None:
            moves.append(f"\tmov.{kind} \t{register}, 0;\n")
    return moves
