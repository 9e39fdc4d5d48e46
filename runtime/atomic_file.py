"""Files that other processes see whole or not at all."""

from __future__ import annotations

import importlib
import os
from contextlib import suppress
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Writes `content` beside `path`, then renames it over `path`. OSError as usual."""
    tempfile = importlib.import_module("tempfile")  # 2 ms that a process which only reads saves
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, aside = tempfile.mkstemp(prefix=path.name[:8], suffix=".part", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(aside, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(aside)
        raise
