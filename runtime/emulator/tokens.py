"""Cut PTX text into tokens, each with its line; comments and DWARF sections fall away."""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

from tilec.runtime.emulator.errors import PtxError

_TOKEN = re.compile(
    r"""
    (?P<word>[%$.A-Za-z_][\w$.%]*(?:::[\w$.%]*)*)
  | (?P<punctuation>[{}()\[\],;:@!|+\-<>=*])
  | (?P<number>0[fF][0-9a-fA-F]{8}(?![0-9a-fA-F])|0[dD][0-9a-fA-F]{16}
       |0[xX][0-9a-fA-F]+U?|0[bB][01]+U?
       |\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|\d+U?)
  | (?P<comment>//.*)
  | (?P<string>"[^"]*")
  | (?P<unknown>\S)
    """,
    re.VERBOSE,
)
_DROPPED = re.compile(r"^\s*\.section\s+[.\w]+\s*\{[^}]*\}|/\*.*?\*/", re.MULTILINE | re.DOTALL)


class Token(NamedTuple):
    """One token. kind: number, word, string or punctuation."""

    kind: str
    text: str
    line: int


def tokenize(text: str) -> list[Token]:
    """Tokens of a PTX text in order. Raises PtxError at the first character that fits nothing."""
    text = _DROPPED.sub(lambda match: "\n" * match.group().count("\n"), text.rstrip("\0 \n"))
    tokens: list[Token] = []
    append, find, make = tokens.append, _TOKEN.finditer, tuple.__new__  # half of Token()'s time
    for number_of_line, line in enumerate(text.split("\n"), 1):
        for found in find(line):
            kind = found.lastgroup
            if kind == "comment":
                break
            if kind == "unknown":
                raise PtxError(f"unexpected character {found.group()!r}", number_of_line)
            append(make(Token, (kind, found[0], number_of_line)))
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
