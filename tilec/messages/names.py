"""Guesses what a misspelt name was meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """A "did you mean" note where a known name is close, else nothing."""
    close = difflib.get_close_matches(name, [k for k in known if not k.startswith("__")], n=1)
    return (f"help: did you mean '{close[0]}'?",) if close else ()
