"""Where the programs of a compilation are kept at every level, if anybody asks for that."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

from tilec.messages.diagnostics import CompileError

DUMP = "TILEC_DUMP"
"""Environment variable: a folder for the program at every level; nothing comes from the disk cache
then."""

_numbers = itertools.count()


def next_dump(name: str) -> str | None:
    """A folder of its own for one compilation in that of the environment's `DUMP`, if it has any:
    the process's kernels in order."""
    folder = os.environ.get(DUMP)
    return str(Path(folder, f"{next(_numbers):03}-{name}")) if folder else None


def write_dump(path: Path, text: str) -> None:
    """Writes a file of such a folder. CompileError where that cannot be done."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError as error:
        raise CompileError(f"cannot write {path}: {error.strerror or error}") from None
