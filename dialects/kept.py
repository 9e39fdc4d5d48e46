"""Answers about types and attributes, kept as long as their context is the last one made.

IRDL gives Python no access to parameters, so an answer costs a text. MLIR has one object of each
type and attribute in a context, and another never takes its place while somebody holds it, as what
is kept does: an answer stays right. But it keeps its context alive, of 1.3 MB, so that the next
context drops what was kept of others (`make_context`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

Answer = TypeVar("Answer")

_KEPT: list[Any] = []


def kept(ask: Callable[[Any], Answer]) -> Callable[[Any], Answer]:
    """Decorator: keeps what a function of a type or an attribute gives for each."""
    asked = functools.cache(ask)
    _KEPT.append(asked)
    return asked


def forget() -> None:
    """Drops all that was kept."""
    for asked in _KEPT:
        asked.cache_clear()
