"""Cut PTX text into tokens, each with its line; comments and DWARF sections fall away."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from tilec.runtime.emulator.errors import PtxError

_TOKEN = re.compile(
    r"""
    (?P<skip>[ \t\r]+|//[^\n]*|/\*.*?\*/)
  | (?P<newline>\n)
  | (?P<number>0[fF][0-9a-fA-F]{8}(?![0-9a-fA-F])|0[dD][0-9a-fA-F]{16}
       |0[xX][0-9a-fA-F]+U?|0[bB][01]+U?
       |\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|\d+U?)
  | (?P<word>[%$.A-Za-z_](?:[\w$.%]|::)*)
  | (?P<string>"[^"]*")
  | (?P<punctuation>[{}()\[\],;:@!|+\-<>=*])
    """,
    re.VERBOSE | re.DOTALL,
)
_SECTION = re.compile(r"^\s*\.section\s+[.\w]+\s*\{[^}]*\}", re.MULTILINE)


@dataclass(frozen=True)
class Token:
    """One token. kind: number, word, string or punctuation."""

    kind: str
    text: str
    line: int


def tokenize(text: str) -> list[Token]:
    """Tokens of a PTX text in order. Raises PtxError at the first character that fits nothing."""
    text = _SECTION.sub(lambda match: "\n" * match.group().count("\n"), text.rstrip("\0 \n"))
    tokens: list[Token] = []
    line, position = 1, 0
    match = _TOKEN.match
    while position < len(text):
        found = match(text, position)
        if found is None:
            raise PtxError(f"unexpected character {text[position]!r}", line)
        kind, piece = found.lastgroup, found.group()
        position = found.end()
        if kind == "newline":
            line += 1
        elif kind == "skip":
            line += piece.count("\n")
        else:
            tokens.append(Token(str(kind), piece, line))
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
