"""Cut PTX text into tokens, each with its line; comments and DWARF sections fall away.

A comment `//@emulator INSTRUCTION;` is an instruction that only the emulator executes
(`instructions/hints.py`)."""

from __future__ import annotations

import re
import struct
from string import ascii_letters, digits
from typing import NamedTuple

from tilec.runtime.emulator.errors import PtxError

_TOKEN = re.compile(
    r"""
    [%$.A-Za-z_][\w$.%]*(?:::[\w$.%]*)*
  | [{}()\[\],;:@!|+\-<>=*]
  | 0[fF][0-9a-fA-F]{8}(?![0-9a-fA-F])|0[dD][0-9a-fA-F]{16}
  | 0[xX][0-9a-fA-F]+U?|0[bB][01]+U?
  | \d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|\d+U?
  | "[^"\n]*"
  | //.*
  | \n
  | \S
    """,
    re.VERBOSE,
)
_KINDS = {
    **dict.fromkeys("%$._" + ascii_letters, "word"),
    **dict.fromkeys("{}()[],;:@!|+-<>=*", "punctuation"),
    **dict.fromkeys(digits, "number"),
}
"""Of a token, by its first character; only strings and comments need a second look."""
_DROPPED = re.compile(r"^\s*\.section\s+[.\w]+\s*\{[^}]*\}|/\*.*?\*/", re.MULTILINE | re.DOTALL)

_OWN = "//@emulator "


class Token(NamedTuple):
    """One token. kind: number, word, string or punctuation."""

    kind: str
    text: str
    line: int


def tokenize(text: str) -> list[Token]:
    """Tokens of a PTX text in order. Raises PtxError at the first character that fits nothing."""
    text = text.replace(_OWN, "")
    text = _DROPPED.sub(lambda match: "\n" * match.group().count("\n"), text.rstrip("\0 \n"))
    tokens: list[Token] = []
    append, kinds, make = tokens.append, _KINDS, tuple.__new__  # half of Token()'s time
    line = 1
    for found in _TOKEN.findall(text):
        kind = kinds.get(found[0])
        if kind is not None:
            append(make(Token, (kind, found, line)))
        elif found == "\n":
            line += 1
        elif len(found) > 1 and found[0] == '"':
            append(Token("string", found, line))
        elif not found.startswith("//"):
            raise PtxError(f"unexpected character {found!r}", line)
    return tokens


def number(text: str) -> int | float:
    """Value of a number token; 0f/0d literals give the float with exactly those bits."""
    prefix = text[:2].lower()
    if prefix in ("0f", "0d"):
        return _float_of_bits(text)
    digits = text.rstrip("U")
    if prefix == "0x":
        return int(digits, 16)
    if prefix == "0b":
        return int(digits[2:], 2)
    if any(mark in digits for mark in ".eE"):
        return float(digits)
    return int(digits)


def _float_of_bits(text: str) -> float:
    raw = bytes.fromhex(text[2:])
    return struct.unpack(">f" if len(raw) == 4 else ">d", raw)[0]
