"""Splitting a test file, and `// expected-error {{...}}` comments: what `tilec opt` offers tests.

The comments are MLIR's: `expected-error` or `expected-note`, with `-re` for a regular expression;
the line is the comment's own, or `@above`, `@below`, `@+2`, `@-1`, or `@unknown` for no position.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tilec.messages.diagnostics import CompileError, Location
from tilec.records import dataclass

SEPARATOR = "// -----"


def split_input(text: str) -> list[str]:
    """The parts between separator lines; each keeps its line numbers by empty lines before it."""
    parts: list[str] = []
    start = 0
    lines = text.split("\n")
    for number, line in enumerate([*lines, SEPARATOR]):
        if line.rstrip() == SEPARATOR:
            parts.append("\n" * start + "\n".join(lines[start:number]))
            start = number + 1
    return parts


def check_expectations(text: str, name: str, errors: Sequence[CompileError]) -> list[CompileError]:
    """Lists what differs between the `// expected-error` comments of a text and the errors it
    gave."""
    try:
        expected = _find(text, name)
    except CompileError as error:
        return list(error.errors)
    flat = [single for error in errors for single in error.errors]
    return _unmet(expected, flat)


@dataclass(frozen=True)
class Expectation:
    """A diagnostic a test announces at a line (None: without position); `at` is the comment's."""

    kind: str
    line: int | None
    pattern: re.Pattern[str]
    text: str
    at: Location

    def fits(self, kind: str, line: int | None, message: str) -> bool:
        """Whether the comment announces that diagnostic."""
        return kind == self.kind and line == self.line and bool(self.pattern.search(message))


_COMMENT = re.compile(
    r"expected-(?P<kind>error|note)(?P<re>-re)?\s*(?:@(?P<at>above|below|unknown|[+-]\d+)\s*)?"
    r"\{\{(?P<text>.*?)\}\}(?!\})"
)
_LOOKS_LIKE_ONE = re.compile(r"//.*expected-(?:error|note|warning|remark)")


def _find(text: str, name: str) -> list[Expectation]:
    """The announced diagnostics of a text. CompileError for a comment that does not read."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        matches = list(_COMMENT.finditer(line))
        start = _LOOKS_LIKE_ONE.search(line)
        if start and not matches:
            raise CompileError(
                "malformed expectation; write e.g. '// expected-error @below {{text}}'",
                Location(name, number, start.start() + 1),
            )
        for match in matches:
            words = match["text"] if match["re"] else re.escape(match["text"])
            position = Location(name, number, match.start() + 1)
            where = _line(match["at"], number)
            found.append(
                Expectation(match["kind"], where, re.compile(words), match["text"], position)
            )
    return found


def _line(at: str | None, own: int) -> int | None:
    if at == "unknown":
        return None
    if at in _OFFSETS:
        return own + _OFFSETS[at]
    return own + int(at or 0)


_OFFSETS = {"above": -1, "below": 1}


def _unmet(expected: list[Expectation], errors: list[CompileError]) -> list[CompileError]:
    """Lists what differs between announced and found: every error must be announced, notes may
    be."""
    missing = list(expected)
    wrong = []
    for error in errors:
        if not _strike(missing, "error", error.location, error.message):
            wrong.append(CompileError(f"unexpected error: {error.message}", error.location))
        for text, location in _notes(error):
            _strike(missing, "note", location or error.location, text)
    for left in missing:
        wrong.append(CompileError(f"expected {left.kind} was not given: {left.text}", left.at))
    return wrong


def _strike(missing: list[Expectation], kind: str, location: Location | None, message: str) -> bool:
    line = None if location is None else location.line
    for expectation in missing:
        if expectation.fits(kind, line, message):
            missing.remove(expectation)
            return True
    return False


def _notes(error: CompileError) -> Iterator[tuple[str, Location | None]]:
    for note in error.notes:
        yield (note, None) if isinstance(note, str) else note
