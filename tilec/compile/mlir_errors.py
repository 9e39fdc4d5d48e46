"""MLIR's diagnostics as the compiler's own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from mlir import ir

from tilec.dialects import gpu_tile, tile
from tilec.messages.diagnostics import CompileError, Location, Note
from tilec.messages.names import did_you_mean
from tilec.passes.rewriting.locations import source_location

_NOTHING: Mapping[str, str] = MappingProxyType({})


@contextmanager
def interruptible() -> Iterator[None]:
    """Makes Ctrl-C, while MLIR calls Python code (a walk), a KeyboardInterrupt again: MLIR's
    bindings make a RuntimeError with a traceback as its text of whatever is raised there."""
    try:
        yield
    except RuntimeError as error:
        if re.search(r"^\s*KeyboardInterrupt\b", str(error), re.MULTILINE):
            raise KeyboardInterrupt from None
        raise


def compile_error(error: ir.MLIRError, names: Mapping[str, str] = _NOTHING) -> CompileError:
    """Gathers every diagnostic of an MLIRError, files renamed by `names`.

    Notes that only print the op again are left out: the source line stands above.
    """
    return CompileError.group(
        CompileError(found.message, _located(found.location, names), _notes(found, names))
        for found in error.error_diagnostics
    )


def _located(location: ir.Location, names: Mapping[str, str]) -> Location | None:
    found = source_location(location)
    if found is None:
        return None
    return Location(names.get(found.file, found.file), max(found.line, 1), max(found.column, 1))


def _notes(found: ir.DiagnosticInfo, names: Mapping[str, str]) -> list[Note]:
    notes: list[Note] = list(_meant(found.message))
    for note in found.notes:
        if note.message.startswith("see current operation"):
            continue
        position = _located(note.location, names)
        notes.append(note.message if position is None else (note.message, position))
    return notes


def _meant(message: str) -> tuple[str, ...]:
    """A guess which op a misspelt one of ours was meant to be."""
    unknown = re.match(r"unregistered operation '((?:gpu_)?tile\.\w+)'", message)
    ops = (*tile.Op.ALL, *gpu_tile.Op.ALL)
    return did_you_mean(unknown[1], (op.OPERATION_NAME for op in ops)) if unknown else ()
