"""Errors as compilers print them: position, message, source line, caret, notes.

`CompileError` is the author's mistake, `InternalError` is ours. A position's column counts UTF-8
bytes from 1, as MLIR counts and as Python's `ast` counts from 0.
"""

from __future__ import annotations

import linecache
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_EXCERPT_WIDTH = 160
"""Longest piece of a source line that is shown; longer lines are cut around the caret."""

_SOURCES: dict[str, list[str]] = {}
_QUOTED: set[str] = set()


@dataclass(frozen=True, order=True)
class Location:
    """A position in a source file: `line` from 1, `column` in UTF-8 bytes from 1."""

    file: str
    line: int
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


Note = str | tuple[str, Location]
"""A line under an error; "help: ..." keeps its word, others get "note: ". May have a position."""


def register_source(name: str, text: str) -> None:
    """Makes `text` the source shown for positions in `name` (standard input, a generated file)."""
    _SOURCES[name] = text.split("\n")


def quote_file(name: str) -> None:
    """Lets positions in a file of Python be shown with its lines: it is the author's own, and was
    read to be run. A `.tile` text can name any file as the place it was made from."""
    _QUOTED.add(name)


def source_line(location: Location) -> str | None:
    """The text of the line at `location` without its end; None where the source is not known."""
    registered = _SOURCES.get(location.file)
    if registered is not None:
        inside = 1 <= location.line <= len(registered)
        return registered[location.line - 1].rstrip("\r") if inside else None
    if location.file not in _QUOTED:
        return None
    # linecache also knows the cells of IPython, and gives "" for what it cannot read.
    linecache.checkcache(location.file)
    return linecache.getline(location.file, location.line).rstrip("\r\n") or None


class CompileError(Exception):
    """A mistake in the author's program; `str()` is the whole text to print.

    `message` says what was expected and what was found. `errors` holds every error where several
    were found together (see `group`), else this one alone.
    """

    is_mistake = True

    def __init__(
        self, message: str, location: Location | None = None, notes: Sequence[Note] = ()
    ) -> None:
        super().__init__(message, location, tuple(notes))
        self.message = message
        self.location = location
        self.notes: tuple[Note, ...] = tuple(notes)
        self._others: tuple[CompileError, ...] = ()

    @classmethod
    def group(cls, errors: Iterable[CompileError]) -> CompileError:
        """Makes one error that carries several and prints them all. ValueError if there are
        none."""
        flat = [single for error in errors for single in error.errors]
        if not flat:
            raise ValueError("a group of errors needs at least one")
        first = cls(flat[0].message, flat[0].location, flat[0].notes)
        first._others = tuple(flat[1:])
        return first

    @property
    def errors(self) -> tuple[CompileError, ...]:
        """Lists every error carried, in order."""
        if not self._others:
            return (self,)
        return (CompileError(self.message, self.location, self.notes), *self._others)

    def __str__(self) -> str:
        return "\n".join(error._text() for error in self.errors)

    def _text(self) -> str:
        lines = _headed("error: ", self.message, self.location)
        for note in self.notes:
            text, location = (note, None) if isinstance(note, str) else note
            kind = "" if text.startswith(("note: ", "help: ")) else "note: "
            lines += _without_plain_caret(_headed(kind, text, location))
        return "\n".join(lines)


class DoesNotFit(CompileError):
    """A program that needs more of a memory than there is: of `memory` "shared" or "tensor"."""

    memory = "shared"


class TensorMemoryFull(DoesNotFit):
    """The same for the columns of tensor memory."""

    memory = "tensor"


class PerformanceWarning(UserWarning):
    """A program that is right and will surely be slow, for a reason its author should hear."""


class InternalError(Exception):
    """A bug in tilec, not in the author's program. `dump_path`: where the IR at fault lies."""

    def __init__(self, message: str, dump_path: str | None = None) -> None:
        super().__init__(message, dump_path)
        self.message = message
        self.dump_path = dump_path

    def __str__(self) -> str:
        how = (
            f"note: the program at that point is in {self.dump_path}; "
            f"reproduce with: tilec compile {self.dump_path}"
            if self.dump_path
            else "note: run again with TILEC_DUMP=<directory> to keep the program at every level"
        )
        return (
            f"internal error: {self.message}\n"
            f"note: this is a bug in tilec, not in your program; please report it\n{how}"
        )


def _headed(kind: str, text: str, location: Location | None) -> list[str]:
    """The line "position: kind text" and, where the source is known, the excerpt under it."""
    if location is None:
        return [kind + text]
    return [f"{location}: {kind}{text}", *_excerpt(location)]


def _without_plain_caret(lines: list[str]) -> list[str]:
    """The lines of a note without the one of the caret where that is under the first letter: as
    good as no caret, and tracebacks stay short."""
    if len(lines) < 3:
        return lines
    (_, _, source), (_, _, caret) = (line.partition("| ") for line in lines[1:])
    return lines[:2] if len(source) - len(source.lstrip()) == len(caret) - 1 else lines


def _excerpt(location: Location) -> list[str]:
    """The source line and the caret line, both behind a gutter with the line number."""
    line = source_line(location)
    if line is None:
        return []
    before = line.encode("utf-8", "replace")[: max(location.column - 1, 0)]
    caret = len(before.decode("utf-8", "ignore"))
    start = max(0, caret - _EXCERPT_WIDTH // 2) if len(line) > _EXCERPT_WIDTH else 0
    shown = "".join(_printable(character) for character in line[start : start + _EXCERPT_WIDTH])
    # A tab stays a tab above and below, so the two lines agree whatever the terminal's tab stops.
    padding = "".join(
        "\t" if character == "\t" else " " * _columns(character)
        for character in shown[: caret - start]
    )
    number = str(location.line)
    return [f"{number:>4} | {shown}".rstrip(), f"{'':>{max(4, len(number))}} | {padding}^"]


def _printable(character: str) -> str:
    return character if character.isprintable() or character == "\t" else "?"


def _columns(character: str) -> int:
    """The number of terminal columns that a printable character takes (Unicode UAX #11)."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
