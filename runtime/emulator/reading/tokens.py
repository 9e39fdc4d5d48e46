"""Cut PTX text into tokens, each with its line; comments and DWARF sections fall away.

An instruction that has a line to itself, as compilers print them, is one token: most of a text. A
comment `//@emulator INSTRUCTION;` is an instruction that only the emulator executes
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
_OPERAND = r"(?:\{[^{}\[\];\"/]*\}|\[[^\[\];\"/]*\]|[^\s,;:{}()\[\]\"/@<>=*]+)"
_OPERANDS = re.compile(_OPERAND)
_STATEMENT = re.compile(
    r"\s*(?:@(!?[%$.A-Za-z_][\w$.%]*)\s+)?"  # guard
    r"(?!call\b)([a-z]\w*(?:\.\w+(?:::\w+)*)*)"  # opcode and modifiers
    rf"(?:\s+({_OPERAND}(?:,\s*{_OPERAND})*))?\s*;\s*"
)
_LOC = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)\s*(?://.*)?")
_ENDS = frozenset("{};:")
_WHOLE = frozenset(("statement", "loc"))
"""Texts and kinds of tokens behind which a statement begins."""
_DROPPED = re.compile(r"^\s*\.section\s+[.\w]+\s*\{[^}]*\}|/\*.*?\*/", re.MULTILINE | re.DOTALL)

_OWN = "//@emulator "


class Token(NamedTuple):
    """One token. kind: number, word, string or punctuation."""

    kind: str
    text: str
    line: int


class Statement(NamedTuple):
    """An instruction that is all of a line, and the texts of its parts. kind: statement."""

    kind: str
    text: str
    line: int
    guard: str | None
    name: str
    operands: str | None


class Loc(NamedTuple):
    """`.loc file line column` that is all of a line `text`. kind: loc."""

    kind: str
    text: str
    line: int


def tokenize(text: str) -> list[Token | Statement | Loc]:
    """Tokens of a PTX text in order. Raises PtxError at the first character that fits nothing."""
    text = text.replace(_OWN, "")
    text = _DROPPED.sub(lambda match: "\n" * match.group().count("\n"), text.rstrip("\0 \n"))
    tokens: list[Token | Statement | Loc] = []
    begins = False
    for number_of_line, line in enumerate(text.split("\n"), 1):
        if begins and (whole := _whole(line, number_of_line)):
            tokens.append(whole)
            continue
        _cut(line, number_of_line, tokens)
        if tokens:
            begins = tokens[-1].kind in _WHOLE or tokens[-1].text in _ENDS
    return tokens


def cut(text: str, line: int) -> list[Token | Statement | Loc]:
    """Tokens of a part of a line. Raises PtxError."""
    tokens: list[Token | Statement | Loc] = []
    _cut(text, line, tokens)
    return tokens


def operand_texts(operands: str) -> list[str]:
    """The operands of a `Statement`, one by one."""
    return _OPERANDS.findall(operands)


def _whole(text: str, line: int) -> Statement | Loc | None:
    """The token of a line that is one instruction or `.loc`."""
    if found := _STATEMENT.fullmatch(text):
        return Statement("statement", text, line, *found.groups())
    if ".loc" in text and _LOC.fullmatch(text):
        return Loc("loc", text, line)
    return None


def _cut(text: str, line: int, tokens: list[Token | Statement | Loc]) -> None:
    """Adds the tokens of a line or of a part of one."""
    append, kinds, make = tokens.append, _KINDS, tuple.__new__  # half of Token()'s time
    for found in _TOKEN.findall(text):
        kind = kinds.get(found[0])
        if kind is not None:
            append(make(Token, (kind, found, line)))
        elif len(found) > 1 and found[0] == '"':
            append(Token("string", found, line))
        elif not found.startswith("//"):
            raise PtxError(f"unexpected character {found!r}", line)


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
