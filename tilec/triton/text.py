"""Cutting TTIR's text: parts at the top level of brackets, types, attributes, locations."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from tilec.messages.diagnostics import Location
from tilec.triton.program import Type

_OPEN, _CLOSE = "([{<", ")]}>"
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


@functools.cache
def _marks(separator: str) -> re.Pattern[str]:
    """What decides where a separator stands: strings, arrows, itself, brackets."""
    return re.compile(rf'{_STRING.pattern}|"|{re.escape(separator)}|->|[()\[\]{{}}<>]')


def _places(text: str, separator: str) -> Iterator[int]:
    """Where a separator stands outside of brackets and strings."""
    depth = 0
    for match in _marks(separator).finditer(text):
        mark = match[0]
        if mark == separator:
            if depth == 0:
                yield match.start()
        elif mark == '"':  # a string that does not end
            return
        elif mark in _OPEN:
            depth += 1
        elif mark in _CLOSE:
            depth -= 1


def split(text: str, separator: str = ",") -> list[str]:
    """The parts of a list, without blanks around them."""
    parts, start = [], 0
    for at in _places(text, separator):
        parts.append(text[start:at].strip())
        start = at + len(separator)
    last = text[start:].strip()
    return [*parts, last] if last else parts


def cut_last(text: str, separator: str) -> tuple[str, str]:
    """What stands before and behind the last `separator` at the top level; "" if there is none."""
    if separator not in text:
        return text, ""
    found = list(_places(text, separator))
    if not found:
        return text, ""
    return text[: found[-1]], text[found[-1] + len(separator) :]


def bracketed(text: str, at: int) -> int:
    """The place behind the bracket that closes the one at `at`."""
    depth = 0
    while at < len(text):
        letter = text[at]
        if letter == '"':
            match = _STRING.match(text, at)
            at = match.end() if match else len(text)
            continue
        depth += letter in _OPEN
        depth -= letter in _CLOSE and not (letter == ">" and text[at - 1] == "-")
        at += 1
        if depth == 0:
            return at
    raise ValueError("a bracket is not closed")


@functools.lru_cache(1 << 12)
def parse_type(text: str) -> Type:
    """`tensor<64x!tt.ptr<f32>>`, `i32`, `!tt.ptr<f16>`; what it does not know stays an element."""
    text = text.strip()
    if not text.startswith("tensor<"):
        return Type(text)
    inside = text[len("tensor<") : -1]
    sizes = re.match(r"(?:\d+x)*", inside)
    assert sizes
    shape = tuple(int(size) for size in sizes[0].split("x")[:-1])
    return Type(inside[sizes.end() :], shape)


def parse_types(text: str) -> list[Type]:
    """A list of types, in parentheses or not, separated by commas, `*` or the like."""
    text = text.strip()
    if text.startswith("(") and bracketed(text, 0) == len(text):
        text = text[1:-1]
    return [parse_type(t) for part in split(text) for t in split(part, " * ")]


def parse_attributes(text: str) -> dict[str, str]:
    """`axis = 1 : i32, pure` between braces, as texts by name."""
    entries = (split(part, " = ") for part in split(text))
    return {e[0].strip('"'): " = ".join(e[1:]) for e in entries}


_LOCATION_AT = re.compile(r'^"((?:[^"\\]|\\.)*)":(\d+):(\d+)$')
_NAMED = re.compile(r'^"((?:[^"\\]|\\.)*)"(?:\((.*)\))?$')


class Locations:
    """The `#loc3 = loc(...)` of a file: which line of the author's a location means.

    Of a call site it is the innermost place, where the op was written; of a fused one the first.
    """

    def __init__(self, lines: list[str]) -> None:
        found = (re.match(r"^(#loc\d*) = loc\((.*)\)$", line.strip()) for line in lines)
        self._named = {match[1]: match[2] for match in found if match}
        self._found: dict[str, Location | None] = {}

    def find(self, text: str, depth: int = 0) -> Location | None:
        """The place of what stands in `loc(...)`; None where it is unknown."""
        if text not in self._found:
            self._found[text] = self._find(text.strip(), depth)
        return self._found[text]

    def _find(self, text: str, depth: int) -> Location | None:
        if depth > len(self._named) + 8:
            return None  # a location that is made of itself
        if text.startswith("#"):
            return self.find(self._named.get(text, ""), depth + 1)
        if match := _LOCATION_AT.match(text):
            return Location(match[1], int(match[2]), int(match[3]))
        if text.startswith("callsite("):
            return self.find(split(text[len("callsite(") : -1], " at ")[0], depth + 1)
        if text.startswith("fused"):
            inside = split(text[text.index("[") + 1 : -1])
            return next(filter(None, (self.find(part, depth + 1) for part in inside)), None)
        match = _NAMED.match(text)
        return self.find(match[2], depth + 1) if match and match[2] else None

    def name(self, text: str) -> str | None:
        """The name that a location gives: an argument's is that of the parameter."""
        match = _NAMED.match(self._named.get(text.strip(), text))
        return match[1] if match else None


def cut_locations(text: str) -> tuple[str, list[str]]:
    """A line without its `loc(...)`, and what stood in them."""
    found: list[str] = []
    while match := re.search(r"\s*\bloc\(", text):
        if text.count('"', 0, match.start()) % 2:
            break  # inside a string
        end = bracketed(text, match.end() - 1)
        found.append(text[match.end() : end - 1])
        text = text[: match.start()] + text[end:]
    return text, found
