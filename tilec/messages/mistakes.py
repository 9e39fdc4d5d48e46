"""Marks errors of Python's as the author's mistakes."""

from __future__ import annotations

from typing import TypeVar

E = TypeVar("E", bound=Exception)


def mistake(error: E) -> E:
    """The same error, marked: its traceback ends at the author's line (`tracebacks.py`)."""
    error.is_mistake = True  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue]
    return error
