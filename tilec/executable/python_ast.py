"""Parsing Python text, from any thread."""

from __future__ import annotations

import ast
from typing import Any

from tilec.executable.thread_lock import ThreadLock

_ALONE = ThreadLock()


def parse_python(text: str, mode: str = "exec") -> Any:
    """Calls `ast.parse` one at a time: before Python 3.11.6 two threads in it may end in a
    SystemError ("AST constructor recursion depth mismatch", python/cpython issue 106905)."""
    with _ALONE.lock:
        return ast.parse(text, mode=mode)
